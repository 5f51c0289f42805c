"""A service whose receiver kills it at the first delivery: `python -m tests.api.webhook_process FOLDER PORT`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from tests.fake_embedder import FakeEmbedder, fake_of

if __name__ == "__main__":
    folder, port = Path(sys.argv[1]), sys.argv[2]
    settings = Settings(data_dir=folder / "data", webhook_allowed_hosts="127.0.0.1")  # type: ignore[arg-type]
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url="http://localhost") as client:
        hook = {"url": f"http://127.0.0.1:{port}/{os.getpid()}", "events": ["memory.added"]}
        client.post("/webhooks", json=hook).raise_for_status()
        client.post("/memory/add", json={"text": "one", "source": "a"}).raise_for_status()
        time.sleep(60)
