"""The call path of a request to its route: few steps, on a thread that has its context."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, FrameType

import pytest
from starlette.testclient import TestClient

from souvenir.api.search import search
from souvenir.server.load_shedding import WorkerThreads
from souvenir.server.middleware import RequestMiddleware
from tests.api.conftest import Start, loaded
from tests.fake_embedder import FakeTokenEmbedder

PACKAGE = str(Path(__file__).resolve().parent.parent.parent / "souvenir")
PATIENCE_S = 20
BACKGROUND = (
    "souvenir-graph",
    "souvenir-split-later",
    "souvenir-memory",
    "souvenir-maintenance",
    "souvenir-events",
    "souvenir-webhook",
    "souvenir-loading",
)
"""Beginnings of the names of threads that no request waits for."""


@contextmanager
def traced(calls: list[tuple[CodeType, int]]) -> Iterator[None]:
    """Note each function of the package that is entered, and its thread, in threads that requests wait for."""

    def note(frame: FrameType, event: str, _: object) -> None:
        # A coroutine that is resumed goes on at a later instruction.
        is_entered = event == "call" and frame.f_lasti < 16
        if is_entered and frame.f_code.co_filename.startswith(PACKAGE) and not frame.f_code.co_name.startswith("<"):
            if threading.current_thread().name.startswith(BACKGROUND):
                return
            calls.append((frame.f_code, threading.get_ident()))

    threading.setprofile(note)
    try:
        yield
    finally:
        threading.setprofile(None)
        sys.setprofile(None)


def test_a_search_passes_at_most_25_functions_in_9_files_before_its_route(start: Start):
    calls: list[tuple[CodeType, int]] = []
    with traced(calls):
        client: TestClient = start()
        client.post("/memory/add", json={"text": "red", "source": "s"}).raise_for_status()
        client.post("/search", json={"query": "red"}).raise_for_status()
        client.app.state.service.loading.join()  # type: ignore[attr-defined]
        calls.clear()
        client.post("/search", json={"query": "red"}).raise_for_status()
    threads = {thread for code, thread in calls if code in (RequestMiddleware.__call__.__code__, search.__code__)}
    path = [code for code, thread in calls if thread in threads]
    before = path[: path.index(search.__code__)]
    assert 10 <= len(before) <= 25, " ".join(code.co_qualname for code in before)
    assert len({code.co_filename for code in before}) <= 9


def settle(calls: Sequence[object]) -> None:
    """Wait until background threads, such as the worker of a job that has finished, call nothing any more."""
    seen = -1
    while len(calls) > seen:
        seen = len(calls)
        time.sleep(0.02)


def test_a_search_an_add_and_an_extraction_pass_few_files(start: Start):
    calls: list[tuple[CodeType, int]] = []
    passed: dict[str, list[set[str]]] = {"/search": [], "/memory/add": [], "/memory/extract": []}
    with traced(calls):
        client = loaded(start(embedder=FakeTokenEmbedder(), extract_fallback_add=True))
        jobs = client.app.state.service.extraction.jobs  # type: ignore[attr-defined]
        # The first round searches an empty store and loads what later ones share, so it does not count.
        for word in ("red", "blue", "green", "white", "black", "brown", "grey"):
            text = f"User: We decided to use Redis for the {word} service.\nUser: I prefer short {word} reports."
            for path, body in {
                "/search": {"query": f"Where does the {word} service write?"},
                "/memory/add": {"text": f"The {word} service writes to Postgres.", "source": "notes"},
                "/memory/extract": {"messages": text, "source": "chat"},
            }.items():
                settle(calls)
                calls.clear()
                answer = client.post(path, json=body).raise_for_status().json()
                if path == "/memory/extract":
                    assert jobs.wait(answer["job_id"], PATIENCE_S).finished
                passed[path].append({code.co_filename for code, thread in calls if thread != threading.get_ident()})
    # A file that only some rounds pass depends on the chance of an id, which may look like a phone number at first.
    always = {path: set.intersection(*files[1:]) for path, files in passed.items()}
    for path, (least, most) in {"/search": (40, 50), "/memory/add": (40, 53), "/memory/extract": (60, 76)}.items():
        assert least <= len(always[path]) <= most, (path, sorted(always[path]))


def test_threads_run_as_many_functions_at_once_as_they_may_and_the_rest_later():
    running, most, lock = 0, 0, threading.Lock()
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def work(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait()
        with lock:
            running -= 1
        return number

    async def run() -> list[int]:
        threads = WorkerThreads(2)
        results = await asyncio.gather(*(threads.run(work, number) for number in range(6)))
        threads.close()
        return list(results)

    assert asyncio.run(run()) == [0, 1, 2, 3, 4, 5]
    assert most == 2


def test_a_thread_has_the_context_of_the_caller_and_raises_there():
    variable: ContextVar[str] = ContextVar("variable")

    def fail() -> None:
        raise KeyError(variable.get())

    async def run() -> None:
        variable.set("from the caller")
        threads = WorkerThreads(1)
        with pytest.raises(KeyError, match="from the caller"):
            await threads.run(fail)
        threads.close()

    asyncio.run(run())
