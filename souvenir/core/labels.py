"""Sources and tags, the labels of memories, and the notes of sensitive data in their metadata.

A source is a path: `proj/a/b` is in `proj/a`. A tag is a short label that keeps its case and is matched ignoring it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate

from souvenir.core.errors import InvalidRequest, SourceReserved
from souvenir.core.types import JsonObject, Memory, Scope

SEPARATOR, PARENT = "/", ".."
MAX_SOURCE_CHARS = 500


def lies_in(source: str, path: str) -> bool:
    """Return whether a source equals the path or is below it: `proj/a/b` is in `proj/a`, `proj/ab` is not."""
    return source == path or source.startswith(path + SEPARATOR)


def is_visible(source: str, paths: Sequence[str] | None) -> bool:
    """Return whether a source is in one of the paths; one with a `..` segment never is. Without paths, all are."""
    if paths is None:
        return True
    return PARENT not in source.split(SEPARATOR) and any(lies_in(source, path) for path in paths)


PLACE_DIGEST_BYTES = 8


def place_digest(path: str) -> bytes:
    """Return the digest by which an event says that a memory left a path.

    The path itself is not kept: it may name a person, and must not outlive the memory.
    """
    return _digest(path.encode())


def place_digests(source: bytes) -> bytes:
    """Return the joined digests of all paths that a source is in; none for one with a `..` segment (`is_visible`)."""
    separator = SEPARATOR.encode()
    segments = source.split(separator)
    if PARENT.encode() in segments:
        return b""
    return b"".join(map(_digest, accumulate(segments, lambda path, segment: path + separator + segment)))


def split_digests(digests: bytes) -> set[bytes]:
    return {digests[at : at + PLACE_DIGEST_BYTES] for at in range(0, len(digests), PLACE_DIGEST_BYTES)}


def _digest(path: bytes) -> bytes:
    return sha256(path).digest()[:PLACE_DIGEST_BYTES]


DOCUMENTS, DOCUMENT_KEY = "memories", "document"
"""The source below which the documents of an agent are stored, and the key that makes a memory there a document."""


def is_document(memory: Memory) -> bool:
    """Return whether a memory is a document: its author alone changes it, so it is no duplicate of another text."""
    return memory.key == DOCUMENT_KEY and memory.source.startswith(DOCUMENTS + SEPARATOR)


PROJECT, PERSON = "project", "person"
"""Reserved sources, for keys with a principal: `project/...` is shared, `person/NAME/...` is the principal NAME's."""


def is_reserved(source: str) -> bool:
    """Return whether a source is in one of the reserved parts."""
    return lies_in(source, PROJECT) or lies_in(source, PERSON)


def require_unreserved(path: str) -> None:
    """Check a path that memories are moved to in bulk.

    :raises SourceReserved: If it is in a reserved part.
    """
    if is_reserved(path):
        raise SourceReserved(path, "choose another name")


def belongs_to_another(source: str, person: str | None) -> bool:
    """Return whether a source is the part of another principal than `person`; without one, none is."""
    return person is not None and lies_in(source, PERSON) and not lies_in(source, f"{PERSON}{SEPARATOR}{person}")


MAX_TAG_CHARS = 100
MAX_TAGS = 50
"""Maximum number of tags per memory."""

WORDS_READ = 64
"""Number of words at the start of a query in which tags are looked for."""

WORDS_IN_A_TAG = 3
"""Maximum number of words of a tag that a query names."""

AUTHORSHIP = frozenset({"author", "contributors", "promotion"})
"""Names in metadata that say who made a memory: no caller can set them, and only an admin can import them."""

AUTHOR, CONTRIBUTORS, ORIGIN_CLIENT = "author", "contributors", "origin_client"

CLIENTS = frozenset({"codex", "claude-code", "hook", "manual", "other"})


def client_named(value: object) -> str:
    """Return the kind of program that a name stands for."""
    name = str(value).strip().lower().replace("_", "-").replace(" ", "-")
    return name if name in CLIENTS else "other"


def attributed(metadata: JsonObject, scope: Scope, replaced: Sequence[Memory] = ()) -> JsonObject:
    """Return the metadata of a new memory with its author and client; authors of replaced memories contribute to it."""
    others = [name for old in replaced for name in (old.metadata.get(AUTHOR), *names(old.metadata, CONTRIBUTORS))]
    contributors = [name for name in dict.fromkeys(others) if isinstance(name, str) and name != scope.author]
    noted = {AUTHOR: scope.author, CONTRIBUTORS: contributors, ORIGIN_CLIENT: scope.client}
    own = {AUTHOR, CONTRIBUTORS} if replaced else set()
    kept = {name: value for name, value in metadata.items() if name not in own}
    return {**kept, **{name: value for name, value in noted.items() if value}}


def contributed(metadata: JsonObject, author: str | None) -> JsonObject:
    """Return the metadata of a memory after a change by a principal, who contributes to what others wrote."""
    known = names(metadata, CONTRIBUTORS)
    if author is None or author == metadata.get(AUTHOR) or author in known:
        return metadata
    return {**metadata, CONTRIBUTORS: [*known, author]}


JOB_ID, MESSAGE_ID, MESSAGE_SPAN, SPAN = "extraction_job_id", "message_id", "message_span", "span"
"""Names in metadata that say where an extracted text comes from: the job, the stored message that contains its quote,
and the position of the quote in the message and in the transcript."""

ORIGIN = frozenset({JOB_ID, MESSAGE_ID, MESSAGE_SPAN})
"""Names that no caller can set, and only an admin can import, as other texts are shown for them."""


def without_origin(metadata: JsonObject) -> JsonObject:
    """Return metadata without the place that the text came from, for a text that is replaced."""
    return {name: value for name, value in metadata.items() if name != SPAN and name not in ORIGIN}


_JOINTS = (" ", "-", "_")
_AROUND_WORDS = ".,;:!?\"'()[]{}“”‘’«»"


def fold(tag: str) -> str:
    """Return the normalised form by which spellings of a tag are compared."""
    return unicodedata.normalize("NFKC", tag).casefold()


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags with white space normalised; of equal tags, the first.

    :raises InvalidRequest: If one is empty or too long, or there are too many.
    """
    found: dict[str, str] = {}
    for tag in tags:
        clean = " ".join(tag.split())
        if not 1 <= len(clean) <= MAX_TAG_CHARS or not clean.isprintable():
            raise InvalidRequest(f"A tag takes 1 to {MAX_TAG_CHARS} printable characters")
        found.setdefault(fold(clean), clean)
    return few(tuple(found.values()))


def few(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Check the number of tags of one memory.

    :raises InvalidRequest: If there are too many.
    """
    if len(tags) > MAX_TAGS:
        raise InvalidRequest(f"A memory takes at most {MAX_TAGS} tags, and these are {len(tags)}; take some away")
    return tags


def inherited(tags: Sequence[str], olds: Iterable[str]) -> tuple[str, ...]:
    """Return the tags of a memory that replaces others: its own, then theirs, up to the limit."""
    return joined(tags, olds)[:MAX_TAGS]


def joined(tags: Sequence[str], more: Iterable[str], without: Iterable[str] = ()) -> tuple[str, ...]:
    """Add tags, then remove some; the existing spelling is kept."""
    gone = {fold(tag) for tag in without}
    found: dict[str, str] = {}
    for tag in (*tags, *more):
        found.setdefault(fold(tag), tag)
    return tuple(tag for folded, tag in found.items() if folded not in gone)


def named_in(text: str) -> set[str]:
    """Return every folded tag that the words of a text may name: up to three consecutive words."""
    words = [word.strip(_AROUND_WORDS) for word in fold(text).split()[:WORDS_READ]]
    runs = [words[start : start + length] for length in range(1, WORDS_IN_A_TAG + 1) for start in range(len(words))]
    return {joint.join(run) for joint in _JOINTS for run in runs} - {""}


USER_ID, APP_ID, RUN_ID = "user_id", "app_id", "run_id"
ENTITIES = (USER_ID, APP_ID, RUN_ID)
"""Names in metadata whose texts name the user, the application and the run that a memory is about."""

MAX_ENTITY_CHARS = 200
"""Maximum number of characters of such a name; a longer text is content."""


def entities_of(metadata: JsonObject) -> JsonObject:
    """Return the names of a user, an application and a run in metadata."""
    held = {name: metadata[name] for name in ENTITIES if name in metadata}
    return {name: one for name, one in held.items() if isinstance(one, str) and len(one) <= MAX_ENTITY_CHARS}


PROTECTED = "protected"
"""The key that is true if only its author, and no learning, changes a memory."""

SENSITIVE_TOPICS, SENSITIVE_DATA = "sensitive_topics", "sensitive_data"
"""Metadata keys under which the service notes the sensitive topics of a text and the kinds of data found in it."""


MARKS = frozenset({SENSITIVE_TOPICS, SENSITIVE_DATA, PROTECTED, ORIGIN_CLIENT})
"""Names in metadata by which the service marks a memory, other than those that no caller can set."""


def without_notes(metadata: JsonObject) -> JsonObject:
    """Return metadata without the notes, for a text that is replaced."""
    return {key: value for key, value in metadata.items() if key not in (SENSITIVE_TOPICS, SENSITIVE_DATA)}


def notes_of(metadata: JsonObject) -> JsonObject:
    """Return the notes in metadata."""
    return {key: value for key, value in metadata.items() if key in (SENSITIVE_TOPICS, SENSITIVE_DATA)}


def joined_notes(metadata: JsonObject, found: JsonObject) -> JsonObject:
    """Merge the notes of new findings with those in metadata."""
    return {key: sorted({*names(metadata, key), *names(found, key)}) for key in notes_of(found) if names(found, key)}


def names(metadata: Mapping[str, object] | None, key: str) -> list[str]:
    """Return the names under a key, if its value is a list of names: callers can write these keys too."""
    held = (metadata or {}).get(key)
    return [one for one in held if isinstance(one, str)] if isinstance(held, list) else []
