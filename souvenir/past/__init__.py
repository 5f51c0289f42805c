"""What the memories were: every change of one, and lists and searches of a moment that is over."""
