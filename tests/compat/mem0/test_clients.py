"""Mem0's own clients, unmodified, against a started service."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from typing import Any

import pytest

from tests.api.conftest import KEY

TEA, DOG = "I drink green tea every morning", "My dog is called Bello"


def texts(found: dict[str, Any]) -> list[str]:
    return sorted(one["memory"] for one in found["results"])


def ids(found: dict[str, Any]) -> list[str]:
    return [one["id"] for one in found["results"]]


def test_a_memory_is_added_read_searched_changed_and_deleted(client):
    mem0 = client()
    metadata = {"source": "slack", "user_id": "apart", "size": {"cm": 3}}
    added = mem0.add(
        [
            {"role": "system", "content": "Be brief"},
            {"role": "user", "content": TEA},
            {"role": "assistant", "content": [{"type": "text", "text": DOG}]},
        ],
        user_id="u-life",
        app_id="a-life",
        run_id="r-life",
        metadata=metadata,
        expiration_date="2999-12-31",
    )
    assert [(one["memory"], one["event"]) for one in added["results"]] == [(TEA, "ADD"), (DOG, "ADD")]
    first, second = ids(added)
    one = mem0.get(first)
    assert one["metadata"] == metadata
    assert (one["user_id"], one["agent_id"], one["app_id"], one["run_id"]) == ("u-life", "alpha", "a-life", "r-life")
    assert one["hash"] == hashlib.md5(TEA.encode()).hexdigest()
    assert one["expiration_date"] == "2999-12-31"
    found = mem0.search("green tea", filters={"user_id": "u-life"}, top_k=1)["results"]
    assert [hit["id"] for hit in found] == [first]
    assert 0 < found[0]["score"] <= 1
    assert ids(mem0.search("tea", filters={"metadata": {"source": "slack", "size": {"cm": {"gte": 4}}}})) == []

    changed = mem0.update(first, text="I drink black tea", metadata={"mood": "calm"})
    assert (changed["memory"], changed["metadata"], changed["user_id"]) == (
        "I drink black tea",
        {"mood": "calm"},
        "u-life",
    )
    assert mem0.update(first, expiration_date=None)["expiration_date"] is None
    history = mem0.history(first)
    assert [row["event"] for row in history] == ["ADD", "UPDATE", "UPDATE"]
    assert (history[1]["old_memory"], history[1]["new_memory"]) == (TEA, "I drink black tea")

    mem0.delete(first)
    assert texts(mem0.get_all(filters={"user_id": "u-life"})) == [DOG]
    assert mem0.history(first)[-1]["event"] == "DELETE"
    assert all(row["old_memory"] is None and row["new_memory"] is None for row in mem0.history(first))
    mem0.delete(second)


def test_an_identity_in_filters_is_that_of_the_added_memory(client):
    added = client().add(TEA, filters={"user_id": "u-filters"}, infer=False, timestamp=1_700_000_000)
    assert added["results"][0]["user_id"] == "u-filters"
    assert added["results"][0]["created_at"].startswith("2023-11-14T22:13:20")


def test_expired_memories_are_shown_only_on_request(client):
    mem0 = client()
    mem0.add(TEA, user_id="u-old", expiration_date="2020-01-01")
    wanted = {"user_id": "u-old"}
    assert texts(mem0.get_all(filters=wanted)) == texts(mem0.search("tea", filters=wanted)) == []
    assert texts(mem0.get_all(filters=wanted, show_expired=True)) == [TEA]
    assert texts(mem0.search("tea", filters=wanted, show_expired=True)) == [TEA]


def test_pages_hold_every_memory_once(client):
    mem0 = client()
    for number in range(5):
        mem0.add(f"page {number}", user_id="u-page")
    pages = [mem0.get_all(filters={"user_id": "u-page"}, page=page, page_size=2) for page in (1, 2, 3)]
    assert [page["count"] for page in pages] == [5, 5, 5]
    assert [text for page in pages for text in (one["memory"] for one in page["results"])] == [
        f"page {number}" for number in (4, 3, 2, 1, 0)
    ]
    assert (pages[0]["previous"], pages[2]["next"]) == (None, None)
    assert "page=2" in pages[0]["next"]
    assert "page=2" in pages[2]["previous"]
    assert mem0.get_all(filters={"user_id": "u-page"}, fields=["memory"])["results"][0].keys() == {"id", "memory"}


def test_a_filter_applies_before_the_best_are_chosen(client):
    mem0 = client()
    for number in range(20):
        mem0.add(f"red wine number {number}", user_id="u-many")
    mem0.add("a wine that is white", user_id="u-few")
    assert texts(mem0.search("red wine", filters={"user_id": "u-few"}, top_k=1)) == ["a wine that is white"]


def test_batches_change_and_delete_all_or_nothing(client, mem0):
    one, other = ids(client().add([{"role": "user", "content": text} for text in ("one", "two")], user_id="u-batch"))
    with pytest.raises(mem0.exceptions.MemoryNotFoundError):
        client().batch_update([{"memory_id": one, "text": "changed"}, {"memory_id": "999999", "text": "changed"}])
    with pytest.raises(mem0.exceptions.MemoryNotFoundError):
        client().batch_delete([{"memory_id": one}, {"memory_id": "999999"}])
    assert texts(client().get_all(filters={"user_id": "u-batch"})) == ["one", "two"]
    client().batch_update([{"memory_id": one, "text": "eins"}, {"memory_id": other, "metadata": {"n": 2}}])
    assert texts(client().get_all(filters={"user_id": "u-batch"})) == ["eins", "two"]
    client().batch_delete([{"memory_id": one}, {"memory_id": other}])
    assert texts(client().get_all(filters={"user_id": "u-batch"})) == []


@pytest.mark.parametrize("named", [{"user_id": "u-all"}, {"filters": {"user_id": "u-all"}}], ids=["name", "filters"])
def test_delete_all_deletes_what_its_filter_selects(client, named):
    mem0 = client()
    mem0.add(TEA, user_id="u-all", expiration_date="2020-01-01")
    mem0.add(DOG, user_id="u-kept")
    mem0.delete_all(**named)
    assert texts(mem0.get_all(filters={"user_id": "u-all"}, show_expired=True)) == []
    assert texts(mem0.get_all(filters={"user_id": "u-kept"})) == [DOG]
    mem0.delete_all(user_id="u-kept")


@pytest.mark.parametrize(
    "named",
    [{}, {"filters": {}}, {"filters": {"AND": []}}, {"filters": {"NOT": []}}, {"filters": "x"}, {"user": "a"}],
    ids=str,
)
def test_delete_all_without_a_filter_deletes_nothing(client, mem0, named):
    before = client().get_all()["count"]
    with pytest.raises(mem0.exceptions.ValidationError):
        client().delete_all(**named)
    assert client().get_all()["count"] == before


def test_entities_are_listed_and_deleted_with_their_memories(client, running):
    mem0 = client(running.new_key(role="read-write", namespace="entities"))
    mem0.add(TEA, user_id="ann", app_id="mobile", run_id="r1")
    mem0.add(DOG, user_id="ben")
    listed = {(one["type"], one["name"]): one["total_memories"] for one in mem0.users()["results"]}
    assert listed == {
        ("user", "ann"): 1,
        ("user", "ben"): 1,
        ("app", "mobile"): 1,
        ("run", "r1"): 1,
        ("agent", "entities"): 2,
    }
    mem0.delete_users(user_id="ann")
    assert texts(mem0.get_all()) == [DOG]
    mem0.delete_users(user_id="ann")
    assert mem0.reset()["message"].startswith("Client reset successful")
    assert mem0.get_all()["count"] == 0
    assert mem0.users()["results"] == []


def test_what_is_deleted_is_found_by_nobody(client):
    """Erasure: no search, list, history or other agent's filter brings it back."""
    mem0, everyone = client(), client("admin")
    mem0.add("the zebraquartz is secret", user_id="u-erased")
    mem0.delete_users(user_id="u-erased")
    for found in (
        mem0.search("zebraquartz"),
        mem0.get_all(filters={"keywords": {"contains": "zebraquartz"}}, show_expired=True),
        everyone.search("zebraquartz", filters={"agent_id": "*"}),
    ):
        assert "zebraquartz" not in str(found)


def test_a_key_reaches_its_own_agent_only(client, mem0):
    alpha, beta = client("alpha"), client("beta")
    [id_] = ids(alpha.add("only alpha knows", user_id="u-scope"))
    missing = _error(lambda: beta.get("999999"))
    for call in (
        lambda: beta.get(id_),
        lambda: beta.history(id_),
        lambda: beta.update(id_, text="taken"),
        lambda: beta.delete(id_),
        lambda: beta.batch_delete([{"memory_id": id_}]),
        lambda: beta.feedback(id_, "POSITIVE"),
    ):
        error = _error(call)
        assert isinstance(error, mem0.exceptions.MemoryNotFoundError)
        assert str(error).replace(id_, "999999") == str(missing)
    for call in (
        lambda: beta.search("alpha", filters={"agent_id": "alpha"}),
        lambda: beta.get_all(filters={"OR": [{"agent_id": {"in": ["alpha"]}}]}),
        lambda: beta.add("into alpha", agent_id="alpha"),
        lambda: beta.delete_all(agent_id="alpha"),
        lambda: beta.delete_users(agent_id="alpha"),
    ):
        assert _error(call).error_code == "HTTP_403"
    assert "only alpha knows" not in str(beta.search("only alpha knows", filters={"agent_id": "*"}))
    assert "only alpha knows" not in str(beta.users())
    assert alpha.get(id_)["memory"] == "only alpha knows"


def test_an_admins_key_reaches_every_agent_by_name_by_star_and_by_id(client):
    everyone = client("admin")
    added = everyone.add("the gamma ray", user_id="u-gamma", agent_id="gamma")
    [id_] = ids(added)
    assert added["results"][0]["agent_id"] == "gamma"
    assert everyone.get(id_)["agent_id"] == "gamma"
    user = {"user_id": "u-gamma"}
    assert texts(everyone.get_all(filters=user)) == []
    for agent in ("gamma", "*", {"in": ["gamma", "alpha"]}):
        assert texts(everyone.get_all(filters={"AND": [user, {"agent_id": agent}]})) == ["the gamma ray"]
    assert texts(everyone.search("gamma ray", filters={"OR": [{"agent_id": "gamma"}, user]})) == ["the gamma ray"]
    everyone.delete(id_)


def _error(call: Any) -> Any:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the caller looks at its class
        call()
    return raised.value


def test_errors_are_the_clients_exceptions_with_one_sentence(client, mem0):
    errors = mem0.exceptions
    reader = client("reader")
    for call, kind, code in (
        (lambda: client().get("7x"), errors.MemoryNotFoundError, "HTTP_404"),
        (lambda: client().search("tea", filters={"color": "red"}), errors.ValidationError, "HTTP_400"),
        (lambda: client().search("tea", top_k=0), errors.ValidationError, "HTTP_422"),
        (lambda: client().add(TEA, user_id="a/b"), errors.ValidationError, "HTTP_422"),
        (lambda: client().add(TEA, unknown=True), errors.ValidationError, "HTTP_422"),
        (lambda: client().get_all(page=0), errors.ValidationError, "HTTP_422"),
        (lambda: reader.add(TEA, user_id="a"), errors.AuthenticationError, "HTTP_403"),
    ):
        error = _error(call)
        assert (type(error), error.error_code) == (kind, code)
        assert error.message.count("\n") == 0
    with pytest.raises(ValueError, match="Invalid or missing API key"):
        client("mem_wrong")


def test_a_used_up_quota_is_a_rate_limit_error_with_its_wait(client, mem0, running):
    key = running.new_key(role="read-write", namespace="alpha", quotas={"requests_per_minute": 1})
    used_up = client(key)
    error = _error(used_up.get_all)
    assert type(error) is mem0.exceptions.RateLimitError
    assert error.debug_info["retry_after"] >= 1


def test_feedback_is_recorded(client, running):
    [id_] = ids(client().add(TEA, user_id="u-feedback"))
    assert client().feedback(id_, "very_negative", "wrong")["feedback"] == "VERY_NEGATIVE"
    with running.http(running.keys["alpha"]) as http:
        [entry] = http.get("/search/feedback/history", params={"memory_id": id_}).json()["entries"]
    assert entry["signal"] == "not_useful"


def test_the_asynchronous_client_does_the_same(mem0, running):
    async def used() -> None:
        client = mem0.AsyncMemoryClient(api_key=running.keys["beta"], host=running.url)
        added = await client.add(TEA, user_id="u-async", metadata={"n": 1})
        [id_] = ids(added)
        assert (await client.get(id_))["memory"] == TEA
        wanted = {"AND": [{"user_id": "u-async"}, {"metadata": {"n": {"lt": 2}}}]}
        assert texts(await client.search("tea", filters=wanted)) == [TEA]
        assert (await client.get_all(filters=wanted, page=1, page_size=1))["count"] == 1
        await client.update(id_, text=DOG)
        assert [row["event"] for row in await client.history(id_)] == ["ADD", "UPDATE"]
        await client.batch_update([{"memory_id": id_, "text": TEA}])
        await client.feedback(id_, "POSITIVE")
        assert ("user", "u-async") in {(one["type"], one["name"]) for one in (await client.users())["results"]}
        await client.batch_delete([{"memory_id": id_}])
        with pytest.raises(mem0.exceptions.MemoryNotFoundError):
            await client.delete(id_)
        await client.add(TEA, user_id="u-async")
        await client.delete_all(filters={"user_id": "u-async"})
        await client.delete_users(user_id="u-async")
        assert (await client.get_all(filters={"user_id": "u-async"}))["count"] == 0
        await client.add(DOG, user_id="u-async")
        await client.reset()
        assert (await client.get_all())["count"] == 0
        await client.async_client.aclose()

    asyncio.run(used())


def test_the_client_connects_to_the_service_only(client, running, monkeypatch):
    connect, addresses = socket.socket.connect, []

    def noted(self: socket.socket, address: Any) -> Any:
        addresses.append(address)
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", noted)
    client(running.new_key(role="read-write", namespace="alone")).search("anything")
    assert {address[0] for address in addresses} == {"127.0.0.1"}


@pytest.mark.parametrize("scheme", ["Token", "token", "Bearer"])
def test_a_key_is_taken_under_either_scheme_on_every_route(running, scheme):
    with running.http(running.keys["alpha"], scheme) as http:
        assert http.get("/v1/ping/").json()["project_id"] == "alpha"
        assert http.get("/memories").status_code == 200
    with running.http(KEY, scheme) as http:
        assert http.get("/api/keys").status_code == 200
