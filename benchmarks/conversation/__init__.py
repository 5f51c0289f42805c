"""The three tiers with many messages, compared with the targets and the searches of the original system."""
