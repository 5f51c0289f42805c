"""Speed, size and start-up of the engine, compared with the baseline and with FAISS alone."""
