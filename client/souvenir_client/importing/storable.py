"""Make the content of a file storable: texts, times, names and metadata, within the limits of the service."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from souvenir_client.importing.records import Altered, MemoryRecord, Record, Skipped

MAX_TEXT_CHARS = 50_000
MAX_SOURCE_CHARS = 500
MAX_NAME_CHARS = 200
MAX_TAG_CHARS, MAX_TAGS = 100, 50
MAX_FACT_CHARS, MAX_FACTS = 2_000, 50
MAX_SPEAKER_CHARS = 100
MAX_TITLE_CHARS = 500
MAX_METADATA_BYTES = 60 * 1024
"""The service accepts 64 KiB; the rest is for the data that an import adds."""

MAX_NESTING = 40
"""Maximum nesting of metadata; deeper values are omitted."""

SETTABLE = frozenset({"document_at", "pinned", "archived", "entity_key", "origin_class", "origin_client"})
"""Metadata keys that set fields of the memory."""

_OF_THE_SERVICE = SETTABLE | {
    *("id", "text", "source", "timestamp", "created_at", "updated_at", "valid_to", "links", "supersedes"),
    *("superseded_by", "previous_text", "is_latest", "conflicts_with", "author", "contributors", "promotion"),
    *("source_memory_ids", "sensitive_data", "sensitive_topics", "import_digest"),
}
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LETTERS = str.maketrans("0123456789", "ghijklmnop")
_DIGEST = re.compile("[a-p]{32}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MILLISECOND_COUNT = 1e11
"""Numbers from here on are milliseconds: as seconds they would be after the year 5000."""

UNREADABLE_TIME = "its time cannot be read; it has the time of the import"
LARGE_METADATA = "its metadata is too large and was omitted"
UNUSABLE_TAGS = "tags that the service does not accept were omitted"
UNUSABLE_FACTS = "facts that the service does not accept were omitted"
NO_TEXT = "it has no text"
TOO_LONG = f"its text is longer than {MAX_TEXT_CHARS} characters; split it"


def text_of(value: object) -> str:
    """Return a string without unstorable characters, with uniform line breaks; "" for anything but a string."""
    return exact_text_of(value).replace("\r\n", "\n")


def exact_text_of(value: object) -> str:
    """The string without characters that cannot be stored."""
    return _SURROGATE.sub("\ufffd", value.replace("\0", "")) if isinstance(value, str) else ""


def json_of(value: object, depth: int = 0) -> Any:
    """The value as plain, finite JSON; None if this is impossible."""
    if depth > MAX_NESTING:
        return None
    match value:
        case str():
            return text_of(value)
        case bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {text_of(name): json_of(held, depth + 1) for name, held in value.items() if isinstance(name, str)}
        case list() | tuple():
            return [json_of(held, depth + 1) for held in value]
        case _:
            return None


def line_of(value: object, max_chars: int) -> str:
    """Return one printable line of the value, truncated; "" if nothing is left."""
    words = " ".join(text_of(value).split())
    return "".join(one for one in words if one.isprintable())[:max_chars].strip()


def name_of(value: object, max_chars: int = MAX_NAME_CHARS) -> str:
    """Return a line that can be one segment of a path; names that differ only after the limit stay different."""
    whole = line_of(value, 10 * max_chars).replace("/", "-")
    if len(whole) > max_chars:
        whole = f"{whole[: max_chars - 17]}-{digest(whole)[:16]}"
    return "" if whole in (".", "..") else whole


def objects_in(value: object) -> list[dict[str, Any]]:
    """The objects of a list; none if it is not a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def timestamp_of(value: object) -> str | None:
    """Return a time as ISO-8601 in UTC; parses ISO-8601, and seconds or milliseconds since 1970.

    None if it is no time.
    """
    try:
        match value:
            case bool() | None:
                return None
            case int() | float():
                seconds = value / 1000 if abs(value) >= _FIRST_MILLISECOND_COUNT else value
                at = _EPOCH + timedelta(seconds=seconds)
            case str() if 1 <= len(value.strip()) <= 50:
                at = datetime.fromisoformat(value.strip().upper())
                at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
            case _:
                return None
    except (ValueError, OverflowError):
        return None
    return at.isoformat(timespec="microseconds")


def foreign_metadata(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return metadata of another system: keys known to the service get the prefix, and empty values are omitted."""
    found = {}
    for name, value in values.items():
        plain = json_of(value)
        if name and plain not in (None, "", [], {}):
            taken = name in _OF_THE_SERVICE or name.startswith("_policy_")
            found[f"{prefix}_{name}" if taken else text_of(name)] = plain
    return found


def digest(*parts: object) -> str:
    """Return a deterministic digest of the parts; letters only, because digits may be detected as personal data."""
    said = json.dumps(parts, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(said.encode()).hexdigest()[:32].translate(_LETTERS)


def name_by(key: str) -> str:
    """The stored form of a key in metadata: its digest."""
    return key if _DIGEST.fullmatch(key) else digest(key)


def memory(
    text: object,
    *,
    source: str,
    key: str,
    place: str,
    created_at: object = None,
    metadata: Mapping[str, Any] | None = None,
    tags: object = None,
    facts: object = None,
) -> Iterator[Record]:
    """The memory with its alterations, or the reason why it is skipped.

    :param tags: A list of texts, like `facts`; invalid ones are omitted.
    """
    said = text_of(text).strip()
    kept = metadata or {}
    if not said:
        yield Skipped(place, NO_TEXT)
        return
    if len(said) > MAX_TEXT_CHARS:
        yield Skipped(place, TOO_LONG)
        return
    if not 1 <= len(source) <= MAX_SOURCE_CHARS:
        yield Skipped(place, f"its source must have 1 to {MAX_SOURCE_CHARS} characters")
        return
    if json_bytes(kept) > MAX_METADATA_BYTES:
        kept = {name: kept[name] for name in SETTABLE if name in kept and not isinstance(kept[name], list | dict)}
        yield Altered(place, LARGE_METADATA)
    at = timestamp_of(created_at)
    if at is None and created_at not in (None, ""):
        yield Altered(place, UNREADABLE_TIME)
    own_tags = _texts(tags, MAX_TAG_CHARS, MAX_TAGS)
    own_facts = _texts(facts, MAX_FACT_CHARS, MAX_FACTS)
    if len(own_tags) != _count(tags) or any(not tag.isprintable() for tag in own_tags):
        own_tags = [tag for tag in own_tags if tag.isprintable()]
        yield Altered(place, UNUSABLE_TAGS)
    if len(own_facts) != _count(facts):
        yield Altered(place, UNUSABLE_FACTS)
    yield MemoryRecord(said, source, short_key(key), at, kept, place, own_tags, own_facts)


def _texts(value: object, max_chars: int, max_count: int) -> list[str]:
    """Return the storable texts of a list; the text of an object is its `text`, as for facts in our exports."""
    said = [one.get("text") if isinstance(one, dict) else one for one in value] if isinstance(value, list) else []
    return [text for one in said if 1 <= len(text := text_of(one).strip()) <= max_chars][:max_count]


def _count(value: object) -> int:
    return len(value) if isinstance(value, list) else int(value is not None)


def short_key(key: str) -> str:
    return key if len(key) <= MAX_SOURCE_CHARS else digest(key)


def json_bytes(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def pieces(text: str, max_chars: int) -> Iterator[str]:
    """Split the text into pieces within the limit, preferably between paragraphs, lines or words."""
    rest = text
    while len(rest) > max_chars:
        cut = next((at for mark in ("\n\n", "\n", " ") if (at := _last(rest, mark, max_chars))), max_chars)
        if piece := rest[:cut].strip("\n"):
            yield piece
        rest = rest[cut:].lstrip("\n")
    if rest.strip():
        yield rest


def _last(text: str, mark: str, max_chars: int) -> int:
    """Return the end of the last such mark in the second half; 0 if there is none."""
    found = text.rfind(mark, max_chars // 2, max_chars)
    return 0 if found < 0 else found + len(mark)
