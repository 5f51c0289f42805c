"""Blocks at an earlier time: what was answered at a moment is answered again, byte for byte, unless it was deleted."""

from __future__ import annotations

import random
from typing import Any

from starlette.testclient import TestClient

from souvenir.core.timestamps import utc_now
from tests.thoroughness import sampled

LABELS = ("human", "persona", "project")
CHANGES = sampled(120, 500)
EVERY = 10


def listed(client: TestClient, agent: str, **asked: Any) -> bytes:
    answer = client.get(f"/memory-blocks/{agent}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.content + answer.headers["x-total-count"].encode()


def change(client: TestClient, agent: str, chance: random.Random, number: int) -> None:
    """Create a block that does not exist, and else change some of its fields."""
    label = chance.choice(LABELS)
    body: dict[str, Any] = {"value": f"value {number}"}
    if chance.random() < 0.3:
        body["description"] = f"description {number}"
    if chance.random() < 0.2:
        body["limit"] = 500 + number
    answer = client.put(f"/memory-blocks/{agent}/{label}", json=body)
    if answer.status_code == 404:
        answer = client.post("/memory-blocks", json={"agent_name": agent, "label": label, **body})
    assert answer.status_code == 200, answer.text


def test_what_was_answered_is_answered_again_byte_for_byte(client: TestClient):
    chance = random.Random(3)
    client.post("/agents", json={"name": "ann"})
    seen: dict[str, tuple[bytes, dict[str, bytes | int]]] = {}
    for number in range(CHANGES):
        change(client, "ann", chance, number)
        if number % EVERY == 0:
            single = {label: client.get(f"/memory-blocks/ann/{label}") for label in LABELS}
            alone = {label: one.content if one.is_success else one.status_code for label, one in single.items()}
            page = listed(client, "ann")
            seen[utc_now().isoformat()] = page, alone
    for at, (page, alone) in seen.items():
        assert listed(client, "ann", as_of=at) == page
        for label, expected in alone.items():
            answer = client.get(f"/memory-blocks/ann/{label}", params={"as_of": at})
            assert (answer.content if answer.is_success else answer.status_code) == expected


def test_a_deleted_block_stays_deleted_at_every_time(client: TestClient):
    client.post("/memory-blocks", json={"agent_name": "ann", "label": "human", "value": "a secret"})
    before = utc_now().isoformat()
    client.delete("/memory-blocks/ann/human")
    assert b"secret" not in listed(client, "ann", as_of=before)
    assert client.get("/memory-blocks/ann/human", params={"as_of": before}).status_code == 404


def test_a_time_that_was_copied_from_an_answer_is_read_although_a_query_makes_its_plus_a_space(client: TestClient):
    made = client.post("/memory-blocks", json={"agent_name": "ann", "label": "human", "value": "old"}).json()
    client.put("/memory-blocks/ann/human", json={"value": "new"})
    at = made["created_at"]
    assert at.endswith("+00:00")
    assert b"old" in client.get(f"/memory-blocks/ann?as_of={at}").content
    assert client.get("/memory-blocks/ann?as_of=2999-01-01 10:00").status_code == 200
    assert client.get("/memory-blocks/ann?as_of=2999-01-01T10:00 01:00").status_code == 200


def test_there_is_no_block_before_its_creation_and_a_future_time_is_now(client: TestClient):
    before = utc_now().isoformat()
    client.post("/memory-blocks", json={"agent_name": "ann", "label": "human", "value": "new"})
    assert listed(client, "ann", as_of=before) == b"[]0"
    assert client.get("/memory-blocks/ann/human", params={"as_of": before}).status_code == 404
    assert listed(client, "ann", as_of="2999-01-01") == listed(client, "ann")
    assert client.get("/memory-blocks/ann", params={"as_of": "yesterday"}).status_code == 422
