"""The real service with the real model, asked for more than it can do, and stopped while it is."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.load.__main__ import missing_adds
from benchmarks.overload.callers import Answers, Load, run
from benchmarks.service import Service
from souvenir.server.admission import WAITING_PER_PLACE
from tests.api.busy import until

CALLERS = WAITING_PER_PLACE + 10
"""More than one place and its queue hold."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """With one place for searches and one for writes."""
    served = Service(tmp_path / "data", MAX_SEARCHES="1", MAX_WRITES="1")
    served.start()
    yield served
    if served.running:
        served.stop()


@pytest.fixture
def unbounded(tmp_path: Path) -> Iterator[Service]:
    """A service that embeds as many tokens as a request asks for."""
    served = Service(tmp_path / "data", MAX_REQUEST_TOKENS="10000000", EMBED_QUEUE_TOKENS="10000000")
    served.start()
    yield served
    served.kill()


def stored(service: Service) -> int:
    client = service.client()
    count: int = client.call("GET", "/memories/count")[1]["count"]
    client.close()
    return count


def test_more_requests_than_it_can_serve_are_refused_with_retry_after_and_nothing_acknowledged_is_lost(
    service: Service,
):
    answers = asyncio.run(run(Load(service.port, seconds=3.0, seed=1, callers=CALLERS, drips=20)))
    assert answers.failed == []
    assert answers.refused_s
    assert answers.without_retry_after == 0
    assert answers.search_s
    assert answers.acknowledged
    assert missing_adds(service.port, answers.acknowledged) == 0


def test_a_stop_under_load_ends_in_order_and_what_was_acknowledged_is_there_afterwards(service: Service):
    def load() -> Answers:
        return asyncio.run(run(Load(service.port, seconds=20.0, seed=2, callers=CALLERS)))

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(load)
        until(lambda: stored(service) >= 5)
        assert service.stop() in {0, -signal.SIGTERM}
        answers = running.result()
    assert len(answers.acknowledged) >= 5
    assert answers.without_retry_after == 0
    assert not [failure for failure in answers.failed if failure.startswith("5")]
    assert service.check() == []
    service.start()
    assert missing_adds(service.port, answers.acknowledged) == 0


def embedding(service: Service) -> float:
    """What waits for the embedding model."""
    client = service.client()
    figures = client.text("GET", "/metrics")
    client.close()
    [line] = [line for line in figures.splitlines() if line.startswith('souvenir_queue_depth{queue="embedding"}')]
    return float(line.split()[-1])


def test_texts_of_a_disconnected_client_leave_the_embedding_queue(unbounded: Service):
    memories = [{"text": "记" * 49_000, "source": "s"}] * 8
    body = json.dumps({"memories": memories}).encode()
    head = "POST /memory/add-batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", unbounded.port)) as peer:
        peer.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: embedding(unbounded) > 0)
    until(lambda: embedding(unbounded) == 0)
    assert stored(unbounded) == 0
