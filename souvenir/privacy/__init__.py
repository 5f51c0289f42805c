"""Detection of secrets, personal data and sensitive topics in texts, and their redaction or rejection."""
