"""A language model scripted by a function per prompt; the real parser reads its answers, with one repair round.

It implements `LLMProvider`, and needs no network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from souvenir.core.errors import LLMOutputUnusable
from souvenir.models.llm.parsing import Unreadable, value_of
from souvenir.models.llm.prompts import Generated, Prompt, Shape, TokenUsage

Says = Callable[[Prompt], Any]
"""What the model writes: a text, or a value as JSON; an exception is raised."""

_NUMBERED = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


class ScriptedModel:
    name = "scripted"
    model = "scripted-1"

    def __init__(self, says: Mapping[str, Says]) -> None:
        self._lock = Lock()
        self.says = dict(says)
        self.asked: list[Prompt] = []

    def generate(self, prompt: Prompt, shape: type[Shape]) -> Generated[Shape]:
        raw, reason = "", ""
        for attempt in (1, 2):
            with self._lock:
                self.asked.append(prompt)
            said = self.says[prompt.name](prompt)
            if isinstance(said, Exception):
                raise said
            raw = said if isinstance(said, str) else json.dumps(said)
            try:
                value = value_of(raw, shape)
            except Unreadable as unreadable:
                reason = unreadable.fault.reason
                continue
            return Generated(value, TokenUsage(100 * attempt, 20 * attempt, 0.001), self.model, attempt, attempt > 1)
        raise LLMOutputUnusable(raw, reason)

    def status(self) -> str:
        return "healthy"

    def close(self) -> None:
        return None

    def count(self, name: str) -> int:
        """Questions of a prompt, repairs included."""
        with self._lock:
            return len([prompt for prompt in self.asked if prompt.name == name])


def facts(*texts: str, quote: str | None = None, when: str | None = None, category: str = "DETAIL") -> dict[str, Any]:
    """An answer; a fact's quote is its text, unless another is given."""
    return {
        "facts": [
            {"category": category, "text": text, "quote": text if quote is None else quote, "when": when}
            for text in texts
        ]
    }


def every_line(prompt: Prompt) -> dict[str, Any]:
    """A model that takes each turn for a fact."""
    return facts(*(said.partition("): ")[2] for _, said in _NUMBERED.findall(prompt.user)))


def shown(prompt: Prompt, name: str) -> dict[int, str]:
    """What a question shows under numbers: `facts` or `memories`."""
    part = prompt.user.partition(f"<{name}>")[2].partition(f"</{name}>")[0]
    return {int(number): said.partition(": ")[2] for number, said in _NUMBERED.findall(part)}


def decision(fact: int, verdict: str, memory: int | None = None, text: str | None = None) -> dict[str, Any]:
    return {
        "fact": fact,
        "verdict": verdict,
        "memory": memory,
        "text": text,
        "reason": f"so says the script: {verdict}",
    }


def add_all(prompt: Prompt) -> dict[str, Any]:
    return {"decisions": [decision(number, "ADD") for number in shown(prompt, "facts")]}


def about(verdict: str, text: str | None = None) -> Says:
    """A model that gives this verdict about the memory that shares most words with each fact; ADD where none does."""

    def says(prompt: Prompt) -> dict[str, Any]:
        memories = shown(prompt, "memories")
        made = []
        for number, fact in shown(prompt, "facts").items():
            shared = {one: len(set(said.split()) & set(fact.split())) for one, said in memories.items()}
            best = max(shared, key=lambda one: shared[one], default=None)
            if best is None or not shared[best]:
                made.append(decision(number, "ADD"))
            else:
                made.append(decision(number, verdict, best, text))
        return {"decisions": made}

    return says


def model(propose: Says = every_line, decide: Says = add_all) -> ScriptedModel:
    return ScriptedModel({"propose": propose, "propose_all": propose, "decide": decide})
