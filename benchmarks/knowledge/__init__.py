"""The quality of an agent's page: its insights and descriptions, on labelled conversations."""
