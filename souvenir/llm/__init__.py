"""What asks language models: the question and its typed answer, the wire of each vendor, what is done when it fails."""
