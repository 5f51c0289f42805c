"""A store under random operations, with a snapshot of its content after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

from souvenir.core.errors import SouvenirError
from souvenir.core.timestamps import utc_now
from souvenir.core.types import FactsBy, Memory, MemoryDraft, MemoryPatch, OnDuplicate, OriginClass, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.fact_splitting import Split
from souvenir.memories.fact_writes import write_facts
from souvenir.store.memories.reads import SUPERSEDES
from tests.memories.engine.verbs import DEFAULT, stored

WORDS = "garden bread violin harbour winter berlin teacher engine mountain letter river kitchen".split()
SOURCES = ["a", "a/b", "ab", "chat"]
MAY = datetime(2023, 5, 8, 12, tzinfo=UTC)


Deed = Callable[[MemoryEngine, Random, list[int]], None]


@dataclass(frozen=True)
class Moment:
    """The stored memories at a time."""

    at: datetime
    memories: tuple[Memory, ...]


def live(engine: MemoryEngine, chance: Random, deeds: int, *, deletes: bool = True) -> list[Moment]:
    """Run random operations and record the stored memories after each."""
    return list(_moments(engine, chance, deeds, [one for one in DEEDS if deletes or one is not _delete]))


def _moments(engine: MemoryEngine, chance: Random, deeds: int, may: Sequence[Deed]) -> Iterator[Moment]:
    yield Moment(utc_now(), ())
    for _ in range(deeds):
        deed = chance.choice(may)
        try:
            deed(engine, chance, [memory.id for memory in stored(engine)] or [1])
        except SouvenirError:
            continue
        yield Moment(utc_now(), tuple(stored(engine)))


def without_forgotten(memories: tuple[Memory, ...], forgotten: set[int]) -> list[Memory]:
    """Return past states as shown after these were deleted."""
    kept = [memory for memory in memories if memory.id not in forgotten]
    texts = {memory.id: memory.text for memory in kept}
    newer = {link.to_id: memory.id for memory in kept for link in memory.links if link.type == SUPERSEDES}
    return [_unlinked(memory, texts, newer.get(memory.id)) for memory in kept]


def _unlinked(memory: Memory, texts: dict[int, str], superseded_by: int | None) -> Memory:
    links = tuple(link for link in memory.links if link.to_id in texts)
    replaced = [link for link in links if link.type == SUPERSEDES]
    text = texts[replaced[0].to_id] if len(replaced) == 1 else None
    return replace(memory, links=links, superseded_by=superseded_by, previous_text=text)


def said(chance: Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(2, 9)))


def _day(chance: Random) -> datetime:
    """Return one of a few dates: memories of one source and one given time share words."""
    return MAY + timedelta(days=chance.randint(0, 3))


def _draft(chance: Random) -> MemoryDraft:
    return MemoryDraft(
        said(chance),
        chance.choice(SOURCES),
        {"n": chance.randint(0, 2)},
        key=chance.choice([None, None, "k1", "k2"]),
        document_at=chance.choice([None, None, _day(chance)]),
        pinned=chance.random() < 0.1,
        origin_class=chance.choice(list(OriginClass)),
    )


def _add(engine: MemoryEngine, chance: Random, ids: list[int]) -> None:
    engine.add_batch(DEFAULT, [replace(_draft(chance), key=None) for _ in range(2)])


def _replace(engine: MemoryEngine, chance: Random, ids: list[int]) -> None:
    engine.add(DEFAULT, _draft(chance), on_duplicate=OnDuplicate.SUPERSEDE)


def _upsert(engine: MemoryEngine, chance: Random, ids: list[int]) -> None:
    engine.upsert(DEFAULT, [replace(_draft(chance), key="k1")])


def _patch(engine: MemoryEngine, chance: Random, ids: list[int]) -> None:
    patch = chance.choice(
        [
            MemoryPatch(text=said(chance)),
            MemoryPatch(text=said(chance), source=chance.choice(SOURCES)),
            MemoryPatch(source=chance.choice(SOURCES), pinned=chance.random() < 0.3),
            MemoryPatch(archived=chance.random() < 0.5),
            MemoryPatch(metadata={"n": chance.randint(0, 2)}, document_at=_day(chance)),
            MemoryPatch(remove_document_at=True),
        ]
    )
    engine.update(DEFAULT, chance.choice(ids), patch)


def _supersede(engine: MemoryEngine, chance: Random, ids: list[int]) -> None:
    engine.supersede(DEFAULT, chance.choice(ids), text=said(chance))


def _merge(engine: MemoryEngine, chance: Random, ids: list[int]) -> None:
    engine.merge(DEFAULT, chance.choices(ids, k=2), text=said(chance), source=chance.choice(SOURCES))


def _archive(engine: MemoryEngine, chance: Random, ids: list[int]) -> None:
    engine.archive(DEFAULT, [chance.choice(ids)])


def _delete(engine: MemoryEngine, chance: Random, ids: list[int]) -> None:
    engine.delete(Scope(), chance.choice(ids), force=True)


def _own(engine: MemoryEngine, chance: Random, ids: list[int]) -> None:
    tags = tuple(chance.sample(["Work", "work", "home", "b c"], k=2))
    facts = tuple(said(chance) for _ in range(chance.randint(0, 3)))
    patches = [
        MemoryPatch(tags=tags),
        MemoryPatch(add_tags=tags[:1], remove_tags=tags[1:]),
        MemoryPatch(facts=facts),
        MemoryPatch(text=said(chance), facts=facts, tags=tags),
    ]
    engine.update(DEFAULT, chance.choice(ids), chance.choice(patches))


def _split(engine: MemoryEngine, chance: Random, ids: list[int]) -> None:
    found = engine.get(DEFAULT, [chance.choice(ids)])
    for memory in found.values():
        write_facts(engine, DEFAULT, memory, Split((said(chance), memory.text), FactsBy.SENTENCES))


DEEDS: list[Deed] = [
    *(_add, _add, _replace, _upsert, _patch, _patch, _patch, _supersede, _merge, _archive, _delete),
    *(_own, _own, _own, _split),
]
