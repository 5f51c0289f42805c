"""The tap records the answers that callers of the real SDKs read, whichever way they read them."""

from __future__ import annotations

import asyncio
import gc
import logging
import queue
import threading
from collections.abc import Iterator
from contextlib import aclosing, closing, suppress
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from souvenir_client.interception import response_tap
from souvenir_client.interception.response_tap import Tapped, tap, turns_of
from souvenir_client.interception.wires import Turn, wire_of
from tests.client.call_shapes import ANSWER, MODEL, RESOURCES, SHAPES, Resource, Shape
from tests.client.recording import (
    anthropic_client,
    async_anthropic_client,
    async_openai_client,
    azure_client,
    openai_client,
)
from tests.vendors.llm import LLMVendor, call, says

CHAT, _, MESSAGES, _ = RESOURCES
ONE_OF_EACH_SDK = (CHAT, MESSAGES)
WAIT_S = 30
QUESTION = "Where is it?"
ASKED = Turn("user", QUESTION)
ANSWERED = Turn("assistant", ANSWER, {"model": MODEL})


class Heard:
    """What passed the patch point: the turns of each request, and of each answer when it has ended."""

    def __init__(self) -> None:
        self.requests: list[list[Turn]] = []
        self.answers: queue.SimpleQueue[list[Turn]] = queue.SimpleQueue()
        self.tapped: list[Tapped] = []
        self.wires: list[str] = []
        self.ended = threading.Semaphore(0)

    def __call__(self, options: Any, answer: Any) -> None:
        wire = wire_of(options.url, options.json_data)
        assert wire is not None
        self.wires.append(wire.name)
        self.requests.append(wire.turns(options.json_data))

        def ended(tapped: Tapped) -> None:
            self.tapped.append(tapped)
            self.answers.put(turns_of(wire, tapped))
            self.ended.release()

        if not tap(answer, ended):
            self.answers.put(wire.answer(answer))

    def answer(self) -> list[Turn]:
        """The one answer; there is no other."""
        answer = self.answers.get(timeout=WAIT_S)
        assert self.answers.empty()
        return answer


class Callers:
    """One client of each SDK, sync and async, for all tests of this file: making them is what takes time."""

    def __init__(self, vendor: LLMVendor) -> None:
        self.vendor = vendor
        self.heard = Heard()
        self.runner = asyncio.Runner()
        self.clients: dict[str, Any] = {
            "openai": openai_client(vendor, self._passed),
            "anthropic": anthropic_client(vendor, self._passed),
        }
        self.async_clients: dict[str, Any] = {
            "openai": async_openai_client(vendor, self._passed),
            "anthropic": async_anthropic_client(vendor, self._passed),
        }

    def _passed(self, options: Any, answer: Any) -> None:
        self.heard(options, answer)

    def close(self) -> None:
        for client in self.clients.values():
            client.close()
        for client in self.async_clients.values():
            self.runner.run(client.close())
        self.runner.close()


@pytest.fixture(scope="module")
def all_callers() -> Iterator[Callers]:
    vendor = LLMVendor()
    vendor.start()
    with closing(Callers(vendor)) as callers:
        yield callers
    vendor.stop()


@pytest.fixture
def callers(all_callers: Callers) -> Callers:
    all_callers.heard = Heard()
    all_callers.vendor.replies.clear()
    all_callers.vendor.go_on.clear()
    return all_callers


def assert_heard(shape: Shape, heard: Heard) -> None:
    assert heard.answer() == [ANSWERED]
    assert heard.requests == [[ASKED]]
    assert heard.wires == [shape.resource.wire]
    assert len(heard.tapped) == (0 if shape.parsed else 1)


def by_name(value: Any) -> str:
    return str(value.name)


@pytest.mark.parametrize("shape", SHAPES, ids=by_name)
def test_every_call_is_recorded_completely(callers, shape):
    callers.vendor.replies.append(says(ANSWER, thinking="Somewhere in Portugal"))
    assert "Lisbo" in shape.ask(callers.clients[shape.resource.sdk], QUESTION)
    assert_heard(shape, callers.heard)


@pytest.mark.parametrize("shape", SHAPES, ids=by_name)
def test_every_async_call_is_recorded_completely(callers, shape):
    callers.vendor.replies.append(says(ANSWER, thinking="Somewhere in Portugal"))
    assert "Lisbo" in callers.runner.run(shape.ask_async(callers.async_clients[shape.resource.sdk], QUESTION))
    assert_heard(shape, callers.heard)


WEATHER = call("get_weather", city="Lisbon", at=["noon", "night"])
SAID: dict[str, dict[str, Any]] = {
    "words": {"value": "It is in Lisbon, quoting: “Olá”\u2028and more"},
    "a tool": {"value": "", "calls": [WEATHER]},
    "words and tools": {"value": "I look", "calls": [WEATHER, call("get_time", "call_2")], "thinking": "Hm"},
    "a refusal": {"value": "I cannot help with that", "ending": "refusal"},
    "cut at its limit": {"value": "It is in", "ending": "length"},
    "nothing": {"value": ""},
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID.keys())
@pytest.mark.parametrize("resource", RESOURCES[:3], ids=by_name)
def test_a_streamed_answer_equals_the_unstreamed_one(callers, resource, said):
    of = resource.of(callers.clients[resource.sdk])
    callers.vendor.replies += [says(**said), says(**said)]
    of.create(**resource.parameters(QUESTION))
    plain = callers.heard.answer()
    list(of.create(**resource.parameters(QUESTION), stream=True))
    assert callers.heard.answer() == plain
    assert "".join(turn.content for turn in plain) == said["value"]
    assert sum(len(turn.metadata.get("tool_calls", ())) for turn in plain) == len(said.get("calls", ()))


def test_every_choice_of_a_stream_is_a_turn(callers):
    callers.vendor.replies.append(says("Here"))
    chat = callers.clients["openai"].chat.completions
    list(chat.create(**CHAT.parameters(QUESTION), stream=True, n=2, stream_options={"include_usage": True}))
    assert [turn.content for turn in callers.heard.answer()] == ["Here", "Here (2)"]


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.resource.name == "chat"], ids=by_name)
def test_compressed_answers_are_recorded(callers, shape):
    callers.vendor.replies.append(says(ANSWER, gzip=True))
    assert "Lisbo" in shape.ask(callers.clients["openai"], QUESTION)
    assert_heard(shape, callers.heard)


def test_answers_through_the_other_http_library_are_recorded(callers):
    with httpx.Client() as http, openai_client(callers.vendor, callers.heard, http_client=http) as client:
        shapes = [shape for shape in SHAPES if shape.resource.name == "chat"]
        assert shapes
        for shape in shapes:
            callers.vendor.replies.append(ANSWER)
            shape.ask(client, QUESTION)
            assert callers.heard.answer() == [ANSWERED]


def test_wrapped_answers_keep_the_attributes_of_their_sdk(callers):
    """The SDK of Anthropic finds its span, and either library its kind of stream, where the tee stands now."""
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    traced = {"tracer_provider": provider}
    with anthropic_client(callers.vendor, callers.heard, open_telemetry=traced) as client:
        callers.vendor.replies.append(ANSWER)
        stream = client.messages.create(**MESSAGES.parameters(QUESTION), stream=True)
        assert isinstance(stream.response.stream, httpx2.SyncByteStream)
        assert len(list(stream)) > 1
        assert stream.response.elapsed.total_seconds() > 0
    assert len(spans.get_finished_spans()) == 1
    assert callers.heard.answer() == [ANSWERED]


LONG = "It is in Lisbon. " * 40
BROKEN = ({"hangs_up": "midst"}, {"hangs_up": "midst", "gzip": True}, {"stream_error": "Overloaded"})
BREAKS = (openai.APIError, anthropic.APIError, httpx2.TransportError)


def assert_broken_off(heard: Heard) -> None:
    (turn,) = heard.answer()
    assert turn.metadata == {"model": MODEL, "incomplete": True}
    assert LONG.startswith(turn.content)
    assert 5 <= len(turn.content) < len(LONG)
    assert len(heard.tapped) == 1


def opened(callers: Callers, resource: Resource, **said: Any) -> Any:
    callers.vendor.replies.append(says(LONG, **said))
    return resource.of(callers.clients[resource.sdk]).create(**resource.parameters(QUESTION), stream=True)


async def opened_async(callers: Callers, resource: Resource, **said: Any) -> Any:
    callers.vendor.replies.append(says(LONG, **said))
    return await resource.of(callers.async_clients[resource.sdk]).create(**resource.parameters(QUESTION), stream=True)


def first_piece(resource: Resource, stream: Any) -> str:
    return next(piece for event in stream if (piece := resource.piece(event)))


async def first_piece_async(resource: Resource, stream: Any) -> str:
    async with aclosing(aiter(stream)) as events:
        return await anext(piece async for event in events if (piece := resource.piece(event)))


@pytest.fixture
def collected_here() -> Iterator[None]:
    """Collect garbage on this thread: the SDK's async generator of a broken stream cannot be closed on the vendor's."""
    gc.collect()
    gc.freeze()  # so that the next collections look at what a test made, and not again at everything
    gc.disable()
    try:
        yield
    finally:
        gc.collect()
        gc.enable()


@pytest.mark.parametrize("said", BROKEN, ids=" ".join)
@pytest.mark.parametrize("resource", RESOURCES, ids=by_name)
def test_a_broken_stream_is_recorded_up_to_the_break(callers, resource, said):
    # As an event of its own where the SDK knows one, and else as an exception.
    with suppress(*BREAKS):
        list(opened(callers, resource, **said))
    assert_broken_off(callers.heard)


@pytest.mark.parametrize("said", BROKEN, ids=" ".join)
@pytest.mark.parametrize("resource", RESOURCES, ids=by_name)
@pytest.mark.usefixtures("collected_here")
def test_a_broken_async_stream_is_recorded_up_to_the_break(callers, resource, said):
    async def read() -> None:
        async for _ in await opened_async(callers, resource, **said):
            pass

    with suppress(*BREAKS):
        callers.runner.run(read())
    assert_broken_off(callers.heard)


@pytest.mark.parametrize("resource", RESOURCES, ids=by_name)
def test_available_chunks_are_read_at_once_and_recorded_on_close(callers, resource):
    """The vendor holds the rest of its answer: nothing waits for that."""
    stream = opened(callers, resource, pauses=True)
    assert first_piece(resource, stream) == LONG[:5]
    assert callers.heard.tapped == []
    stream.close()
    assert_broken_off(callers.heard)


@pytest.mark.parametrize("resource", ONE_OF_EACH_SDK, ids=by_name)
def test_an_abandoned_stream_is_recorded(callers, resource):
    stream = opened(callers, resource, pauses=True)
    first_piece(resource, stream)
    assert callers.heard.tapped == []
    del stream
    gc.collect()
    assert_broken_off(callers.heard)


@pytest.mark.parametrize("resource", ONE_OF_EACH_SDK, ids=by_name)
def test_an_abandoned_async_stream_is_recorded(callers, resource):
    async def drop() -> None:
        stream = await opened_async(callers, resource, pauses=True)
        await first_piece_async(resource, stream)
        del stream
        gc.collect()
        await asyncio.to_thread(callers.heard.ended.acquire, timeout=WAIT_S)

    callers.runner.run(drop())
    assert_broken_off(callers.heard)


@pytest.mark.parametrize("resource", RESOURCES, ids=by_name)
def test_a_cancelled_reader_records_the_answer_so_far(callers, resource):
    async def cancel() -> None:
        reading = asyncio.Event()

        async def read() -> None:
            async for event in await opened_async(callers, resource, pauses=True):
                if resource.piece(event):
                    reading.set()

        task = asyncio.create_task(read())
        await reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    callers.runner.run(cancel())
    assert_broken_off(callers.heard)


def test_an_unread_answer_is_empty(callers):
    resource = CHAT
    callers.vendor.replies += [says(LONG), says(LONG)]
    with resource.of(callers.clients["openai"]).with_streaming_response.create(**resource.parameters(QUESTION)):
        assert callers.heard.tapped == []
    answer = resource.of(callers.clients["openai"]).with_raw_response.create(
        **resource.parameters(QUESTION), stream=True
    )
    answer.http_response.close()
    assert callers.heard.tapped == [
        Tapped((), "", "application/json", complete=False),
        Tapped((), "", "text/event-stream; charset=utf-8", complete=False),
    ]
    assert [callers.heard.answers.get(), callers.heard.answers.get()] == [[], []]


def test_an_answer_abandoned_unread_is_empty(callers):
    callers.vendor.replies.append(says(LONG))
    raw = callers.clients["openai"].chat.completions.with_raw_response
    answer = raw.create(**CHAT.parameters(QUESTION), stream=True)
    assert callers.heard.tapped == []
    del answer
    gc.collect()
    assert callers.heard.answer() == []


def test_clients_that_rewrite_their_requests_later_are_recorded(callers):
    with azure_client(callers.vendor, callers.heard) as client:
        callers.vendor.replies += [ANSWER, ANSWER]
        for streams in (False, True):
            for _ in client.chat.completions.create(**CHAT.parameters(QUESTION), stream=streams):
                pass
            assert callers.heard.answer() == [ANSWERED]
    assert callers.vendor.requests[-1].path.startswith("/openai/deployments/")
    assert callers.heard.wires == ["openai.chat"] * 2


def test_a_body_over_the_limit_is_passed_on_and_recorded_in_part(callers, monkeypatch):
    monkeypatch.setattr(response_tap, "MAX_KEPT_BYTES", 2_000)
    text = "".join(map(CHAT.piece, opened(callers, CHAT)))
    assert text == LONG
    assert_broken_off(callers.heard)
    assert not callers.heard.tapped[0].complete
    assert len(callers.heard.tapped[0].raw) == 2_000


def test_an_error_in_recording_is_logged_and_not_raised(callers, caplog):
    def fail(_: Tapped) -> None:
        raise LookupError("full")

    caplog.set_level(logging.WARNING, logger="souvenir_client")
    callers.vendor.replies.append(says(ANSWER))
    with openai_client(callers.vendor, lambda _, answer: tap(answer, fail)) as client:
        stream = client.chat.completions.create(**CHAT.parameters(QUESTION), stream=True)
        assert "".join(map(CHAT.piece, stream)) == ANSWER
    assert [record.getMessage() for record in caplog.records if record.name == "souvenir_client"] == [
        "An answer could not be captured"
    ]


def test_a_parsed_answer_has_no_body_to_record():
    assert not tap({"choices": []}, lambda _: pytest.fail("nothing was heard"))
    assert not tap(None, lambda _: pytest.fail("nothing was heard"))
