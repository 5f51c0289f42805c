"""One turn of a conversation, the same on every vendor's wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Turn:
    """:param role: `user`, `assistant` or `tool`.

    :param content: The text; "" where a tool is called without a word.
    :param metadata: Plain JSON. `tool_calls` (a list of `id`, `name`, `arguments` as text) of an assistant;
        `tool_result` (`tool_call_id`, `name`; "" where unknown) of a tool; `attachments` (their types) of what has
        no text; `model` and `incomplete` (true: the stream broke off) of an answer.
    """

    role: str
    content: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def tool_call(call_id: str, name: str, arguments: str) -> dict[str, str]:
    return {"id": call_id, "name": name, "arguments": arguments}


def assistant_turn(content: str, tool_calls: list[dict[str, str]]) -> Turn | None:
    """None if nothing was said or called."""
    if not content and not tool_calls:
        return None
    return Turn("assistant", content, {"tool_calls": tool_calls} if tool_calls else {})


def user_turn(content: str, attachments: list[str]) -> Turn | None:
    if not content and not attachments:
        return None
    return Turn("user", content, {"attachments": attachments} if attachments else {})


def tool_turn(call_id: str, content: str, attachments: list[str], name: str = "") -> Turn:
    result = {"tool_result": {"tool_call_id": call_id, "name": name}}
    return Turn("tool", content, {**result, "attachments": attachments} if attachments else result)


def with_tool_names(turns: Iterable[Turn]) -> list[Turn]:
    """Results name the tool that an earlier turn called, where they did not themselves."""
    names: dict[str, str] = {}
    named = []
    for turn in turns:
        for call in turn.metadata.get("tool_calls", ()):
            names[call["id"]] = call["name"]
        result = turn.metadata.get("tool_result")
        if result and not result["name"] and result["tool_call_id"] in names:
            result = {**result, "name": names[result["tool_call_id"]]}
            turn = replace(turn, metadata={**turn.metadata, "tool_result": result})
        named.append(turn)
    return named


def answered(turns: Iterable[Turn], model: str, *, incomplete: bool = False) -> list[Turn]:
    """The turns of an answer, with its metadata."""
    about: dict[str, Any] = {**({"model": model} if model else {}), **({"incomplete": True} if incomplete else {})}
    return [replace(turn, metadata={**turn.metadata, **about}) for turn in turns]
