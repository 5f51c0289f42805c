"""Access: API keys, failed attempts, authentication, and the audit log."""
