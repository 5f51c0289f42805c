"""Folders for clusters. Those of pytest are closed to other users, such as the one that runs PostgreSQL for root."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def cluster_folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="souvenir-replicas-") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def module_folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="souvenir-replicas-") as folder:
        yield Path(folder)
