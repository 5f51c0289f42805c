"""The list of contradictions and their resolution over HTTP."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import Scope
from souvenir.store.memories.reads import CONFLICTS_WITH
from tests.api.conftest import KEY, Add, Start


def flag(client: TestClient, flagger: int, other: int) -> None:
    engine = client.app.state.service.engine  # type: ignore[attr-defined]
    engine.write(Scope(), lambda tx: tx.link(flagger, other, CONFLICTS_WITH))


def test_a_contradiction_is_listed_with_both_sides_and_settled(client: TestClient, add: Add):
    older = add("the office is in Rome", "facts", document_at="2025-03-03")
    newer = add("the office is in Oslo", "facts", document_at="2025-03-04")
    flag(client, newer, older)
    page = client.get("/memory/conflicts").json()
    assert {name: page[name] for name in ("count", "total", "offset", "has_more")} == {
        "count": 1,
        "total": 1,
        "offset": 0,
        "has_more": False,
    }
    [shown] = page["conflicts"]
    assert (shown["id"], shown["conflicts_with"]) == (newer, older)
    assert shown["conflicting_memory"]["text"] == "the office is in Rome"
    assert "needs_review" not in shown
    expected = {
        "success": True,
        "dry_run": True,
        "policy": "newest_wins",
        "resolved": [{"kept": newer, "archived": older, "flagger": newer}],
        "needs_review": [],
        "orphaned": [],
        "resolved_count": 1,
        "needs_review_count": 0,
        "orphaned_count": 0,
    }
    assert client.post("/memory/conflicts/resolve", json={}).json() == expected
    assert client.get("/memory/conflicts").json()["total"] == 1
    assert client.post("/memory/conflicts/resolve", json={"dry_run": False}).json() == {**expected, "dry_run": False}
    assert client.get("/memory/conflicts").json()["conflicts"] == []
    assert client.get(f"/memory/{older}").json()["superseded_by"] == newer
    assert client.get(f"/memory/{newer}").json()["conflict_resolution"]["archived"] == older


def test_an_undecided_conflict_has_its_reason(client: TestClient, add: Add):
    older, newer = add("the office is in Rome", "a"), add("the office is in Oslo", "b")
    flag(client, newer, older)
    [shown] = client.get("/memory/conflicts").json()["conflicts"]
    assert (shown["needs_review"], shown["review_reason"]) == (True, "cross_source")
    answer = client.post("/memory/conflicts/resolve", json={"dry_run": False}).json()
    assert answer["needs_review"] == [{"id": newer, "conflicts_with": older, "reason": "cross_source"}]
    assert (answer["resolved_count"], answer["needs_review_count"]) == (0, 1)


@pytest.mark.parametrize(
    ("query", "count", "offset", "has_more"),
    [
        ("", 3, 0, False),
        ("?limit=2", 2, 0, True),
        ("?limit=0", 1, 0, True),
        ("?limit=-7&offset=-7", 1, 0, True),
        ("?limit=1000000", 3, 0, False),
        ("?limit=2&offset=2", 1, 2, False),
        ("?offset=10", 0, 10, False),
        (f"?offset={10**30}", 0, 2**31, False),
    ],
)
def test_a_page_of_any_size_is_answered(client: TestClient, add: Add, query, count, offset, has_more):
    ids = [add(f"the office is in {city}") for city in ("Rome", "Oslo", "Bern", "Kyiv")]
    for flagger, other in zip(ids[1:], ids, strict=False):
        flag(client, flagger, other)
    page = client.get(f"/memory/conflicts{query}").json()
    assert (page["count"], page["offset"], page["has_more"], page["total"]) == (count, offset, has_more, 3)
    assert len(page["conflicts"]) == count


def test_a_conflict_of_two_memories_that_both_hold_is_dismissed_and_flagged_again(client: TestClient, add: Add):
    rome, oslo = add("the office is in Rome", "facts"), add("the office is in Oslo", "facts")
    path, back = f"/memory/{rome}/conflict/{oslo}", f"/memory/{oslo}/conflict/{rome}"
    assert client.put(path).json() == {"flagged": True}
    assert client.put(path).json() == client.put(back).json() == {"flagged": False}
    [shown] = client.get("/memory/conflicts").json()["conflicts"]
    assert (shown["id"], shown["conflicts_with"]) == (rome, oslo)
    assert client.delete(back).json() == {"dismissed": True}
    assert client.delete(path).json() == {"dismissed": False}
    assert client.get("/memory/conflicts").json()["total"] == 0
    assert [client.get(f"/memory/{one}").json()["archived"] for one in (rome, oslo)] == [False, False]
    refused = [client.put(f"/memory/{one}/conflict/{other}") for one, other in ((rome, rome), (rome, 99), (99, rome))]
    assert [answer.status_code for answer in refused] == [400, 400, 404]
    client.patch(f"/memory/{oslo}", json={"archived": True})
    archived = [client.put(one) for one in (path, back)]
    assert [answer.json()["code"] for answer in archived] == ["memory_archived"] * 2
    assert f"Memory ID {oslo} is archived" in archived[0].json()["detail"]


def test_only_a_writer_of_the_whole_namespace_resolves(start: Start):
    client = start(api_key=KEY)
    admin = {"X-API-Key": KEY}

    def key(**fields: object) -> dict[str, str]:
        return {"X-API-Key": client.post("/api/keys", json={"name": "k", **fields}, headers=admin).json()["key"]}

    refused = [key(role="read-only", namespace="default"), key(role="read-write", prefixes=["a"])]
    allowed = [key(role="read-write", namespace="default"), key(role="admin"), admin]
    codes = [client.post("/memory/conflicts/resolve", json={}, headers=one).status_code for one in refused + allowed]
    assert codes == [403, 403, 200, 200, 200]
    assert client.get("/memory/conflicts", headers=refused[1]).json()["total"] == 0


@pytest.mark.parametrize("body", [{"max": -1}, {"max": 10_001}, {"dry_run": "perhaps"}], ids=str)
def test_a_resolution_out_of_bounds_is_422(client: TestClient, body):
    assert client.post("/memory/conflicts/resolve", json=body).status_code == 422
