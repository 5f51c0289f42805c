"""The asynchronous client; `souvenir_client.sync` is generated from it."""
