"""Memory blocks over HTTP: requests of the seed's clients, and concurrent changes that do not overwrite each other."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import KEY, Start
from tests.api.test_agents import key_for

ENV = {"X-API-Key": KEY}
PATH = "/memory-blocks/my_agent/human"


def make(client: TestClient, **fields: Any) -> dict[str, Any]:
    body = {"agent_name": "my_agent", "label": "human", "value": "Name: Alice", **fields}
    made = client.post("/memory-blocks", json=body)
    assert made.status_code == 200, made.text
    block: dict[str, Any] = made.json()
    return block


def change(client: TestClient, if_match: str | None = None, **fields: Any) -> Any:
    return client.put(PATH, json=fields, headers={} if if_match is None else {"If-Match": if_match})


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def versions_of(client: TestClient) -> list[dict[str, Any]]:
    versions: list[dict[str, Any]] = client.get(f"{PATH}/history").json()["versions"]
    return versions


def test_a_block_is_made_with_its_agent_and_read_by_its_label(client: TestClient):
    block = make(client)
    assert uuid.UUID(block["id"]).version == 4
    assert block["agent_id"] == client.get("/agents/my_agent").json()["id"]
    assert block == {
        "id": block["id"],
        "agent_id": block["agent_id"],
        "label": "human",
        "value": "Name: Alice",
        "description": None,
        "limit": 5000,
        "read_only": False,
        "version": 1,
        "created_at": block["created_at"],
        "updated_at": block["created_at"],
    }
    read = client.get(PATH)
    assert (read.json(), read.headers["ETag"]) == (block, '"1"')


def test_a_second_block_with_a_label_is_409_and_changes_nothing(client: TestClient):
    block = make(client)
    body = {"agent_name": "my_agent", "label": "human", "value": "other"}
    assert refusal(client.post("/memory-blocks", json=body)) == (409, "block_exists")
    assert client.get("/memory-blocks/my_agent").json() == [block]


def test_blocks_are_listed_in_pages_in_the_order_in_which_they_were_made(client: TestClient):
    for label in ("persona", "human", "a project"):
        make(client, label=label)
    assert [block["label"] for block in client.get("/memory-blocks/my_agent").json()] == [
        *("persona", "human", "a project")
    ]
    page = client.get("/memory-blocks/my_agent?offset=1&limit=1")
    assert [block["label"] for block in page.json()] == ["human"]
    assert page.headers["X-Total-Count"] == "3"
    assert client.get("/memory-blocks/my_agent/a project").json()["label"] == "a project"


def test_a_missing_resource_is_404_and_named(client: TestClient):
    assert refusal(client.get("/memory-blocks/nobody")) == (404, "agent_not_found")
    assert refusal(client.get("/memory-blocks/nobody/human")) == (404, "agent_not_found")
    make(client, label="other")
    for answer in (
        client.get(PATH),
        client.get(f"{PATH}/history"),
        client.put(PATH, json={"value": "v"}),
        client.delete(PATH),
    ):
        assert refusal(answer) == (404, "block_not_found")


def test_changing_a_block_of_an_unknown_agent_creates_no_agent(client: TestClient):
    assert refusal(client.put(PATH, json={"value": "v"})) == (404, "agent_not_found")
    assert client.get("/agents").json()["total"] == 0


def test_a_change_sets_only_its_fields(client: TestClient):
    before = make(client, description="who it is", limit=100)
    changed = change(client, value="Name: Bob")
    assert changed.headers["ETag"] == '"2"'
    assert changed.json() == {
        **before,
        "value": "Name: Bob",
        "version": 2,
        "updated_at": changed.json()["updated_at"],
    }
    assert change(client, description=None).json()["description"] is None
    assert change(client, limit=9).json()["limit"] == 9
    assert client.get(PATH).json()["version"] == 4


def test_a_change_without_effect_creates_no_version(client: TestClient):
    block = make(client)
    assert change(client, value="Name: Alice").json() == block
    assert len(versions_of(client)) == 1


def test_a_change_of_nothing_is_400(client: TestClient):
    make(client)
    assert refusal(change(client)) == (400, "nothing_to_do")


@pytest.mark.parametrize("if_match", ['"1"', '"7", "1"', ' "1" ', "*"])
def test_a_change_of_the_version_that_if_match_names_is_made(client: TestClient, if_match: str):
    make(client)
    assert change(client, if_match, value="v").json()["version"] == 2


@pytest.mark.parametrize("if_match", ['"2"', '"0"', '"01"', '"abc"', '""', 'W/"1"', '"2","3"'])
def test_a_change_of_another_version_is_412_and_writes_nothing(client: TestClient, if_match: str):
    block = make(client)
    assert refusal(change(client, if_match, value="v")) == (412, "block_changed")
    assert client.get(PATH).json() == block
    assert len(versions_of(client)) == 1


@pytest.mark.parametrize("if_match", ["1", "", '"1', "abc", '*, "1"'])
def test_an_if_match_that_is_no_list_of_tags_is_422(client: TestClient, if_match: str):
    make(client)
    assert refusal(change(client, if_match, value="v")) == (422, "invalid_request")


def test_exactly_one_of_eight_concurrent_changes_to_one_version_succeeds(client: TestClient):
    make(client)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: change(client, '"1"', value=f"by {number}"), range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7
    [made] = [answer.json() for answer in answers if answer.status_code == 200]
    assert client.get(PATH).json() == made
    assert [version["value"] for version in versions_of(client)] == [made["value"], "Name: Alice"]


def test_a_value_over_the_limit_is_422_and_changes_nothing(client: TestClient):
    body = {"agent_name": "new_agent", "label": "human", "value": "x" * 11, "limit": 10}
    assert refusal(client.post("/memory-blocks", json=body)) == (422, "block_too_long")
    assert client.get("/agents").json()["total"] == 0
    block = make(client, value="x" * 10, limit=10)
    assert refusal(change(client, value="x" * 11)) == (422, "block_too_long")
    assert refusal(change(client, limit=9)) == (422, "block_too_long")
    assert client.get(PATH).json() == block
    assert change(client, value="x" * 11, limit=11).status_code == 200


@pytest.mark.parametrize("limit", [0, 50_001])
def test_a_limit_that_no_block_can_have_is_422(client: TestClient, limit: int):
    make(client)
    assert refusal(change(client, limit=limit)) == (422, "invalid_request")


def test_a_read_only_block_is_changed_only_by_unsetting_read_only(client: TestClient):
    block = make(client, read_only=True)
    for fields in ({"value": "v"}, {"value": "v", "read_only": True}):
        assert refusal(change(client, **fields)) == (409, "block_read_only")
    assert client.get(PATH).json() == block
    assert change(client, value="v", read_only=False).json()["value"] == "v"


def test_every_version_stays_with_who_made_it_until_the_block_is_deleted(start: Start):
    client = start(api_key=KEY)
    client.headers.update(ENV)
    make(client)
    writer = key_for(client, name="writer", namespace="my_agent")
    assert client.put(PATH, json={"value": "v2"}, headers=writer).status_code == 200
    history = client.get(f"{PATH}/history").json()
    assert [(one["version"], one["value"]) for one in history["versions"]] == [(2, "v2"), (1, "Name: Alice")]
    assert [one["actor"].split(":")[0] for one in history["versions"]] == ["key", "api-key"]
    assert history["versions"][0]["at"] == client.get(PATH).json()["updated_at"]
    assert client.get(f"{PATH}/history?offset=1&limit=1").json()["versions"] == history["versions"][1:]

    gone = client.delete(PATH)
    assert gone.json()["label"] == "human"
    assert client.get("/memory-blocks/my_agent").json() == []
    again = make(client, value="new")
    assert again["id"] != gone.json()["deleted_id"]
    assert [one["value"] for one in versions_of(client)] == ["new"]


@pytest.mark.parametrize("label", ["", " ", "a/b", "a\nb", "x" * 101])
def test_a_label_that_no_block_can_have_is_422(client: TestClient, label: str):
    body = {"agent_name": "my_agent", "label": label, "value": "v"}
    assert refusal(client.post("/memory-blocks", json=body)) == (422, "invalid_request")


def test_the_blocks_of_two_agents_are_apart(client: TestClient):
    make(client)
    make(client, agent_name="other", value="Name: Bob")
    assert client.get("/memory-blocks/other/human").json()["value"] == "Name: Bob"
    client.delete("/memory-blocks/other/human")
    assert client.get(PATH).json()["value"] == "Name: Alice"


def test_a_block_is_made_once_for_one_idempotency_key(client: TestClient):
    body, key = {"agent_name": "my_agent", "label": "human", "value": "v"}, {"Idempotency-Key": "k1"}
    made = client.post("/memory-blocks", json=body, headers=key)
    changed = change(client, value="later").json()
    again = client.post("/memory-blocks", json=body, headers=key)
    assert (again.status_code, again.json(), again.headers["Idempotency-Replayed"]) == (200, changed, "true")
    assert again.headers["ETag"] == '"2"'
    assert "Idempotency-Replayed" not in made.headers
    other = client.post("/memory-blocks", json={**body, "value": "w"}, headers=key)
    assert refusal(other) == (422, "idempotency_key_reused")
    client.delete(PATH)
    anew = client.post("/memory-blocks", json=body, headers=key).json()
    assert (anew["version"], anew["id"] == changed["id"]) == (1, False)
