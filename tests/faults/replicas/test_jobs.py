"""A job whose replica is stopped, cut off or killed is completed once by another one, and not touched by the first."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.faults.model import reply
from benchmarks.replica_faults.cluster import Cluster, Replica, Standby, running
from benchmarks.replica_faults.proxy import Passage
from tests.vendors.llm import LLMRequest, LLMVendor, Says, says

LEASE_S = 5.0
PATIENCE_S = 60.0
SAID = ["The ferry to Bergen leaves at nine.", "The bakery is closed on Mondays."]

Break = Callable[[Replica], None]


@pytest.fixture
def model() -> Iterator[LLMVendor]:
    """Answers once it may go on: every sentence is a fact to add."""
    vendor = LLMVendor()

    def answer(request: LLMRequest) -> Says:
        return says(reply(request.prompt or "", request.user), waits=True)

    vendor.script(answer)
    vendor.start()
    yield vendor
    vendor.go_on.set()
    vendor.stop()


@pytest.fixture
def cluster(cluster_folder: Path, model: LLMVendor) -> Iterator[Cluster]:
    settings = {
        "EXTRACT_PROVIDER": "ollama",
        "EXTRACT_BASE_URL": model.url,
        "EXTRACT_MODEL": "scripted",
        "EXTRACT_MAX_INFLIGHT": "1",
        # The log says which replica starts a job.
        "LOG_LEVEL": "INFO",
    }
    with running(Cluster(cluster_folder, Standby.NONE, settings=settings, lease_s=LEASE_S)) as cluster:
        yield cluster


def called(replica: Replica, method: str, path: str, body: Any = None) -> Any:
    client = replica.client()
    try:
        status, answer = client.call(method, path, body)
    finally:
        client.close()
    assert status in (HTTPStatus.OK, HTTPStatus.ACCEPTED), answer
    return answer


def submit(replica: Replica, sentences: list[str]) -> str:
    messages = json.dumps([{"role": "user", "content": sentence} for sentence in sentences])
    return str(called(replica, "POST", "/memory/extract", {"messages": messages, "source": "talk"})["job_id"])


def wait_for(replica: Replica, job_id: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (job := called(replica, "GET", f"/jobs/{job_id}"))["status"] in ("queued", "running"):
        assert time.monotonic() < deadline, job
        time.sleep(0.05)
    assert job["status"] == "completed", job


def stored(cluster: Cluster, job_id: str) -> tuple[Any, ...]:
    """The row of the job, and everything that it wrote."""
    with psycopg.connect(cluster.primary.address) as connection:
        connection.execute("SET search_path = souvenir")
        job = connection.execute("SELECT * FROM jobs WHERE id = %s", (job_id,)).fetchall()
        memories = connection.execute("SELECT * FROM memories ORDER BY id").fetchall()
        history = connection.execute("SELECT * FROM history ORDER BY id").fetchall()
    return job, memories, history


def silence(replica: Replica) -> None:
    replica.let(Passage.SILENT)


def let_speak(replica: Replica) -> None:
    replica.let(Passage.OPEN)


@pytest.mark.parametrize(
    ("break_it", "repair"),
    [
        pytest.param(Replica.pause, Replica.go_on, id="stopped"),
        pytest.param(silence, let_speak, id="cut off", marks=pytest.mark.thorough),
        pytest.param(Replica.kill, Replica.start, id="killed", marks=pytest.mark.thorough),
    ],
)
def test_a_job_is_completed_once_by_another_replica(cluster: Cluster, model: LLMVendor, break_it: Break, repair: Break):
    job_id = submit(cluster.replicas[0], SAID)
    assert model.arrived.acquire(timeout=PATIENCE_S)
    [first] = [one for one in cluster.replicas if job_id in one.log_path.read_text(encoding="utf-8")]
    others = [one for one in cluster.replicas if one is not first]
    break_it(first)
    assert model.arrived.acquire(timeout=PATIENCE_S), "no other replica took the job over"
    model.go_on.set()
    wait_for(others[0], job_id)
    before = stored(cluster, job_id)
    assert sorted(one["text"] for one in called(others[0], "GET", "/memories")["memories"]) == sorted(SAID)
    repair(first)
    first.wait_until_ready()
    # The only worker of the first replica runs another job once it is done with what it took for its own.
    for other in others:
        other.kill()
    another = submit(first, ["The museum opens at ten."])
    wait_for(first, another)
    job, memories, history = stored(cluster, job_id)
    assert job == before[0]
    assert memories[: len(SAID)] == before[1]
    assert history[: len(before[2])] == before[2]
    assert len(memories) == len(SAID) + 1


def test_a_job_goes_on_after_an_outage_of_the_database(cluster: Cluster, model: LLMVendor):
    job_id = submit(cluster.replicas[0], SAID)
    assert model.arrived.acquire(timeout=PATIENCE_S)
    cluster.primary.kill()
    model.go_on.set()
    deadline = time.monotonic() + PATIENCE_S
    while not any("job_waits" in one.log_path.read_text(encoding="utf-8") for one in cluster.replicas):
        assert time.monotonic() < deadline, "the job did not notice the outage, or failed"
        time.sleep(0.05)
    cluster.primary.start()
    cluster.wait_until_ready()
    wait_for(cluster.replicas[1], job_id)
    assert sorted(one["text"] for one in called(cluster.replicas[1], "GET", "/memories")["memories"]) == sorted(SAID)
