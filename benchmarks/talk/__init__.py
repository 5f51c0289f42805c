"""What a search of one agent's long history costs, and an add to it, without the model."""
