"""Tables of extractions and extraction profiles."""
