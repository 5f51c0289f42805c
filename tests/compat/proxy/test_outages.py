"""The call goes on without memory, and what was said is stored as soon as the store takes it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.service import Service
from souvenir.compat.proxy import calls, passing, storing
from souvenir.conversations.context import Contexts
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import DatabaseUnavailable, Overloaded, PersonalDataRejected
from tests.client.models import MODEL, Memory
from tests.client.running import RunningService
from tests.compat.proxy.conftest import Proxied, settings_for
from tests.vendors.llm import LLMVendor, says

WAIT_S = 20.0
STREAM = {"model": MODEL, "messages": [{"role": "user", "content": "Tell me a story."}], "stream": True}

WORDS_THAT_FILL_BUFFERS = 80_000
"""A stream of so many, 10 MB and more, does not fit into the buffers of a connection whose client does not read."""


def eventually(said: Callable[[], Any], expected: Any) -> None:
    end = time.monotonic() + WAIT_S
    while (found := said()) != expected and time.monotonic() < end:
        time.sleep(0.05)
    assert found == expected


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Let a method of the service fail some times before it works again; the list counts its calls."""

    def broken(owner: type, name: str, error: Exception, times: int = 10**9) -> list[int]:
        original, counted = getattr(owner, name), [0]

        def failing(self: Any, *args: Any, **more: Any) -> Any:
            counted[0] += 1
            if counted[0] <= times:
                raise error
            return original(self, *args, **more)

        monkeypatch.setattr(owner, name, failing)
        return counted

    return broken


@pytest.mark.parametrize("error", [DatabaseUnavailable("gone"), Overloaded("full"), RuntimeError("a defect")])
def test_a_call_goes_on_without_context_and_without_storing(proxied: Proxied, broken: Any, error: Exception):
    proxied.memory.teach(proxied.agent, "I like blue.")
    broken(Contexts, "build", error)
    broken(Conversations, "append", error, 3)
    begin = time.monotonic()
    answer = proxied.ask("What do I like?")
    assert answer.json()["choices"][0]["message"]["content"] == "Noted."
    assert answer.headers["x-souvenir-context"] == "unavailable"
    assert time.monotonic() - begin < passing.STORING_TIMEOUT_S + WAIT_S / 2
    assert len(proxied.vendor.requests[-1].body["messages"]) == 1
    proxied.indexed()


def test_a_late_context_does_not_delay_a_call(proxied: Proxied, monkeypatch: pytest.MonkeyPatch):
    proxied.memory.teach(proxied.agent, "I like blue.")
    monkeypatch.setattr(calls, "CONTEXT_TIMEOUT_S", 0.05)
    original = Contexts.build

    def slow(self: Any, *args: Any) -> Any:
        time.sleep(0.5)
        return original(self, *args)

    monkeypatch.setattr(Contexts, "build", slow)
    answer = proxied.ask("What do I like?")
    assert answer.headers["x-souvenir-context"] == "unavailable"
    assert answer.elapsed.total_seconds() < 0.5
    time.sleep(0.5)


def test_messages_are_stored_once_when_the_store_works_again(proxied: Proxied, broken: Any):
    counted = broken(Conversations, "append", DatabaseUnavailable("gone"), 4)
    proxied.ask("My cat is called Otto.")
    eventually(lambda: proxied.agent in proxied.agents(), expected=True)
    eventually(proxied.said, [("user", "My cat is called Otto."), ("assistant", "Noted.")])
    assert counted[0] == 6


def test_a_write_that_was_stored_although_it_failed_is_not_stored_twice(
    proxied: Proxied, monkeypatch: pytest.MonkeyPatch
):
    original = Conversations.append
    answers: list[Any] = []

    def lost(self: Any, *args: Any, **more: Any) -> Any:
        answers.append(original(self, *args, **more))
        if len(answers) == 1:
            raise DatabaseUnavailable("the answer was lost")
        return answers[-1]

    monkeypatch.setattr(Conversations, "append", lost)
    proxied.ask("My cat is called Otto.")
    eventually(proxied.said, [("user", "My cat is called Otto."), ("assistant", "Noted.")])
    assert len(answers) == 3


def test_a_refused_message_is_dropped_and_the_others_are_stored(proxied: Proxied, monkeypatch: pytest.MonkeyPatch):
    original = Conversations.append

    def refusing(self: Any, scope: Any, session_id: str, drafts: Any, **more: Any) -> Any:
        if any("secret" in draft.content for draft in drafts):
            raise PersonalDataRejected(["secret"])
        return original(self, scope, session_id, drafts, **more)

    monkeypatch.setattr(Conversations, "append", refusing)
    history = [
        {"role": "user", "content": "Look it up."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "a secret"},
        {"role": "tool", "tool_call_id": "b", "content": "a fact"},
    ]
    proxied.ask(*history)
    contents = [content for _, content in proxied.said()]
    assert "look returned: a fact" in contents
    assert not any("secret" in content for content in contents)


def test_an_ended_session_does_not_lose_messages(proxied: Proxied):
    proxied.ask("One.", x_souvenir_session="ended")
    proxied.memory.client.sessions.end(proxied.agent, "ended")
    proxied.ask("Two.", x_souvenir_session="ended")
    assert ("user", "Two.") in proxied.said()


def test_too_many_waiting_messages_are_dropped_and_the_calls_go_on(
    proxied: Proxied, broken: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(storing, "MAX_WAITING", 0)
    assert proxied.ask("One.").status_code == 200
    assert proxied.agent not in proxied.agents()


def test_messages_of_a_session_keep_their_order_over_failures(proxied: Proxied, monkeypatch: pytest.MonkeyPatch):
    original, calls = Conversations.append, [0]

    def flaky(self: Any, *args: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] in (1, 2, 4):
            raise DatabaseUnavailable("gone for a moment")
        return original(self, *args, **more)

    monkeypatch.setattr(passing, "STORING_TIMEOUT_S", 0.0)
    monkeypatch.setattr(Conversations, "append", flaky)
    history: list[Any] = []
    for word in ("One", "Two", "Three"):
        history.append({"role": "user", "content": word})
        proxied.vendor.replies.append(f"Answer {word}")
        proxied.ask(*history, x_souvenir_session="s")
        history.append({"role": "assistant", "content": f"Answer {word}"})
    proxied.indexed()
    assert [content for _, content in proxied.said("s")] == [one["content"] for one in history]


def test_slow_indexing_drops_no_message(proxied: Proxied, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(storing, "MAX_WAITING", 2)
    monkeypatch.setattr(Conversations, "index_pending", lambda *_: time.sleep(0.3))
    for number in range(10):
        proxied.ask(f"Fact {number}", x_souvenir_session=f"s{number}")
    assert [len(proxied.said(f"s{number}")) for number in range(10)] == [2] * 10
    proxied.indexed()


def test_a_question_whose_caller_left_during_the_search_is_stored_with_its_retry(
    proxied: Proxied, monkeypatch: pytest.MonkeyPatch
):
    original = Contexts.build

    def slow(self: Any, *args: Any) -> Any:
        time.sleep(0.6)
        return original(self, *args)

    monkeypatch.setattr(Contexts, "build", slow)
    body = {"model": MODEL, "messages": [{"role": "user", "content": "My cat is called Otto."}]}
    url, headers = f"{proxied.service.url}/v1/chat/completions", {"x-souvenir-agent": proxied.agent}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(url, json=body, headers=headers, timeout=0.3)
    monkeypatch.setattr(Contexts, "build", original)
    assert httpx.post(url, json=body, headers=headers).status_code == 200
    eventually(proxied.said, [("user", "My cat is called Otto."), ("assistant", "Noted.")])


def test_a_question_is_on_disk_while_the_vendor_works(proxied: Proxied):
    """So that only the answer is left to be stored when it arrives."""
    proxied.vendor.replies.append(says("Hello, Otto.", waits=True))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(proxied.ask, "My cat is called Otto.")
        eventually(proxied.said, [("user", "My cat is called Otto.")])
        assert not asked.done()
        proxied.vendor.go_on.set()
        assert asked.result().status_code == 200


@pytest.mark.parametrize("ended", [False, True])
def test_a_question_is_not_in_its_own_context(proxied: Proxied, monkeypatch: pytest.MonkeyPatch, ended: bool):
    """Nor in that of an ended session, whose messages are those of another one."""
    proxied.memory.teach(proxied.agent, "The weather is always fine in Lisbon.")
    proxied.ask("Hello.", x_souvenir_session="s")
    if ended:
        proxied.memory.client.sessions.end(proxied.agent, "s")
    proxied.indexed()
    original = Contexts.build

    def slow(self: Any, *args: Any) -> Any:
        time.sleep(calls.CONTEXT_TIMEOUT_S / 2)
        return original(self, *args)

    monkeypatch.setattr(Contexts, "build", slow)
    answer = proxied.ask("Is the weather fine in Lisbon or in Bergen?", x_souvenir_session="s")
    assert answer.headers["x-souvenir-context"] == "added"
    sent = str(proxied.vendor.requests[-1].body)
    assert "always fine" in sent
    assert sent.count("Bergen") == 1
    assert ("user", "Is the weather fine in Lisbon or in Bergen?") in proxied.said()


@pytest.mark.parametrize("gone", ["agent", "session"])
def test_what_was_deleted_during_a_call_does_not_come_back(proxied: Proxied, gone: str):
    proxied.ask("My cat is called Otto.", x_souvenir_session="s")
    proxied.vendor.replies.append(says("Your cat Otto is black.", waits=True))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(proxied.ask, "What is my cat like?", x_souvenir_session="s")
        eventually(lambda: len(proxied.said("s")), 3)
        if gone == "agent":
            proxied.memory.client.agents.delete(proxied.agent)
        else:
            proxied.memory.client.sessions.delete(proxied.agent, "s")
        proxied.vendor.go_on.set()
        assert asked.result().status_code == 200
    proxied.indexed()
    assert proxied.said("s") == []
    assert (proxied.agent in proxied.agents()) is (gone == "session")
    proxied.ask("Hello again.", x_souvenir_session="s")
    assert proxied.said("s") == [("user", "Hello again."), ("assistant", "Noted.")]


# --- streams ---------------------------------------------------------------------------------------------------------


def test_the_received_part_of_a_broken_stream_is_stored_and_the_caller_sees_the_break(proxied: Proxied):
    proxied.vendor.replies.append(says("Once upon a time there was a cat.", hangs_up="midst"))
    with pytest.raises(httpx.RemoteProtocolError):
        proxied.post("/v1/chat/completions", STREAM)
    eventually(lambda: len(proxied.said()), 2)
    _, answer = proxied.memory.messages(proxied.agent)
    assert answer.metadata["incomplete"] is True
    assert "Once upon a time".startswith(answer.content[:4])


def test_a_stream_reaches_the_caller_while_the_vendor_writes_it(proxied: Proxied):
    proxied.vendor.replies.append(says("Once upon a time there was a cat.", pauses=True))
    url = f"{proxied.service.url}/v1/chat/completions"
    with httpx.stream("POST", url, json=STREAM, headers={"x-souvenir-agent": proxied.agent}) as answer:
        chunks = answer.iter_raw()
        assert b"data: " in next(chunks)
        proxied.vendor.go_on.set()
        assert b"[DONE]" in b"".join(chunks)
    eventually(lambda: len(proxied.said()), 2)


def test_a_caller_that_leaves_ends_the_vendors_stream_and_its_part_is_stored(proxied: Proxied):
    proxied.vendor.replies.append(says("Once upon a time there was a cat.", pauses=True))
    url = f"{proxied.service.url}/v1/chat/completions"
    with httpx.stream("POST", url, json=STREAM, headers={"x-souvenir-agent": proxied.agent}) as answer:
        next(answer.iter_raw())
    eventually(lambda: len(proxied.said()), 2)
    assert proxied.memory.messages(proxied.agent)[-1].metadata["incomplete"] is True


def test_a_caller_that_leaves_before_the_answer_ends_the_call(proxied: Proxied):
    proxied.vendor.replies.append(says("Late.", waits=True))
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{proxied.service.url}/v1/chat/completions",
            json={**STREAM, "stream": False},
            headers={"x-souvenir-agent": proxied.agent},
            timeout=0.5,
        )
    eventually(proxied.said, [("user", "Tell me a story.")])
    metrics = proxied.service.app.state.service.metrics
    eventually(lambda: metrics.active, 0)


@contextmanager
def stalled(proxied: Proxied, path: str) -> Iterator[socket.socket]:
    """A client that asks for a stream and does not read it."""
    body = b'{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"A long one."}]}'
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{proxied.service.port}\r\n"
        f"X-Souvenir-Agent: {proxied.agent}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", proxied.service.port))
        client.sendall(head.encode() + body)
        yield client


@pytest.mark.parametrize(
    ("path", "end"), [("/v1/chat/completions", b"[DONE]"), ("/v1/messages", b'{"type": "message_stop"}')]
)
def test_fifty_streams_go_on_beside_a_caller_that_stops_reading(proxied: Proxied, path: str, end: bytes):
    long = "word " * WORDS_THAT_FILL_BUFFERS

    def decide(request: Any) -> Any:
        return says(long if "A long one." in str(request.body) else "A short story.")

    proxied.vendor.script(decide)

    def read(number: int) -> bool:
        body = {**STREAM, "max_tokens": 9, "messages": [{"role": "user", "content": f"Story {number}"}]}
        answer = proxied.post(path, body, x_souvenir_session=f"s{number}")
        return answer.status_code == 200 and answer.content.rstrip().endswith(end)

    with stalled(proxied, path):
        assert proxied.vendor.arrived.acquire(timeout=WAIT_S)
        begin = time.monotonic()
        with ThreadPoolExecutor(50) as pool:
            assert all(pool.map(read, range(50)))
        assert httpx.get(f"{proxied.service.url}/health").status_code == 200
        assert time.monotonic() - begin < WAIT_S
        assert ("assistant", long) not in proxied.said(), "the buffers hold all of it"
    eventually(lambda: [len(proxied.said(f"s{number}")) for number in range(50)], [2] * 50)


# --- ends of the process ---------------------------------------------------------------------------------------------


def test_stopping_waits_for_what_is_not_stored_yet(vendor: LLMVendor, tmp_path: Path, broken: Any):
    vendor.script(lambda _: "Noted.")
    service = RunningService(tmp_path / "data", **settings_for(vendor))
    service.start()
    broken(Conversations, "append", DatabaseUnavailable("gone"), 5)
    body = {"model": MODEL, "messages": [{"role": "user", "content": "My cat is called Otto."}]}
    httpx.post(f"{service.url}/v1/chat/completions", json=body, headers={"x-souvenir-agent": "ada"})
    service.stop()
    service.start()
    memory = Memory(service)
    assert memory.said("ada") == [("user", "My cat is called Otto."), ("assistant", "Noted.")]
    memory.close()
    service.stop()


def test_an_answer_that_comes_during_an_orderly_stop_is_stored(vendor: LLMVendor, tmp_path: Path):
    vendor.requests.clear()
    vendor.go_on.clear()
    vendor.replies.append(says("It is called Otto.", waits=True))
    service = Service(tmp_path / "data", OPENAI_BASE_URL=f"{vendor.url}/v1")
    service.start()
    body = {"model": MODEL, "messages": [{"role": "user", "content": "What is my cat called?"}]}
    url, headers = f"http://127.0.0.1:{service.port}", {"x-souvenir-agent": "ada"}
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(httpx.post, f"{url}/v1/chat/completions", json=body, headers=headers, timeout=60)
        eventually(lambda: len(vendor.requests), 1)
        stopped = pool.submit(service.stop)
        time.sleep(0.5)
        vendor.go_on.set()
        assert asked.result().json()["choices"][0]["message"]["content"] == "It is called Otto."
        stopped.result()
    service.start()
    found = httpx.get(f"{url}/messages/ada").json()
    service.stop()
    assert [one["content"] for one in found] == ["It is called Otto.", "What is my cat called?"]


def test_an_answer_that_was_received_whole_is_stored(proxied: Proxied):
    """So that the next request, or a search by another door, finds it, and a killed service does not lose it."""
    for number in range(20):
        answer = proxied.ask(f"Fact {number}", x_souvenir_session="facts")
        assert answer.status_code == 200
        assert len(proxied.said("facts")) == 2 * number + 2


def test_many_calls_at_once_store_each_message_once(proxied: Proxied):
    async def ask_all() -> None:
        async with proxied.async_openai() as client:
            await asyncio.gather(
                *(
                    client.chat.completions.create(
                        model=MODEL,
                        messages=[{"role": "user", "content": f"Fact {number}"}],
                        extra_headers={"X-Souvenir-Session": f"s{number}"},
                    )
                    for number in range(30)
                )
            )

    asyncio.run(ask_all())
    eventually(
        lambda: sorted(content for role, content in proxied.said() if role == "user"),
        sorted(f"Fact {number}" for number in range(30)),
    )
