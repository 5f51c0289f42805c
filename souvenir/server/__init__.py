"""HTTP server: middleware, authentication, admission, metrics and wiring."""
