"""An S3 server for the tests of cloud sync, and settings with which a service uses it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
import pytest

from souvenir.sync import encryption
from tests.vendors.s3 import ACCESS_KEY_ID, BUCKET, SECRET, S3Server

PASSPHRASE = "correct horse battery staple"
CHEAP_LOG2_N = 4


@pytest.fixture(scope="module", autouse=True)
def _cheap_keys() -> Iterator[None]:
    """Derive keys with cheap parameters of scrypt, which are in each header; one test uses the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encryption, "SCRYPT_LOG2_N", CHEAP_LOG2_N)
        yield


@pytest.fixture(scope="module", autouse=True)
def _models_read_once() -> Iterator[None]:
    """Every client would read and parse botocore's description of S3 again, which takes longer than a transfer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        yield


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
