"""An agent's graph at 100,000 messages: whether its filling keeps up, and what reading it costs."""
