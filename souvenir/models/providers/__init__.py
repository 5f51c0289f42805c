"""Shared access to model providers: endpoints, the HTTP client, retries and the circuit breaker."""
