"""The asynchronous client. souvenir_client.sync is made from this by `python -m scripts.build_client`."""
