"""An S3 server for the tests of cloud sync, and settings with which a service uses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.vendors.s3 import ACCESS_KEY_ID, BUCKET, SECRET, S3Server

PASSPHRASE = "correct horse battery staple"


@pytest.fixture(scope="session")
def _s3_process() -> Iterator[S3Server]:
    server = S3Server()
    server.wait()
    yield server
    server.close()


@pytest.fixture
def s3(_s3_process: S3Server) -> S3Server:
    """A store with an empty bucket."""
    _s3_process.reset()
    return _s3_process


@pytest.fixture
def sync_values(s3: S3Server) -> dict[str, Any]:
    """The settings of a bucket without a passphrase and without scheduled uploads."""
    return {
        "sync_bucket": BUCKET,
        "sync_endpoint_url": s3.address,
        "sync_region": "us-east-1",
        "sync_access_key_id": ACCESS_KEY_ID,
        "sync_secret_access_key": SECRET,
        "sync_interval_hours": 0,
    }
