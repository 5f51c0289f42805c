"""An agent's graph at 100,000 messages: indexing throughput and the cost of reads."""
