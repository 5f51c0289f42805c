"""The effect of the graph of concepts on search, on labelled data."""
