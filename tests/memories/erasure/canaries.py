"""Canaries: unique words planted wherever an agent stores text, and searched for in every file of a folder."""

from __future__ import annotations

import copy
import random
import uuid
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from souvenir.conversations.blocks import BlockChange
from souvenir.core.ledger import Category, DecidedBy, Decision, FactRow, FactStage, LedgerFact, Phase, Verdict
from souvenir.core.timestamps import to_us, utc_now
from souvenir.core.types import MemoryDraft, MemoryPatch, OriginClass, Scope
from souvenir.index.analyser import Analyser
from souvenir.memories.extraction_profiles import ExtractionProfiles
from souvenir.server.service import Service
from souvenir.store.admin import jobs
from souvenir.store.idempotency import Once
from souvenir.store.learning import extractions
from souvenir.store.learning import extractions as provenance
from souvenir.store.learning.extractions import ExtractionRecord
from souvenir.store.memories.feedback import NewFeedback
from souvenir.store.messages.blocks import BlockDraft
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction
from tests.conversations.talk import draft

ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмн", "αβγδεζηθικλμν", "àéîõüçñøåß", "東京都語言")
LEARNED = "learned"
"""The part of what extractions hold: every erasure in an agent's namespace takes it along."""

MIN_TERM_BYTES = 8
"""A shorter piece of a word may stand somewhere by chance. So many bytes are also one number to compare."""

HASH_BITS = 16
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)

SCANS_KEPT = 32
"""Most files, such as backups, are the same at the next search of the folder."""


class Garden:
    """The canaries of one agent, by the selector that must find them: `user`, `session`, `memory` and so on.

    All of them belong to the agent too. Long and short texts mix rows of many sizes.
    """

    def __init__(self, service: Service, scope: Scope, seed: int) -> None:
        self.service = service
        self.scope = scope
        self.random = random.Random(seed)
        self.planted: dict[str, list[str]] = defaultdict(list)
        self.message_id = ""
        self.memory_ids: list[int] = []

    def moved_to(self, service: Service) -> Garden:
        """Return a copy for a service on a copy of the folder."""
        return copy.deepcopy(self, {id(self.service): service})

    def word(self, part: str) -> str:
        """Return a new canary."""
        letters = ALPHABETS[len(self.all()) % len(ALPHABETS)] if self.random.random() < 0.4 else ALPHABETS[0]
        word = "".join(self.random.choices(letters, k=14)).capitalize()
        self.planted[part].append(word)
        return word

    def text(self, part: str) -> str:
        """Return a text with a canary in its middle and a phrase of two at its end."""
        padding = "some words that many texts have, " * self.random.choice([0, 1, 3, 10])
        return f"{padding}{self.word(part)} and {padding}{self.word(part)} {self.word(part)}"

    def owned(self, part: str) -> dict[str, Any]:
        """Return facts and a tag with canaries that their memory does not contain."""
        return {"facts": (self.text(part), self.word(part)), "tags": (f"{self.word(part)} of tags",)}

    def all(self) -> list[str]:
        return [word for words in self.planted.values() for word in words]

    def plant(self) -> None:
        """Plant one season: examples of everything. Later seasons change existing data and create histories."""
        self._messages()
        self._memories()
        self._blocks()
        self._extractions()
        self._learned()

    def _messages(self) -> None:
        conversations, sessions, scope = self.service.conversations, self.service.sessions, self.scope
        if not self.message_id:
            self.service.agents.create(scope, {self.word("agent"): self.word("agent")})
            user = self.user = self.word("user")
            self.session = self.word("session")
            self.own_session = self.word("user")
            sessions.start(scope, self.session, title=self.text("session"), metadata={"a": self.word("session")})
            sessions.start(scope, self.own_session, user=user, title=self.text("user"), metadata={self.word("user"): 1})
            sessions.start(scope, "shared", title=self.text("agent"))
            once = Once.of("messages", self.word("agent"), {"content": self.word("agent")})
            [one] = conversations.add(scope, [draft(self.text("message"), session_id="shared")], once=once)
            self.message_id = one.uid
        speaker = self.word("user")
        conversations.add(
            scope,
            [
                draft(self.text("session"), session_id=self.session, metadata={"b": self.word("session")}),
                draft(self.text("user"), session_id=self.own_session, user=self.user, speaker=speaker),
                draft(self.text("user"), session_id=self.own_session),
                draft(self.text("user"), session_id="shared", user=self.user, metadata={"c": self.word("user")}),
                draft(self.text("agent"), session_id="shared", user="tom", speaker=self.word("agent")),
            ],
        )
        conversations.append(scope, self.session, [draft(self.text("session"))])
        conversations.edit(scope, self.message_id, content=self.text("message"), metadata={"d": self.word("message")})

    def _memories(self) -> None:
        engine, scope = self.service.engine, self.scope
        if not self.memory_ids:
            key, metadata = self.word("memory"), {"e": self.word("memory")}
            first = engine.add(
                scope, MemoryDraft(self.text("memory"), "notes", metadata, key=key, **self.owned("memory"))
            ).id
            assert first is not None
            self.memory_ids = [first]
        # The living one's history grows, and then another takes its place.
        engine.update(scope, self.memory_ids[-1], MemoryPatch(text=self.text("memory")))
        engine.update(scope, self.memory_ids[-1], MemoryPatch(**self.owned("memory")))
        self.memory_ids.append(engine.supersede(scope, self.memory_ids[-1], text=self.text("memory")).new_id)
        judged = NewFeedback(self.memory_ids[-1], useful=True, query=self.text("memory"), search_id=self.word("memory"))
        self.service.feedback.record(scope, judged)
        missed = MemoryDraft(self.text("source"), "diary/missed")
        self.service.feedback.report_missed(scope, missed, context=self.text("source"))
        below = f"diary/{len(self.planted['source'])}"
        merged = engine.add_batch(
            scope, [MemoryDraft(self.text("source"), below, **self.owned("source")) for _ in range(2)]
        )
        engine.merge(scope, merged, text=self.text("source"), source="diary")
        gone = engine.add(scope, MemoryDraft(self.text("agent"), "diary-of-others", **self.owned("agent"))).id
        assert gone is not None
        engine.delete(scope, gone)

    def _blocks(self) -> None:
        blocks, scope = self.service.blocks, self.scope
        if blocks.page(scope, offset=0, limit=1)[1] == 0:
            description = self.text("block")
            blocks.create(scope, BlockDraft("human", self.text("block"), description, 10_000, read_only=False))
            blocks.create(scope, BlockDraft("persona", self.text("agent"), None, 10_000, read_only=False))
        blocks.update(scope, "human", BlockChange(value=self.text("block"), description=self.text("block")))

    def _extractions(self) -> None:
        """Plant a finished extraction and a profile: a transcript may quote anyone, so any erasure removes it."""
        scope, word = self.scope, partial(self.word, LEARNED)
        fact = LedgerFact(word(), Category.DETAIL, OriginClass.USER, speaker=word())
        decision = Decision(Verdict.ADD, DecidedBy.MODEL, word(), text=word())
        row = FactRow(1, FactStage.SKIPPED, fact, decision, {"text": word()})
        # Short, since a row that spans pages may break a word in two.
        transcript, job_id = f"{word()} said {word()} to {word()}", uuid.uuid4().hex
        options = {"named": self.word("agent"), extractions.LEARNED_WITH: {"user": [self.user]}}
        context = self.word("agent")

        def work(connection: Connection) -> None:
            jobs.insert(connection, job_id, jobs.EXTRACT, scope, {}, utc_now())
            found = ExtractionRecord(
                job_id, scope.namespace, "notes", context, len(transcript), transcript, None, options, Phase.DECIDED
            )
            extractions.insert(connection, found)
            extractions.save_facts(connection, job_id, [row])
            now = to_us(utc_now())
            connection.execute("UPDATE jobs SET status = 'completed', finished_at = ? WHERE id = ?", (now, job_id))

        self.service.engine.write_rows(work)
        changes = {"rules": {"custom_instructions": self.word("agent")}}
        ExtractionProfiles(self.service.engine).put(scope, "notes/", changes)

    def _learned(self) -> None:
        """Plant memories learned with the user, in their session, in another one, and with another user."""
        whom: list[tuple[str, provenance.LearnedWith]] = [
            ("user", {"user": [self.user], "session": ["shared"]}),
            ("user", {"session": [self.own_session]}),
            ("session", {"session": [self.session]}),
            ("agent", {"user": ["tom"]}),
        ]
        drafts = [
            (MemoryDraft(self.text(part), "extract", **self.owned(part)), learned_with) for part, learned_with in whom
        ]
        prepared = self.service.engine.prepare_drafts([memory for memory, _ in drafts])

        def work(tx: Transaction) -> None:
            for (memory, learned_with), passages in zip(drafts, prepared, strict=True):
                provenance.note(tx.connection, tx.insert(memory, passages).id, learned_with)

        self.service.engine.write(self.scope, work)


def found_in(folder: Path, words: Iterable[str]) -> dict[str, list[str]]:
    """Return, by word, the files below a folder that contain it as written or as indexed."""
    analyser = Analyser()
    words_of: dict[bytes, set[str]] = defaultdict(set)
    forms_of: dict[int, set[bytes]] = defaultdict(set)
    for word in words:
        for form in {word, word.lower(), word.casefold(), *analyser.terms(word)}:
            if len(encoded := form.encode()) >= MIN_TERM_BYTES:
                words_of[encoded].add(word)
                forms_of[start_of(encoded)].add(encoded)
    starts = np.unique(np.array(list(forms_of), np.uint64))
    held: dict[str, list[str]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # old snapshots go in the background after a restore
            continue
        begun = starts_in(content, starts.tobytes())
        sought = {form for start in begun for form in forms_of[start]}
        for word in {word for form in sought if form in content for word in words_of[form]}:
            held.setdefault(word, []).append(str(path.relative_to(folder)))
    return held


def start_of(form: bytes) -> int:
    return int.from_bytes(form[:MIN_TERM_BYTES], "little")


@lru_cache(maxsize=SCANS_KEPT)
def starts_in(content: bytes, sought: bytes) -> frozenset[int]:
    """Return the starts that occur in the content. Few places have the hash of one, and only those are compared."""
    starts = np.frombuffer(sought, "<u8")
    hashes = np.zeros(2**HASH_BITS, bool)
    hashes[hash_of(starts)] = True
    found: set[int] = set()
    for offset in range(min(MIN_TERM_BYTES, len(content) - MIN_TERM_BYTES + 1)):
        count = (len(content) - offset) // MIN_TERM_BYTES
        pieces = np.frombuffer(content, "<u8", count, offset)
        likely = pieces[hashes[hash_of(pieces)]]
        found.update(likely[np.isin(likely, starts)].tolist())
    return frozenset(found)


def hash_of(pieces: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the upper bits of a product (Knuth 1998, section 6.4)."""
    return (pieces * GOLDEN_RATIO) >> np.uint64(64 - HASH_BITS)


def stored(service: Service, words: Iterable[str]) -> set[str]:
    """Return the words that occur in some row."""
    with service.engine.namespace(Scope()) as (connection, _):
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        text = repr([connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables if table != "vectors"])
    # Most rows repeat what others hold, and each word is looked for in all of it.
    distinct = " ".join(set(text.split()))
    return {word for word in words if word in distinct}
