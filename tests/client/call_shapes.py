"""Every form of model call with the real SDKs, over every wire format, read as callers read the answer.

    text = shape.ask(client, "Where is it?")             # for shape in SHAPES
    text = await shape.ask_async(client, "Where is it?")

The model has to answer ANSWER, which some of them parse; `text` has at least its beginning in it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

MODEL = "scripted-1"
ANSWER = '{"city": "Lisbon"}'


class Place(BaseModel):
    city: str


@dataclass(frozen=True)
class Resource:
    """:param parsing: What `parse` calls the type that it parses into.

    :param said: The text of an answer.
    :param piece: The text of an event of a stream.
    """

    name: str
    sdk: str
    wire: str
    of: Callable[[Any], Any]
    parameters: Callable[[str], dict[str, Any]]
    parsing: str
    said: Callable[[Any], str]
    piece: Callable[[Any], str]


def _messages(question: str) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": question}]}


def _bounded_messages(question: str) -> dict[str, Any]:
    return {**_messages(question), "max_tokens": 64}


def _input(question: str) -> dict[str, Any]:
    return {"model": MODEL, "input": question}


def _chat_piece(chunk: Any) -> str:
    """Of a chunk, or of an event of the helper."""
    if getattr(chunk, "type", None) == "content.delta":
        return str(chunk.delta)
    return "".join(choice.delta.content or "" for choice in getattr(chunk, "choices", ()))


def _responses_piece(event: Any) -> str:
    return str(event.delta) if event.type == "response.output_text.delta" else ""


def _messages_piece(event: Any) -> str:
    return str(event.delta.text) if event.type == "content_block_delta" and event.delta.type == "text_delta" else ""


def _chat_text(answer: Any) -> str:
    return str(answer.choices[0].message.content)


def _responses_text(answer: Any) -> str:
    return str(answer.output_text)


def _messages_text(answer: Any) -> str:
    return "".join(block.text for block in answer.content if block.type == "text")


_CHAT = ("openai", "openai.chat")
_RESPONSES = ("openai", "openai.responses")
_MESSAGES = ("anthropic", "anthropic.messages")

RESOURCES = (
    Resource(
        "chat", *_CHAT, lambda client: client.chat.completions, _messages, "response_format", _chat_text, _chat_piece
    ),
    Resource(
        "responses",
        *_RESPONSES,
        lambda client: client.responses,
        _input,
        "text_format",
        _responses_text,
        _responses_piece,
    ),
    Resource(
        "messages",
        *_MESSAGES,
        lambda client: client.messages,
        _bounded_messages,
        "output_format",
        _messages_text,
        _messages_piece,
    ),
    Resource(
        "beta.messages",
        *_MESSAGES,
        lambda client: client.beta.messages,
        _bounded_messages,
        "output_format",
        _messages_text,
        _messages_piece,
    ),
)


async def _awaited(value: Any) -> Any:
    """Some methods of raw answers are async in one SDK and not in the other."""
    return await value if inspect.isawaitable(value) else value


def create(use: Resource, client: Any, question: str) -> str:
    return use.said(use.of(client).create(**use.parameters(question)))


async def create_async(use: Resource, client: Any, question: str) -> str:
    return use.said(await use.of(client).create(**use.parameters(question)))


def parse(use: Resource, client: Any, question: str) -> str:
    return use.said(use.of(client).parse(**use.parameters(question), **{use.parsing: Place}))


async def parse_async(use: Resource, client: Any, question: str) -> str:
    return use.said(await use.of(client).parse(**use.parameters(question), **{use.parsing: Place}))


def stream(use: Resource, client: Any, question: str) -> str:
    return "".join(map(use.piece, use.of(client).create(**use.parameters(question), stream=True)))


async def stream_async(use: Resource, client: Any, question: str) -> str:
    events = await use.of(client).create(**use.parameters(question), stream=True)
    return "".join([use.piece(event) async for event in events])


def stream_helper(use: Resource, client: Any, question: str) -> str:
    with use.of(client).stream(**use.parameters(question)) as events:
        return "".join(map(use.piece, events))


async def stream_helper_async(use: Resource, client: Any, question: str) -> str:
    async with use.of(client).stream(**use.parameters(question)) as events:
        return "".join([use.piece(event) async for event in events])


def raw(use: Resource, client: Any, question: str) -> str:
    return use.said(use.of(client).with_raw_response.create(**use.parameters(question)).parse())


async def raw_async(use: Resource, client: Any, question: str) -> str:
    answer = await use.of(client).with_raw_response.create(**use.parameters(question))
    return use.said(await _awaited(answer.parse()))


def raw_parse(use: Resource, client: Any, question: str) -> str:
    answer = use.of(client).with_raw_response.parse(**use.parameters(question), **{use.parsing: Place})
    return use.said(answer.parse())


async def raw_parse_async(use: Resource, client: Any, question: str) -> str:
    answer = await use.of(client).with_raw_response.parse(**use.parameters(question), **{use.parsing: Place})
    return use.said(await _awaited(answer.parse()))


def raw_stream(use: Resource, client: Any, question: str) -> str:
    answer = use.of(client).with_raw_response.create(**use.parameters(question), stream=True)
    return "".join(map(use.piece, answer.parse()))


async def raw_stream_async(use: Resource, client: Any, question: str) -> str:
    answer = await use.of(client).with_raw_response.create(**use.parameters(question), stream=True)
    return "".join([use.piece(event) async for event in await _awaited(answer.parse())])


def streaming_parse(use: Resource, client: Any, question: str) -> str:
    with use.of(client).with_streaming_response.create(**use.parameters(question)) as answer:
        return use.said(answer.parse())


async def streaming_parse_async(use: Resource, client: Any, question: str) -> str:
    async with use.of(client).with_streaming_response.create(**use.parameters(question)) as answer:
        return use.said(await answer.parse())


def streaming_json(use: Resource, client: Any, question: str) -> str:
    with use.of(client).with_streaming_response.create(**use.parameters(question)) as answer:
        return str(answer.json())


async def streaming_json_async(use: Resource, client: Any, question: str) -> str:
    async with use.of(client).with_streaming_response.create(**use.parameters(question)) as answer:
        return str(await answer.json())


def streaming_read(use: Resource, client: Any, question: str) -> str:
    with use.of(client).with_streaming_response.create(**use.parameters(question)) as answer:
        return bytes(answer.read()).decode()


async def streaming_read_async(use: Resource, client: Any, question: str) -> str:
    async with use.of(client).with_streaming_response.create(**use.parameters(question)) as answer:
        return bytes(await answer.read()).decode()


def streaming_bytes(use: Resource, client: Any, question: str) -> str:
    with use.of(client).with_streaming_response.create(**use.parameters(question)) as answer:
        return b"".join(answer.iter_bytes(7)).decode()


async def streaming_bytes_async(use: Resource, client: Any, question: str) -> str:
    async with use.of(client).with_streaming_response.create(**use.parameters(question)) as answer:
        return b"".join([chunk async for chunk in answer.iter_bytes(7)]).decode()


def streaming_lines_of_a_stream(use: Resource, client: Any, question: str) -> str:
    with use.of(client).with_streaming_response.create(**use.parameters(question), stream=True) as answer:
        return "\n".join(answer.iter_lines())


async def streaming_lines_of_a_stream_async(use: Resource, client: Any, question: str) -> str:
    async with use.of(client).with_streaming_response.create(**use.parameters(question), stream=True) as answer:
        return "\n".join([line async for line in answer.iter_lines()])


def streaming_parse_of_a_stream(use: Resource, client: Any, question: str) -> str:
    with use.of(client).with_streaming_response.create(**use.parameters(question), stream=True) as answer:
        return "".join(map(use.piece, answer.parse()))


async def streaming_parse_of_a_stream_async(use: Resource, client: Any, question: str) -> str:
    async with use.of(client).with_streaming_response.create(**use.parameters(question), stream=True) as answer:
        return "".join([use.piece(event) async for event in await answer.parse()])


Ask = Callable[[Resource, Any, str], str]
AskAsync = Callable[[Resource, Any, str], Awaitable[str]]


@dataclass(frozen=True)
class Shape:
    """:param parsed: The SDK has read and parsed the answer by itself when the call returns."""

    resource: Resource
    way: Ask
    way_async: AskAsync
    parsed: bool

    @property
    def name(self) -> str:
        return f"{self.resource.name} {self.way.__name__}"

    def ask(self, client: Any, question: str) -> str:
        return self.way(self.resource, client, question)

    async def ask_async(self, client: Any, question: str) -> str:
        return await self.way_async(self.resource, client, question)


WAYS: tuple[tuple[Ask, AskAsync], ...] = (
    (create, create_async),
    (parse, parse_async),
    (stream, stream_async),
    (stream_helper, stream_helper_async),
    (raw, raw_async),
    (raw_parse, raw_parse_async),
    (raw_stream, raw_stream_async),
    (streaming_parse, streaming_parse_async),
    (streaming_json, streaming_json_async),
    (streaming_read, streaming_read_async),
    (streaming_bytes, streaming_bytes_async),
    (streaming_lines_of_a_stream, streaming_lines_of_a_stream_async),
    (streaming_parse_of_a_stream, streaming_parse_of_a_stream_async),
)

# Anthropic's beta resource shares its ways with the other one, but for raw answers that are parsed.
_OF_BETA = (create, parse, stream, stream_helper, raw_parse)

SHAPES = tuple(
    Shape(resource, way, way_async, parsed=way in (create, parse))
    for resource in RESOURCES
    for way, way_async in WAYS
    if (way in _OF_BETA if resource.name == "beta.messages" else (resource.name, way) != ("messages", raw_parse))
)
