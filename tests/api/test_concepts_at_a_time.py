"""Concepts as of an earlier time: what was answered live once everything was indexed is answered again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.timestamps import utc_now
from tests.api.test_replayed_answers import AGENT, Living, Question
from tests.thoroughness import sampled

CHANGES = sampled(80, 500)
EVERY = 10
PEOPLE = ("Alice", "Boris", "Melanie", "Mel", "Robert", "Zoe")
PLACES = ("Lisbon", "Oslo", "Paris")
THINGS = ("road trip", "roadtrip", "sourdough bread", "violin lesson")
ROLES = ("sister", "boss", "neighbour")
ORGANISATIONS = ("Spotify", "Acme Ltd")


@dataclass
class Speaking(Living):
    """A store whose texts mention people, places and things. Each claim is made once, so that it still stands.

    :param unclaimed: Claims that are not made yet, by path.
    """

    unclaimed: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def said(self, length: int = 6) -> str:
        pick = self.chance.choice
        sentences: list[Callable[[], str]] = [
            lambda: f"{pick(PEOPLE)} is my {pick(ROLES)}.",
            lambda: f"We met {pick(PEOPLE)} in {pick(PLACES)}.",
            lambda: f"{pick(PEOPLE)} and {pick(PEOPLE)} planned the {pick(THINGS)}.",
            lambda: f"{pick(PEOPLE)} works at {pick(ORGANISATIONS)}.",
            lambda: f"I ate in {pick(PLACES)} after the {pick(THINGS)}.",
        ]
        return " ".join(pick(sentences)() for _ in range(max(1, length // 3)))

    def change(self) -> None:
        self.claim() if self.unclaimed and self.chance.random() < 0.15 else super().change()

    def describe(self) -> None:
        # Of two entities that are one concept, the order in which they got their types is not recorded.
        entity = {
            "name": self.chance.choice([one for one in PEOPLE if one != "Mel"]),
            "observations": [f"is in {self.chance.choice(PLACES)}"],
        }
        self.ask("POST", "/knowledge-graph", {"entities": [{**entity, "entity_type": self.chance.choice(ROLES)}]})

    def relate(self) -> None:
        one, other = self.chance.sample([one for one in (*PEOPLE, *PLACES) if one != "Mel"], 2)
        relation = {"from_entity": one, "to_entity": other, "relation_type": self.chance.choice(["likes", "knows"])}
        self.ask("POST", "/knowledge-graph", {"relations": [relation]})

    def take_back(self) -> None:
        """Change the type of an entity, or archive it."""
        found = self.ask("GET", "/knowledge-graph")["entities"]
        if found:
            body = self.chance.choice([{"metadata_patch": {"entity_type": "place"}}, {"archived": True}])
            self.ask("PATCH", f"/memory/{self.chance.choice(found)['id']}", body)

    def claim(self) -> None:
        path, body = self.unclaimed.pop(self.chance.randrange(len(self.unclaimed)))
        self.ask("PUT" if path.endswith("/relations") else "PATCH", path, body)

    def catch_up(self) -> None:
        self.client.app.state.service.graph.indexer.catch_up()  # type: ignore[attr-defined]

    def id_of(self, name: str) -> int:
        return int(self.ask("GET", f"/agents/{AGENT}/concept?name={name}")["id"])

    def prepare(self) -> None:
        """Mention everything in messages that stay, so that every concept keeps its id; prepare the claims."""
        for one in (*PEOPLE, *PLACES, *THINGS, *ROLES, *ORGANISATIONS):
            self.ask("POST", "/messages", {"agent_name": AGENT, "role": "assistant", "content": f"We saw my {one}."})
            self.ask("POST", "/messages", {"agent_name": AGENT, "role": "assistant", "content": f"We saw {one}."})
        self.catch_up()
        ids = {name: self.id_of(name) for name in (*PEOPLE, *PLACES)}
        self.unclaimed = [
            (f"/agents/{AGENT}/concepts/{ids['Alice']}", {"description": "She teaches.", "kind": "teacher"}),
            (f"/agents/{AGENT}/concepts/{ids['Boris']}", {"name": "Boris Lee"}),
            (f"/agents/{AGENT}/concepts/{ids['Lisbon']}", {"aliases": ["Lisboa", "Oslo"]}),
            (f"/agents/{AGENT}/concepts/{ids['Zoe']}/relations", {"to": ids["Alice"], "type": "works_for"}),
            (f"/agents/{AGENT}/concepts/{ids['Paris']}/relations", {"to": ids["Boris"], "type": "home_of"}),
        ]


def questions(living: Speaking) -> Iterator[Question]:
    concepts = f"/agents/{AGENT}/concepts"
    yield Question("GET", f"{concepts}?limit=500")
    yield Question("GET", f"{concepts}?limit=5&offset=4")
    for name in living.chance.sample((*PEOPLE, *PLACES, *THINGS), 5):
        id_ = living.id_of(name)
        yield Question("GET", f"{concepts}/{id_}?mentions=4")
        yield Question("GET", f"{concepts}/{id_}/related?depth=3")
        yield Question("GET", f"/agents/{AGENT}/concept?name={name}")


@pytest.fixture
def living(client: TestClient) -> Speaking:
    client.headers["X-Namespace"] = AGENT
    for session in ("s1", "s2", "s3", "s4"):
        client.post("/sessions", json={"agent_name": AGENT, "session_id": session})
    found = Speaking(client, random.Random(17))
    found.prepare()
    return found


def replayed(living: Speaking, changes: int) -> list[tuple[str, Question, bytes]]:
    """Change the store, and return what was asked meanwhile, when, and the answers."""
    seen: list[tuple[str, Question, bytes]] = []
    for number in range(changes):
        living.change()
        if number % EVERY == EVERY - 1:
            living.catch_up()
            answers = [(question, question.asked(living.client, None)) for question in questions(living)]
            at = utc_now().isoformat()
            seen += [(at, question, answer) for question, answer in answers]
    return seen


def test_what_was_answered_is_answered_again_byte_for_byte(living: Speaking):
    seen = replayed(living, CHANGES)
    assert len({answer for _, _, answer in seen}) > len(seen) / 2
    assert not living.unclaimed
    for at, question, answer in seen:
        assert question.asked(living.client, at) == answer, (at, question)
    assert list(living.client.app.state.service.engine.check()) == []  # type: ignore[attr-defined]
