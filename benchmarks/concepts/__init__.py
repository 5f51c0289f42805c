"""What concepts find in conversations, judged by a tagger that is no part of the project."""
