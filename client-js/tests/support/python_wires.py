"""Reads model calls from stdin as JSON, and prints how the Python client reads, places and stores them."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from souvenir_client.interception.messages import message_of
from souvenir_client.interception.wires import wire_of
from souvenir_client.interception.wires.turns import Turn
from souvenir_client.wording import prefaced

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def read(call: dict[str, Any]) -> dict[str, Any]:
    wire = wire_of(call["url"], call["body"])
    if wire is None:
        return {"wire": None}
    turns = wire.turns(call["body"])
    answer, events = call.get("answer"), call.get("events")
    answered = [] if answer is None else wire.answer(answer)
    streamed = [] if events is None else wire.streamed(events)
    return {
        "wire": True,
        "turns": [asdict(turn) for turn in turns],
        "placed": wire.placed(call["body"], prefaced("Blocks"), prefaced("Memories", doubtful=True)),
        "answer": [asdict(turn) for turn in answered],
        "streamed": [asdict(turn) for turn in streamed],
        "messages": [stored(turn) for turn in (*turns, *answered, *streamed)],
    }


def stored(turn: Turn) -> dict[str, Any] | None:
    message = message_of(turn, AT, "alice")
    return message and {**message, "created_at": "2026-01-02T03:04:05.000Z"}


if __name__ == "__main__":
    json.dump([read(call) for call in json.load(sys.stdin)], sys.stdout)
