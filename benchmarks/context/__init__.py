"""The context of a prompt: how much of the evidence it shows within a token budget, and its cost."""
