"""Every route with every kind of key: none, wrong, each role; paths inside, outside and adjacent to its scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from souvenir.api.events import SERVER_SENT_EVENTS
from souvenir.core.errors import NotOfDatabase
from souvenir.core.settings import Settings
from souvenir.core.types import Role
from tests.api.conftest import BASE_URL, KEY, Start
from tests.api.operations import AGENT, OF_AGENTS, OPERATIONS, Operation
from tests.cases import for_all
from tests.fake_embedder import FakeEmbedder, fake_of

ENV = {"X-API-Key": KEY}
MARK = "zebraquartz"
SEEDED = 14
"""Memories with the ids that the examples name, in a source below the examples' paths."""

INSIDE, OUTSIDE, BESIDE = ["claude-code", "team"], ["other"], ["claude-c", "claude-code/bill", "tea"]
GUARDED = [operation for operation in OPERATIONS if operation.role is not None]
RANK = {role: rank for rank, role in enumerate(Role)}


@pytest.fixture
def seeded(start: Start) -> TestClient:
    """A service whose memories all hold `MARK`, the ids 1 and up."""
    client = start(api_key=KEY, auth_rate_limit=10**6)
    sow(client)
    return client


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The same, for tests that hold that nothing of it changes."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("untouched"), api_key=SecretStr(KEY), auth_rate_limit=10**6)
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
        sow(client)
        yield client


def sow(client: TestClient) -> None:
    memories = [{"text": f"{MARK} number {number}", "source": "claude-code/billing"} for number in range(SEEDED)]
    added = client.post("/memory/add-batch", json={"memories": memories}, headers=ENV).json()
    assert added["ids"] == list(range(1, SEEDED + 1))


def key_of(client: TestClient, role: Role, prefixes: list[str] | None = None, agent: str = "") -> dict[str, str]:
    """:param agent: The one whose whole namespace the key is for, in the place of some sources of the default one."""
    body: dict[str, Any] = {"name": "caller", "role": role.value}
    if role is not Role.ADMIN:
        body |= {"namespace": agent} if agent else {"prefixes": prefixes or INSIDE}
    return {"X-API-Key": client.post("/api/keys", json=body, headers=ENV).json()["key"]}


def send(client: TestClient, operation: Operation, headers: Mapping[str, str]) -> Any:
    return client.request(
        operation.method, operation.path, json=operation.body, params=operation.query, headers=dict(headers)
    )


def everything(client: TestClient) -> Any:
    """What is stored, without what depends on the time of asking."""
    memories = client.get("/memories?limit=5000", headers=ENV).json()["memories"]
    return [{name: value for name, value in memory.items() if name != "confidence"} for memory in memories]


@for_all("operation", [one for one in GUARDED if one.role is Role.READ_ONLY])
def test_a_route_that_reads_answers_only_callers_with_a_role(untouched: TestClient, operation: Operation):
    assert_answers_only_a_sufficient_role(untouched, operation)


@pytest.mark.parametrize("operation", [one for one in GUARDED if one.role is not Role.READ_ONLY], ids=str)
def test_a_route_answers_only_callers_with_a_sufficient_role(seeded: TestClient, operation: Operation):
    assert_answers_only_a_sufficient_role(seeded, operation)


def assert_answers_only_a_sufficient_role(guarded: TestClient, operation: Operation) -> None:
    before, needed = everything(guarded), operation.role
    assert needed is not None
    assert send(guarded, operation, {}).status_code == 401
    assert send(guarded, operation, {"X-API-Key": "mem_" + "0" * 32}).status_code == 401
    agent = AGENT if OF_AGENTS & set(operation.description["tags"]) else ""
    callers = {role: key_of(guarded, role, agent=agent) for role in Role}
    for role in Role:
        if RANK[role] < RANK[needed]:
            refused = send(guarded, operation, callers[role])
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    for role in (Role.READ_ONLY, Role.READ_WRITE):
        elsewhere = send(guarded, operation, {**callers[role], "X-Namespace": "elsewhere"})
        assert (elsewhere.status_code, elsewhere.json()["code"]) == (403, "forbidden")
    assert everything(guarded) == before
    for role in Role:
        if RANK[role] >= RANK[needed]:
            assert send(guarded, operation, callers[role]).status_code not in {401, 403, 429, 500}
    assert send(guarded, operation, {**callers[Role.ADMIN], "X-Namespace": "elsewhere"}).status_code not in {401, 403}


Check = Callable[[Any], bool]
Expected = tuple[int, Check]


def says(**expected: Any) -> Check:
    return lambda answer: {name: answer.get(name) for name in expected} == expected


def anything(answer: Any) -> bool:
    return True


MISSING = 404, says(code="memory_not_found")
FORBIDDEN_SOURCE = 403, says(code="source_forbidden")

SEEN_FROM_INSIDE: Mapping[str, Expected] = {
    "GET /memory/{memory_id}": (200, says(id=1, text=f"{MARK} number 0")),
    "POST /memory/get-batch": (200, says(count=1, missing_ids=[99])),
    "GET /memories": (200, says(total=SEEDED)),
    "GET /memories/count": (200, says(count=SEEDED)),
    "POST /search": (200, says(count=3)),
    "POST /search/batch": (200, lambda answer: [one["count"] for one in answer["results"]] == [5, 5]),
    "GET /metrics/search-quality": (200, says(searches=None)),
    "GET /events/recent": (200, lambda answer: answer["count"] > 0),
    "POST /search/evidence": (200, says(count=3)),
    "POST /search/feedback": (200, says(status="recorded")),
    "GET /search/feedback/history": (200, says(entries=[], count=0)),
    "POST /memory/is-novel": (200, lambda answer: answer["most_similar"] is not None),
    "POST /memory/add": (200, says(action="added")),
    "POST /memory/missed": (200, says(missed_count=1)),
    "POST /memory/add-batch": (200, says(count=1)),
    "POST /memory/upsert": (200, says(action="created")),
    "POST /memory/upsert-batch": (200, says(created=1)),
    "PATCH /memory/{memory_id}": (200, says(id=1)),
    "POST /memory/{memory_id}/supersede": (200, says(old_id=1, previous_text=f"{MARK} number 0")),
    "POST /memory/supersede": (200, says(old_id=12)),
    "POST /memory/merge": (200, says(archived=[12, 13])),
    "POST /memory/archive-batch": (200, says(archived_count=2)),
    "POST /memory/update-batch": (200, says(updated_ids=[12, 13], missing_ids=[])),
    "GET /memory/{memory_id}/history": (200, says(count=1, deleted=False)),
    "POST /memory/{memory_id}/link": (200, says(from_id=1, to_id=12, type="related_to")),
    "GET /memory/{memory_id}/links": (200, says(memory_id=1, links=[])),
    "DELETE /memory/{memory_id}/link/{target_id}": (200, says(removed=False)),
    "DELETE /memory/{memory_id}": (200, says(deleted_id=1)),
    "POST /memory/delete-batch": (200, says(deleted_ids=[12], missing_ids=[99])),
    "POST /memory/delete-by-source": (200, says(count=SEEDED, would_delete=list(range(1, SEEDED + 1)))),
    "POST /memory/delete-by-prefix": (200, says(count=SEEDED)),
    "DELETE /memories": (200, says(count=0)),
    "POST /memory/extract": (501, says(code="extraction_not_configured")),
    "POST /memory/extract/commit": (200, says(stored_count=1)),
}

SEEN_FROM_OUTSIDE: Mapping[str, Expected] = {
    "GET /events/recent": (200, says(events=[], count=0)),
    "GET /memory/{memory_id}": MISSING,
    "POST /memory/get-batch": (200, says(count=0, memories=[], missing_ids=[12, 99])),
    "GET /memories": (200, says(total=0, memories=[])),
    "GET /memories/count": (200, says(count=0)),
    "POST /search": (200, says(count=0, results=[])),
    "POST /search/batch": (200, lambda answer: [one["count"] for one in answer["results"]] == [0, 0]),
    "GET /metrics/search-quality": (200, says(searches=None)),
    "POST /search/evidence": (200, says(count=0, results=[])),
    "POST /search/feedback": MISSING,
    "GET /search/feedback/history": MISSING,
    "POST /memory/is-novel": (200, says(is_novel=True, most_similar=None)),
    "POST /memory/add": FORBIDDEN_SOURCE,
    "POST /memory/missed": FORBIDDEN_SOURCE,
    "POST /memory/add-batch": FORBIDDEN_SOURCE,
    "POST /memory/upsert": FORBIDDEN_SOURCE,
    "POST /memory/upsert-batch": FORBIDDEN_SOURCE,
    "PATCH /memory/{memory_id}": MISSING,
    "POST /memory/{memory_id}/supersede": MISSING,
    "POST /memory/supersede": MISSING,
    "POST /memory/merge": MISSING,
    "POST /memory/archive-batch": (200, says(archived_count=0)),
    "POST /memory/update-batch": (200, says(updated_ids=[], missing_ids=[12, 13])),
    "GET /memory/{memory_id}/history": MISSING,
    "POST /memory/{memory_id}/link": MISSING,
    "GET /memory/{memory_id}/links": MISSING,
    "DELETE /memory/{memory_id}/link/{target_id}": MISSING,
    "DELETE /memory/{memory_id}": MISSING,
    "POST /memory/delete-batch": (200, says(deleted_count=0, deleted_ids=[], missing_ids=[12, 99])),
    "POST /memory/delete-by-source": (200, says(count=0, would_delete=[])),
    "POST /memory/delete-by-prefix": (200, says(count=0, would_delete=[])),
    "DELETE /memories": (200, says(count=0)),
    "POST /memory/extract": FORBIDDEN_SOURCE,
    "POST /memory/extract/commit": FORBIDDEN_SOURCE,
}

BELOW_ITS_OWN_PATH = {"POST /knowledge-graph"}
"""What stores below the first path of a key, whatever that is."""

FOR_WRITERS = [operation for operation in GUARDED if operation.role is not Role.ADMIN]


@pytest.mark.parametrize("operation", [one for one in FOR_WRITERS if str(one) in SEEN_FROM_INSIDE], ids=str)
def test_a_key_for_the_path_can_do_what_the_route_does(seeded: TestClient, operation: Operation):
    status, fits = SEEN_FROM_INSIDE[str(operation)]
    answer = send(seeded, operation, key_of(seeded, Role.READ_WRITE))
    assert answer.status_code == status, answer.text
    assert fits(answer.json()), answer.text


@pytest.mark.parametrize(
    "prefixes", [pytest.param(OUTSIDE, id="outside", marks=pytest.mark.thorough), pytest.param(BESIDE, id="beside")]
)
@for_all("operation", [one for one in FOR_WRITERS if str(one) not in BELOW_ITS_OWN_PATH])
def test_a_key_for_another_path_sees_and_changes_nothing(
    untouched: TestClient, operation: Operation, prefixes: list[str]
):
    before = everything(untouched)
    assert seen_from_outside(untouched, operation, prefixes) == before


@pytest.mark.parametrize("prefixes", [OUTSIDE, BESIDE], ids=["outside", "beside"])
@pytest.mark.parametrize("operation", [one for one in FOR_WRITERS if str(one) in BELOW_ITS_OWN_PATH], ids=str)
def test_a_key_for_another_path_changes_only_its_own_sources(
    seeded: TestClient, operation: Operation, prefixes: list[str]
):
    before = everything(seeded)
    assert seen_from_outside(seeded, operation, prefixes)[: len(before)] == before


def seen_from_outside(client: TestClient, operation: Operation, prefixes: list[str]) -> Any:
    """What is stored after the request of a key that is for other paths."""
    answer = send(client, operation, key_of(client, Role.READ_WRITE, prefixes))
    status, fits = SEEN_FROM_OUTSIDE.get(str(operation), (answer.status_code, anything))
    assert answer.status_code == status
    assert status < 500 or answer.json()["code"] == NotOfDatabase.code, answer.text
    assert fits(answer.text if SERVER_SENT_EVENTS in answer.headers["Content-Type"] else answer.json()), answer.text
    assert MARK not in answer.text
    return everything(client)


def test_the_two_tables_are_of_the_same_routes():
    assert SEEN_FROM_INSIDE.keys() == SEEN_FROM_OUTSIDE.keys() <= {str(operation) for operation in FOR_WRITERS}


def test_paths_that_a_search_names_must_be_the_keys_own(seeded: TestClient):
    key = key_of(seeded, Role.READ_ONLY, ["claude-code/billing"])
    own = "claude-code/billing"
    for path, code in ((own, None), (f"{own}/deep", None), ("claude-code", "source_forbidden")):
        body = {"query": MARK, "source_prefixes": [path]}
        for route, sent in (("/search", body), ("/search/batch", {"queries": [body]})):
            assert seeded.post(route, json=sent, headers=key).json().get("code") == code


def test_a_bulk_delete_reports_its_memories_to_a_limited_key(seeded: TestClient):
    key = key_of(seeded, Role.READ_WRITE)
    body = {"source_prefix": "claude", "skip_snapshot": True}
    answer = seeded.post("/memory/delete-by-prefix", json=body, headers=key)
    ids = list(range(1, SEEDED + 1))
    assert answer.json() == {"success": True, "deleted_count": SEEDED, "deleted_ids": ids, "missing_ids": []}


def test_a_refused_request_makes_no_namespace(seeded: TestClient):
    body = {"name": "n", "role": "read-write", "prefixes": ["a"], "namespace": "unborn"}
    key = {"X-API-Key": seeded.post("/api/keys", json=body, headers=ENV).json()["key"]}
    for source in ("b", "a/../b", "ab"):
        refused = seeded.post("/memory/add", json={"text": "t", "source": source}, headers=key)
        assert refused.json()["code"] == "source_forbidden"
    assert seeded.get("/stats", headers={**ENV, "X-Namespace": "unborn"}).json()["created_at"] is None
    assert seeded.post("/memory/add", json={"text": "t", "source": "a"}, headers=key).status_code == 200
    assert seeded.get("/memories/count", headers={**key, "X-Namespace": "unborn"}).json() == {"count": 1}
    assert seeded.get("/memories/count", headers={**key, "X-Namespace": "default"}).status_code == 403


@pytest.mark.parametrize("body", [b"{", b"[" * 1000])
def test_who_may_not_is_refused_before_the_body_is_read(seeded: TestClient, body: bytes):
    reader = key_of(seeded, Role.READ_ONLY)
    for headers in (reader, {**reader, "X-Namespace": "elsewhere"}):
        refused = seeded.post("/memory/add", content=body, headers={**headers, "Content-Type": "application/json"})
        assert refused.status_code == 403
