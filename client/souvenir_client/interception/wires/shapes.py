"""Reads values of requests and answers: dicts, objects of the SDKs, objects of the caller.

Nothing here changes its arguments or raises on unknown shapes: unreadable values are treated as missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

_TEXTS = frozenset({"text", "input_text", "output_text"})
_DEEPEST_CONTENT = 4
"""Messages hold blocks, and blocks of tool results hold blocks; one more to spare."""


def peek(item: object, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def words(item: object, name: str) -> str:
    """A field that is text; "" if it is anything else."""
    value = peek(item, name)
    return value if isinstance(value, str) else ""


def entries(value: object) -> Sequence[Any]:
    """A list's items. Iterators are left alone: reading would use them up (see `settled`)."""
    return value if isinstance(value, list | tuple) else ()


def as_text(value: object) -> str:
    """Arguments of a tool: as they are, or as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return ""


def _plain(value: Any) -> Any:
    """An object of an SDK as JSON; other objects have no text."""
    return _dumped(value) if hasattr(value, "model_dump") else None


def _dumped(value: Any) -> Any:
    """The JSON value that the SDKs send for it."""
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)


def part_text(part: object) -> str | None:
    """The text of a content part; None if it is not text."""
    kind = peek(part, "type")
    if kind in _TEXTS:
        return words(part, "text")
    return words(part, "refusal") if kind == "refusal" else None


def spoken(content: object) -> str:
    """The text of an assistant. Adjacent parts are joined; parts with something in between are paragraphs."""
    if isinstance(content, str):
        return content
    runs: list[str] = []
    touching = False
    for part in entries(content):
        text = part_text(part)
        if text is None:
            touching = False
        elif touching:
            runs[-1] += text
        else:
            runs.append(text)
            touching = True
    return "\n\n".join(run for run in runs if run)


def written(content: object) -> tuple[str, list[str]]:
    """The texts of a user or a tool, one a line, and the types of other parts."""
    if isinstance(content, str):
        return content, []
    texts, attachments = [], []
    for part in entries(content):
        text = part_text(part)
        if text is not None:
            texts.append(text)
        elif kind := words(part, "type"):
            attachments.append(kind.removeprefix("input_").removesuffix("_url"))
    return "\n".join(text for text in texts if text), attachments


def copied(item: object) -> dict[str, Any] | None:
    """A copy of an item as a dict, for changes that the caller must not see; None if this is impossible."""
    if isinstance(item, Mapping):
        return dict(item)
    if hasattr(item, "model_dump"):
        dumped = _dumped(item)
        return dumped if isinstance(dumped, dict) else None
    return None


def settled(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body with lists instead of the caller's iterators, which can be read only once.

    Call it once, read the result, and send the result or what is placed into it. All other objects are the same.
    Exceptions of an iterator are raised, as in the SDK.
    """
    turned = {name: _settled(body[name], _DEEPEST_CONTENT) for name in ("messages", "input", "system") if name in body}
    return {**body, **turned}


def _settled(content: object, depth: int) -> object:
    if not is_listable(content) or depth == 0:
        return content
    items = list(content)
    changed = not isinstance(content, list | tuple)
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and "content" in item:
            inner = _settled(item["content"], depth - 1)
            if inner is not item["content"]:
                items[index] = {**item, "content": inner}
                changed = True
    return items if changed else content


def is_listable(value: object) -> TypeGuard[Iterable[Any]]:
    """Return whether a vendor receives it as a list. SDK objects are iterable too, but are not lists."""
    if isinstance(value, str | bytes | bytearray | Mapping) or hasattr(value, "model_dump"):
        return False
    return isinstance(value, Iterable)
