"""An export imported into an empty store exports the same bytes, except for marked history."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from souvenir.api.transfer_lines import json_line
from souvenir.core.errors import SouvenirError
from souvenir.core.timestamps import utc_now
from souvenir.core.types import FactsBy, Link, Memory, MemoryDraft, MemoryPatch, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import transfers
from tests.memories.engine.verbs import stored
from tests.thoroughness import sampled
from tests.transfer.stores import DEFAULT, lines_of, open_store, without_header

Verb = Callable[[MemoryEngine], object]

MAY = datetime(2023, 5, 8, 12, 30, 0, 123456, tzinfo=UTC)
LONG = " ".join(f"Sentence {number} of a long report." for number in range(90))
ACTORS = ["ann", "the keeper"]

ids = st.integers(1, 12)
texts = st.sampled_from(
    ["Ann plays the violin", "東京都 café\n\u2028 'quoted' \"text\"", LONG, "🎻", "\\ \t a tab", "x"]
)
sources = st.sampled_from(["notes", "a/b", "a/bc", "ü/日本"])
moments = st.none() | st.integers(-2_000 * 365, 2_900 * 365).map(lambda days: MAY + timedelta(days=days, seconds=days))
metadata = st.sampled_from([{}, {"lang": "dé", "n": 1}, {"n": 1.0, "b": True, "z": None}, {"tags": {"é": [1, "x"]}}])
scopes = st.builds(lambda actor: Scope(actor=actor), st.sampled_from(ACTORS))
keys = st.sampled_from([None, None, "k1", "k2", "schlüssel"])
tags = st.lists(st.sampled_from(["Work", "work", "Ｗork", "naïve tag", "日本", "k-1"]), max_size=3).map(tuple)
facts = st.lists(texts | st.sampled_from(["Ann plays", "a fact", "日本の事実"]), max_size=3, unique=True).map(tuple)
drafts = st.builds(
    MemoryDraft,
    texts,
    sources,
    metadata,
    keys,
    moments,
    st.booleans(),
    st.booleans(),
    tags=tags,
    facts=facts,
    facts_by=st.sampled_from(FactsBy),
)


def verb(name: str, *parts: st.SearchStrategy[object], **named: st.SearchStrategy[object]) -> st.SearchStrategy[Verb]:
    """A call of the engine with drawn arguments, by somebody."""

    def make(scope: Scope, args: tuple[object, ...], kwargs: dict[str, object]) -> Verb:
        return lambda engine: getattr(engine, name)(scope, *args, **kwargs)

    return st.builds(make, scopes, st.tuples(*parts), st.fixed_dictionaries(named))


def link(from_id: int, to_id: int, link_type: str) -> Verb:
    """As a route for links will make them: never from a memory to itself."""
    made = Link(from_id, to_id + (to_id == from_id), link_type, utc_now())
    return lambda engine: engine.write(DEFAULT, lambda tx: transfers.insert_link(tx.connection, made))


VERBS = st.one_of(
    verb("add", drafts),
    verb("add_batch", st.lists(drafts, min_size=1, max_size=4)),
    verb("upsert", st.lists(drafts, min_size=1, max_size=3)),
    verb("supersede", ids, text=texts),
    verb("merge", st.lists(ids, min_size=2, max_size=3), text=texts, source=sources),
    verb("archive", st.lists(ids, min_size=1, max_size=3)),
    verb("delete", ids, force=st.booleans()),
    verb("update", ids, st.builds(MemoryPatch, text=texts, source=sources, pinned=st.booleans())),
    verb("update", ids, st.builds(MemoryPatch, metadata=metadata, archived=st.booleans())),
    verb("update", ids, st.builds(MemoryPatch, text=st.none() | texts, facts=facts, facts_by=st.sampled_from(FactsBy))),
    verb("update", ids, st.builds(MemoryPatch, tags=st.none() | tags, add_tags=tags, remove_tags=tags)),
    st.builds(link, ids, ids, st.sampled_from(["related_to", "reinforces"])),
)


def without_ids(memory: Memory) -> Memory:
    """Facts are others in another store."""
    return replace(memory, facts=tuple(replace(fact, id=0) for fact in memory.facts))


def unmarked(export: bytes) -> bytes:
    """The export of an import, without what it says of that import: the marks, and its own entry in each history."""

    def line(said: dict[str, Any]) -> bytes:
        if "history" in said:
            *brought, own = said["history"]
            assert (own["action"], own["imported"]) == ("import", False)
            assert all(entry["imported"] for entry in brought)
            said["history"] = [{**entry, "imported": False} for entry in brought]
        return json_line(said)

    return b"".join(map(line, lines_of(export)))


@given(verbs=st.lists(VERBS, min_size=1, max_size=25), history=st.booleans())
@settings(max_examples=sampled(20, 60))
def test_export_import_into_an_empty_store_and_export_are_the_same_bytes(verbs: list[Verb], history: bool):
    with TemporaryDirectory() as folder:
        with open_store(Path(folder) / "one") as one:
            for act in verbs:
                with suppress(SouvenirError):
                    act(one.engine)
            left = one.export(history=history)
            memories = list(map(without_ids, stored(one.engine)))
        with open_store(Path(folder) / "other") as other:
            report = other.import_(left)
            assert report["errors"] == []
            assert report["imported"] == len(memories)
            came = unmarked(other.export(history=history))
            assert list(map(without_ids, stored(other.engine))) == memories
            assert list(other.engine.check()) == []
    assert without_header(came) == without_header(left)
