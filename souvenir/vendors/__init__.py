"""What asking another server has in common, whatever it is asked for: its address, its key, when to ask again."""
