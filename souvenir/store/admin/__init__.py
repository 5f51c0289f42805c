"""Tables of API keys, audit, jobs and transfers."""
