"""OpenAI's chat completions, which many other vendors and local servers speak too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from souvenir_client.interception.wires.shapes import as_text, entries, peek, spoken, words, written
from souvenir_client.interception.wires.turns import (
    Turn,
    answered,
    assistant_turn,
    tool_call,
    tool_turn,
    user_turn,
    with_tool_names,
)

_LEADING = ("system", "developer")


class OpenAIChat:
    name = "openai.chat"

    def turns(self, body: Mapping[str, Any]) -> list[Turn]:
        read = (_turn(message) for message in entries(body.get("messages")))
        return with_tool_names(turn for turn in read if turn)

    def placed(self, body: Mapping[str, Any], stable: str, tail: str) -> dict[str, Any]:
        """The stable part follows what the caller says first, the tail comes before the last message of the user.

        Both have the role that the caller uses for such messages, as vendors refuse a mixture. A request without a
        message of the user gets no tail.
        """
        messages = list(entries(body.get("messages")))
        roles = [peek(message, "role") for message in messages]
        leading = next((index for index, role in enumerate(roles) if role not in _LEADING), len(roles))
        role = roles[leading - 1] if leading else "system"
        if tail and "user" in roles:
            last = len(roles) - 1 - roles[::-1].index("user")
            messages.insert(last, {"role": role, "content": tail})
        if stable:
            messages.insert(leading, {"role": role, "content": stable})
        return {**body, "messages": messages} if stable or tail else dict(body)

    def answer(self, payload: object) -> list[Turn]:
        read = (_turn(peek(choice, "message")) for choice in entries(peek(payload, "choices")))
        return answered((turn for turn in read if turn), words(payload, "model"))

    def streamed(self, events: Iterable[Mapping[str, Any]]) -> list[Turn]:
        model = ""
        choices: dict[int, _Choice] = {}
        for event in events:
            model = model or words(event, "model")
            for choice in entries(event.get("choices")):
                index = peek(choice, "index")
                choices.setdefault(index if isinstance(index, int) else 0, _Choice()).add(choice)
        turns: list[Turn] = []
        for _, choice in sorted(choices.items()):
            if turn := _turn(choice.message()):
                turns += answered([turn], model, incomplete=not choice.finished)
        return turns


def _turn(message: object) -> Turn | None:
    match peek(message, "role"):
        case "user":
            return user_turn(*written(peek(message, "content")))
        case "assistant":
            return assistant_turn(_said(message), _tool_calls(message))
        case "tool" | "function":
            text, attachments = written(peek(message, "content"))
            return tool_turn(words(message, "tool_call_id"), text, attachments, words(message, "name"))
    return None


def _said(message: object) -> str:
    """A refusal has its own field, and so has the text of an answer that is audio."""
    content = spoken(peek(message, "content"))
    return content or words(message, "refusal") or words(peek(message, "audio"), "transcript")


def _tool_calls(message: object) -> list[dict[str, str]]:
    calls = []
    for call in entries(peek(message, "tool_calls")):
        function, custom = peek(call, "function"), peek(call, "custom")
        if function is not None:
            calls.append(tool_call(words(call, "id"), words(function, "name"), as_text(peek(function, "arguments"))))
        elif custom is not None:
            calls.append(tool_call(words(call, "id"), words(custom, "name"), as_text(peek(custom, "input"))))
    if legacy := peek(message, "function_call"):
        calls.append(tool_call("", words(legacy, "name"), as_text(peek(legacy, "arguments"))))
    return calls


@dataclass(slots=True)
class _Choice:
    """The received chunks of one choice of a stream."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    finished: bool = False

    def add(self, choice: object) -> None:
        self.finished = self.finished or bool(peek(choice, "finish_reason"))
        delta = peek(choice, "delta")
        for name in ("content", "refusal"):
            self._say(name, words(delta, name))
        self._say("transcript", words(peek(delta, "audio"), "transcript"))
        for position, call in enumerate(entries(peek(delta, "tool_calls"))):
            index = peek(call, "index")
            self._call(index if isinstance(index, int) else position, call)
        if legacy := peek(delta, "function_call"):
            self._call(-1, {"function": legacy})

    def _say(self, name: str, text: str) -> None:
        if text:
            self.texts.setdefault(name, []).append(text)

    def _call(self, index: int, call: object) -> None:
        kept = self.calls.setdefault(index, tool_call("", "", ""))
        tool = peek(call, "function") or peek(call, "custom")
        kept["id"] = kept["id"] or words(call, "id")
        kept["name"] += words(tool, "name")
        kept["arguments"] += words(tool, "arguments") or words(tool, "input")

    def message(self) -> dict[str, Any]:
        said = {name: "".join(texts) for name, texts in self.texts.items()}
        calls = [{"id": call["id"], "function": call} for _, call in sorted(self.calls.items())]
        audio = {"audio": {"transcript": said["transcript"]}} if "transcript" in said else {}
        return {"role": "assistant", **said, **audio, "tool_calls": calls}
