"""The synchronous client, made from souvenir_client.aio by `python -m scripts.build_client`."""
