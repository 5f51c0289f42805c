"""What search finds, on labelled data sets, through the engine's public verbs."""
