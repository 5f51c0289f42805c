"""Prometheus metrics, parsed with the parser of its client library."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from starlette.testclient import TestClient

from souvenir.server.load_shedding import Refusal
from tests.api.conftest import KEY, Add, Start, loaded

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]

TIMEOUT_S = 20
TEXT = {"Accept": "text/plain"}

PROMETHEUS_ACCEPT = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


def scraped(client: TestClient) -> Samples:
    answer = client.get("/metrics", headers=TEXT)
    assert answer.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse_text(answer.text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def test_requests_are_counted_by_route_method_and_class_of_status(client: TestClient, add: Add):
    stored = add("red")
    client.get(f"/memory/{stored}")
    client.get("/memory/99")
    samples = scraped(client)
    route = {"method": "GET", "route": "/memory/{memory_id}"}
    assert value(samples, "souvenir_requests_total", **route, status="2xx") == 1
    assert value(samples, "souvenir_requests_total", **route, status="4xx") == 1
    assert value(samples, "souvenir_errors_total", code="memory_not_found") == 1
    assert value(samples, "souvenir_request_duration_seconds_count", **route) == 2
    assert value(samples, "souvenir_request_duration_seconds_bucket", **route, le="+Inf") == 2
    assert value(samples, "souvenir_request_duration_seconds_sum", **route) > 0
    assert value(samples, "souvenir_requests_active") == 1


def test_both_renderings_show_one_counting(client: TestClient, add: Add):
    add("red")
    client.get("/nowhere")
    shown = client.get("/metrics", headers={"Accept": "application/json"}).json()["routes"]
    samples = scraped(client)
    assert "POST /memory/add" in shown
    for route, figures in shown.items():
        method, template = route.split(" ")
        counted = value(samples, "souvenir_request_duration_seconds_count", method=method, route=template)
        assert counted - (template == "/metrics") == figures["count"]


def test_a_write_and_a_search_are_timed_by_their_stages(client: TestClient, add: Add):
    for text in ("red", "green"):
        add(text)
    client.post("/search", json={"query": "red"})
    samples = scraped(client)
    timed = {stage: value(samples, "souvenir_stage_duration_seconds_count", **stage_labels(stage)) for stage in STAGES}
    assert timed["write prepare"] == 2
    # Jobs write too, when they look for work.
    assert min(timed[f"write {stage}"] for stage in ("queue", "commit", "apply")) >= 2
    assert {timed[f"search {stage}"] for stage in SEARCH_STAGES} == {1}
    # Once for access to the index, and once for its lock.
    assert timed["search queue"] == 2
    assert min(timed["request queue"], timed["request serialise"]) >= 3
    bounds = [value(samples, STAGE_BUCKET, **stage_labels("search rank"), le=le) for le in ("0.0001", "10.0", "+Inf")]
    assert bounds == sorted(bounds)
    assert bounds[1:] == [1, 1]


STAGE_BUCKET = "souvenir_stage_duration_seconds_bucket"
SEARCH_STAGES = ("embed", "words", "vectors", "rank", "read")
STAGES = [*(f"write {stage}" for stage in ("prepare", "queue", "commit", "apply"))]
STAGES += [*(f"search {stage}" for stage in ("queue", *SEARCH_STAGES)), "request queue", "request serialise"]


def stage_labels(stage: str) -> dict[str, str]:
    operation, name = stage.split(" ")
    return {"operation": operation, "stage": name}


@pytest.mark.sqlite_only(reason="measures a file and its backups")
def test_the_store_is_measured_when_it_is_asked(client: TestClient, add: Add):
    empty = scraped(client)
    assert ("souvenir_newest_backup_timestamp_seconds", frozenset()) not in empty
    assert value(empty, "souvenir_memories") == 0
    add("red")
    client.post("/search", json={"query": "red"})
    client.post("/backup")
    samples = scraped(client)
    for name in ("memories", "namespaces", "indexes_loaded", "index_rows", "backups", "ready"):
        assert value(samples, f"souvenir_{name}") == 1, name
    for name in ("index_bytes", "database_bytes", "wal_bytes", "newest_backup_timestamp_seconds"):
        assert value(samples, f"souvenir_{name}") > 0, name
    assert value(samples, "process_resident_memory_bytes") > 1_000_000


def test_warnings_are_shown_by_code(client: TestClient):
    warnings = client.app.state.service.engine.warnings  # type: ignore[attr-defined]
    warnings.put("disk_full", "The disk is full")
    assert value(scraped(client), "souvenir_warnings", code="disk_full") == 1
    warnings.clear("disk_full")
    assert ("souvenir_warnings", frozenset({("code", "disk_full")})) not in scraped(client)


def test_places_and_refusals_are_shown_by_cost_class(start: Start):
    client = start(max_searches=3)
    samples = scraped(client)
    assert value(samples, "souvenir_admission_places", **{"class": "search"}) == 3
    for name in ("at_work", "waiting"):
        assert value(samples, f"souvenir_admission_{name}", **{"class": "search"}) == 0
    client.app.state.service.admission.places["search"].count(Refusal.FULL)  # type: ignore[attr-defined]
    labels = {"class": "search", "reason": "full"}
    assert value(scraped(client), "souvenir_admission_refused_total", **labels) == 1


def test_a_queue_has_depth_and_capacity_metrics(start: Start):
    client = loaded(start(write_queue_max=7, job_queue_max=5))
    samples = scraped(client)
    assert value(samples, "souvenir_queue_depth", queue="jobs") == 0
    assert value(samples, "souvenir_queue_capacity", queue="jobs") == 5
    assert value(samples, "souvenir_queue_capacity", queue="writer") == 7
    engine = client.app.state.service.engine  # type: ignore[attr-defined]
    begun, release = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        begun.set()
        release.wait(TIMEOUT_S)

    with ThreadPoolExecutor(3) as callers:
        try:
            held = callers.submit(engine.write_rows, hold)
            assert begun.wait(TIMEOUT_S), held
            for _ in range(2):
                callers.submit(engine.write_rows, lambda _: None)
            reaches(client, lambda depth: depth >= 2)
        finally:
            release.set()
    reaches(client, lambda depth: depth == 0)


def reaches(client: TestClient, wanted: Callable[[float], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not wanted(depth := value(scraped(client), "souvenir_queue_depth", queue="writer")):
        assert time.monotonic() < deadline, depth


@pytest.mark.sqlite_only(reason="restores a backup")
def test_the_writer_of_a_restored_database_is_the_one_that_is_watched(client: TestClient, add: Add):
    add("red")
    name = client.post("/snapshots").json()["snapshot"]
    assert client.post("/restore", json={"backup_name": name}).status_code == 200
    before = value(scraped(client), "souvenir_stage_duration_seconds_count", operation="write", stage="commit")
    add("green")
    samples = scraped(client)
    assert value(samples, "souvenir_memories") == 2
    assert value(samples, "souvenir_stage_duration_seconds_count", operation="write", stage="commit") > before


def test_two_services_in_a_process_do_not_share_a_number(start: Start, tmp_path):
    one, other = start(), start(data_dir=tmp_path / "other")
    one.post("/memory/add", json={"text": "red", "source": "s"})
    assert value(scraped(one), "souvenir_memories") == 1
    assert value(scraped(other), "souvenir_memories") == 0
    assert all("/memory/add" not in dict(labels).values() for _, labels in scraped(other))


def test_no_metric_label_contains_user_input(start: Start):
    client = start(api_key=KEY)
    headers = {"X-API-Key": KEY, "X-Namespace": "secret-namespace"}
    client.post("/memory/add", json={"text": "secret text", "source": "secret/source"}, headers=headers)
    client.post("/memory/upsert", json={"text": "t", "source": "s", "key": "secret-key"}, headers=headers)
    client.post("/search", json={"query": "secret query"}, headers=headers)
    client.get("/memories?source=secret/source", headers=headers)
    client.get("/secret/path", headers=headers)
    client.request("SECRET", "/search", headers=headers)
    client.get("/stats", headers={"X-API-Key": "secret-key"})
    text = client.get("/metrics", headers={**headers, **TEXT}).text
    assert "secret" not in text
    assert KEY not in text
    assert 'method="OTHER"' in text
    assert 'code="unauthorized"' in text


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "application/json"),
        ("text/plain", "text/plain; version="),
        ("application/json;q=0.9, Text/Plain", "text/plain; version="),
        (PROMETHEUS_ACCEPT, "application/openmetrics-text; version=1.0.0"),
        ("application/json", "application/json"),
        ("Application/JSON, */*;q=0.5", "application/json"),
    ],
)
def test_the_answer_has_the_requested_format(client: TestClient, accept, content_type):
    answer = client.get("/metrics", headers={} if accept is None else {"Accept": accept})
    assert answer.headers["Content-Type"].startswith(content_type)
    if "openmetrics" in content_type:
        names = {family.name for family in parse_openmetrics(answer.text)}
        assert "souvenir_requests" in names
        assert answer.text.endswith("# EOF\n")
