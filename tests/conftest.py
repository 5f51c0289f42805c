"""What all tests share: they see no setting of the machine that they run on, and no network.

Fixtures of one subject stand in the folder or the file of that subject; here is what several need.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

from memory_engine import MemoryEngine
from scripts.build_config_docs import names_of
from souvenir.settings import Settings
from tests.fake_embedder import FakeEmbedder
from tests.vendors.embeddings import VendorServer

# Timing on a shared machine says nothing about the code, so no example has a deadline.
hypothesis_settings.register_profile("souvenir", deadline=None)
hypothesis_settings.load_profile("souvenir")

TESTS = Path(__file__).parent
FIRST = (
    "api/test_conformance.py",
    "test_durability.py",
    "erasure/test_canaries.py",
    "api/test_access_table.py",
    "engine/test_state_machine.py",
    "api/test_echo.py",
    "api/test_isolation.py",
    "api/test_learned_with.py",
    "api/test_app.py",
    "test_overload.py",
    "transfer/test_kill.py",
    "api/test_jobs.py",
    "llm/test_failures.py",
    "extraction/test_pipeline_malformed.py",
    "erasure/test_kill.py",
    "tending/test_kill.py",
    "conversation/test_search_machine.py",
)
"""The files that take longest, begun first: one that begins last keeps a worker busy while the others have nothing."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays until the end, so the garbage collector never has to look at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        # With little left to look at, Python would look at all of it far more often than it does outside of tests.
        gc.set_threshold(700, 10, 100)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {TESTS / name: place for place, name in enumerate(FIRST)}
    if missing := [str(path) for path in places if not path.exists()]:
        raise pytest.UsageError(f"Take out of FIRST in tests/conftest.py what is not there: {', '.join(missing)}.")
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="session", autouse=True)
def _hermetic_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # In the place of the developer's own; processes that tests start read it too.
    saved = tmp_path_factory.mktemp("saved") / "config.json"
    saved.write_text("{}", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for field_name, field in Settings.model_fields.items():
            for name in names_of(field_name, field):
                patch.delenv(name, raising=False)
        patch.setenv("CONFIG_FILE", str(saved))
        patch.setitem(Settings.model_config, "env_file", None)
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def engine(settings: Settings) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        engine.warm_up()
        yield engine


@pytest.fixture
def vendor() -> Iterator[VendorServer]:
    vendor = VendorServer()
    vendor.start()
    yield vendor
    vendor.stop()
