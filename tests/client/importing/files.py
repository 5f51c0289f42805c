"""Small files in the format of real exports, including their irregularities."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from souvenir_client.importing import Altered, Kind, Record, Skipped, read


def records(kind: Kind, path: Path, source: str | None = None) -> list[Record]:
    return [record for item in read(kind, path, source).items for record in item]


def usable(found: Iterable[Record]) -> list[Any]:
    return [record for record in found if not isinstance(record, Skipped | Altered)]


def skipped(found: Iterable[Record]) -> list[tuple[str, str]]:
    return [(record.place, record.reason) for record in found if isinstance(record, Skipped)]


def altered(found: Iterable[Record]) -> list[tuple[str, str]]:
    return [(record.place, record.reason) for record in found if isinstance(record, Altered)]


def json_file(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def json_lines(path: Path, lines: Iterable[object]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def zipped(path: Path, members: Mapping[str, object]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def chatgpt_message(
    role: str,
    *parts: object,
    at: float | None = None,
    content: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    author = {"role": role, "name": more.pop("tool", None), "metadata": {}}
    return {
        "author": author,
        "create_time": at,
        "content": content or {"content_type": "text", "parts": list(parts)},
        "status": "finished_successfully",
        "recipient": "all",
        "metadata": {},
        **more,
    }


def chatgpt_conversation(
    messages: Sequence[Mapping[str, Any] | None], *, conversation_id: str = "6a1f", **more: Any
) -> dict[str, Any]:
    """A tree of one branch: the nodes n0, n1, ... with these messages."""
    nodes = {
        f"n{number}": {
            "id": f"n{number}",
            "message": None if message is None else {"id": f"n{number}", **message},
            "parent": f"n{number - 1}" if number else None,
            "children": [f"n{number + 1}"] if number + 1 < len(messages) else [],
        }
        for number, message in enumerate(messages)
    }
    return {
        "title": "Moving house",
        "create_time": 1_700_000_000.25,
        "update_time": 1_700_000_100.0,
        "mapping": nodes,
        "current_node": f"n{len(messages) - 1}",
        "conversation_id": conversation_id,
        "id": conversation_id,
        **more,
    }


def claude_message(sender: str, text: str, uuid: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "text": text,
        "content": [{"type": "text", "text": text, "citations": []}],
        "sender": sender,
        "created_at": "2024-11-30T14:49:36.123456Z",
        "updated_at": "2024-11-30T14:49:36.123456Z",
        "attachments": [],
        "files": [],
        **more,
    }


def claude_conversation(messages: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "uuid": "b7d3",
        "name": "Tea",
        "created_at": "2024-11-30T14:49:30.000000Z",
        "updated_at": "2024-11-30T15:00:00.000000Z",
        "account": {"uuid": "me"},
        "chat_messages": list(messages),
        **more,
    }
