"""Speed, size and start-up of the engine, beside the baseline and beside FAISS alone."""
