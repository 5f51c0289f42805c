"""The layer between a vendor's SDK and the vendor: it captures conversations, and adds context."""
