"""What the service is made of: the store, the indexes, search, and the HTTP routers."""
