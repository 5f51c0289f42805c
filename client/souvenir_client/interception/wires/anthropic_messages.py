"""Anthropic's messages. What a model thinks to itself is never read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from souvenir_client.interception.wires.shapes import as_text, copied, entries, peek, spoken, words, written
from souvenir_client.interception.wires.turns import (
    Turn,
    answered,
    assistant_turn,
    tool_call,
    tool_turn,
    user_turn,
    with_tool_names,
)


class AnthropicMessages:
    name = "anthropic.messages"

    def turns(self, body: Mapping[str, Any]) -> list[Turn]:
        return with_tool_names(turn for message in entries(body.get("messages")) for turn in _turns(message))

    def placed(self, body: Mapping[str, Any], stable: str, tail: str) -> dict[str, Any]:
        """The stable part is the last block of `system`, the tail the last block of the user's last message.

        Cache markers of the caller are before them. A request without a message of a user gets no tail.
        """
        placed = dict(body)
        if stable:
            placed["system"] = [*_blocks(body.get("system")), _block(stable)]
        if tail:
            placed["messages"] = _with_tail(entries(body.get("messages")), tail)
        return placed

    def answer(self, payload: object) -> list[Turn]:
        return answered(_turns(payload), words(payload, "model"))

    def streamed(self, events: Iterable[Mapping[str, Any]]) -> list[Turn]:
        model, finished = "", False
        blocks: dict[int, _Block] = {}
        for event in events:
            index = event.get("index")
            match event.get("type"):
                case "message_start":
                    model = words(event.get("message"), "model")
                case "content_block_start" if isinstance(index, int):
                    blocks[index] = _Block(event.get("content_block"))
                case "content_block_delta" if index in blocks:
                    blocks[index].add(event.get("delta"))
                case "message_stop":
                    finished = True
        content = [block.whole() for _, block in sorted(blocks.items())]
        return answered(_turns({"role": "assistant", "content": content}), model, incomplete=not finished)


def _turns(message: object) -> list[Turn]:
    """A user's message holds results of tools, what a person wrote, or both; each is a turn."""
    content = peek(message, "content")
    match peek(message, "role"):
        case "user":
            blocks = entries(content)
            results = [
                tool_turn(words(block, "tool_use_id"), *written(peek(block, "content")))
                for block in blocks
                if _is_result(block)
            ]
            own = content if isinstance(content, str) else [block for block in blocks if not _is_result(block)]
            said = user_turn(*written(own))
            return [*results, said] if said else results
        case "assistant":
            calls = [_call(block) for block in entries(content) if words(block, "type").endswith("tool_use")]
            turn = assistant_turn(spoken(content), calls)
            return [turn] if turn else []
    return []


def _is_result(block: object) -> bool:
    return words(block, "type").endswith("tool_result")


def _call(block: object) -> dict[str, str]:
    """A tool of the caller or of the vendor; results of the vendor's tools are not kept, the answer contains them."""
    return tool_call(words(block, "id"), words(block, "name"), as_text(peek(block, "input")))


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _blocks(content: object) -> list[Any]:
    """Content as blocks. The vendor takes no empty ones."""
    if isinstance(content, str):
        return [_block(content)] if content else []
    return list(entries(content))


def _with_tail(messages: Iterable[Any], tail: str) -> list[Any]:
    placed = list(messages)
    for index in range(len(placed) - 1, -1, -1):
        if any(turn.role == "user" for turn in _turns(placed[index])):
            message = copied(placed[index])
            if message is not None:
                placed[index] = {**message, "content": [*_blocks(message["content"]), _block(tail)]}
            break
    return placed


@dataclass(slots=True)
class _Block:
    """A content block, and the parts received since its start."""

    start: object
    texts: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)

    def add(self, delta: object) -> None:
        self.texts.append(words(delta, "text"))
        self.inputs.append(words(delta, "partial_json"))

    def whole(self) -> dict[str, Any]:
        block = copied(self.start) or {}
        if words(block, "type") == "text":
            block["text"] = words(block, "text") + "".join(self.texts)
        if partial := "".join(self.inputs):
            block["input"] = _parsed(partial)
        return block


def _parsed(partial: str) -> Any:
    """The block in the form of a message, so that it reads the same later; the received part if it was interrupted."""
    try:
        return json.loads(partial)
    except ValueError:
        return partial
