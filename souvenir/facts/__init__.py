"""What a memory says, one statement each, and the tags that callers give it."""
