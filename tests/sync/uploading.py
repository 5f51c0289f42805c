"""A process that begins an upload, prints a line when a part of it is in the bucket, and waits to be killed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from tests.api.conftest import BASE_URL
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.vendors.s3 import ACCESS_KEY_ID, BUCKET, SECRET, client_of


def main(data_dir: str, endpoint: str, server: str) -> None:
    settings = Settings(
        data_dir=Path(data_dir),
        sync_bucket=BUCKET,
        sync_endpoint_url=endpoint,
        sync_region="us-east-1",
        sync_access_key_id=ACCESS_KEY_ID,
        sync_secret_access_key=SecretStr(SECRET),
        sync_interval_hours=0,
    )
    s3 = client_of(server)
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
        client.post("/sync/upload", params={"wait_s": 0}).raise_for_status()
        while not parts_of(s3):
            time.sleep(0.02)
        print("begun", flush=True)
        time.sleep(600)


def parts_of(s3: Any) -> int:
    """The number of parts of unfinished uploads."""
    uploads = s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    return sum(
        len(s3.list_parts(Bucket=BUCKET, Key=one["Key"], UploadId=one["UploadId"]).get("Parts", [])) for one in uploads
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
