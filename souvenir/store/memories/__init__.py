"""Tables of memories, facts, tags, links and their history."""
