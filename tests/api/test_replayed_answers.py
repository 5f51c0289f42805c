"""Answers as of an earlier time: what was answered live at a moment is answered again, byte for byte."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
import yaml
from starlette.testclient import TestClient

from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from tests.api.conftest import Start
from tests.thoroughness import sampled

CHANGES = sampled(120, 500)
EVERY = 12
AGENT = "ann"
WORDS = "violin kitchen river winter teacher lantern bread ocean garden copper window silver".split()
SPEAKERS = ("Will", "Rose", "Ben Adams", None)
LABELS = ("human", "persona")
NAMES = ("Ada", "Acme", "Lisbon", "Bread")


@dataclass
class Living:
    """A store that changes at random.

    :param deletes: Whether messages, memories, entities and relations are deleted too.
    :param gone: What answers say of those that were deleted.
    """

    client: TestClient
    chance: random.Random
    deletes: bool = False
    messages: list[str] = field(default_factory=list)
    memories: list[int] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def said(self, length: int = 6) -> str:
        return " ".join(self.chance.choice(WORDS) for _ in range(length))

    def change(self) -> None:
        verbs: list[Callable[[], None]] = [
            *[self.say] * 5,
            *[self.edit] * 3,
            *[self.remember] * 4,
            *[self.correct] * 3,
            self.supersede,
            self.write_block,
            self.describe,
            self.relate,
            self.take_back,
        ]
        if self.deletes:
            verbs += [self.delete_message, self.forget]
        self.chance.choice(verbs)()

    def ask(self, method: str, path: str, json: Any = None) -> Any:
        answer = self.client.request(method, path, json=json)
        assert answer.is_success, (path, answer.text)
        return answer.json()

    def say(self) -> None:
        body = {"agent_name": AGENT, "session_id": f"s{self.chance.randint(1, 4)}", "content": self.said()}
        speaker = self.chance.choice(SPEAKERS)
        named = {} if speaker is None else {"name": speaker}
        role = self.chance.choice(["user", "assistant"])
        self.messages.append(self.ask("POST", "/messages", {**body, **named, "role": role})["id"])

    def edit(self) -> None:
        if self.messages:
            chosen, metadata = self.chance.choice(self.messages), {"n": self.chance.randint(1, 9)}
            body = self.chance.choice([{"content": self.said()}, {"metadata": metadata}])
            self.ask("PATCH", f"/messages/{AGENT}/{chosen}", body)

    def remember(self) -> None:
        body: dict[str, Any] = {"text": self.said(), "source": self.chance.choice(["a", "b"])}
        if self.chance.random() < 0.5:
            body["tags"] = [self.chance.choice(WORDS)]
        if self.chance.random() < 0.5:
            body["facts"] = [self.said(3), self.said(4)]
        if self.chance.random() < 0.5:
            body["metadata"] = {"document_at": f"2025-05-0{self.chance.randint(1, 3)}"}
        self.memories.append(self.ask("POST", "/memory/add", body)["id"])

    def correct(self) -> None:
        if self.memories:
            body = self.chance.choice(
                [
                    {"text": self.said()},
                    {"facts": [self.said(3)]},
                    {"tags": [self.chance.choice(WORDS)]},
                    {"metadata_patch": {"n": self.chance.randint(1, 9)}},
                    {"archived": self.chance.random() < 0.3},
                ]
            )
            self.ask("PATCH", f"/memory/{self.chance.choice(self.memories)}", body)

    def supersede(self) -> None:
        if self.memories:
            chosen = self.chance.choice(self.memories)
            self.client.post(f"/memory/{chosen}/supersede", json={"text": self.said()})

    def write_block(self) -> None:
        label, value = self.chance.choice(LABELS), self.said()
        if self.client.put(f"/memory-blocks/{AGENT}/{label}", json={"value": value}).status_code == 404:
            self.ask("POST", "/memory-blocks", {"agent_name": AGENT, "label": label, "value": value})

    def describe(self) -> None:
        entity = {"name": self.chance.choice(NAMES), "entity_type": "thing", "observations": [self.said(3)]}
        self.ask("POST", "/knowledge-graph", {"entities": [entity]})

    def relate(self) -> None:
        one, other = self.chance.sample([*NAMES, "Nobody"], 2)
        relation = {"from_entity": one, "to_entity": other, "relation_type": self.chance.choice(["likes", "knows"])}
        self.ask("POST", "/knowledge-graph", {"relations": [relation]})

    def take_back(self) -> None:
        """Change an entity's observations."""
        found = self.ask("GET", "/knowledge-graph")["entities"]
        if found:
            one = self.chance.choice(found)
            self.ask("PATCH", f"/memory/{one['id']}", {"facts": [self.said(3)]})

    def delete_message(self) -> None:
        if self.messages:
            chosen = self.messages.pop(self.chance.randrange(len(self.messages)))
            self.ask("DELETE", f"/messages/{AGENT}/{chosen}")
            self.gone.append(chosen)

    def forget(self) -> None:
        if self.memories:
            chosen = self.memories.pop(self.chance.randrange(len(self.memories)))
            self.gone.append(self.ask("GET", f"/memory/{chosen}")["created_at"])
            self.ask("DELETE", f"/memory/{chosen}")


@dataclass(frozen=True)
class Question:
    """A request that takes `as_of`, in the query if it has no body."""

    method: str
    path: str
    body: dict[str, Any] | None = None

    def asked(self, client: TestClient, as_of: str | None) -> bytes:
        at = {} if as_of is None else {"as_of": as_of}
        if self.body is None:
            # Not `params`, which would replace the query of the path.
            answer = client.request(self.method, str(httpx.URL(self.path).copy_merge_params(at)))
        else:
            answer = client.request(self.method, self.path, json={**self.body, **at})
        headers = [answer.headers.get(name, "") for name in ("x-total-count", "x-relevance", "x-evidence")]
        return b"\n".join([str(answer.status_code).encode(), answer.content, *(one.encode() for one in headers)])


def questions(living: Living) -> Iterator[Question]:
    agent = AGENT
    yield Question("GET", f"/messages/{agent}?limit=7&offset=2")
    yield Question("GET", f"/messages/{agent}?session_id=s1&role=user")
    yield Question("GET", f"/sessions/{agent}/s2/messages")
    if living.messages:
        yield Question("GET", f"/messages/{agent}/{living.chance.choice(living.messages)}")
    yield Question("GET", "/knowledge-graph")
    yield Question("GET", f"/knowledge-graph?q={living.chance.choice(WORDS)}")
    yield Question("GET", f"/knowledge-graph?names={living.chance.choice(NAMES)}")
    for question in (living.said(2), f"what does Will say of the {living.said(1)}?"):
        yield Question("POST", "/messages/search", {"agent_name": agent, "query": question, "limit": 20})
        yield Question("POST", f"/context/{agent}", {"query": question, "max_tokens": 300, "explain": True})


@pytest.fixture
def living(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> Living:
    """The fence around recalled text has a random token, which is fixed here."""
    monkeypatch.setattr("souvenir.conversations.context.secrets.token_hex", lambda count: "0" * 2 * count)
    client.headers["X-Namespace"] = AGENT
    for session in ("s1", "s2", "s3", "s4"):
        client.post("/sessions", json={"agent_name": AGENT, "session_id": session})
    return Living(client, random.Random(11))


SCORES = re.compile(rb'"(score|relevance|similarity)":-?[0-9.e-]+')
ROUNDING = 3e-6
"""Scores are rounded to six digits, and sum the same numbers in another order."""


def assert_same(then: bytes, live: bytes) -> None:
    assert SCORES.sub(rb'"\1"', then) == SCORES.sub(rb'"\1"', live)
    of_then, of_live = ([float(one[0].rsplit(b":")[-1]) for one in SCORES.finditer(body)] for body in (then, live))
    assert of_then == pytest.approx(of_live, abs=ROUNDING)


L = TypeVar("L", bound=Living)


def replayed(
    living: L, changes: int, asks: Callable[[L], Iterator[Question]], *, every: int
) -> list[tuple[str, Question, bytes]]:
    """Change the store, and return what was asked meanwhile, when, and the answers."""
    seen: list[tuple[str, Question, bytes]] = []
    for number in range(changes):
        living.change()
        if number % every == every - 1:
            answers = [(question, question.asked(living.client, None)) for question in asks(living)]
            at = utc_now().isoformat()
            seen += [(at, question, answer) for question, answer in answers]
    return seen


def test_what_was_answered_is_answered_again_byte_for_byte(living: Living):
    seen = replayed(living, CHANGES, questions, every=EVERY)
    assert len({answer for _, _, answer in seen}) > len(seen) / 2
    for at, question, answer in seen:
        assert_same(question.asked(living.client, at), answer)
    assert list(living.client.app.state.service.engine.check()) == []  # type: ignore[attr-defined]


def test_what_was_deleted_is_in_no_answer_of_an_earlier_time(living: Living):
    living.deletes = True
    seen = replayed(living, CHANGES, questions, every=EVERY)
    assert any(gone.encode() in answer for gone in living.gone for _, _, answer in seen)
    for at, question, _ in seen:
        answer = question.asked(living.client, at)
        asked_for = question.path  # an error names what it asks for
        assert [gone for gone in living.gone if gone.encode() in answer and gone not in asked_for] == []


def told(client: TestClient, content: str, **fields: Any) -> str:
    answer = client.post("/messages", json={"agent_name": AGENT, "role": "user", "content": content, **fields})
    return str(answer.json()["id"])


def test_an_edited_message_has_its_former_text_until_it_is_deleted(client: TestClient):
    before = utc_now().isoformat()
    uid = told(client, "my number is five", metadata={"n": 1})
    first = utc_now().isoformat()
    client.patch(f"/messages/{AGENT}/{uid}", json={"content": "my number is six", "metadata": {"n": 2}})
    second = utc_now().isoformat()
    client.patch(f"/messages/{AGENT}/{uid}", json={"content": "my number is seven"})

    def at(moment: str | None) -> Any:
        return client.get(f"/messages/{AGENT}/{uid}", params={} if moment is None else {"as_of": moment})

    assert at(before).status_code == 404
    assert client.get(f"/messages/{AGENT}", params={"as_of": before}).json() == []
    assert [at(one).json()["content"].split()[-1] for one in (first, second, None)] == ["five", "six", "seven"]
    assert [at(one).json()["metadata"] for one in (first, second, None)] == [{"n": 1}, {"n": 2}, {"n": 2}]
    assert at(first).json()["edited_at"] is None
    client.delete(f"/messages/{AGENT}/{uid}")
    assert [at(one).status_code for one in (first, second, None)] == [404, 404, 404]
    store = client.app.state.service.engine  # type: ignore[attr-defined]
    with store.namespace(Scope(AGENT)) as (connection, _):
        assert connection.execute("SELECT count(*) FROM message_versions").get == 0


def test_the_time_of_storing_counts_and_not_that_of_the_message(client: TestClient):
    before = utc_now().isoformat()
    told(client, "said long ago", created_at="2020-01-01")
    assert client.get(f"/messages/{AGENT}", params={"as_of": before}).json() == []
    assert len(client.get(f"/messages/{AGENT}", params={"as_of": utc_now().isoformat()}).json()) == 1


def test_a_rescan_redacts_the_former_texts_of_messages(client: TestClient):
    uid = told(client, "write to ann.lee@example.com")
    at = utc_now().isoformat()
    client.patch(f"/messages/{AGENT}/{uid}", json={"content": "write to nobody"})
    assert "ann.lee@" in client.get(f"/messages/{AGENT}/{uid}", params={"as_of": at}).text
    assert client.put(f"/agents/{AGENT}/policy", json={"pii": "redact"}).is_success
    assert client.post("/privacy/rescan", headers={"X-Namespace": AGENT}).json()["changed"] > 0
    assert "ann.lee@" not in client.get(f"/messages/{AGENT}/{uid}", params={"as_of": at}).text


def test_what_was_flagged_then_is_hidden_from_the_context_of_then(client: TestClient):
    flagged = {"sensitive_topics": ["health"]}
    uid = told(client, "the doctor found a fracture", metadata=flagged)
    memory = {"text": "the doctor set a fracture", "source": "a", "metadata": flagged}
    made = client.post("/memory/add", json=memory, headers={"X-Namespace": AGENT}).json()["id"]
    at = utc_now().isoformat()
    client.patch(f"/messages/{AGENT}/{uid}", json={"content": "the baker found a loaf", "metadata": {"a": 1}})
    client.patch(
        f"/memory/{made}",
        json={"text": "the baker ate a loaf", "metadata_patch": {"sensitive_topics": None}},
        headers={"X-Namespace": AGENT},
    )
    question = {"query": "what did the doctor find?", "as_of": at}
    assert "fracture" in client.post(f"/context/{AGENT}", json=question).json()["text"]
    hidden = client.post(f"/context/{AGENT}", json={**question, "exclude_topics": ["health"]})
    assert "fracture" not in hidden.text


def test_a_rescan_flags_former_texts_by_the_rules_of_now(start: Start, tmp_path: Path):
    client, space = start(), {"X-Namespace": AGENT}
    uid = told(client, "the project bluebird starts in May", metadata={"a": 1})
    memory = {"text": "the project bluebird ends in June", "source": "a"}
    made = client.post("/memory/add", json=memory, headers=space).json()["id"]
    at = utc_now().isoformat()
    client.patch(f"/messages/{AGENT}/{uid}", json={"content": "the baker sold a loaf"})
    client.patch(f"/memory/{made}", json={"text": "the baker ate a loaf"}, headers=space)
    question = {"query": "when does the project bluebird start and end?", "as_of": at}
    shown = client.post(f"/context/{AGENT}", json=question).json()["text"]
    assert [word in shown for word in ("May", "June")] == [True, True]
    client.__exit__(None, None, None)
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"memory_rules": {"sensitive_topics": {"bluebird": ["bluebird"]}}}))
    client = start(privacy_config=rules)
    assert client.put(f"/agents/{AGENT}/policy", json={"hidden_topics": ["bluebird"]}).is_success
    assert client.post("/privacy/rescan", headers=space).json()["changed"] >= 2
    assert client.get(f"/messages/{AGENT}/{uid}", params={"as_of": at}).json()["metadata"] == {
        "a": 1,
        "sensitive_topics": ["bluebird"],
    }
    assert client.post(f"/context/{AGENT}", json=question).json()["text"] == ""
    assert client.post("/privacy/rescan", headers=space).json()["changed"] == 0
    assert list(client.app.state.service.engine.check()) == []  # type: ignore[attr-defined]


def test_a_page_around_a_message_that_was_stored_later_is_not_found_then(client: TestClient):
    first = told(client, "first", session_id="s")
    at = utc_now().isoformat()
    later = told(client, "later", session_id="s")

    def around(uid: str) -> Any:
        return client.get(f"/sessions/{AGENT}/s/messages", params={"around": uid, "as_of": at})

    assert [one["id"] for one in around(first).json()] == [first]
    assert (around(later).status_code, around(later).json()["code"]) == (404, "message_not_found")


def test_former_texts_of_the_session_that_is_searched_are_embedded_first(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("souvenir.conversations.message_search.MAX_FORMER_TEXTS", 3)
    wanted = told(client, "my violin is red", session_id="first", user="ann")
    others = [told(client, f"my violin is number {number}", session_id="later", user="ben") for number in range(5)]
    at = utc_now().isoformat()
    for uid in (wanted, *others):
        client.patch(f"/messages/{AGENT}/{uid}", json={"content": "nothing of it"})
    asked = {"agent_name": AGENT, "query": "violin", "as_of": at}
    for chosen in ({"session_id": "first"}, {"exclude_session_id": "later"}, {"user": "ann"}):
        found = client.post("/messages/search", json={**asked, **chosen})
        assert [one["content"] for one in found.json()] == ["my violin is red"]
        assert found.headers["x-search-degraded"] == "past_texts"


def test_a_misspelt_word_is_corrected_to_a_word_of_then(client: TestClient):
    texts = ("my cousin eats spaghetti", "we saw the harbour of zanzibar", "the ticket was expensive", "we saw a ship")
    space, uids = {"X-Namespace": AGENT}, [told(client, text, session_id="s") for text in texts]
    made = [
        client.post("/memory/add", json={"text": text, "source": "a"}, headers=space).json()["id"] for text in texts
    ]

    def asked(query: str, as_of: str | None) -> list[list[tuple[str, str, float]]]:
        at = {} if as_of is None else {"as_of": as_of}
        of_messages = client.post("/messages/search", json={"agent_name": AGENT, "query": query, **at})
        of_memories = client.post("/search", json={"query": query, **at}, headers=space)
        return [
            [("message", one["content"], one["score"]) for one in of_messages.json()],
            [("memory", one["text"], one["score"]) for one in of_memories.json()["results"]],
        ]

    queries = ("spagetti", "zanzibra", "zanzibor harbuor")
    live = {query: asked(query, None) for query in queries}
    at = utc_now().isoformat()
    for number in (0, 1):
        client.patch(f"/messages/{AGENT}/{uids[number]}", json={"content": "nothing of it"})
        client.patch(f"/memory/{made[number]}", json={"text": "nothing of it"}, headers=space)
    for text in ("spagett is a firm", "a zanzibor", "harbuors"):
        told(client, text, session_id="s")
        client.post("/memory/add", json={"text": text, "source": "a"}, headers=space)
    for query in queries:
        for then, before in zip(asked(query, at), live[query], strict=True):
            assert [one[:2] for one in then] == [one[:2] for one in before]
            assert [one[2] for one in then] == pytest.approx([one[2] for one in before], abs=ROUNDING)
