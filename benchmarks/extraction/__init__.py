"""Quality and cost of extraction on labelled conversations: facts, corrections and types."""
