"""OpenAI's Responses.

Each item is a turn, because callers send items back one by one, and in part. Reasoning is never read. If the vendor
stores the conversation, a request contains only new items.
"""

from __future__ import annotations

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

_ARGUMENTS = ("arguments", "input", "action", "operation", "queries", "code")
"""The fields with the arguments of the various kinds of tool calls."""

_ENDS = {"response.completed": False, "response.incomplete": False, "response.failed": True}
"""The events that bring the whole answer, and whether it broke off. A limit on its length is no break."""


class OpenAIResponses:
    name = "openai.responses"

    def turns(self, body: Mapping[str, Any]) -> list[Turn]:
        read = (_turn(item) for item in _items(body.get("input")))
        return with_tool_names(turn for turn in read if turn)

    def placed(self, body: Mapping[str, Any], stable: str, tail: str) -> dict[str, Any]:
        """The stable part follows the instructions, the tail comes before the last message of the user.

        A request that brings no message of the user gets no tail; the vendor has what went before.
        """
        placed = dict(body)
        if stable:
            instructions = body.get("instructions")
            placed["instructions"] = f"{instructions}\n\n{stable}" if _is_text(instructions) else stable
        items = _items(body.get("input"))
        asked = [index for index, item in enumerate(items) if _is_message(item) and peek(item, "role") == "user"]
        if tail and asked:
            items.insert(asked[-1], {"type": "message", "role": _role(items), "content": tail})
            placed["input"] = items
        return placed

    def answer(self, payload: object) -> list[Turn]:
        read = (_turn(item) for item in entries(peek(payload, "output")))
        return answered((turn for turn in read if turn), words(payload, "model"))

    def streamed(self, events: Iterable[Mapping[str, Any]]) -> list[Turn]:
        model, incomplete = "", True
        whole: list[Turn] = []
        items: dict[int, _Item] = {}
        for event in events:
            kind, index, response = words(event, "type"), event.get("output_index"), event.get("response")
            model = model or words(response, "model")
            if kind in _ENDS:
                whole, incomplete = self.answer(response), _ENDS[kind]
            elif isinstance(index, int):
                items.setdefault(index, _Item()).add(kind, event)
        if not whole:
            whole = self.answer({"output": [item.whole() for _, item in sorted(items.items())]})
        return answered(whole, model, incomplete=incomplete)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _items(value: object) -> list[Any]:
    return [{"role": "user", "content": value}] if isinstance(value, str) else list(entries(value))


def _is_message(item: object) -> bool:
    return words(item, "type") in ("", "message")


def _role(items: Iterable[object]) -> str:
    """The role for added items, that of the caller's: vendors refuse a mixture."""
    return "developer" if any(peek(item, "role") == "developer" for item in items) else "system"


def _turn(item: object) -> Turn | None:
    kind = words(item, "type")
    if kind.endswith("_call"):
        name = words(item, "name") or kind.removesuffix("_call")
        return assistant_turn("", [tool_call(_call_id(item), name, _arguments(item))])
    if kind.endswith("_call_output"):
        return tool_turn(_call_id(item), *_output(peek(item, "output")))
    if not _is_message(item):
        return None
    match peek(item, "role"):
        case "user":
            return user_turn(*written(peek(item, "content")))
        case "assistant":
            return assistant_turn(spoken(peek(item, "content")), [])
    return None


def _call_id(item: object) -> str:
    return words(item, "call_id") or words(item, "id")


def _arguments(item: object) -> str:
    found = (peek(item, name) for name in _ARGUMENTS)
    return next((as_text(value) for value in found if value is not None), "")


def _output(output: object) -> tuple[str, list[str]]:
    """Text, content parts, or what a shell printed; a screenshot is one part."""
    if any(peek(part, "stdout") is not None for part in entries(output)):
        printed = (words(part, name) for part in entries(output) for name in ("stdout", "stderr"))
        return "\n".join(text for text in printed if text), []
    return written([output] if isinstance(output, Mapping) else output)


@dataclass(slots=True)
class _Item:
    """An output item, and the parts received before it was done."""

    item: object = None
    done: bool = False
    texts: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def add(self, kind: str, event: Mapping[str, Any]) -> None:
        match kind.removeprefix("response."):
            case "output_item.added":
                self.item = event.get("item")
            case "output_item.done":
                self.item, self.done = event.get("item"), True
            case "output_text.delta" | "refusal.delta":
                self.texts.append(words(event, "delta"))
            case "function_call_arguments.delta" | "mcp_call_arguments.delta" | "custom_tool_call_input.delta":
                self.arguments.append(words(event, "delta"))

    def whole(self) -> dict[str, Any]:
        item = copied(self.item) or {"type": "message", "role": "assistant"}
        if self.done:
            return item
        if texts := "".join(self.texts):
            item["content"] = texts
        if arguments := "".join(self.arguments):
            item["input" if words(item, "type") == "custom_tool_call" else "arguments"] = arguments
        return item
