"""Any number of long conversations, in two formats of clients: speaker prefixes, and JSON."""

from __future__ import annotations

import json
import random
from itertools import count

from benchmarks.load.sentences import memories

MIN_CHARS, MAX_CHARS = 60_000, 120_000
OTHERS = 1_000_000
"""Added to a seed: what the assistant says is not what the user says."""


def transcript(seed: int) -> str:
    """A conversation of 60,000 to 120,000 characters; of each user turn the first clause is worth keeping."""
    room = random.Random(seed).randint(MIN_CHARS, MAX_CHARS)
    told, answered = memories(seed), memories(seed + OTHERS)
    turns: list[tuple[str, str]] = []
    for number in count():
        turn = ("assistant", f"I see. {next(answered)} {next(answered)}") if number % 2 else ("user", next(told))
        room -= len(_written(turn, seed))
        if room < 0:
            break
        turns.append(turn)
    if _is_json(seed):
        return json.dumps([{"role": role, "content": text} for role, text in turns])
    return "\n".join(_written(turn, seed) for turn in turns)


def _written(turn: tuple[str, str], seed: int) -> str:
    role, text = turn
    if _is_json(seed):
        return json.dumps({"role": role, "content": text}) + ", "
    return f"{role.capitalize()}: {text}\n"


def _is_json(seed: int) -> bool:
    return seed % 2 == 1
