"""Messages over HTTP: requests and answers of the seed's clients, and the fields added since."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.api.fields import EVIDENCE_HEADER, RELEVANCE_HEADER
from souvenir.api.message_search import DEGRADED_HEADER
from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.types import FloatVector, MessageRole, Scope
from souvenir.store.messages.messages import MessageDraft
from tests.api.conftest import KEY, Start, loaded
from tests.api.test_agents import key_for
from tests.fake_embedder import FakeEmbedder

ENV = {"X-API-Key": KEY}
AGENT = "my_agent"


def store(client: TestClient, content: str, **fields: Any) -> dict[str, Any]:
    """:param fields: Of the message; `key` is the Idempotency-Key."""
    headers = {"Idempotency-Key": fields.pop("key")} if "key" in fields else {}
    body = {"agent_name": AGENT, "role": "user", "content": content, **fields}
    stored = client.post("/messages", json=body, headers=headers)
    assert stored.status_code == 200, stored.text
    message: dict[str, Any] = stored.json()
    return message


def search(client: TestClient, query: str, **fields: Any) -> list[dict[str, Any]]:
    found = client.post("/messages/search", json={"agent_name": AGENT, "query": query, **fields})
    assert found.status_code == 200, found.text
    hits: list[dict[str, Any]] = found.json()
    return hits


def listed(client: TestClient, query: str = "") -> list[str]:
    page = client.get(f"/messages/{AGENT}{query}")
    assert page.status_code == 200, page.text
    return [one["content"] for one in page.json()]


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def problems(client: TestClient) -> Any:
    return list(client.app.state.service.engine.check())  # type: ignore[attr-defined]


def test_a_message_is_stored_as_the_seed_says_and_makes_its_agent(client: TestClient):
    stored = store(client, "Hello, world!")
    assert uuid.UUID(stored["id"]).version == 4
    assert stored["agent_id"] == client.get(f"/agents/{AGENT}").json()["id"]
    assert {name: stored[name] for name in ("role", "content", "metadata", "similarity", "user", "name")} == {
        "role": "user",
        "content": "Hello, world!",
        "metadata": None,
        "similarity": None,
        "user": None,
        "name": None,
    }
    assert stored["created_at"].endswith("+00:00")
    assert client.get(f"/messages/{AGENT}").json() == [stored]
    assert client.get(f"/messages/{AGENT}/{stored['id']}").json() == stored


def test_all_that_a_caller_says_of_a_message_comes_back(client: TestClient):
    said = {
        "metadata": {"model": "m", "tokens": 3},
        "session_id": "s 1",
        "user": "alice",
        "name": "Alice",
        "created_at": "2023-05-08T09:30:00+02:00",
    }
    stored = store(client, "hello", role="assistant", **said)
    assert {name: stored[name] for name in said} == {**said, "created_at": "2023-05-08T07:30:00.000000+00:00"}


def test_a_search_answers_a_bare_array_best_first_with_similarity_and_score(client: TestClient):
    for content in ("the sky is blue", "blue", "nothing of it"):
        store(client, content)
    hits = search(client, "blue")
    assert [hit["content"] for hit in hits][:2] == ["blue", "the sky is blue"]
    assert hits[0]["similarity"] == pytest.approx(1.0, abs=1e-5)
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert hits[0].keys() == {*store(client, "x"), "score"}


def test_a_search_gives_as_many_as_the_settings_say(start: Start):
    client = start(default_search_limit=2, max_search_limit=3)
    for number in range(5):
        store(client, f"blue {number}")
    assert (len(search(client, "blue")), len(search(client, "blue", limit=3))) == (2, 3)
    refused = client.post("/messages/search", json={"agent_name": AGENT, "query": "blue", "limit": 4})
    assert refusal(refused) == (422, "invalid_request")


def test_every_message_is_searched_and_not_the_newest_ones_only(client: TestClient):
    store(client, "the needle lies here", created_at="2001-01-01")
    for _ in range(3):
        messages = [{"role": "user", "content": f"hay {number}"} for number in range(500)]
        assert client.post("/messages/batch", json={"agent_name": AGENT, "messages": messages}).status_code == 200
    assert search(client, "needle", limit=1)[0]["content"] == "the needle lies here"


def test_messages_are_listed_newest_first_in_pages_with_their_number(client: TestClient):
    for day in (3, 1, 2):
        store(client, f"of day {day}", created_at=f"2025-04-0{day}", user="alice" if day < 3 else None)
    assert listed(client) == ["of day 3", "of day 2", "of day 1"]
    page = client.get(f"/messages/{AGENT}?offset=1&limit=1")
    assert ([one["content"] for one in page.json()], page.headers["X-Total-Count"]) == (["of day 2"], "3")
    assert listed(client, "?user=alice") == ["of day 2", "of day 1"]
    assert listed(client, "?since=2025-04-02&until=2025-04-02") == ["of day 2"]
    assert listed(client, "?role=assistant") == []
    assert client.get(f"/messages/{AGENT}?limit=1001").status_code == 422


def test_a_changed_message_is_found_by_its_new_content_only(client: TestClient):
    stored = store(client, "I love blue", metadata={"n": 1})
    path = f"/messages/{AGENT}/{stored['id']}"
    changed = client.patch(path, json={"content": "I love green"}).json()
    assert changed.pop("edited_at") >= stored["created_at"]
    assert changed == {**{name: stored[name] for name in stored if name != "edited_at"}, "content": "I love green"}
    assert [hit["content"] for hit in search(client, "green")] == ["I love green"]
    assert client.patch(path, json={"metadata": {"n": 2}}).json()["metadata"] == {"n": 2}
    assert refusal(client.patch(path, json={})) == (400, "nothing_to_do")
    assert problems(client) == []


def test_a_missing_resource_is_404(client: TestClient):
    missing = [
        client.get("/messages/nobody"),
        client.get("/messages/nobody/m"),
        client.patch("/messages/nobody/m", json={"content": "c"}),
        client.post("/messages/search", json={"agent_name": "nobody", "query": "q"}),
    ]
    assert [refusal(answer) for answer in missing] == [(404, "agent_not_found")] * 4
    store(client, "hello")
    other = client.post("/messages", json={"agent_name": "other", "role": "user", "content": "c"}).json()["id"]
    for answer in (
        client.get(f"/messages/{AGENT}/{other}"),
        client.patch(f"/messages/{AGENT}/{other}", json={"content": "c"}),
    ):
        assert refusal(answer) == (404, "message_not_found")


BAD = [
    {"role": "tool"},
    {"content": ""},
    {"content": "a\0b"},
    {"session_id": "a/b"},
    {"session_id": ""},
    {"session_id": "s" * 201},
    {"user": "a\nb"},
    {"name": "n" * 101},
    {"created_at": "yesterday"},
    {"metadata": "text"},
]


@pytest.mark.parametrize("field", BAD, ids=str)
def test_a_field_that_cannot_be_used_is_422_alone_and_in_a_batch(client: TestClient, field: dict[str, Any]):
    good = {"role": "user", "content": "hello"}
    assert client.post("/messages", json={"agent_name": AGENT, **good, **field}).status_code == 422
    messages: list[dict[str, Any]] = [dict(good) for _ in range(499)] + [{**good, **field}]
    batch = {"agent_name": AGENT, "messages": messages}
    if "session_id" in field:
        batch = {"agent_name": AGENT, "messages": messages[:1], **field}
    assert client.post("/messages/batch", json=batch).status_code == 422
    assert client.get(f"/agents/{AGENT}").status_code == 404


def test_a_batch_is_stored_in_its_order_with_its_times(client: TestClient):
    messages = [
        {"role": "user", "content": f"m{number}", "created_at": f"2023-05-08T09:{number:02}:00Z"}
        for number in range(50)
    ]
    body = {"agent_name": AGENT, "session_id": "import", "messages": messages}
    stored = client.post("/messages/batch", json=body).json()
    assert stored["count"] == 50
    assert [one["content"] for one in stored["messages"]] == [f"m{number}" for number in range(50)]
    assert client.get(f"/sessions/{AGENT}/import/messages").json() == stored["messages"]
    assert client.get(f"/sessions/{AGENT}/import").json()["started_at"] == "2023-05-08T09:00:00.000000+00:00"
    assert [hit["content"] for hit in search(client, "m7", limit=1)] == ["m7"]


def test_a_batch_takes_1000_messages_and_no_more(client: TestClient):
    body = {"agent_name": AGENT, "messages": [{"role": "user", "content": "m"}] * 1001}
    assert client.post("/messages/batch", json=body).status_code == 422
    assert client.post("/messages/batch", json={**body, "messages": []}).status_code == 422
    assert client.post("/messages/batch", json={**body, "messages": body["messages"][:1000]}).json()["count"] == 1000
    assert client.get(f"/messages/{AGENT}?limit=1").headers["X-Total-Count"] == "1000"


def test_the_same_request_under_one_key_stores_one_message(client: TestClient):
    first = store(client, "hello", key="k1")
    body = {"agent_name": AGENT, "role": "user", "content": "hello"}
    again = client.post("/messages", json=body, headers={"Idempotency-Key": "k1"})
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first, "true")
    other = client.post("/messages", json={**body, "content": "bye"}, headers={"Idempotency-Key": "k1"})
    assert refusal(other) == (422, "idempotency_key_reused")
    fresh = client.post("/messages", json=body, headers={"Idempotency-Key": "k2"})
    assert "Idempotency-Replayed" not in fresh.headers
    assert listed(client) == ["hello", "hello"]


def test_a_key_does_not_reach_from_one_route_to_another(client: TestClient):
    body = {"agent_name": AGENT, "messages": [{"role": "user", "content": "hello"}]}
    for _ in range(2):
        store(client, "hello", key="k")
        assert client.post("/messages/batch", json=body, headers={"Idempotency-Key": "k"}).status_code == 200
        assert client.post("/sessions", json={"agent_name": AGENT}, headers={"Idempotency-Key": "k"}).status_code == 200
        assert client.post("/agents", json={"name": AGENT}, headers={"Idempotency-Key": "k"}).status_code == 200
    assert listed(client) == ["hello", "hello"]
    assert client.get(f"/sessions/{AGENT}").json()["total"] == 2


def test_concurrent_requests_with_one_key_store_one_message(start: Start):
    client = start(max_writes=8)
    with ThreadPoolExecutor(8) as threads:
        stored = list(threads.map(lambda _: store(client, "hello", key="k")["id"], range(8)))
    assert len(set(stored)) == 1
    assert listed(client) == ["hello"]


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_a_key_has_1_to_255_characters(client: TestClient, key: str):
    body = {"agent_name": AGENT, "role": "user", "content": "hello"}
    assert client.post("/messages", json=body, headers={"Idempotency-Key": key}).status_code == 422


@pytest.mark.parametrize("body", [b"{", b"hello", b"[]"])
def test_a_body_that_is_no_request_is_422_with_a_key_too(client: TestClient, body: bytes):
    for content_type in ("application/json", "text/plain"):
        headers = {"Idempotency-Key": "k", "Content-Type": content_type}
        assert client.post("/messages", content=body, headers=headers).status_code == 422


def test_a_search_returns_its_relevance(client: TestClient):
    store(client, "billing runs on postgres")

    def asked(query: str) -> tuple[float, str]:
        headers = client.post("/messages/search", json={"agent_name": AGENT, "query": query}).headers
        return float(headers[RELEVANCE_HEADER]), headers[EVIDENCE_HEADER]

    relevance, evidence = asked("billing postgres")
    assert (0.6 <= relevance <= 1.0, evidence) == (True, "strong")
    relevance, evidence = asked("violin lessons")
    assert (0.0 <= relevance < 0.25, evidence) == (True, "none")
    nothing = client.post(
        "/messages/search", json={"agent_name": AGENT, "query": "billing postgres", "session_id": "unknown"}
    )
    assert (nothing.json(), nothing.headers[RELEVANCE_HEADER], nothing.headers[EVIDENCE_HEADER]) == ([], "0.0", "none")


def test_a_search_says_which_arm_could_not_run(start: Start):
    class NoQueries(FakeEmbedder):
        def embed_query(self, text: str) -> FloatVector:
            raise EmbeddingUnavailable("The model is gone")

    client = loaded(start())
    store(client, "blue")
    assert client.app.state.service.engine.models.reload(NoQueries())  # type: ignore[attr-defined]
    found = client.post("/messages/search", json={"agent_name": AGENT, "query": "blue"})
    assert found.headers[DEGRADED_HEADER] == "vector"
    assert [(hit["content"], hit["similarity"]) for hit in found.json()] == [("blue", None)]


def test_many_writers_at_once_lose_nothing_and_keep_their_order(start: Start):
    writers, each = 32, 5
    client = start(max_writes=writers)

    def write(writer: int) -> None:
        for number in range(each):
            store(client, f"w{writer} n{number}", session_id="s")

    with ThreadPoolExecutor(writers) as threads:
        list(threads.map(write, range(writers)))
    contents = [one["content"] for one in client.get(f"/sessions/{AGENT}/s/messages?limit=1000").json()]
    for writer in range(writers):
        own = [content for content in contents if content.startswith(f"w{writer} ")]
        assert own == [f"w{writer} n{number}" for number in range(each)]
    assert len(contents) == writers * each
    assert problems(client) == []


def test_pending_messages_are_indexed_after_a_restart(start: Start):
    client = loaded(start())
    service = client.app.state.service  # type: ignore[attr-defined]
    body = {"agent_name": AGENT, "role": "user", "content": "blue"}
    client.post("/messages", json=body)
    service.conversations.append(Scope(AGENT), "s", [MessageDraft(MessageRole.USER, "blue and unindexed")])
    assert [hit["content"] for hit in search(client, "blue")] == ["blue"]
    client.__exit__(None, None, None)
    again = loaded(start())
    assert {hit["content"] for hit in search(again, "blue")} == {"blue", "blue and unindexed"}
    assert problems(again) == []


def test_a_key_of_another_namespace_or_of_some_sources_reaches_no_message(start: Start):
    client = start(api_key=KEY)
    body = {"agent_name": AGENT, "role": "user", "content": "blue"}
    assert client.post("/messages", json=body, headers=ENV).status_code == 200
    for fields in ({"namespace": "other"}, {"namespace": AGENT, "prefixes": ["notes"]}):
        key = key_for(client, **fields)
        answers = [
            client.post("/messages", json=body, headers=key),
            client.get(f"/messages/{AGENT}", headers=key),
            client.post("/messages/search", json={"agent_name": AGENT, "query": "blue"}, headers=key),
            client.get(f"/sessions/{AGENT}", headers=key),
            client.get(f"/agents/{AGENT}/users", headers=key),
            client.get(f"/agents/{AGENT}/stats", headers=key),
        ]
        assert [refusal(answer) for answer in answers] == [(403, "forbidden")] * len(answers)
    assert listed_with(client, key_for(client, namespace=AGENT)) == ["blue"]


def listed_with(client: TestClient, headers: dict[str, str]) -> list[str]:
    return [one["content"] for one in client.get(f"/messages/{AGENT}", headers=headers).json()]


@pytest.mark.parametrize("blank", [" ", "\n\t", "\u200b", "\u2800\u3164", "\ufe0f\u00ad"])
def test_a_blank_message_is_refused_and_nothing_of_its_batch_is_stored(client: TestClient, blank: str):
    stored = store(client, "Hello")
    message = {"role": "user", "content": blank}
    refused = [
        client.post("/messages", json={"agent_name": AGENT, **message}),
        client.post(
            "/messages/batch", json={"agent_name": AGENT, "messages": [{"role": "user", "content": "Bye"}, message]}
        ),
        client.patch(f"/messages/{AGENT}/{stored['id']}", json={"content": blank}),
    ]
    for answer in refused:
        assert refusal(answer) == (422, "invalid_request"), answer.text
        assert "blank" in answer.json()["detail"]
    assert listed(client) == ["Hello"]


@pytest.mark.parametrize(("sign", "other"), [("🎂", "🎉"), ("👍🏽", "👎"), ("🇫🇷", "🇨🇭"), ("€", "£"), (":-)", ":-(")])
def test_a_message_is_found_by_its_emoji_or_symbol(client: TestClient, sign: str, other: str):
    stored = [store(client, content)["id"] for content in (other, sign)]
    [found] = search(client, sign, limit=1)
    assert found["id"] == stored[1]
