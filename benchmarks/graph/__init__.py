"""What the graph of concepts would add to search, on labelled data."""
