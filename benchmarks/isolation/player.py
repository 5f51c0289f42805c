"""Sends one party's random requests and checks every answer for the other party's data.

What may not be there: a token of the other's texts or an id of its memories, unless the request itself named it, and a
count above what the party can see.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from benchmarks.isolation.requests import Party, Pool, Request, Requests
from souvenir.memories.split_queue import ACTOR
from souvenir.store.memories.facts import SPLIT

Send = Callable[[Request], tuple[int, str]]

PROBE_EVERY = 50
LEAST_HELD = 60
"""Memories that a party holds, so that a count of both is above what one can see."""

ID_FIELD = re.compile(r"(^|_)ids?$|^(superseded|supersedes|superseded_by|blocked_by|archived|would_delete|graph_via)$")
NOT_OF_MEMORIES = ("/facts", "/events/recent")
"""Routes that count what one memory can have many of: facts, and changes."""

COUNT_FIELD = re.compile(r"^(total|remaining|found|compared|total_memories|duplicate_pairs)$|_count$|^count$")
UUID_ID = re.compile(r'"id":"([0-9a-f]{8}-[0-9a-f-]{27})"')
OTHER = "other"
OTHERS = frozenset({"facts", "concepts", "top_concepts", "concept", "related", "topics", "events", OTHER})
"""Fields in which an `id` is that of no memory: such ids are counted apart."""
OF_OTHERS = re.compile(r"/concepts?\b|/topics\b")
"""Routes whose answers are such fields as a whole."""
FOREIGN_IDS = re.compile(r"job_id|request_id|event_id|key_id|search_id|principal_id|concept_id|topic_id")


@dataclass(slots=True)
class Findings:
    """What was looked at, and what was seen of the other."""

    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    tokens_checked: int = 0
    counts_checked: int = 0
    ids_seen: dict[int, str] = field(default_factory=dict)
    leaks: list[str] = field(default_factory=list)


MOST_TRIES = 50
"""For an answer of one operation; half of the requests are about the other's agent."""


class Player:
    """One party; requests go through `send`, one after another."""

    def __init__(
        self, document: Mapping[str, Any], me: Party, other: Party, pool: Pool, send: Send, dice: random.Random
    ) -> None:
        self._requests = Requests(document, me, other, pool, dice)
        self._me, self._other, self._pool, self._send = me, other, pool, send
        self._token_of_other = re.compile(rf"{other.mark}[0-9a-f]{{16}}")
        self._may_hold = 0
        self.findings = Findings()

    def play(self, count: int) -> None:
        for number in range(count):
            if number % PROBE_EVERY == 0 and self._held() < LEAST_HELD:
                self.ask(self._requests.refill(LEAST_HELD))
            self.ask(self._requests.draw())

    def reach(self, operation: str, tries: int = MOST_TRIES) -> None:
        """Ask one operation until it answers, so that no game misses it by chance."""
        for _ in range(tries):
            status, _answer = self.ask(self._requests.draw_of(operation))
            if status < 300:
                return

    def ask(self, request: Request) -> tuple[int, Any]:
        """Send a request and look at its answer."""
        if request.body is not None and request.method == "POST":
            self._may_hold += request.body.count(b'"source"') + request.body.count(b'"content"') + 1
        status, text = self._send(request)
        findings = self.findings
        findings.requests += 1
        findings.statuses[status] += 1
        findings.answered[f"{request.method} {request.template}"] += status < 300
        if status >= 500 and status not in {501, 503}:
            findings.leaks.append(f"{request.method} {request.path} is a fault: {status}")
        seen = set(self._token_of_other.findall(text)) - set(self._token_of_other.findall(request.words))
        findings.tokens_checked += text.count(self._me.mark)
        findings.leaks += [f"{request.method} {request.path} shows the text {token}" for token in seen]
        self._pool.uuids += UUID_ID.findall(text)
        parsed = _parsed(text)
        if request.template != "/openapi.json":
            self._look_at_numbers(request, parsed)
        return status, parsed

    def _held(self) -> int:
        """How many memories are to be seen, by every way to count them; they must agree and be one's own."""
        list_request = Request("GET", "/memories", "/memories?include_archived=true&limit=5000")
        _, page = self.ask(list_request)
        _, counted = self.ask(Request("GET", "/memories/count", "/memories/count?include_archived=true"))
        listed = [memory["id"] for memory in page["memories"]]
        self._pool.ids[self._me.name][:] = listed
        sources = [] if self._me.agent else [memory["source"] for memory in page["memories"]]
        foreign = [source for source in sources if not _lies_in(source, self._me.prefix)]
        if foreign or not len(listed) == page["total"] == counted["count"]:
            self.findings.leaks.append(f"{len(listed)} listed, {page['total']}, {counted['count']}, foreign {foreign}")
        if not self._me.agent:  # what an agent holds beside memories is not listed here
            self._may_hold = len(listed)
        return len(listed)

    def _look_at_numbers(self, request: Request, answer: Any) -> None:
        named = set(map(int, re.findall(r"\d+", request.words)))
        for name, value in _numbers(answer, OTHER if OF_OTHERS.search(request.template) else ""):
            if ID_FIELD.search(name) and not FOREIGN_IDS.search(name):
                if value not in named:
                    self.findings.ids_seen.setdefault(value, f"{request.method} {request.path}")
                if name == "id":
                    self._pool.ids[self._me.name].append(value)
            elif COUNT_FIELD.search(name) and request.template not in NOT_OF_MEMORIES:
                self.findings.counts_checked += 1
                if value > self._may_hold + 5:
                    self.findings.leaks.append(f"{request.method} {request.path} says {name} {value}")
        if isinstance(answer, dict):
            self._pool.names += [answer[name] for name in ("snapshot", "job_id") if isinstance(answer.get(name), str)]
            if request.method == "POST" and request.template == "/webhooks" and "id" in answer:
                self._pool.webhooks.append(answer["id"])


def leaks_by_history(database: Path, players: Sequence[Player], key_ids: Sequence[str]) -> list[str]:
    """Ids that somebody saw and the other made, and memories that another changed than made them.

    What the service itself splits into facts afterwards is nobody's change.
    """
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    rows: list[Any] = connection.execute(
        "SELECT memory_id, actor, action FROM history WHERE (actor, action) <> (?, ?) ORDER BY id", (ACTOR, SPLIT)
    ).fetchall()
    maker: dict[int, str] = {}
    found: list[str] = []
    for memory_id, actor, action in rows:
        if maker.setdefault(memory_id, actor) != actor:
            found.append(f"memory {memory_id} of {maker[memory_id]}: {action} by {actor}")
    for player, key_id in zip(players, key_ids, strict=True):
        seen = player.findings.ids_seen
        found += [
            f"{seen[id_]} shows the id {id_}" for id_ in seen if maker.get(id_, f"key:{key_id}") != f"key:{key_id}"
        ]
    return found


def _lies_in(source: str, prefix: str) -> bool:
    return source == prefix or source.startswith(f"{prefix}/")


def _parsed(text: str) -> Any:
    """JSON, or a list of the lines that are."""
    try:
        return json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.startswith("{")]
    try:
        return [json.loads(line) for line in lines]
    except ValueError:
        return None


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """Every integer with the name of the field that it stands in; of a list, the list's; OTHER for ids of no memory."""
    if isinstance(value, dict):
        for key, held in value.items():
            yield from _numbers(held, OTHER if name in OTHERS and key == "id" else key)
    elif isinstance(value, list):
        for held in value:
            yield from _numbers(held, name)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield name, value
