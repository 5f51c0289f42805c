"""The contents of a store by the keys that stand in their texts, and their comparison with what must be there.

A text begins with its key, a word that no other object has, and a word for its version. So an object whose id was never
answered can be told from all others, and a search for its key must find it.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from structlog.testing import capture_logs

from benchmarks.fake_embedder import FakeEmbedder
from benchmarks.faults.part import Outcome
from souvenir.conversations.blocks import Blocks
from souvenir.conversations.message_search import MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import AgentNotFound, SouvenirError
from souvenir.core.service_warnings import ServiceWarning
from souvenir.core.settings import Settings
from souvenir.core.types import Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import MessageFilter

SCOPES = (Scope(), Scope("ann", "ann"), Scope("ben", "ben"))
"""The namespaces of the battery; the latter two are agents."""

SEARCHED = 6
MAX_ROWS = 100_000

_KEY = re.compile(r"(?:memory|message|block)[0-9][0-9a-f]{10}x")
_KEY_BYTES = re.compile(_KEY.pattern.encode())
WORDS = (
    "amber birch cedar delta ember fjord grove harbor island jasper kettle lagoon meadow nectar orchid pebble".split()
)

Contents = Mapping[str, Sequence[str]]


def new_key(kind: str, place: int, dice: random.Random) -> str:
    """:param place: The number in SCOPES of the namespace in which the object is."""
    return f"{kind}{place}{dice.getrandbits(40):010x}x"


def place_of(key: str) -> int:
    return int(key.lstrip("abcdefghijklmnopqrstuvwxyz")[0])


def new_text(key: str, dice: random.Random) -> str:
    return " ".join([key, f"version{dice.getrandbits(32):08x}", *dice.choices(WORDS, k=dice.randint(4, 40))])


def key_of(text: str) -> str:
    found = _KEY.search(text)
    return found[0] if found else text


@dataclass(slots=True)
class Operation:
    """One request to the service.

    :param changes: The text of each key afterwards; None removes it.
    :param atomic: Whether all of its changes happen together or not at all.
    :param backup: The name of a backup that it made. :param evicts: Those that it deleted for it.
    :param erases: Whether no file may hold the removed keys any more.
    """

    kind: str
    changes: dict[str, str | None] = field(default_factory=dict)
    atomic: bool = True
    backup: str | None = None
    evicts: set[str] = field(default_factory=set)
    erases: bool = False


@dataclass(slots=True)
class Ledger:
    """The acknowledged operations, and those in flight."""

    texts: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)
    backups: set[str] = field(default_factory=set)
    under_way: dict[int, Operation] = field(default_factory=dict)
    acknowledged: int = 0

    def begin(self, number: int, operation: Operation) -> None:
        self.under_way[number] = operation
        self.backups -= operation.evicts

    def acknowledge(self, number: int, operation: Operation) -> None:
        self.under_way.pop(number, None)
        self.acknowledged += max(1, len(operation.changes))
        for key, text in operation.changes.items():
            if text is None:
                self.texts.pop(key, None)
                self.removed.add(key)
            else:
                self.texts[key] = text
                self.removed.discard(key)
        if operation.backup is not None:
            self.backups.add(operation.backup)
        if operation.erases:
            self.erased |= operation.changes.keys()

    def compare(self, found: Contents) -> Outcome:
        """Compare with the contents of a store."""
        doubtful = {key for operation in self.under_way.values() for key in operation.changes}
        lost = [
            f"{key} is {_shown(found.get(key))}, acknowledged was {text[:60]!r}"
            for key, text in self.texts.items()
            if key not in doubtful and text not in found.get(key, ())
        ]
        doubled = [f"{key} is there {len(texts)} times" for key, texts in found.items() if len(texts) > 1]
        risen = [f"{key} is there" for key in found if key not in self.texts and key not in doubtful]
        for operation in self.under_way.values():
            sides = {self._side(key, after, found) for key, after in operation.changes.items()} - {"both"}
            if "neither" in sides:
                lost.append(f"an unfinished {operation.kind} left something that is neither its begin nor its end")
            elif operation.atomic and len(sides) > 1:
                doubled.append(f"an unfinished {operation.kind} was carried out in part")
        return Outcome(acknowledged=len(self.texts), lost=tuple(lost), doubled=tuple(doubled), risen=tuple(risen))

    def _side(self, key: str, after: str | None, found: Contents) -> str:
        before, now = self.texts.get(key), next(iter(found.get(key, ())), None)
        if now == before:
            return "both" if now == after else "before"
        return "after" if now == after else "neither"


def _shown(texts: Sequence[str] | None) -> str:
    return "missing" if not texts else repr(texts[0][:60])


def contents(engine: MemoryEngine) -> Contents:
    """Return the texts of every memory, message and block by key."""
    found: dict[str, list[str]] = defaultdict(list)
    for scope in SCOPES:
        for memory in engine.page(scope, offset=0, limit=MAX_ROWS).memories:
            found[key_of(memory.text)].append(memory.text)
        if scope.namespace == Scope().namespace:
            continue
        try:
            messages, _ = Conversations(engine).page(scope, MessageFilter(), limit=MAX_ROWS)
            blocks, _ = Blocks(engine).page(scope, offset=0, limit=MAX_ROWS)
        except AgentNotFound:
            continue
        for text in (*(message.content for message in messages), *(block.value for block in blocks)):
            found[key_of(text)].append(text)
    return found


def searched(engine: MemoryEngine, keys: Collection[str]) -> dict[str, bool]:
    """Search for each key of a memory or message in its namespace; return whether it was found."""
    conversations = Conversations(engine)
    return {
        key: any(key in text for text in _found_by(engine, conversations, SCOPES[place_of(key)], key)) for key in keys
    }


def _found_by(engine: MemoryEngine, conversations: Conversations, scope: Scope, key: str) -> list[str]:
    if key.startswith("message"):
        try:
            return [hit.message.content for hit in conversations.search(scope, MessageQuery(key, words_only=True)).hits]
        except AgentNotFound:
            return []
    return [hit.memory.text for hit in engine.search(scope, SearchQuery(key, words_only=True)).hits]


def bytes_of(folder: Path, words: Collection[str]) -> list[str]:
    """Return a sentence for each of these words that stands in a file of the folder."""
    found = []
    for path in sorted(folder.rglob("*")):
        if words and path.is_file():
            held = {match.decode() for match in _KEY_BYTES.findall(path.read_bytes())}
            found += [f"{path.relative_to(folder)} still holds the erased {word}" for word in sorted(held & set(words))]
    return found


@contextmanager
def captured_logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """Capture log lines of all levels, whichever are configured."""
    configured = structlog.get_config()
    structlog.reset_defaults()
    try:
        with capture_logs() as log:
            yield log
    finally:
        structlog.configure(**configured)


@dataclass(slots=True)
class Reported:
    """The refusal of a start, or its warnings to operators, its log and the problems that `check` found."""

    refusal: str | None = None
    warnings: list[ServiceWarning] = field(default_factory=list)
    log: list[MutableMapping[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def examine(data_dir: Path, ledger: Ledger, dice: random.Random) -> tuple[Outcome, Reported]:
    """Open the store, compare all contents and a sample of searches with the ledger, and check it."""
    reported = Reported()
    with captured_logs() as reported.log:
        risen = bytes_of(data_dir, ledger.erased)
        try:
            engine = MemoryEngine.open(Settings(data_dir=data_dir), FakeEmbedder())
        except SouvenirError as error:
            reported.refusal = error.message
            return Outcome(trials=1, risen=tuple(risen)), reported
        with closing(engine):
            engine.warm_up()
            outcome = ledger.compare(contents(engine))
            wrong = _wrong_searches(engine, ledger, dice)
            reported.problems = list(engine.check())
            reported.warnings = list(engine.warnings.current())
            lost = _lost_backups(engine, ledger)
    return outcome + Outcome(trials=1, lost=tuple(lost), risen=tuple(risen), wrong=tuple(wrong)), reported


def _wrong_searches(engine: MemoryEngine, ledger: Ledger, dice: random.Random) -> list[str]:
    doubtful = {key for operation in ledger.under_way.values() for key in operation.changes}
    there = sorted(key for key in ledger.texts.keys() - doubtful if not key.startswith("block"))
    gone = sorted(key for key in ledger.removed - doubtful if not key.startswith("block"))
    there, gone = (dice.sample(keys, min(SEARCHED, len(keys))) for keys in (there, gone))
    wrong = [f"{key} is not found by its own word" for key, found in searched(engine, there).items() if not found]
    return wrong + [f"{key} is deleted and found" for key, found in searched(engine, gone).items() if found]


def _lost_backups(engine: MemoryEngine, ledger: Ledger) -> list[str]:
    lost = []
    for name in sorted(ledger.backups):
        try:
            engine.copies.backups.verify(name)
        except SouvenirError as error:
            lost.append(f"backup {name}: {error.message}")
    return lost
