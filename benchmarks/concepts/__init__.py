"""Quality of the concepts found in texts, on hand-made labels."""
