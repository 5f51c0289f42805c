"""Items of a LangGraph store as memories: sources, texts, metadata, filters. Nothing here calls the service.

An item of the namespace `("users", "alice")` with the key `food` is the memory with the source
`langgraph/users/alice/=food`. Characters that a path must not contain are percent-encoded, also `=` at the beginning
of a label, and an empty label is `%`, so that the items of a namespace and those below it lie below one path, and no
source stands for two items.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any, Literal
from urllib.parse import unquote

from langgraph.store.base import MatchCondition, PutOp, SearchItem, TTLConfig, get_text_at_path

from souvenir_client.adapters.texts import MAX_TEXT_CHARACTERS, is_blank
from souvenir_client.records.common import MemoryRecord, SearchHit

Namespace = tuple[str, ...]
Stored = MemoryRecord | SearchHit

ENTITY_KEY = "item"
"""The key of every item within its source."""
KEY_MARK = "="
EMPTY_LABEL = "%"
"""An empty segment would be no segment: the items of all namespaces."""
MAX_SOURCE_CHARACTERS = 500
SECONDS_PER_MINUTE = 60.0
ORDERS: Mapping[str, Callable[[Any, Any], Any]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
PLAIN = frozenset("-_.@:+ ")


@dataclass(frozen=True, slots=True)
class StoreConfig:
    """The configuration of a store.

    :param path: The source below which the items lie.
    :param fields: Paths of the values to search by; `$` is the whole value.
    """

    path: str
    fields: Sequence[str] = ("$",)
    ttl: TTLConfig = field(default_factory=TTLConfig)

    def prefix(self, namespace: Namespace) -> str:
        """The source path of a namespace and everything below it."""
        return "/".join([self.path, *map(_segment, namespace)])

    def source(self, namespace: Namespace, key: str) -> str:
        """The source of an item.

        :raises ValueError: If it would have more characters than a source may have.
        """
        source = f"{self.prefix(namespace)}/{KEY_MARK}{_encoded(key)}"
        if len(source) > MAX_SOURCE_CHARACTERS:
            raise ValueError(
                f"The namespace and the key of an item take {len(source)} characters as a path, "
                f"and may take {MAX_SOURCE_CHARACTERS}; use shorter ones"
            )
        return source

    def memory(self, op: PutOp) -> dict[str, Any]:
        """The memory of an item, as `upsert_batch` takes it; the metadata replaces that of an earlier value."""
        value = dict(op.value or {})
        texts = self._texts(value, op.index)
        source, text = self.source(op.namespace, op.key), "\n".join(texts)[:MAX_TEXT_CHARACTERS]
        return {
            "source": source,
            "key": ENTITY_KEY,
            "text": source if is_blank(text) else text,
            "metadata": {
                "value": value,
                "indexed": not is_blank(text),
                "ttl_minutes": op.ttl,
                "expires_at": None if op.ttl is None else expiry(op.ttl),
                "written_at": None,
                "protected": True,
                "archived": False,
            },
        }

    def is_item(self, memory: Stored) -> bool:
        return memory.entity_key == ENTITY_KEY and isinstance(memory.extra.get("value"), dict)

    def item(self, memory: Stored, score: float | None = None) -> SearchItem | None:
        """The item of a memory; None if it is none, or has expired and expired ones are omitted."""
        path, mark, key = memory.source.rpartition(f"/{KEY_MARK}")
        if not mark or not self.is_item(memory):
            return None
        if self.ttl.get("omit_expired", False) and is_expired(memory):
            return None
        labels = path.removeprefix(self.path).split("/")[1:]
        return SearchItem(
            namespace=tuple(map(_decoded, labels)),
            key=_decoded(key),
            value=memory.extra["value"],
            created_at=datetime.fromisoformat(memory.created_at),
            updated_at=datetime.fromisoformat(written_at(memory)),
            score=score,
        )

    def _texts(self, value: dict[str, Any], index: Literal[False] | Sequence[str] | None) -> list[str]:
        if index is False:
            return []
        paths = self.fields if index is None else index
        return [text for path in paths for text in (_lines(value) if path == "$" else get_text_at_path(value, path))]


def expiry(minutes: float) -> float:
    return time.time() + minutes * SECONDS_PER_MINUTE


def is_expired(memory: Stored) -> bool:
    # Without a time to live, the end is that of an earlier value, which was read while this one was written.
    expires_at = None if memory.extra.get("ttl_minutes") is None else memory.extra.get("expires_at")
    return expires_at is not None and float(expires_at) <= time.time()


def refreshed(memory: Stored, minutes: float) -> dict[str, Any]:
    """The change of the metadata of an item that was read; the time of its value stays."""
    return {"expires_at": expiry(minutes), "written_at": written_at(memory)}


def written_at(memory: Stored) -> str:
    """When the value was written: the last change of the memory, but for refreshed times to live."""
    return str(memory.extra.get("written_at") or memory.updated_at)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Return whether a value matches exact values, or the operators `$eq`, `$ne`, `$gt`, `$gte`, `$lt` and `$lte`."""
    return all(_fits(value.get(name), condition) for name, condition in (wanted or {}).items())


def namespaces_of(
    found: Iterable[Namespace], conditions: Sequence[MatchCondition], max_depth: int | None
) -> list[Namespace]:
    """The namespaces that meet all conditions, sorted and each once, at most that deep."""
    matching = {one for one in found if all(_is_at(one, condition) for condition in conditions)}
    return sorted({one[:max_depth] for one in matching})


def _segment(label: str) -> str:
    encoded = _encoded(label) or EMPTY_LABEL
    return "%3D" + encoded[1:] if encoded.startswith(KEY_MARK) else encoded


def _encoded(text: str) -> str:
    """The text with every character percent-encoded that is neither a letter, a digit nor plain punctuation."""
    kept = "".join(
        char if char.isalnum() or char in PLAIN or char == KEY_MARK else _percent(char.encode("utf-8", "surrogatepass"))
        for char in text
    )
    # Paths resolve names of dots, and the service may trim spaces.
    if not kept.strip(". ") or kept != kept.strip():
        return "".join(_percent(char.encode()) if char in ". " else char for char in kept)
    return kept


def _decoded(segment: str) -> str:
    return "" if segment == EMPTY_LABEL else unquote(segment, errors="surrogatepass")


def _percent(encoded: bytes) -> str:
    return "".join(f"%{byte:02X}" for byte in encoded)


def _lines(value: Mapping[str, Any]) -> list[str]:
    """One line a field, in words as far as it has some."""
    return [
        f"{name}: {one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)}" for name, one in value.items()
    ]


def _is_at(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return len(namespace) >= len(path) and all(want in ("*", label) for want, label in zip(path, part, strict=True))


def _fits(value: Any, condition: Any) -> bool:
    if isinstance(condition, Mapping):
        if any(name.startswith("$") for name in condition):
            return all(_compares(value, operator, operand) for operator, operand in condition.items())
        return isinstance(value, Mapping) and matches(value, condition)
    if isinstance(condition, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(condition)
            and all(_fits(one, wanted) for one, wanted in zip(value, condition, strict=True))
        )
    return bool(value == condition)


def _compares(value: Any, operator: str, operand: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return (value == operand) is (operator == "$eq")
    if operator not in ORDERS:
        raise ValueError(f"Unsupported operator: {operator}")
    sides = _comparable(value, operand)
    return sides is not None and bool(ORDERS[operator](*sides))


def _comparable(value: Any, operand: Any) -> tuple[float, float] | tuple[str, str] | None:
    """Both as numbers, or else both as texts, such as dates; None if they have no order."""
    try:
        return float(value), float(operand)
    except (TypeError, ValueError):
        return (value, operand) if isinstance(value, str) and isinstance(operand, str) else None
