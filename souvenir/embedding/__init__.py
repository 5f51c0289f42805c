"""What `OnnxEmbedder` is made of: the model's files and settings, its tokens, its session, and the batcher."""
