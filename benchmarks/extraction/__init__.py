"""What extraction makes of conversations, on labelled data: facts, corrections and types, and what it costs."""
