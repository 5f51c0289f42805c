"""Secrets, personal data and sensitive topics in texts: found, replaced, or refused. Pure: no store, no HTTP."""
