"""`GET /usage`: calls by operation, source, client, session, key and day, and the tokens of extractions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from starlette.testclient import TestClient

from souvenir.core.settings import Settings
from souvenir.core.timestamps import EPOCH
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.server.usage import Usage
from souvenir.store.admin.usage import KEPT_DAYS, MAX_ROWS, OTHER
from souvenir.store.sqlite import connections
from tests.api.conftest import KEY, Start
from tests.fake_embedder import FakeEmbedder

ENV = {"X-API-Key": KEY}
NOW = datetime(2025, 4, 2, 9, 30, tzinfo=UTC)


def usage(client: TestClient, **params: Any) -> dict[str, Any]:
    headers = params.pop("headers", {})
    answer: dict[str, Any] = client.get("/usage", params=params, headers=headers).raise_for_status().json()
    return answer


def add(client: TestClient, text: str, source: str = "notes/today", **headers: str) -> int:
    body = {"text": text, "source": source}
    return int(client.post("/memory/add", json=body, headers=headers).raise_for_status().json()["id"])


def search(client: TestClient, *, source_prefix: str | None = None, **headers: str) -> None:
    body = {"query": "red"} if source_prefix is None else {"query": "red", "source_prefix": source_prefix}
    client.post("/search", json=body, headers=headers).raise_for_status()


def of_client(name: str, session: str, invocation: str) -> dict[str, str]:
    return {"X-Memories-Client": name, "X-Memories-Session-Id": session, "X-Memories-Invocation": invocation}


def test_calls_are_counted_by_operation_source_client_session_and_invocation(client: TestClient):
    add(client, "red", **of_client("codex", "s1", "manual"))
    search(client, **of_client("codex", "s1", "hook"))
    search(client, source_prefix="claude-code/project", **of_client("hook", "s2", "hook"))
    client.get("/memory/99")
    answer = usage(client, period="today")
    assert (answer["enabled"], answer["period"], answer["session_id"]) == (True, "today", "")
    assert answer["operations"]["search"] == {
        "total": 2,
        "by_source": {"claude-code": 1},
        "by_client": {"codex": 1, "hook": 1},
        "by_session": {"s1": 1, "s2": 1},
        "by_invocation": {"hook": 2},
    }
    assert answer["operations"]["add_memory"]["by_source"] == {"notes": 1}
    assert set(answer["operations"]) == {"search", "add_memory"}
    assert answer["by_key"] == {"anonymous": 3}
    assert answer["by_day"] == {datetime.now(UTC).date().isoformat(): 3}
    assert answer["extraction"] == {
        "total_calls": 0,
        "total_input_tokens": 0,
        "total_output_tokens": 0,
        "by_model": {},
        "estimated_cost_usd": 0.0,
    }


def test_calls_of_one_session_are_selected(client: TestClient):
    add(client, "red", **of_client("codex", "s1", "manual"))
    search(client, **of_client("codex", "s1", "manual"))
    search(client, **of_client("codex", "s2", "manual"))
    answer = usage(client, session_id="s1")
    assert {name: one["total"] for name, one in answer["operations"].items()} == {"search": 1, "add_memory": 1}
    assert answer["operations"]["search"]["by_session"] == {"s1": 1}
    assert sum(answer["by_day"].values()) == 2


def test_calls_are_still_counted_after_a_restart(start: Start):
    first = start()
    add(first, "red")
    search(first)
    first.__exit__()
    second = start()
    search(second)
    assert usage(second)["operations"]["search"]["total"] == 2


def test_nothing_is_counted_without_usage_tracking(start: Start):
    client = start(usage_tracking=False)
    add(client, "red")
    answer = usage(client)
    assert answer.keys() == {"enabled", "key_id", "quotas", "used"}
    assert answer["enabled"] is False
    database: apsw.Connection
    with client.app.state.service.engine.namespace(Scope()) as (database, _):  # type: ignore[attr-defined]
        assert database.execute("SELECT count(*) FROM usage_days").get == 0


def test_a_key_sees_its_own_calls_and_an_admin_those_of_each_key(start: Start):
    client = start(api_key=KEY)
    add(client, "red", **ENV)
    made = client.post("/api/keys", json={"name": "a", "role": "read-only", "prefixes": ["notes"]}, headers=ENV).json()
    own = {"X-API-Key": made["key"]}
    search(client, **own, **of_client("codex", "s1", "hook"))
    search(client, **ENV)
    seen = usage(client, headers=own)
    assert {name: one["total"] for name, one in seen["operations"].items()} == {"search": 1}
    assert seen["operations"]["search"]["by_client"] == {}
    assert seen["by_key"] == {made["id"]: 1}
    assert usage(client, headers=ENV)["by_key"] == {made["id"]: 2, "api-key": 3}
    assert usage(client, key_id=made["id"], headers=ENV)["operations"]["search"]["total"] == 1


def test_an_admin_sees_all_namespaces_or_the_one_in_the_header(client: TestClient):
    add(client, "red")
    add(client, "red", **{"X-Namespace": "team"})
    assert usage(client)["operations"]["add_memory"]["total"] == 2
    assert usage(client, headers={"X-Namespace": "team"})["operations"]["add_memory"]["total"] == 1


def test_tools_of_mcp_are_counted_by_name(client: TestClient):
    add(client, "red")
    accept = {"Accept": "application/json, text/event-stream", "X-Memories-Client": "codex"}
    for arguments in ({"query": "red"}, {"query": 5}):
        call = {"name": "search_memory", "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        client.post("/mcp", json=message, headers=accept).raise_for_status()
    operations = usage(client)["operations"]
    assert (operations["search_memory"]["total"], operations["search_memory"]["by_client"]) == (1, {"codex": 1})


def test_unknown_period_is_refused(client: TestClient):
    assert client.get("/usage", params={"period": "yesterday"}).status_code == 422


def test_erasing_a_source_deletes_its_calls(client: TestClient):
    client.post("/agents", json={"name": "ann"}).raise_for_status()
    own = {"X-Namespace": "ann"}
    add(client, "red", "secret-place/x", **own)
    usage(client)
    search(client, source_prefix="secret-place", **own)
    erase = {"selector": {"agent_name": "ann", "source": "secret-place"}, "confirm": True}
    client.post("/erase", json=erase).raise_for_status()
    assert "secret-place" not in str(usage(client))
    assert usage(client)["operations"]["search"]["total"] == 1


@pytest.mark.parametrize("route", ["/agents/ann", "/api/locrits/ann/memory/clear"])
def test_deleting_or_clearing_an_agent_deletes_its_sources_and_sessions(client: TestClient, route: str):
    client.post("/agents", json={"name": "ann"}).raise_for_status()
    own = {"X-Namespace": "ann"}
    add(client, "red", "place", **own, **of_client("codex", "session-of-ann", "hook"))
    usage(client)
    search(client, source_prefix="place-two", **own)
    client.request("DELETE", route, json={"confirm": True}).raise_for_status()
    shown = str(usage(client))
    assert "place" not in shown
    assert "session-of-ann" not in shown


# --- the table --------------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    engine = MemoryEngine.open(Settings(data_dir=tmp_path / "data"), FakeEmbedder())
    engine.add(Scope(), MemoryDraft("red", "notes"))
    yield engine
    engine.close()


def test_names_beyond_the_limit_of_a_day_are_counted_together(engine: MemoryEngine):
    counted = Usage(engine, clock=lambda: NOW)
    for number in range(MAX_ROWS + 20):
        counted.count("default", "search", {"session": f"s{number}"})
    counted.count("default", "search", {"session": "s0"})
    counted.count("default", "search", {"": ""}, calls=MAX_ROWS + 21)
    rows = counted.since(counted.today)
    sessions = {row.name: row.calls for row in rows if row.dimension == "session"}
    assert len(sessions) == MAX_ROWS + 1
    assert sessions[OTHER] == 20
    assert sum(sessions.values()) == MAX_ROWS + 21
    assert [row.calls for row in rows if row.dimension == ""] == [MAX_ROWS + 21]
    counted.close()


def test_days_are_kept_apart_and_old_ones_deleted(engine: MemoryEngine):
    now = [NOW]
    counted = Usage(engine, clock=lambda: now[0])
    counted.count("default", "search", {"": ""})
    counted.flush()
    now[0] += timedelta(days=1)
    counted.count("default", "search", {"": ""}, calls=2)
    first = (NOW - EPOCH).days
    assert [(row.day, row.calls) for row in counted.since(0)] == [(first, 1), (first + 1, 2)]
    assert [row.calls for row in counted.since(first + 1)] == [2]
    now[0] = NOW + timedelta(days=KEPT_DAYS + 1)
    counted.count("default", "search", {"": ""}, calls=4)
    assert [row.calls for row in counted.since(0)] == [2, 4]
    counted.close()


def test_sources_and_sessions_of_an_unknown_namespace_are_not_stored(engine: MemoryEngine):
    counted = Usage(engine, clock=lambda: NOW)
    counted.count("gone", "search", {"": "", "key": "key:1", "source": "notes", "session": "s1"})
    assert {(row.namespace, row.dimension, row.name) for row in counted.since(0)} == {
        ("", "", ""),
        ("", "key", "key:1"),
    }
    counted.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let connections wait for a lock for a moment only."""
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 50)


@pytest.mark.sqlite_only(reason="locks the file")
@pytest.mark.usefixtures("impatient")
def test_calls_that_could_not_be_written_are_written_later(engine: MemoryEngine):
    counted = Usage(engine, clock=lambda: NOW)
    with engine.namespace(Scope()) as (connection, _):
        path = str(connection.execute("SELECT file FROM pragma_database_list").get)
    holder = apsw.Connection(path)
    counted.count("default", "search", {"": ""})
    holder.execute("BEGIN IMMEDIATE")
    try:
        assert counted.since(0) == []
    finally:
        holder.execute("ROLLBACK")
    assert [row.calls for row in counted.since(0)] == [1]
    counted.close()


def test_model_calls_have_tokens_and_the_known_cost(engine: MemoryEngine):
    counted = Usage(engine, clock=lambda: NOW)
    known = {"model": "gpt-4.1-mini", "input_tokens": 100, "output_tokens": 10, "cost_usd": 0.5}
    counted.count_model_calls(Scope(actor="key:1"), [known, known, {"model": "own", "input_tokens": 5}])
    rows = {row.name: (row.calls, row.input_tokens, row.output_tokens, row.cost_usd) for row in counted.since(0)}
    assert rows == {
        "gpt-4.1-mini": (2, 200, 20, 1.0),
        "own": (1, 5, 0, None),
        "key:1": (3, 205, 20, None),
    }
    counted.close()
