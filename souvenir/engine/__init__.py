"""The longer paths of the engine: preparing texts for storage, and recalling them."""
