"""Language models: prompts and their typed answers."""
