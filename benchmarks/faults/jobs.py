"""Follows the jobs that the service accepted."""

from __future__ import annotations

import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from benchmarks.faults.ledger import Ledger
from benchmarks.service import Client, ServiceFailed

FINISHED = frozenset({"completed", "failed", "cancelled"})
TIMEOUT_S = 300.0


def answered(
    client: Client, method: str, path: str, body: Any = None, *, namespace: str | None = None, once: str | None = None
) -> Any:
    """:raises ServiceFailed: If it is not answered 200."""
    status, answer = client.call(method, path, body, namespace=namespace, once=once)
    if status != HTTPStatus.OK:
        raise ServiceFailed(f"{method} {path} was answered {status}: {answer}")
    return answer


def settle_jobs(client: Client, ledgers: Iterable[Ledger], *, wait: bool) -> tuple[str, ...]:
    """Note which accepted jobs have ended, or wait for all; one sentence for each that is lost or did not complete."""
    problems: list[str] = []
    deadline = time.monotonic() + TIMEOUT_S
    for ledger in ledgers:
        for job_id, (_, namespace) in list(ledger.jobs.items()):
            path = f"/jobs/{job_id}"
            status, job = client.call("GET", path, namespace=namespace)
            while wait and status == HTTPStatus.OK and job["status"] not in FINISHED and time.monotonic() < deadline:
                time.sleep(0.05)
                status, job = client.call("GET", path, namespace=namespace)
            if status == HTTPStatus.OK and job["status"] not in FINISHED and not wait:
                continue
            if status != HTTPStatus.OK or job["status"] != "completed":
                problems.append(f"job {job_id} was accepted, and is answered {status}: {job}")
                del ledger.jobs[job_id]
            else:
                ledger.finish(job_id, cleared=(job["result"] or {}).get("files_cleared", True))
    return tuple(problems)
