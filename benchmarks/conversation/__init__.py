"""The three tiers at many messages, beside the targets of the system that they come from, and beside its searches."""
