"""The pure pieces of learning from conversations: transcripts, what is never learned, quotes, windows."""
