"""Liveness, readiness and the statistics of the service."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from souvenir import VERSION
from tests.api.conftest import JSON, KEY, Add, Start, loaded

COUNTS = {
    *("total_memories", "dimension", "model"),
    *("embedding_backend", "embedding_dimension", "database_path"),
}


@pytest.mark.sqlite_only(reason="shows the path of the file")
def test_an_open_service_reports_its_contents_in_both_formats(client: TestClient, add: Add, tmp_path: Path):
    add("red")
    assert client.get("/health").json() == {
        "status": "ok",
        "service": "memories",
        "version": VERSION,
        "total_memories": 1,
        "dimension": 256,
        "model": "fake@1",
        "embedding_backend": "local",
        "embedding_dimension": 256,
        "database_path": str(tmp_path / "data" / "souvenir.db"),
    }


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        ({}, False),
        ({"X-API-Key": "wrong"}, False),
        ({"X-API-Key": KEY}, True),
        ({"Authorization": f"Bearer {KEY}"}, True),
    ],
)
def test_a_guarded_service_reports_its_contents_with_the_key_only(start: Start, headers, shown):
    body = start(api_key=KEY).get("/health", headers=headers).json()
    assert (set(body) >= COUNTS) is shown
    assert body["status"] == "ok"


def test_a_service_is_ready_and_stays_so_after_its_first_write(client: TestClient, add: Add):
    loaded(client)
    assert client.get("/health/ready").status_code == 200
    add("red")
    response = client.get("/health/ready")
    assert response.status_code == 200
    assert response.json() == {
        "ready": True,
        "status": "ready",
        "index_count": 1,
        "record_count": 1,
        "qdrant_count": 1,
        "metadata_count": 1,
        "warnings": [],
    }


def test_readiness_shows_warnings_and_their_messages_to_admins_only(start: Start):
    client = loaded(start(api_key=KEY))
    warnings = client.app.state.service.engine.warnings  # type: ignore[attr-defined]
    warnings.put("disk_full", "The disk of DATA_DIR is full; free some space")
    assert client.get("/health/ready").json()["warnings"] == [{"code": "disk_full", "message": None}]
    [shown] = client.get("/health/ready", headers={"X-API-Key": KEY}).json()["warnings"]
    assert shown == {"code": "disk_full", "message": "The disk of DATA_DIR is full; free some space"}
    warnings.clear("disk_full")
    assert client.get("/health/ready").json()["warnings"] == []


@pytest.mark.sqlite_only(reason="counts a backup")
def test_stats_count_the_contents_of_the_namespace(client: TestClient, add: Add):
    empty = client.get("/stats").json()
    assert (empty["total_memories"], empty["created_at"], empty["last_updated"]) == (0, None, None)
    add("red")
    client.post("/backup")
    client.post("/search", json={"query": "red"})
    stats = client.get("/stats").json()
    assert (stats["total_memories"], stats["dimension"], stats["model"], stats["backup_count"]) == (1, 256, "fake@1", 1)
    assert stats["index_size_bytes"] > 0
    assert stats["last_updated"] >= stats["created_at"]


def test_metrics_count_requests_by_route(client: TestClient, add: Add):
    stored = add("red")
    client.get(f"/memory/{stored}")
    client.get("/memory/99")
    client.get("/nowhere/at/all")
    body = client.get("/metrics", headers=JSON).json()
    route = body["routes"]["GET /memory/{memory_id}"]
    assert (route["count"], route["error_count"], route["error_rate_pct"]) == (2, 1, 50.0)
    assert route["last_status_code"] == 404
    assert 0 < route["p95_latency_ms"] <= route["max_latency_ms"]
    assert body["routes"]["GET unmatched"]["count"] == 1
    assert body["requests"]["total_count"] == 4
    assert body["requests"]["error_count"] == 2
    assert body["requests"]["active_http_requests"] == 1
    assert body["memory"]["current_total"] == 1
    assert body["memory"]["process"]["rss_kb"] > 1000
    assert body["disk"]["database_bytes"] > 0
    assert body["disk"]["log_bytes"] >= 0
    assert body["uptime_sec"] >= 0
    assert body["extract"]["queue_depth"] == 0
    assert {"embedder_reload", "promotion"} <= set(body)


def test_metrics_name_no_more_routes_than_there_are(client: TestClient):
    for number in range(50):
        client.get(f"/nowhere/{number}")
        client.request(f"METHOD{number}", "/search")
        client.get(f"/memory/{number}")
    routes = client.get("/metrics", headers=JSON).json()["routes"]
    assert set(routes) == {"GET unmatched", "OTHER /search", "GET /memory/{memory_id}"}


def test_the_trend_follows_the_number_of_memories(client: TestClient, add: Add):
    client.get("/metrics", headers=JSON)
    add("red")
    trend = client.get("/metrics", headers=JSON).json()["memory"]["trend"]
    assert [sample["total"] for sample in trend["samples"]] == [0, 1]
    assert trend["delta"] == 1


def test_everything_is_there_after_a_restart(start: Start, tmp_path: Path):
    first = start()
    first.post("/memory/add", json={"text": "red apple", "source": "s"})
    first.__exit__(None, None, None)
    second = start()
    assert second.get("/health").json()["total_memories"] == 1
    assert second.post("/search", json={"query": "apple"}).json()["count"] == 1


def test_many_requests_at_once_lose_nothing(client: TestClient):
    statuses: list[int] = []

    def add_some(worker: int) -> None:
        for number in range(10):
            body = {"text": f"worker {worker} wrote {number}", "source": f"w/{worker}"}
            statuses.append(client.post("/memory/add", json=body).status_code)
            statuses.append(client.post("/search", json={"query": f"worker {worker}"}).status_code)

    workers = [threading.Thread(target=add_some, args=[worker]) for worker in range(8)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    assert statuses == [200] * 160
    assert client.get("/memories/count").json() == {"count": 80}
