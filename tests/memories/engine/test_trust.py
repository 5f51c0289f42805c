"""The origin of texts: no operation makes one more trusted than its sources."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from souvenir.core.errors import SouvenirError
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, OnDuplicate, OriginClass, Scope, least_trusted
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder
from tests.memories.engine.verbs import DEFAULT, add, memory, stored

SAID = ["the garden has a pear tree", "the garden has a pear tree now", "a violin stands in the winter kitchen"]
classes = st.sampled_from(list(OriginClass))
steps = st.tuples(
    st.sampled_from(["add", "replace", "upsert", "patch", "supersede", "merge"]),
    st.integers(0, 9),
    st.sampled_from(SAID),
    classes,
)


def test_a_merged_text_has_the_lowest_trust_of_its_sources(engine: MemoryEngine):
    said, inferred = (add(engine, SAID[0], origin_class=one) for one in (OriginClass.USER, OriginClass.INFERRED))
    assert memory(engine, said).origin_class is OriginClass.USER
    merged = engine.merge(DEFAULT, [said, inferred], text="pears", source="notes").id
    assert memory(engine, merged).origin_class is OriginClass.INFERRED
    newer = engine.supersede(DEFAULT, merged, text="many pears", origin_class=OriginClass.DOCUMENT).new_id
    assert memory(engine, newer).origin_class is OriginClass.INFERRED
    lower = engine.supersede(DEFAULT, newer, text="some pears", origin_class=OriginClass.RECALLED).new_id
    assert memory(engine, lower).origin_class is OriginClass.RECALLED


def test_a_new_text_can_lower_the_trust_of_a_memory_but_not_raise_it(engine: MemoryEngine):
    told = add(engine, SAID[0], key="k", origin_class=OriginClass.TOOL)
    for given_class, expected in ((None, "tool"), (OriginClass.USER, "tool"), (OriginClass.ASSISTANT, "assistant")):
        engine.update(DEFAULT, told, MemoryPatch(text=SAID[1], origin_class=given_class))
        assert memory(engine, told).origin_class == expected
    engine.upsert(DEFAULT, [MemoryDraft(SAID[2], "notes", key="k")])
    assert memory(engine, told).origin_class is OriginClass.ASSISTANT
    assert engine.check() == []


@hypothesis_settings(max_examples=25, deadline=None)
@given(st.lists(steps, min_size=4, max_size=16))
def test_no_operation_raises_trust(taken: list[tuple[str, int, str, OriginClass]]):
    with TemporaryDirectory(prefix="souvenir-test-") as folder:
        engine = MemoryEngine.open(Settings(data_dir=Path(folder)), FakeEmbedder())
        try:
            for step in taken:
                before = {one.id: one.origin_class for one in stored(engine)}
                with_what_it_is_from(engine, before, *step)
        finally:
            engine.close()


def with_what_it_is_from(
    engine: MemoryEngine, before: dict[int, OriginClass], verb: str, number: int, text: str, said: OriginClass
) -> None:
    ids = sorted(before)
    chosen = ids[number % len(ids)] if ids else 1
    draft = MemoryDraft(text, "notes", key=f"k{number % 3}" if verb == "upsert" else None, origin_class=said)
    try:
        match verb:
            case "add":
                engine.add(Scope(), draft)
            case "replace":
                engine.add(Scope(), draft, on_duplicate=OnDuplicate.SUPERSEDE)
            case "upsert":
                engine.upsert(Scope(), [draft])
            case "patch":
                engine.update(Scope(), chosen, MemoryPatch(text=text, origin_class=said))
            case "supersede":
                engine.supersede(Scope(), chosen, text=text, origin_class=said)
            case "merge":
                engine.merge(Scope(), [chosen, *ids[:1]], text=text, source="notes")
    except SouvenirError:
        return
    for one in stored(engine):
        # What a memory was made from can be lowered later, without it.
        of_now = [before[link.to_id] for link in one.links if link.type == "supersedes"]
        made_from = [before[one.id]] if one.id in before else of_now
        if made_from:
            assert one.origin_class.trust <= least_trusted(made_from).trust


@pytest.mark.parametrize("verb", ["supersede", "merge"])
def test_the_last_history_state_equals_the_row(engine: MemoryEngine, verb: str):
    old = [add(engine, text, origin_class=OriginClass.INFERRED) for text in SAID[::2]]
    if verb == "merge":
        new = engine.merge(DEFAULT, old, text="both", source="notes").id
    else:
        new = engine.supersede(DEFAULT, old[0], text="newer").new_id
    with engine.namespace(DEFAULT) as (connection, _):
        row = "SELECT after ->> 'origin_class' FROM history WHERE memory_id = ? ORDER BY id DESC LIMIT 1"
        assert connection.execute(row, (new,)).get == "inferred" == memory(engine, new).origin_class
