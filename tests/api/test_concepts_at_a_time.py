"""Concepts as of an earlier time: what was answered live once everything was indexed is answered again."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.timestamps import utc_now
from tests.api.conftest import indexed
from tests.api.operations import OPERATIONS, Operation
from tests.api.test_replayed_answers import AGENT, Living, Question, replayed
from tests.cases import for_all
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
        self.ask("POST" if path.endswith("/graph") else "PATCH", path, body)

    def id_of(self, name: str) -> int:
        return int(self.ask("GET", f"/agents/{AGENT}/concept?name={name}")["id"])

    def prepare(self) -> None:
        """Mention everything in messages that stay, so that every concept keeps its id; prepare the claims."""
        for one in (*PEOPLE, *PLACES, *THINGS, *ROLES, *ORGANISATIONS):
            self.ask("POST", "/messages", {"agent_name": AGENT, "role": "assistant", "content": f"We saw my {one}."})
            self.ask("POST", "/messages", {"agent_name": AGENT, "role": "assistant", "content": f"We saw {one}."})
        indexed(self.client)
        ids = {name: self.id_of(name) for name in (*PEOPLE, *PLACES)}
        self.unclaimed = [
            (f"/agents/{AGENT}/concepts/{ids['Alice']}", {"description": "She teaches.", "kind": "teacher"}),
            (f"/agents/{AGENT}/concepts/{ids['Boris']}", {"name": "Boris Lee"}),
            (f"/agents/{AGENT}/concepts/{ids['Lisbon']}", {"aliases": ["Lisboa", "Oslo"]}),
            (f"/agents/{AGENT}/graph", related("Zoe", "works_for", "Alice")),
            (f"/agents/{AGENT}/graph", related("Paris", "home_of", "Boris")),
        ]


def related(one: str, how: str, other: str) -> dict[str, Any]:
    return {"relations": [{"from_key": one, "to_key": other, "relationship_type": how}]}


def questions(living: Speaking) -> Iterator[Question]:
    indexed(living.client)
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


def test_what_was_answered_is_answered_again_byte_for_byte(living: Speaking):
    seen = replayed(living, CHANGES, questions, every=EVERY)
    assert len({answer for _, _, answer in seen}) > len(seen) / 2
    assert not living.unclaimed
    for at, question, answer in seen:
        assert question.asked(living.client, at) == answer, (at, question)
    assert list(living.client.app.state.service.engine.check()) == []  # type: ignore[attr-defined]


@dataclass
class Kept:
    """An agent without random changes."""

    client: TestClient

    def tell(self, content: str) -> str:
        body = {"agent_name": AGENT, "role": "user", "content": content, "session_id": "s"}
        return str(self.client.post("/messages", json=body).json()["id"])

    def edit(self, uid: str, content: str) -> None:
        assert self.client.patch(f"/messages/{AGENT}/{uid}", json={"content": content}).is_success

    def remember(self, text: str, **metadata: Any) -> int:
        body = {"text": text, "source": "a", "metadata": metadata}
        return int(self.client.post("/memory/add", json=body).json()["id"])

    def time(self) -> str:
        """Return the time when everything is indexed."""
        indexed(self.client)
        return utc_now().isoformat()

    def get(self, path: str, as_of: str | None = None, **parameters: Any) -> Any:
        given = parameters if as_of is None else {**parameters, "as_of": as_of}
        return self.client.get(f"/agents/{AGENT}/{path}", params=given)

    def concept(self, name: str, as_of: str | None = None) -> dict[str, Any]:
        answer = self.get("concept", as_of, name=name)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def keys(self, as_of: str | None = None) -> set[str]:
        return {one["key"] for one in self.get("concepts", as_of).json()["concepts"]}


@pytest.fixture
def kept(client: TestClient) -> Kept:
    client.headers["X-Namespace"] = AGENT
    client.post("/sessions", json={"agent_name": AGENT, "session_id": "s"})
    return Kept(client)


def test_a_concept_of_a_former_text_is_found_by_its_name_and_by_an_id_of_its_own(kept: Kept):
    uid = kept.tell("Zoe met Boris in Oslo. Zoe is my sister.")
    before = kept.time()
    live = kept.get("concepts").json()
    kept.edit(uid, "Alice met Robert in Lisbon.")
    now = kept.time()
    assert kept.get("concept", name="Zoe").status_code == 404
    zoe = kept.concept("Zoe", before)
    assert (zoe["description"], zoe["role"]) == ("Zoe is my sister.", "your sister")
    assert [one["content"] for one in zoe["messages"]] == ["Zoe met Boris in Oslo. Zoe is my sister."]
    assert kept.get(f"concepts/{zoe['id']}", before).json() == zoe
    assert zoe["id"] not in {one["id"] for one in (*live["concepts"], *kept.get("concepts").json()["concepts"])}
    related = kept.get(f"concepts/{zoe['id']}/related", before).json()["related"]
    assert {one["concept"]["key"] for one in related} == {"boris", "oslo"}
    assert kept.keys(before) == {one["key"] for one in live["concepts"]}
    assert kept.keys(now) == kept.keys() == {"alice", "robert", "lisbon"}
    kept.tell("Zoe is here again.")
    kept.time()
    assert kept.concept("Zoe", before)["id"] == kept.concept("Zoe")["id"] != zoe["id"]


def test_a_changed_and_an_archived_memory_mention_what_they_mentioned_then(kept: Kept):
    changed, archived = kept.remember("Zoe met Boris in Oslo"), kept.remember("Alice lives in Lisbon")
    before = kept.time()
    live = kept.concept("Alice")
    assert kept.client.patch(f"/memory/{changed}", json={"text": "Robert met Melanie"}).is_success
    assert kept.client.patch(f"/memory/{archived}", json={"archived": True}).is_success
    kept.time()
    assert kept.keys() == {"robert", "melanie"}
    assert kept.keys(before) == {"zoe", "boris", "oslo", "alice", "lisbon"}
    then = kept.concept("Alice", before)
    assert {**then, "id": live["id"]} == live


def test_of_definitions_of_one_day_the_same_one_counts_after_a_change(kept: Kept):
    first = kept.remember("Zoe is my sister.", document_at="2025-05-01")
    kept.remember("Zoe is my boss.", document_at="2025-05-01")
    at = kept.time()
    live = kept.concept("Zoe")
    assert live["role"] == "your boss"
    kept.client.patch(f"/memory/{first}", json={"text": "Zoe is my neighbour."})
    kept.time()
    assert kept.concept("Zoe")["role"] == "your boss"
    assert kept.concept("Zoe", at) == live


@pytest.mark.parametrize("edited_before", [False, True])
def test_what_was_deleted_is_in_no_answer_of_an_earlier_time(kept: Kept, edited_before: bool):
    gone = kept.tell("Zoe met Alice in Oslo. Alice is my sister.")
    memory = kept.remember("Alice and Boris own a violin school")
    kept.tell("Alice met Robert in Lisbon.")
    boss = kept.tell("Zorblax is my boss.")
    at = kept.time()
    alice, hidden = kept.concept("Alice"), kept.concept("Zorblax")
    assert alice["mentions"] == 3
    assert alice["description"] == "Alice is my sister."
    assert kept.client.delete(f"/agents/{AGENT}/concepts/{hidden['id']}").is_success
    if edited_before:
        kept.edit(gone, "Melanie says nothing.")
        kept.edit(boss, "We wait.")
        assert "zoe" in kept.keys(at)
    assert kept.client.delete(f"/messages/{AGENT}/{gone}").is_success
    assert kept.client.delete(f"/memory/{memory}").is_success
    kept.time()
    assert kept.keys(at) == {"alice", "robert", "lisbon"}
    answers = [kept.get("concepts", at)]
    answers += [kept.get(f"concepts/{alice['id']}{path}", at) for path in ("", "/related")]
    shown = " ".join(answer.text for answer in answers).lower()
    assert [word for word in ("zoe", "oslo", "sister", "boris", "violin", "melanie") if word in shown] == []
    assert kept.concept("Alice", at)["mentions"] == 1
    for name in ("Zoe", "Boris", "Zorblax"):
        assert kept.get("concept", at, name=name).status_code == 404


def test_a_name_is_short_for_those_that_were_known_then(kept: Kept):
    kept.tell("We met Sam in Oslo.")
    first = kept.time()
    kept.tell("Samuel lives in Lisbon.")
    second = kept.time()
    kept.tell("Samantha lives in Paris.")
    kept.time()
    assert [kept.concept("Sam", at)["key"] for at in (first, second, None)] == ["sam", "samuel", "sam"]
    assert "samuel" not in kept.keys(first)
    assert kept.concept("Samuel", second)["aliases"] == ["Sam"]


def test_a_spelling_that_only_a_former_text_has_is_that_of_its_concept(kept: Kept):
    kept.tell("We chose another pottery color palette.")
    uid = kept.tell("I like the pottery colour palette.")
    first = kept.time()
    kept.edit(uid, "I like it.")
    kept.time()
    assert kept.concept("pottery colour palette", first)["mentions"] == 2
    assert kept.concept("pottery color palette")["mentions"] == 1


def test_claims_that_still_stand_are_shown_from_when_they_were_made(kept: Kept):
    kept.tell("We met Alice and Zoe.")
    first = kept.time()
    alice = kept.concept("Alice")["id"]
    path = f"/agents/{AGENT}/concepts/{alice}"
    kept.client.patch(path, json={"kind": "teacher", "description": "She teaches."})
    kept.client.post(f"/agents/{AGENT}/graph", json=related("Alice", "taught", "Zoe"))
    second = kept.time()
    kept.client.patch(path, json={"description": "She taught."})
    assert [kept.concept("Alice", at)["kind"] for at in (first, second)] == ["person", "teacher"]
    types = [
        kept.get(f"concepts/{alice}/related", at).json()["related"][0]["relationship_type"] for at in (first, second)
    ]
    assert types == ["co_occurs", "taught"]
    # A claim that was replaced does not stand any more.
    assert [kept.concept("Alice", at)["description"] for at in (second, None)] == [None, "She taught."]


def test_an_entity_had_the_type_and_the_relations_of_then(kept: Kept):
    def write(name: str, of_type: str) -> int:
        entity = {"name": name, "entity_type": of_type, "observations": ["is here"]}
        kept.client.post("/knowledge-graph", json={"entities": [entity]})
        return int(kept.client.get("/knowledge-graph", params={"names": name}).json()["entities"][0]["id"])

    def retype(memory: int, of_type: str) -> None:
        kept.client.patch(f"/memory/{memory}", json={"metadata_patch": {"entity_type": of_type}})
        kept.time()

    kept.tell("We met Melanie.")
    mel = write("Mel", "nurse")
    melanie = write("Melanie", "teacher")
    kept.time()
    retype(mel, "doctor")
    relation = {"from_entity": "Melanie", "to_entity": "Acme", "relation_type": "works_at"}
    kept.client.post("/knowledge-graph", json={"relations": [relation]})
    at = kept.time()
    live = kept.concept("Melanie")
    related = kept.get(f"concepts/{live['id']}/related").json()
    assert (live["kind"], live["aliases"]) == ("doctor", ["Mel"])
    retype(melanie, "clinic")
    assert kept.concept("Melanie")["kind"] == "clinic"
    assert kept.concept("Melanie", at) == live
    assert kept.get(f"concepts/{live['id']}/related", at).json() == related


def test_relations_of_an_entity_that_was_replaced_belong_to_its_name(kept: Kept):
    kept.tell("We met Melanie.")
    relation = {"from_entity": "Melanie", "to_entity": "Acme", "relation_type": "works_at"}
    kept.client.post("/knowledge-graph", json={"relations": [relation]})
    entity = {"name": "Melanie", "entity_type": "doctor", "observations": ["is here"]}
    kept.client.post("/knowledge-graph", json={"entities": [entity]})
    old = kept.client.get("/knowledge-graph", params={"names": "Melanie"}).json()["entities"][0]["id"]
    assert kept.client.post(f"/memory/{old}/supersede", json={"text": "Melanie (doctor)"}).is_success
    at = kept.time()
    id_ = kept.concept("Melanie")["id"]
    live = kept.get(f"concepts/{id_}/related").json()
    assert [one["relationship_type"] for one in live["related"]] == ["works_at"]
    assert kept.get(f"concepts/{id_}/related", at).json() == live


def test_there_is_no_concept_before_the_first_text_and_a_future_time_is_now(kept: Kept):
    before = kept.time()
    kept.tell("Alice met Zoe.")
    kept.time()
    assert kept.get("concepts", before).json() == {"concepts": [], "total": 0, "offset": 0, "limit": 100}
    alice = kept.concept("Alice")["id"]
    paths = (f"concepts/{alice}", f"concepts/{alice}/related")
    assert [kept.get(path, before).status_code for path in paths] == [404, 404]
    assert kept.get("concept", before, name="Alice").status_code == 404
    for path in ("concepts", *paths):
        assert kept.get(path, "2999-01-01").json() == kept.get(path).json()
        assert kept.get(path, "yesterday").status_code == 422
    assert kept.client.get("/agents/nobody/concepts", params={"as_of": before}).status_code == 404


OF_KNOWLEDGE = [
    one
    for one in OPERATIONS
    if one.method == "GET" and re.match(r"/agents/{agent_name}/(concept|topics|graph|insights|summary)", one.template)
]


@for_all("operation", OF_KNOWLEDGE)
def test_a_route_of_the_present_refuses_an_earlier_time_instead_of_ignoring_it(
    client: TestClient, operation: Operation
) -> None:
    declared = {one["name"] for one in operation.description["parameters"]}
    answer = client.get(operation.path, params={**operation.query, "as_of": "2024-01-01"})
    if "as_of" in declared:
        assert answer.status_code == 404
    else:
        assert (answer.status_code, answer.json()["detail"][:29]) == (422, "as_of is not supported here, ")
        assert client.get(operation.path, params=operation.query).status_code == 404
