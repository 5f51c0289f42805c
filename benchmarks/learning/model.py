"""A language model for measurements: it answers after a fixed time, from the text of its prompt.

It speaks OpenAI's form on loopback, in a process of its own. Its facts are first clauses of user turns, with the turn
as their quote; its decisions go by the words that a fact and a memory share. It counts what it is asked at once.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

from benchmarks.extraction.replay import Asked, Reply, listening

NAME = "scripted"
FACTS_PER_WINDOW = 12
"""Of a window of 16,000 characters, which is some fifty turns of the user."""

SAME_SHARE = 0.9
"""Of a fact's words, from which a memory says the same."""

UPDATE_EVERY, CONFLICT_EVERY = 6, 15
"""One fact in so many that has a memory beside it; nothing is deleted, since a job may delete only few."""

STOP_TIMEOUT_S = 30.0

_USER_TURN = re.compile(r"^\[\d+\][^\n]*?\(user\): (.+)$", re.MULTILINE)
_FACT = re.compile(r"^\[(\d+)\] \([A-Z]+[^)]*\): (.+)$", re.MULTILINE)
_MEMORY = re.compile(r"^\[(\d+)\] \d{4}-\d{2}-\d{2}: (.+)$", re.MULTILINE)


@dataclass(slots=True)
class Figures:
    """:param unknown: Questions that are not of the pipeline's two stages, as those of a repair."""

    answered: int = 0
    most_at_once: int = 0
    unknown: list[str] = field(default_factory=list)


class ScriptedModel:
    """:param latency_s: From a question to its answer, whatever is asked."""

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self._lock = Lock()
        self._at_once = 0
        self.figures = Figures()

    def answer(self, asked: Asked) -> Reply:
        done_at = time.monotonic() + self._latency_s
        with self._lock:
            self._at_once += 1
            self.figures.most_at_once = max(self.figures.most_at_once, self._at_once)
        try:
            return self._reply(asked, done_at)
        finally:
            with self._lock:
                self._at_once -= 1
                self.figures.answered += 1

    def _reply(self, asked: Asked, done_at: float) -> Reply:
        shown = asked.body["messages"][-1]["content"]
        match asked.prompt:
            case "propose" | "propose_all":
                said: dict[str, Any] = {"facts": facts(shown)}
            case "decide":
                said = {"decisions": decisions(shown)}
            case other:
                with self._lock:
                    self.figures.unknown.append(other)
                return Reply(400, {"error": {"message": "unknown question", "type": "invalid_request_error"}})
        content = json.dumps(said)
        time.sleep(max(0.0, done_at - time.monotonic()))
        return Reply(200, completion(content, read_chars=len(shown)))


def facts(window: str) -> list[dict[str, Any]]:
    """Of the user's turns in a window, evenly spread."""
    turns = _USER_TURN.findall(window)
    chosen = turns[:: max(1, -(-len(turns) // FACTS_PER_WINDOW))]
    return [{"category": "DETAIL", "text": turn.partition(";")[0], "quote": turn, "when": None} for turn in chosen]


def decisions(question: str) -> list[dict[str, Any]]:
    """One for each fact; no memory is changed by two of them."""
    listed, _, stored = question.partition("<memories>")
    memories = [(int(number), _words(text)) for number, text in _MEMORY.findall(stored)]
    free = {number for number, _ in memories}
    made = []
    for number, text in ((int(number), text) for number, text in _FACT.findall(listed)):
        nearest, share = _nearest(_words(text), memories)
        verdict, memory = "ADD", nearest if nearest in free else None
        if nearest is not None and share >= SAME_SHARE:
            verdict, memory = "NOOP", nearest
        elif memory is not None and number % UPDATE_EVERY == 0:
            verdict = "UPDATE"
            free.remove(memory)
        elif memory is not None and number % CONFLICT_EVERY == 1:
            verdict = "CONFLICT"
        else:
            memory = None
        made.append({"fact": number, "verdict": verdict, "memory": memory, "text": None, "reason": "By their words."})
    return made


def completion(content: str, *, read_chars: int) -> dict[str, Any]:
    """An answer in OpenAI's form; a token is taken for four characters."""
    usage = {"prompt_tokens": read_chars // 4, "completion_tokens": len(content) // 4}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": NAME,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {**usage, "total_tokens": sum(usage.values())},
    }


@dataclass(slots=True)
class Running:
    """:ivar figures: Once it has ended."""

    url: str
    figures: Figures = field(default_factory=Figures)


@contextmanager
def serving(latency_s: float) -> Iterator[Running]:
    """The model in a process of its own, until the block ends."""
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe()
    process = processes.Process(target=_serve, args=(latency_s, theirs))
    process.start()
    running = Running(f"{ours.recv()}/v1")
    try:
        yield running
    finally:
        ours.send(None)
        if ours.poll(STOP_TIMEOUT_S):
            running.figures = ours.recv()
        process.join(STOP_TIMEOUT_S)


def _serve(latency_s: float, channel: Connection) -> None:
    model = ScriptedModel(latency_s)
    with listening(model) as origin:
        channel.send(origin)
        channel.recv()
    channel.send(model.figures)


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def _nearest(words: frozenset[str], memories: list[tuple[int, frozenset[str]]]) -> tuple[int | None, float]:
    """The memory that has most of the words, and which share of them."""
    best, most = None, 0
    for number, other in memories:
        shared = len(words & other)
        if shared > most:
            best, most = number, shared
    return best, most / max(1, len(words))
