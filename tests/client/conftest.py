"""A running service for the client, without settings of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.running import RunningService


@pytest.fixture(scope="session", autouse=True)
def _no_addresses_of_the_machine() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SOUVENIR_URL", "SOUVENIR_API_KEY", "SOUVENIR_AGENT", "SOUVENIR_HOME", "MEMORY_SERVER_URL"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """One service for the tests of a file: each uses agents and namespaces of its own."""
    service = RunningService(tmp_path_factory.mktemp("service") / "data", extract_fallback_add=True)
    service.start()
    yield service
    service.stop()


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[RunningService]:
    """A service of one test, which may stop it and start it again."""
    service = RunningService(tmp_path / "data")
    service.start()
    yield service
    service.stop()
