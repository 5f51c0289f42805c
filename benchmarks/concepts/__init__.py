"""Quality of the concepts found in conversations, judged by an independent tagger."""
