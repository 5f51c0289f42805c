"""Mem0's webhooks: those of the service, with a real receiver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from souvenir.events import webhooks
from tests.api.conftest import BASE_URL, KEY
from tests.compat.mem0.test_routes import ENV
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.vendors.server import WAIT_S, Reply, Request, Server


class Receiver(Server[Request]):
    def reply(self, request: Request, queued: Any) -> Reply:
        return queued or Reply(body={})

    def next(self, number: int) -> dict[str, Any]:
        """The body of a message by its number, from 0."""
        assert self.arrived.acquire(timeout=WAIT_S)
        return self.requests[number].body


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver(Request)
    made.start()
    yield made
    made.stop()


def refused(call: Any) -> Any:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the caller looks at it
        call()
    return raised.value


def test_the_events_of_a_project_are_sent_to_its_webhook(client, running, receiver):
    mem0 = client(running.new_key(role="read-write", namespace="hooks"))
    made = mem0.create_webhook(f"{receiver.url}/hook", "Memory Logger ☕", "hooks", ["memory_add", "memory_delete"])
    assert made["name"] == "Memory Logger ☕"
    assert made["url"] == f"{receiver.url}/hook"
    assert (made["event_types"], made["project"], made["is_active"]) == (["memory_add", "memory_delete"], "hooks", True)
    assert made["secret"].startswith("whsec_")
    client("beta").add("elsewhere", user_id="ann")
    [id_] = [one["id"] for one in mem0.add("green tea", user_id="ann")["results"]]
    mem0.update(id_, text="black tea")
    mem0.delete(id_)
    sent = [receiver.next(number) for number in range(2)]
    assert [(one["type"], one["namespace"], one["data"]["id"]) for one in sent] == [
        ("memory.added", "hooks", int(id_)),
        ("memory.deleted", "hooks", int(id_)),
    ]
    assert receiver.requests[0].path == "/hook"
    mem0.delete_webhook(made["webhook_id"])
    assert mem0.get_webhooks("hooks") == []


def test_an_updated_webhook_gets_other_events_at_another_address(client, running, receiver):
    mem0 = client(running.new_key(role="read-write", namespace="changed"))
    made = mem0.create_webhook("http://127.0.0.1:9/old", "one", "changed", ["memory_delete"])
    changed = mem0.update_webhook(made["webhook_id"], url=f"{receiver.url}/new", event_types=["memory_add"])
    assert (changed["name"], changed["url"]) == ("one", f"{receiver.url}/new")
    assert mem0.update_webhook(made["webhook_id"], name="two")["url"] == f"{receiver.url}/new"
    mem0.add("green tea", user_id="ann")
    assert (receiver.next(0)["type"], receiver.requests[0].path) == ("memory.added", "/new")
    [listed] = mem0.get_webhooks("changed")
    assert (listed["name"], listed["event_types"], "secret" in listed) == ("two", ["memory_add"], False)


def test_new_types_are_those_of_later_events(client, running, receiver):
    mem0 = client(running.new_key(role="read-write", namespace="later"))
    made = mem0.create_webhook(receiver.url, "later", "later", ["memory_delete"])
    mem0.add("before", user_id="ann")
    mem0.update_webhook(made["webhook_id"], event_types=["memory_add"])
    [id_] = [one["id"] for one in mem0.add("after", user_id="ann")["results"]]
    assert receiver.next(0)["data"]["id"] == int(id_)


def test_an_event_that_is_tried_again_survives_an_update(tmp_path, receiver, monkeypatch):
    monkeypatch.setattr(webhooks, "PAUSES_S", (0.01,) * 9)
    settings = Settings(data_dir=tmp_path, api_key=SecretStr(KEY), webhook_allowed_hosts=("127.0.0.0/8",))
    receiver.replies.extend([Reply(status=500, body={}, waits=True), *[Reply(status=500, body={})] * 2])
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL, headers=ENV) as http:
        body: dict[str, Any] = {"url": receiver.url, "name": "waiting", "event_types": ["memory_add"]}
        made = http.post("/api/v1/webhooks/projects/default/", json=body).json()
        http.post("/v3/memories/add/", json={"messages": [{"role": "user", "content": "first"}], "user_id": "ann"})
        receiver.next(0)
        more = {"event_types": ["memory_add", "memory_delete"]}
        assert http.put(f"/api/v1/webhooks/{made['webhook_id']}/", json=more).status_code == 200
        receiver.go_on.set()
        http.delete("/v1/memories/?user_id=ann")
        sent = [receiver.next(number)["type"] for number in range(1, 5)]
    assert sent == ["memory.added"] * 3 + ["memory.deleted"]


def test_a_change_of_categories_is_an_update(client, running, receiver):
    key = running.new_key(role="read-write", namespace="categorised")
    mem0 = client(key)
    made = mem0.create_webhook(receiver.url, "tags", "categorised", ["memory_categorize"])
    assert made["event_types"] == ["memory_update"]
    [id_] = [one["id"] for one in mem0.add("green tea", user_id="ann")["results"]]
    with running.http(key) as http:
        assert http.patch(f"/memory/{id_}", json={"tags": ["drinks"]}).status_code == 200
    assert receiver.next(0)["type"] == "memory.updated"


def test_webhooks_of_both_doors_are_the_same(client, running):
    key = running.new_key(role="read-write", namespace="doors")
    mem0 = client(key)
    with running.http(key) as http:
        body = {"url": "http://127.0.0.1:9/all"}
        own = http.post("/webhooks", json=body).json()
        [shown] = mem0.get_webhooks("doors")
        assert (shown["webhook_id"], shown["name"], shown["url"]) == (own["id"], "", "http://127.0.0.1:9/all")
        assert {"memory_add", "memory_update", "memory_delete", "message.added"} <= set(shown["event_types"])
        assert mem0.update_webhook(own["id"], event_types=shown["event_types"])["event_types"] == shown["event_types"]
        made = mem0.create_webhook("http://127.0.0.1:9/two", "Two", "doors", ["memory_add"])
        listed = {one["id"]: one["events"] for one in http.get("/webhooks").json()["webhooks"]}
        assert listed[made["webhook_id"]] == ["memory.added"]
        assert http.delete(f"/webhooks/{made['webhook_id']}").status_code == 200
    assert [one["webhook_id"] for one in mem0.get_webhooks("doors")] == [own["id"]]
    mem0.delete_webhook(own["id"])


def test_a_key_reaches_the_webhooks_of_its_own_agent_only(client, mem0):
    alpha, beta, everyone = client("alpha"), client("beta"), client("admin")
    made = alpha.create_webhook("http://127.0.0.1:9/alpha", "alpha", "alpha", ["memory_add"])
    for call in (
        lambda: beta.get_webhooks("alpha"),
        lambda: beta.create_webhook("http://127.0.0.1:9", "x", "alpha", ["memory_add"]),
    ):
        assert refused(call).error_code == "HTTP_403"
    for call in (
        lambda: beta.delete_webhook(made["webhook_id"]),
        lambda: beta.update_webhook(made["webhook_id"], name="x"),
    ):
        assert isinstance(refused(call), mem0.exceptions.MemoryNotFoundError)
    assert beta.get_webhooks("beta") == []
    assert refused(lambda: client("reader").get_webhooks("alpha")).error_code == "HTTP_403"
    assert everyone.update_webhook(made["webhook_id"], name="by an admin")["project"] == "alpha"
    assert [one["name"] for one in alpha.get_webhooks("alpha")] == ["by an admin"]
    everyone.delete_webhook(made["webhook_id"])
    assert alpha.get_webhooks("alpha") == []


@pytest.mark.parametrize(
    ("url", "name", "types", "said"),
    [
        ("http://10.0.0.1/hook", "x", ["memory_add"], "not public"),
        ("ftp://example.com", "x", ["memory_add"], "URL"),
        ("http://127.0.0.1:9", "x", ["memory_eat"], "memory_add, memory_update"),
        ("http://127.0.0.1:9", "x", [], "at least 1"),
        (f"http://127.0.0.1:9/{'x' * 1900}", "茶" * 100, ["memory_add"], "shorten"),
    ],
    ids=["private", "scheme", "type", "no types", "long"],
)
def test_a_webhook_that_cannot_be_is_refused(client, mem0, url, name, types, said):
    error = refused(lambda: client().create_webhook(url, name, "alpha", types))
    assert isinstance(error, mem0.exceptions.ValidationError)
    assert said in str(error)


def test_an_update_of_a_webhook_changes_something_possible(client, mem0):
    made = client().create_webhook("http://127.0.0.1:9/kept", "kept", "alpha", ["memory_add"])
    for change in ({}, {"url": "http://10.0.0.1/"}, {"event_types": ["memory_eat"]}):
        error = refused(lambda change=change: client().update_webhook(made["webhook_id"], **change))
        assert isinstance(error, mem0.exceptions.ValidationError)
    [kept] = [one for one in client().get_webhooks("alpha") if one["webhook_id"] == made["webhook_id"]]
    assert (kept["url"], kept["event_types"]) == ("http://127.0.0.1:9/kept", ["memory_add"])
    client().delete_webhook(made["webhook_id"])
