"""Agents over HTTP: created once by name, listed, and visible only to keys with access to all of them."""

from __future__ import annotations

import uuid

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import KEY, Start

ENV = {"X-API-Key": KEY}


def key_for(client: TestClient, **body: object) -> dict[str, str]:
    made = client.post("/api/keys", json={"name": "k", "role": "read-write", **body}, headers=ENV)
    assert made.status_code == 200, made.text
    return {"X-API-Key": made.json()["key"]}


def test_an_agent_is_made_once_and_keeps_its_id_and_metadata(client: TestClient):
    made = client.post("/agents", json={"name": "my_agent", "metadata": {"team": "a"}}).json()
    assert uuid.UUID(made["id"]).version == 4
    assert client.post("/agents", json={"name": "my_agent", "metadata": {"team": "b"}}).json() == made
    assert client.get("/agents/my_agent").json() == made
    assert client.get("/agents").json() == {"agents": [made], "total": 1, "offset": 0, "limit": 100}


def test_an_unknown_agent_is_404(client: TestClient):
    client.post("/memory/add", json={"text": "t", "source": "s"}, headers={"X-Namespace": "plain"})
    for name in ("nobody", "plain"):
        missing = client.get(f"/agents/{name}")
        assert (missing.status_code, missing.json()["code"]) == (404, "agent_not_found")


def test_agents_are_listed_in_pages_by_name(client: TestClient):
    for name in ("c", "a", "b"):
        client.post("/agents", json={"name": name})
    page = client.get("/agents?offset=1&limit=1").json()
    assert ([one["name"] for one in page["agents"]], page["total"]) == (["b"], 3)


def test_agents_are_found_by_the_beginning_of_their_name(client: TestClient):
    for name in ("tea", "team", "Team", "teams", "other"):
        client.post("/agents", json={"name": name})
    page = client.get("/agents", params={"name_prefix": "team", "limit": 1}).json()
    assert ([one["name"] for one in page["agents"]], page["total"]) == (["team"], 2)
    assert client.get("/agents", params={"name_prefix": "nothing"}).json()["total"] == 0


@pytest.mark.parametrize("name", ["", "a/b", "a\nb", "x" * 201, ".", ".."])
def test_a_name_that_no_namespace_can_have_is_422(client: TestClient, name: str):
    assert client.post("/agents", json={"name": name}).status_code == 422


def test_a_key_of_a_whole_namespace_sees_its_agent_and_no_other(start: Start):
    client = start(api_key=KEY)
    for name in ("mine", "other"):
        client.post("/agents", json={"name": name}, headers=ENV)
    mine = key_for(client, namespace="mine")
    assert client.get("/agents/mine", headers=mine).status_code == 200
    assert [one["name"] for one in client.get("/agents", headers=mine).json()["agents"]] == ["mine"]
    for answer in (
        client.get("/agents/other", headers=mine),
        client.post("/agents", json={"name": "new"}, headers=mine),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert client.get("/agents/new", headers=ENV).status_code == 404


def test_a_key_of_some_sources_reaches_no_agent(start: Start):
    client = start(api_key=KEY)
    client.post("/agents", json={"name": "mine"}, headers=ENV)
    part = key_for(client, namespace="mine", prefixes=["notes"])
    for answer in (client.get("/agents/mine", headers=part), client.get("/agents", headers=part)):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_a_key_does_not_come_to_see_its_whole_namespace_by_losing_its_prefixes(start: Start):
    client = start(api_key=KEY)
    made = client.post("/api/keys", json={"name": "k", "role": "read-only", "prefixes": ["a"]}, headers=ENV).json()
    path = f"/api/keys/{made['id']}"
    assert client.patch(path, json={"prefixes": []}, headers=ENV).status_code == 400
    assert client.patch(path, json={"prefixes": [], "namespace": "mine"}, headers=ENV).status_code == 200
    assert client.get("/agents/mine", headers={"X-API-Key": made["key"]}).status_code == 404
