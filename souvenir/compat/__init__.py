"""Other systems' wire formats, over the same services."""
