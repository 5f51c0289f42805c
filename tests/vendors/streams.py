"""The answers of a language model's vendor as streams of server-sent events, cut from the unstreamed ones.

An error ends a stream in its midst, in the words of the wire.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}

Event = dict[str, Any]


def streamed(wire: str, answer: dict[str, Any], *, error: str | None = None) -> bytes:
    events = list({"openai": _chat, "responses": _responses, "anthropic": _anthropic}[wire](answer))
    if error is not None:
        events = [*events[: len(events) // 2], _error(wire, error)]
    named = wire != "openai"
    lines = [f"event: {event['type']}\n" if named else "" for event in events]
    body = "".join(f"{line}data: {json.dumps(event)}\n\n" for line, event in zip(lines, events, strict=True))
    # A comment, as some vendors send to keep the line open.
    return f": hello\n\n{body}{'' if named or error else 'data: [DONE]' + chr(10) * 2}".encode()


def packed(body: bytes) -> bytes:
    """In gzip, as servers do it that let each event go when it is there."""
    packer = zlib.compressobj(wbits=31)
    events = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in re.split(rb"(?<=\n\n)", body)]
    return b"".join([*events, packer.flush()])


def _error(wire: str, message: str) -> Event:
    match wire:
        case "anthropic":
            return {"type": "error", "error": {"type": "overloaded_error", "message": message}}
        case "responses":
            return {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": 99}
    return {"error": {"message": message, "type": "server_error", "param": None, "code": None}}


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), 5):
        yield text[start : start + 5]


def _chat(answer: dict[str, Any]) -> Iterator[Event]:
    head = {"id": answer["id"], "object": "chat.completion.chunk", "created": 1767225600, "model": answer["model"]}

    def chunk(index: int, delta: dict[str, Any], finish_reason: str | None = None) -> Event:
        return {**head, "choices": [{"index": index, "delta": delta, "finish_reason": finish_reason}]}

    for choice in answer["choices"]:
        yield chunk(choice["index"], {"role": "assistant", "content": ""})
    for choice in answer["choices"]:
        index, message = choice["index"], choice["message"]
        for name in ("content", "refusal"):
            for piece in _pieces(message.get(name) or ""):
                yield chunk(index, {name: piece})
        for position, call in enumerate(message.get("tool_calls") or ()):
            function = call["function"]
            opened = {**call, "index": position, "function": {"name": function["name"], "arguments": ""}}
            yield chunk(index, {"tool_calls": [opened]})
            for piece in _pieces(function["arguments"]):
                yield chunk(index, {"tool_calls": [{"index": position, "function": {"arguments": piece}}]})
    for choice in answer["choices"]:
        yield chunk(choice["index"], {}, choice["finish_reason"])
    yield {**head, "choices": [], "usage": answer["usage"]}


def _responses(answer: dict[str, Any]) -> Iterator[Event]:
    begun = {**answer, "status": "in_progress", "output": [], "usage": None}
    events: list[Event] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(answer["output"]):
        events += _item(index, item)
    events.append({"type": f"response.{answer['status']}", "response": answer})
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


def _item(index: int, item: dict[str, Any]) -> Iterator[Event]:
    at = {"item_id": item["id"], "output_index": index}
    opened = {**item, "status": "in_progress"}
    if item["type"] == "message":
        yield {"type": "response.output_item.added", "output_index": index, "item": {**opened, "content": []}}
        for position, part in enumerate(item["content"]):
            name = "refusal" if part["type"] == "refusal" else "text"
            kind = "response.refusal" if part["type"] == "refusal" else "response.output_text"
            here = {**at, "content_index": position, **({"logprobs": []} if name == "text" else {})}
            empty = {**part, name: ""}
            yield {"type": "response.content_part.added", **at, "content_index": position, "part": empty}
            for piece in _pieces(part[name]):
                yield {"type": f"{kind}.delta", **here, "delta": piece}
            yield {"type": f"{kind}.done", **here, name: part[name]}
            yield {"type": "response.content_part.done", **at, "content_index": position, "part": part}
    elif item["type"] == "function_call":
        yield {"type": "response.output_item.added", "output_index": index, "item": {**opened, "arguments": ""}}
        for piece in _pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
        whole = {"name": item["name"], "arguments": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", **at, **whole}
    else:
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _anthropic(answer: dict[str, Any]) -> Iterator[Event]:
    begun = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(answer["content"]):
        yield from _block(index, block)
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": answer["stop_reason"], "stop_sequence": None},
        "usage": {"output_tokens": answer["usage"]["output_tokens"]},
    }
    yield {"type": "message_stop"}


def _block(index: int, block: dict[str, Any]) -> Iterator[Event]:
    match block["type"]:
        case "text":
            opened, kind, name, value = {**block, "text": ""}, "text_delta", "text", block["text"]
        case "thinking":
            opened, kind = {**block, "thinking": "", "signature": ""}, "thinking_delta"
            name, value = "thinking", block["thinking"]
        case _:
            opened, kind = {**block, "input": {}}, "input_json_delta"
            name, value = "partial_json", json.dumps(block["input"])
    yield {"type": "content_block_start", "index": index, "content_block": opened}
    for piece in _pieces(value):
        yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}}
    yield {"type": "content_block_stop", "index": index}
