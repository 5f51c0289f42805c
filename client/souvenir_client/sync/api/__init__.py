"""The operations of the HTTP API; made by `python -m scripts.build_client`."""
