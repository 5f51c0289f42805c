"""What all tests share: they see no setting of the machine that they run on, and no network.

Fixtures of one subject stand in the folder or the file of that subject; here is what several need.
"""

from __future__ import annotations

from collections.abc import Iterator
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


@pytest.fixture(scope="session", autouse=True)
def _hermetic_settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for field_name, field in Settings.model_fields.items():
            for name in names_of(field_name, field):
                patch.delenv(name, raising=False)
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
