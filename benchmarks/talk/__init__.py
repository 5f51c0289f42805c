"""The cost of searching and adding to one agent's long history, without the model."""
