"""What the rules of privacy find, character by character, beside Presidio's regex recognisers."""
