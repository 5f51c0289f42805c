"""Links between memories, and their representation in records."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import Scope
from souvenir.store.memories.reads import CONFLICTS_WITH
from tests.api.conftest import KEY, Add, Start


def link(client: TestClient, from_id: int, to_id: int, link_type: str = "related_to", **headers):
    return client.post(f"/memory/{from_id}/link", json={"to_id": to_id, "type": link_type}, headers=headers)


def links(client: TestClient, memory_id: int, **query) -> list[tuple[int, int, str, str]]:
    body = client.get(f"/memory/{memory_id}/links", params=query).json()
    assert body["memory_id"] == memory_id
    return [(one["from_id"], one["to_id"], one["type"], one["direction"]) for one in body["links"]]


def test_a_link_is_listed_from_both_ends_and_removed(client: TestClient, add: Add):
    one, other = add("the build is red"), add("the runner has no disk")
    made = link(client, one, other, "caused_by").json()
    assert {**made, "created_at": "now"} == {"from_id": one, "to_id": other, "type": "caused_by", "created_at": "now"}
    assert links(client, one) == [(one, other, "caused_by", "outgoing")]
    assert links(client, other) == []
    assert links(client, other, include_incoming=True) == [(one, other, "caused_by", "incoming")]
    assert links(client, one, type="blocked_by") == []
    path = f"/memory/{one}/link/{other}"
    assert client.delete(path).json() == {"removed": False}
    assert client.delete(path, params={"type": "caused_by"}).json() == {"removed": True}
    assert links(client, one) == []


def test_a_link_that_makes_no_sense_is_400_and_one_from_nowhere_404(client: TestClient, add: Add):
    one, other = add("red"), add("green")
    assert link(client, one, other).status_code == 200
    refused = [link(client, one, *of) for of in ((other,), (one,), (999,), (other, "likes"), (other, CONFLICTS_WITH))]
    assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [(400, "link_not_usable")] * 5
    assert link(client, 999, one).status_code == 404
    assert client.get("/memory/999/links").status_code == 404
    assert client.get(f"/memory/{one}/links", params={"type": "likes"}).status_code == 400


def test_a_link_changes_no_memory_and_is_in_the_audit(client: TestClient, add: Add):
    one, other = add("red"), add("green")
    before = client.get(f"/memory/{one}").json()
    link(client, one, other, "supersedes")
    after, superseded = client.get(f"/memory/{one}").json(), client.get(f"/memory/{other}").json()
    assert after["updated_at"] == before["updated_at"]
    assert (superseded["archived"], superseded["superseded_by"], superseded["is_latest"]) == (False, one, False)
    assert (after["supersedes"], after["previous_text"]) == (other, "green")
    client.delete(f"/memory/{one}/link/{other}", params={"type": "supersedes"})
    noted = client.get("/audit", params={"resource_id": one}).json()["entries"]
    found = [(entry["action"], entry["detail"]) for entry in noted if entry["action"].startswith("link.")]
    assert found == [("link.remove", f"supersedes {other}"), ("link.add", f"supersedes {other}")]


def test_only_a_supersedes_link_gives_a_previous_text(client: TestClient, add: Add):
    old, beside = add("red apple"), add("a pear")
    new = client.post(f"/memory/{old}/supersede", json={"text": "green apple"}).json()["new_id"]
    # In the order of their ends this link comes first.
    assert link(client, new, beside, "reinforces").status_code == 200
    alone = add("alone")
    link(client, alone, beside)
    record = client.get(f"/memory/{new}").json()
    assert (record["previous_text"], record["supersedes"], record["is_latest"]) == ("red apple", old, True)
    assert not {"previous_text", "supersedes", "is_latest"} & client.get(f"/memory/{alone}").json().keys()


def test_contradictions_are_shown_and_cannot_be_set_by_callers(client: TestClient, add: Add):
    one, other = add("Ann is in Rome"), add("Ann is in Oslo", conflicts_with=1, valid_to="2023-01-01")
    assert not {"conflicts_with", "valid_to"} & client.get(f"/memory/{other}").json().keys()
    client.app.state.service.engine.write(Scope(), lambda tx: tx.link(other, one, CONFLICTS_WITH))  # type: ignore[attr-defined]
    assert client.get(f"/memory/{other}").json()["conflicts_with"] == one
    assert "conflicts_with" not in client.get(f"/memory/{one}").json()


@pytest.mark.parametrize("route", ["link", "links", "unlink"])
def test_a_key_for_a_path_neither_makes_nor_sees_links_with_memories_outside(start: Start, route: str):
    client = start(api_key=KEY)
    admin = {"X-API-Key": KEY}
    inside, outside = (
        client.post("/memory/add", json={"text": text, "source": text}, headers=admin).json()["id"]
        for text in ("inside", "outside")
    )
    body = {"name": "n", "role": "read-write", "prefixes": ["inside"]}
    key = {"X-API-Key": client.post("/api/keys", json=body, headers=admin).json()["key"]}
    if route == "link":
        answer = link(client, inside, outside, **key)
        assert answer.status_code == 400
        assert answer.json()["detail"] == link(client, inside, 999, **key).json()["detail"].replace("999", str(outside))
        return
    link(client, inside, outside, **admin)
    link(client, outside, inside, **admin)
    if route == "links":
        assert client.get(f"/memory/{inside}/links?include_incoming=true", headers=key).json()["links"] == []
    else:
        assert client.delete(f"/memory/{inside}/link/{outside}", headers=key).json() == {"removed": False}
    assert len(client.get(f"/memory/{inside}/links?include_incoming=true", headers=admin).json()["links"]) == 2
