"""Extractions as clients see them: submitted, polled until they end, and refused when the queue is full."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from benchmarks.learning.transcripts import transcript
from benchmarks.service import Client, ServiceFailed

SOURCES = tuple(f"talk/{name}" for name in ("ann", "bo", "cleo", "dan"))
JOBS_TIMEOUT_S = 1800.0
PAUSE_S = 0.5
ACCEPTED, OK, REFUSED = 202, 200, 429
FULL = "extract_queue_full"
TALK = "User: I moved to Lisbon in March.\nAssistant: Noted.\n"


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that has ended.

    :param number: Which of its source it was, by when it was handed in.
    :param added: The ids of the memories that it made, smallest first.
    """

    source: str
    number: int
    status: str
    started_at: datetime
    finished_at: datetime
    added: tuple[int, ...]
    facts: int

    @classmethod
    def of(cls, job: Mapping[str, Any], number: int) -> Ended:
        result = job.get("result") or {}
        failed = result.get("error") or result.get("approval")
        made = [action.get("new_id", action.get("id")) for action in result.get("actions", ())]
        return cls(
            job["source"],
            number,
            f"{job['status']}: {failed or job.get('error')}" if failed or "error" in job else str(job["status"]),
            datetime.fromisoformat(job["started_at"]),
            datetime.fromisoformat(job["completed_at"]),
            tuple(sorted(id_ for id_ in made if id_ is not None)),
            int(result.get("extracted_count", 0)),
        )


def learn(port: int, count: int, first_seed: int) -> Sequence[Ended]:
    """Hand in so many transcripts at once, spread over the sources, and wait until all have ended.

    :raises ServiceFailed: If one is not taken, or they do not end in time.
    """
    told = {at: transcript(first_seed + at) for at in range(count)}

    def submit(source: str) -> list[tuple[str, int]]:
        client, taken = Client(port), []
        for number, at in enumerate(range(SOURCES.index(source), count, len(SOURCES))):
            status, answer = client.call("POST", "/memory/extract", {"messages": told[at], "source": source})
            if status != ACCEPTED:
                raise ServiceFailed(f"an extraction was answered {status}: {answer}")
            taken.append((str(answer["job_id"]), number))
        client.close()
        return taken

    with ThreadPoolExecutor(len(SOURCES)) as clients:
        jobs = [one for taken in clients.map(submit, SOURCES) for one in taken]
    deadline, client = time.monotonic() + JOBS_TIMEOUT_S, Client(port)
    ended = [Ended.of(_ended(client, job_id, deadline), number) for job_id, number in jobs]
    client.close()
    return ended


def out_of_order(jobs: Sequence[Ended]) -> int:
    """How often a job began before the one of its source that was handed in before it had ended, or wrote before it."""
    wrong = 0
    for source in {job.source for job in jobs}:
        of_source = sorted((job for job in jobs if job.source == source), key=lambda job: job.number)
        written = 0
        for job in of_source:
            wrong += bool(job.added) and job.added[0] <= written
            written = max((written, *job.added))
        wrong += sum(later.started_at < earlier.finished_at for earlier, later in pairwise(of_source))
    return wrong


@dataclass(frozen=True, slots=True)
class Refusal:
    """What came of handing in more than may wait.

    :param taken: That were taken before one was refused.
    :param fault: What is wrong with the refusal; None if nothing is.
    """

    taken: int
    fault: str | None


def fill_queue(port: int, most: int) -> Refusal:
    """Hand in short transcripts until one is refused, and cancel those that were taken."""
    taken: list[str] = []
    status, headers, answer = 0, http.client.HTTPMessage(), None
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)
    for _ in range(most + 1):
        body = json.dumps({"messages": TALK, "source": SOURCES[0]})
        connection.request("POST", "/memory/extract", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        status, headers, answer = response.status, response.headers, json.loads(response.read())
        if status != ACCEPTED:
            break
        taken.append(answer["job_id"])
    connection.close()
    client = Client(port)
    for job_id in taken:
        client.call("DELETE", f"/memory/extract/{job_id}")
    client.close()
    return Refusal(len(taken), _fault(status, headers, answer))


def _fault(status: int, headers: http.client.HTTPMessage, answer: Any) -> str | None:
    if status != REFUSED:
        return f"answered {status} and not {REFUSED}"
    if not headers.get("Retry-After", "").isdigit():
        return "no Retry-After"
    detail = answer["detail"]
    if not isinstance(detail, dict) or detail.get("error") != FULL:
        return "detail does not say that the queue is full"
    return None


def _ended(client: Client, job_id: str, deadline: float) -> Mapping[str, Any]:
    while time.monotonic() < deadline:
        status, job = client.call("GET", f"/memory/extract/{job_id}")
        if status != OK:
            raise ServiceFailed(f"an extraction was answered {status}: {job}")
        if job["status"] not in ("queued", "running"):
            return dict(job)
        time.sleep(PAUSE_S)
    raise ServiceFailed(f"the extraction {job_id} did not end")
