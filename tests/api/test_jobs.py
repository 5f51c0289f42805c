"""Jobs over HTTP: a quick one is answered directly, a long one can be polled and cancelled."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from time import monotonic
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.api import duplicates
from souvenir.core.types import Scope
from souvenir.memories.deduplication import Deduplication
from souvenir.server import job_responses
from souvenir.server.service import Service
from souvenir.store.memories import duplicates as duplicate_rows
from tests.api.conftest import Add, Start
from tests.api.test_memory_writes import NEARLY, TEXT

PATIENCE_S = 30.0
SWEEP = {"threshold": 0.9, "dry_run": False}


@pytest.fixture(autouse=True)
def _everything_is_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "JOB_ABOVE_MEMORIES", 0)


def service_of(client: TestClient) -> Service:
    service: Service = client.app.state.service  # type: ignore[attr-defined]  # an application
    return service


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Sweeps stand still until it is set."""
    let_go = Event()
    sweep: Callable[..., Any] = Deduplication.sweep

    def held_sweep(*args: Any, **options: Any) -> Any:
        assert let_go.wait(PATIENCE_S)
        return sweep(*args, **options)

    monkeypatch.setattr(Deduplication, "sweep", held_sweep)
    return let_go


def test_a_quick_job_is_answered_with_its_result(client: TestClient, add: Add):
    kept, repeat = add(TEXT, "s"), add(NEARLY, "s")
    pair = {"id_a": kept, "id_b": repeat, "source": "s", "similarity": 0.95, "text_a": TEXT, "text_b": NEARLY}
    dry = client.post("/memory/deduplicate", json={})
    assert (dry.status_code, dry.json()["pairs"]) == (200, [pair])
    done = client.post("/memory/deduplicate", json=SWEEP).json()
    assert done == {"duplicate_pairs": 1, "removed": 1, "remaining": 1, "dry_run": False}
    listed = client.get("/jobs").json()
    assert (listed["count"], listed["total"]) == (2, 2)
    assert [job["status"] for job in listed["jobs"]] == ["completed", "completed"]


def test_a_job_holds_no_texts(client: TestClient, add: Add):
    add(TEXT, "s"), add(NEARLY, "s")
    client.post("/memory/deduplicate", json=SWEEP)
    assert TEXT not in client.get("/jobs").text
    assert NEARLY not in client.get("/jobs").text


def test_a_slow_job_is_accepted_and_returns_its_result_later(client: TestClient, add: Add, held: Event):
    add(TEXT, "s"), add(NEARLY, "s")
    response = client.post("/memory/deduplicate?wait_s=0", json=SWEEP)
    accepted = response.json()
    assert response.status_code == 202
    assert accepted["result_url"] == f"/jobs/{accepted['job_id']}"
    assert client.get(accepted["result_url"]).json()["status"] in {"queued", "running"}
    held.set()
    service_of(client).jobs.wait(accepted["job_id"], PATIENCE_S)
    job = client.get(accepted["result_url"]).json()
    assert (job["status"], job["done"], job["total"], job["error"]) == ("completed", 2, 2, None)
    assert job["result"] == {"found": 1, "pairs": [[1, 2, 0.95]], "removed": 1, "remaining": 1, "dry_run": False}


def test_only_a_few_requests_wait_and_the_others_are_answered_at_once(
    client: TestClient, add: Add, held: Event, monkeypatch: pytest.MonkeyPatch
):
    add(TEXT, "s")
    service = service_of(client)
    waiting = [service.long_work._waiting.acquire(blocking=False) for _ in range(job_responses.MAX_WAITING)]
    assert all(waiting)
    assert client.post("/memory/deduplicate?wait_s=50", json={}).status_code == 202
    held.set()
    service.long_work._waiting.release()
    assert client.post("/memory/deduplicate?wait_s=50", json={}).status_code == 200


def test_a_request_that_waits_does_not_keep_others_from_being_answered(client: TestClient, add: Add, held: Event):
    add(TEXT, "s")
    answers: list[int] = []
    waiting = Thread(target=lambda: answers.append(client.post("/memory/deduplicate?wait_s=50", json={}).status_code))
    waiting.start()
    assert client.get("/memories/count").json() == {"count": 1}
    assert answers == []
    held.set()
    waiting.join()
    assert answers == [200]


def test_a_job_can_be_cancelled_and_a_finished_one_cannot(client: TestClient, add: Add, held: Event):
    add(TEXT, "s"), add(NEARLY, "s")
    first, second = (client.post("/memory/deduplicate?wait_s=0", json=SWEEP).json()["job_id"] for _ in range(2))
    cancelled = client.post(f"/jobs/{second}/cancel").json()
    assert (cancelled["status"], cancelled["cancel_requested"]) == ("cancelled", True)
    again = client.post(f"/jobs/{second}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert client.post(f"/jobs/{first}/cancel").json()["cancel_requested"] is True
    held.set()
    job = service_of(client).jobs.wait(first, PATIENCE_S)
    assert job.status == "cancelled"
    assert client.get("/memories/count").json() == {"count": 2}
    assert client.get("/jobs?status=cancelled").json()["total"] == 2
    assert client.get("/jobs?kind=import").json()["total"] == 0


def test_a_job_that_fails_during_a_wait_is_an_answer(client: TestClient, add: Add, monkeypatch: pytest.MonkeyPatch):
    add(TEXT, "s")
    monkeypatch.setattr(duplicate_rows, "next_source", lambda *_: 1 / 0)
    response = client.post("/memory/deduplicate", json=SWEEP)
    [job] = client.get("/jobs").json()["jobs"]
    assert (response.status_code, response.json()["code"]) == (503, "job_failed")
    assert response.json()["detail"] == f"Job {job['id']!r} failed: {job['error']}"
    assert job["error"] == f"internal error; look at the service's log for job {job['id']}"


def test_jobs_of_another_namespace_do_not_exist(client: TestClient, add: Add):
    add(TEXT, "s")
    client.post("/memory/deduplicate", json={})
    [job] = client.get("/jobs").json()["jobs"]
    elsewhere = {"X-Namespace": "elsewhere"}
    assert client.get("/jobs", headers=elsewhere).json()["total"] == 0
    for response in (
        client.get(f"/jobs/{job['id']}", headers=elsewhere),
        client.post(f"/jobs/{job['id']}/cancel", headers=elsewhere),
    ):
        assert (response.status_code, response.json()["code"]) == (404, "job_not_found")


def test_an_unfinished_job_resumes_after_a_restart(start: Start, held: Event):
    client = start()
    client.post("/memory/add-batch", json={"memories": [{"text": TEXT, "source": "s"}] * 3})
    job_id = client.post("/memory/deduplicate?wait_s=0", json=SWEEP).json()["job_id"]
    service = service_of(client)
    stopping = Thread(target=lambda: client.__exit__(None, None, None))
    stopping.start()
    assert service.jobs._closing.wait(PATIENCE_S)
    held.set()
    stopping.join()
    back = start()
    assert service_of(back).jobs.wait(job_id, PATIENCE_S).status == "completed"
    assert service_of(back).engine.count(Scope()) == 1


@pytest.mark.parametrize(("enabled", "times"), [(True, 1), (False, 0)])
def test_memory_is_given_back_after_a_job_unless_the_settings_forbid_it(start: Start, enabled: bool, times: int):
    service = service_of(start(memory_trim_enabled=enabled, memory_trim_cooldown_sec=3_600))
    for _ in range(2):
        job = service.jobs.submit(Deduplication.kind, Scope(), {"threshold": 0.9, "dry_run": True})
        assert service.jobs.wait(job.id, PATIENCE_S).finished
    deadline = monotonic() + PATIENCE_S
    while service.memory.done < times:
        assert monotonic() < deadline
    service.memory.close()
    assert service.memory.done == times
