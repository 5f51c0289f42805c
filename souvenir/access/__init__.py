"""Who may ask, and for what: keys, failed attempts, and the door that turns a sent key into a scope."""
