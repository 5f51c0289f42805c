"""The model that a service starts with, and its behaviour if that model is unavailable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from souvenir.core.errors import EmbeddingUnavailable, StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.stored_json import to_json
from souvenir.core.types import MemoryDraft
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import chosen_model
from souvenir.models.embedding.specs import ModelSpec
from tests.fake_embedder import FakeEmbedder
from tests.memories.reembedding.conftest import DEFAULT
from tests.memories.reembedding.embedders import FAKE, OTHER, OtherEmbedder, make_any

pytestmark = pytest.mark.usefixtures("unfiltered_logs")

OpenChosen = Callable[..., MemoryEngine]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenChosen]:
    """Opens a store with the model chosen for these settings; the previous store is closed first."""
    open_now: list[MemoryEngine] = []

    def open_it(model: str, make: Callable[[ModelSpec], FakeEmbedder] = make_any) -> MemoryEngine:
        while open_now:
            open_now.pop().close()
        settings = Settings(data_dir=tmp_path, embed_model=model)
        embedder, spec = chosen_model(settings, make)
        open_now.append(MemoryEngine.open(settings, embedder, model_spec=to_json(spec.to_json())))
        return open_now[-1]

    yield open_it
    for engine in open_now:
        engine.close()


def serving(engine: MemoryEngine) -> str:
    return engine.models.serving.embedder.model_id


def fill(engine: MemoryEngine) -> None:
    engine.add(DEFAULT, MemoryDraft("red apple", "s"))


def test_the_model_of_the_stored_vectors_is_used_regardless_of_the_settings(opened: OpenChosen):
    fill(opened("fake"))
    with capture_logs() as logs:
        assert serving(opened("other")) == "fake@1"
    [warning] = [entry for entry in logs if entry["event"] == "other_model_named"]
    assert (warning["log_level"], warning["serving"], warning["named"]) == ("warning", "fake", "other")
    assert "POST /maintenance/reembed" in warning["action"]
    with capture_logs() as logs:
        assert serving(opened("fake")) == "fake@1"
    assert [entry for entry in logs if entry["event"] == "other_model_named"] == []


def test_an_empty_store_uses_the_model_of_the_settings(opened: OpenChosen):
    opened("fake")
    assert serving(opened("other")) == "other@1"


def test_a_moved_model_is_found_by_the_settings(opened: OpenChosen):
    fill(opened("fake"))

    def moved(spec: ModelSpec) -> FakeEmbedder:
        if spec.model == "fake":
            raise EmbeddingUnavailable("there is no such folder")
        return FakeEmbedder()

    assert serving(opened("elsewhere/fake", moved)) == "fake@1"
    with closing(opened("elsewhere/fake", moved)) as engine, engine.namespace(DEFAULT) as (connection, _):
        [(spec,)] = connection.execute("SELECT value FROM meta WHERE key = 'model_spec'").fetchall()
    assert '"elsewhere/fake"' in str(spec)


def test_a_store_whose_model_is_unavailable_is_refused(opened: OpenChosen):
    fill(opened("fake"))

    def replaced(spec: ModelSpec) -> FakeEmbedder:
        """Simulates other weights under the same name."""
        return OtherEmbedder()

    with pytest.raises(StoreUnusable, match=r"made by fake@1 and EMBED_MODEL is other@1"):
        opened("fake", replaced)
    with pytest.raises(StoreUnusable, match=r"made by fake@1 and EMBED_MODEL is other@1"):
        opened("other", replaced)


def test_an_old_store_without_a_model_spec_is_refused_with_another_model(opened: OpenChosen, tmp_path: Path):
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
        fill(engine)
    with pytest.raises(StoreUnusable, match=r"made by fake@1 and EMBED_MODEL is other@1"):
        opened("other")
    assert serving(opened("fake")) == "fake@1"
    assert serving(opened("other")) == "fake@1"


def test_the_specs_of_these_tests_equal_those_of_the_settings():
    assert ModelSpec.of(Settings(embed_model="fake")) == FAKE
    assert ModelSpec.of(Settings(embed_model="other")) == OTHER
