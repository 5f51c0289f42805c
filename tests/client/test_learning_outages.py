"""The memory service fails, is slow, overloaded or refuses: model calls continue, and lost turns are reported."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import select
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

import openai
import pytest

from souvenir_client import learning
from souvenir_client.errors import TimedOut
from souvenir_client.interception import capture, connections, contexts, outages
from tests.client import models
from tests.client.interposed import Answer, interposed
from tests.client.models import Memory, ask, ask_async
from tests.client.running import RunningService
from tests.vendors.llm import LLMVendor

CLIENT = Path(__file__).resolve().parents[2] / "client"
WAIT_S = 30.0


@pytest.fixture(scope="module")
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.script(lambda _: "Noted.")
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.fixture(scope="module")
def client(vendor: LLMVendor) -> Iterator[openai.OpenAI]:
    with models.openai_client(vendor) as client:
        yield client


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="souvenir_client")
    return caplog


def warnings(told: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in told.records if record.levelno >= logging.WARNING]


def test_an_outage_costs_one_warning_and_loses_no_turn(own_service, client, told, monkeypatch):
    monkeypatch.setattr(outages, "COOL_DOWN_S", 0.0)
    with learning("agent", own_service.url, session_id="one"):
        ask(client, "Before.")
        own_service.stop()
        answers = [ask(client, f"Without {number}.").choices[0].message.content for number in range(3)]
        own_service.start()
        ask(client, "After.")
    assert answers == ["Noted."] * 3
    memory = Memory(own_service)
    said = [content for role, content in memory.said("agent", "one") if role == "user"]
    memory.close()
    assert said == ["Before.", "Without 0.", "Without 1.", "Without 2.", "After."]
    assert len(warnings(told)) == 1
    assert own_service.url in warnings(told)[0]
    assert [record.getMessage() for record in told.records if record.levelno == logging.INFO] == [
        f"The memory of {own_service.url} is available again"
    ]


def test_turns_pending_at_the_end_of_a_block_are_warned_about_and_stored_later(own_service, client, told):
    block = learning("agent", own_service.url, session_id="one", flush_timeout_s=0.05)
    with block:
        own_service.stop()
        ask(client, "Lost?")
        told.clear()
    assert warnings(told) == ["Of the turns of agent agent, 2 are still waiting for the service"]
    own_service.start()
    with learning("agent", own_service.url, session_id="one"):
        ask(client, "No.")
    memory = Memory(own_service)
    assert [content for _, content in memory.said("agent", "one")] == ["Lost?", "Noted.", "No.", "Noted."]
    memory.close()


@contextmanager
def losing_one_answer(service: RunningService) -> Iterator[str]:
    """The address of a proxy that passes everything on, but for the service's answer to the first batch."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        lost = Event()

        def pass_on(caller: socket.socket) -> None:
            losing = False
            with caller, socket.create_connection(("127.0.0.1", service.port)) as callee:
                while True:
                    for side in select.select([caller, callee], [], [])[0]:
                        data = side.recv(1 << 20)
                        if side is callee and losing:
                            lost.set()
                        if not data or (side is callee and losing):
                            return
                        losing |= side is caller and data.startswith(b"POST /messages/batch") and not lost.is_set()
                        (callee if side is caller else caller).sendall(data)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    Thread(target=pass_on, args=(listener.accept()[0],), daemon=True).start()

        Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert lost.is_set()
        listener.shutdown(socket.SHUT_RDWR)


def test_a_batch_whose_answer_is_lost_is_stored_once(own_service, client, told):
    with losing_one_answer(own_service) as url, learning("agent", url, session_id="one", capture_only=True):
        ask(client, "Once?")
    memory = Memory(own_service)
    assert [content for _, content in memory.said("agent", "one")] == ["Once?", "Noted."]
    memory.close()
    assert len(warnings(told)) == 1


def test_an_ending_process_stores_pending_turns(own_service, vendor):
    code = f"""
import openai
from souvenir_client import learning
client = openai.OpenAI(base_url="{vendor.url}/v1", api_key="x")
with learning("agent", {own_service.url!r}, session_id="one", flush_timeout_s=0.0):
    client.chat.completions.create(model="m", messages=[{{"role": "user", "content": "Quick."}}])
client.close()
"""
    command = [sys.executable, "-W", "error", "-c", code]
    environment = {"PYTHONPATH": str(CLIENT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=True)
    # On a slow machine the first may have been stored by then.
    assert re.fullmatch("Of the turns of agent agent, [12] are still waiting for the service\n", done.stderr)
    memory = Memory(own_service)
    assert [content for _, content in memory.said("agent", "one")] == ["Quick.", "Noted."]
    memory.close()


def test_messages_over_the_queue_limit_are_dropped_and_counted(own_service, client, told, monkeypatch):
    monkeypatch.setattr(capture, "MAX_WAITING_TURNS", 3)
    with learning("agent", own_service.url, flush_timeout_s=0.05):
        own_service.stop()
        for number in range(3):
            ask(client, f"Question {number}.")
        told.clear()
    assert warnings(told) == ["Of the turns of agent agent, 3 are still waiting for the service and 3 were dropped"]
    own_service.start()


def test_refused_turns_are_dropped_and_reported_once_with_the_reason(service, client, told):
    memory = Memory(service)
    memory.client.messages.add(agent_name="closed", session_id="over", role="user", content="Bye.")
    memory.client.sessions.end("closed", "over")
    for _ in range(2):
        with learning("closed", service.url, session_id="over"):
            ask(client, "One more thing.")
    assert warnings(told) == [
        "Turns of agent closed are dropped: the service refused them: "
        "Session 'over' has ended; start a new one (409, session_ended)",
        "Of the turns of agent closed, 2 were dropped",
        "Of the turns of agent closed, 2 were dropped",
    ]
    memory.close()


def test_other_turns_of_a_refused_batch_are_stored(service, client, told):
    memory = Memory(service)
    memory.client.agents.create(name="strict")
    memory.client.agents.set_policy("strict", pii="reject")
    with learning("strict", service.url, session_id="one"):
        ask(client, "My address is alice@example.org, and more.")
    assert memory.said("strict", "one") == [("assistant", "Noted.")]
    assert "1 were dropped" in warnings(told)[-1]
    memory.close()


@pytest.mark.parametrize(
    "answer",
    [Answer(404, b"nginx"), Answer(403, b"<html>"), Answer(408), Answer(401), Answer(200, b"<html>")],
    ids=lambda answer: f"{answer.status} {answer.body.decode()}",
)
def test_transient_refusals_of_a_proxy_cost_one_warning_and_no_turn(service, client, told, answer, request):
    session_id = request.node.name.replace("/", "")
    with interposed(service) as proxy, learning("passing", proxy.url, session_id=session_id):
        proxy.before = lambda _: answer if len(proxy.times("/messages/batch")) < 3 else None
        ask(client, "First.")
        ask(client, "Second.")
    memory = Memory(service)
    said = [content for role, content in memory.said("passing", session_id) if role == "user"]
    memory.close()
    assert said == ["First.", "Second."]
    assert len(warnings(told)) == 1


def test_retries_back_off_even_if_the_service_allows_immediate_ones(service, client):
    with interposed(service) as proxy, learning("hasty", proxy.url, capture_only=True):
        too_much = Answer(503, b"{}", {"Retry-After": "0"})
        proxy.before = lambda _: too_much if len(proxy.times("/messages/batch")) <= 3 else None
        ask(client, "Now?")
    times = proxy.times("/messages/batch")
    assert len(times) == 4
    assert [later - earlier >= pause for (earlier, later), pause in zip(pairwise(times), (0.1, 0.2, 0.4), strict=True)]


def test_entering_a_block_is_bounded_if_answers_arrive_byte_by_byte(monkeypatch):
    monkeypatch.setattr(connections, "ENTRY_TIMEOUT_S", 0.3)
    over = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            caller, _ = listener.accept()
            with caller, suppress(OSError):
                caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                while not over.wait(0.05):
                    caller.sendall(b" ")

        dripping = Thread(target=drip)
        dripping.start()
        with (
            pytest.raises(TimedOut, match=r"0\.3 s"),
            learning("agent", f"http://127.0.0.1:{listener.getsockname()[1]}"),
        ):
            raise AssertionError("was entered")
        # It ended although the answer had not.
        assert dripping.is_alive()
        over.set()
        dripping.join()


def test_waiting_for_a_free_thread_is_not_a_service_failure(service, vendor, client, told, monkeypatch):
    monkeypatch.setattr(contexts, "MAX_THREADS", 1)

    def slow(path: str) -> None:
        if path.startswith("/context/"):
            time.sleep(0.4)

    async def at_once(url: str) -> None:
        async with models.async_openai_client(vendor) as client, learning("busy", url, timeout_s=0.7):
            await asyncio.gather(*(ask_async(client, f"Question {number}.") for number in range(4)))

    with interposed(service) as proxy:
        proxy.before = slow
        asyncio.run(at_once(proxy.url))
        asked = len(proxy.seen)
        with learning("busy", proxy.url, timeout_s=5.0):
            ask(client, "And now?")
        assert any(path.startswith("/context/") for _, path in proxy.seen[asked:])
    assert warnings(told) == []


def test_an_abandoned_answer_uses_no_memory(own_service, vendor, client, monkeypatch):
    monkeypatch.setattr(capture, "MAX_WAITING_TURNS", 3)
    long, questions = "x" * 200_000, 24
    with learning("agent", own_service.url, flush_timeout_s=0.0, capture_only=True):
        own_service.stop()
        tracemalloc.start()
        for number in range(questions):
            vendor.replies.append(long)
            question = models.user(f"{number}: {long}")
            client.chat.completions.with_raw_response.create(model=models.MODEL, messages=[question])
            vendor.requests.clear()
        gc.collect()
        kept_bytes, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    # The waiting turns may hold a text and its body; had every answer been kept, it would be twice this limit.
    assert kept_bytes < questions * len(long) / 2
    own_service.start()


@pytest.fixture
def silent(own_service: RunningService) -> Iterator[RunningService]:
    """A service that takes connections and answers nothing, once it is entered."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

        def fall_silent() -> None:
            own_service.stop()
            listener.bind(("127.0.0.1", own_service.port))
            listener.listen()

        own_service.fall_silent = fall_silent  # type: ignore[attr-defined]
        own_service.asked = lambda: list(first_lines(listener))  # type: ignore[attr-defined]
        yield own_service


def first_lines(listener: socket.socket) -> Iterator[bytes]:
    """Of the requests that wait for an answer, and of those that were given up."""
    while select.select([listener], [], [], 0)[0]:
        caller, _ = listener.accept()
        with caller:
            yield caller.recv(65536).partition(b"\r\n")[0]


def test_an_unresponsive_service_delays_one_call_by_its_timeout(silent, client, told):
    with learning("agent", silent.url, timeout_s=0.3, flush_timeout_s=0.0):
        silent.fall_silent()
        begin = time.monotonic()
        for number in range(10):
            ask(client, f"Question {number}.")
        assert time.monotonic() - begin > 0.3
    asked = silent.asked()
    assert [line.startswith(b"POST /context/") for line in asked].count(True) == 1, asked
    assert len(warnings(told)) == 2
    assert "within 0.3 s" in warnings(told)[0]
    assert "20 are still waiting" in warnings(told)[1]


def test_the_event_loop_runs_while_a_call_awaits_its_context(silent, vendor, told):
    """A loop that is held up has one beat at most in each of the two waits."""
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0.01)

    async def run() -> list[int]:
        counted = []
        async with models.async_openai_client(vendor) as client:
            async with learning("agent", silent.url, timeout_s=0.5, flush_timeout_s=0.3):
                silent.fall_silent()
                beating = asyncio.create_task(beat())
                await ask_async(client, "Hello?")
                counted.append(beats)
            counted.append(beats - counted[0])
        beating.cancel()
        return counted

    while_asking, while_leaving = asyncio.run(run())
    assert while_asking > 3
    assert while_leaving > 3
