"""The JSON lines of exports and imports, including the formats of other services.

Keys have a fixed order, so that equal stores produce equal files. A memory's own fields in `custom_fields` of a line
of the reference service are read from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints, TypeAdapter, ValidationError

from souvenir.api.fields import EMPTY_IS_MISSING, Clean, Key, Moment, Source, Text, optional_wire_time, wire_time
from souvenir.api.metadata import OF_THE_RECORD, Metadata, read_fields
from souvenir.core.errors import InvalidRequest
from souvenir.core.labels import clean_tags
from souvenir.core.timestamps import from_us, to_us, utc_now
from souvenir.core.types import FactsBy, HistoryEntry, JsonObject, Memory, MemoryDraft, Origin, OriginClass
from souvenir.store.memories.memories import fact_state
from souvenir.store.memories.reads import MERGED_FROM
from souvenir.transfer.lines import ImportLine, LineLink

FORMAT_VERSION = "4.2.0"
_MAJOR = int(FORMAT_VERSION.partition(".")[0])

MAX_FACTS = 1_000
"""Of one line; a memory seldom has more than a few."""

STATE_TIMES = ("document_at", "valid_to", "created_at", "updated_at")
"""Of what a memory was before or after a change."""

LINE_EXAMPLE = (
    '{"text":"The billing service moves to Postgres 17 in May.","source":"claude-code/billing",'
    '"created_at":"2025-04-02T09:30:00.000000+00:00","updated_at":"2025-04-02T09:30:00.000000+00:00",'
    '"custom_fields":{"category":"decision"},"tags":["billing"],"facts":[{"text":"Billing moves to Postgres 17",'
    '"made_by":"model","created_at":"2025-04-02T09:30:00.000000+00:00"}]}\n'
)

TAGS, FACTS = "tags", "facts"
"""Fields of a line and of a history entry."""

OptionalMoment = Annotated[Moment | None, EMPTY_IS_MISSING]
"""A time that a file may leave empty."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean]


class WrittenAs:
    """One export in this format; implements `ExportFormat`."""

    def __init__(self, source: str | None, since: datetime | None, until: datetime | None) -> None:
        self._source = source
        self._since = since
        self._until = until

    def header(self, count: int) -> bytes:
        said = {
            "_header": True,
            "exported_at": wire_time(utc_now()),
            "source_filter": self._source,
            "since": optional_wire_time(self._since),
            "until": optional_wire_time(self._until),
            "count": count,
            "version": FORMAT_VERSION,
        }
        return json_line(said)

    def line(self, memory: Memory, history: Sequence[HistoryEntry] | None) -> bytes:
        said = memory_said(memory)
        if history is not None:
            said["history"] = [_written(entry) for entry in history]
        return json_line(said)


def memory_said(memory: Memory) -> dict[str, Any]:
    """The fields of a memory in a line, without its history."""
    links = [{"to_id": it.to_id, "type": it.type, "created_at": wire_time(it.created_at)} for it in memory.links]
    return {
        "text": memory.text,
        "source": memory.source,
        "created_at": wire_time(memory.created_at),
        "updated_at": wire_time(memory.updated_at),
        "custom_fields": dict(memory.metadata),
        "id": memory.id,
        "key": memory.key,
        "document_at": optional_wire_time(memory.document_at),
        "pinned": memory.pinned,
        "archived": memory.archived,
        "origin_class": memory.origin_class.value,
        "valid_to": optional_wire_time(memory.valid_to),
        "links": links,
        "tags": list(memory.tags),
        "facts": [_fact_said(fact_state(fact)) for fact in memory.facts],
    }


def _fact_said(state: JsonObject) -> dict[str, Any]:
    """A fact without its id, which no other store has."""
    return {"text": state["text"], "made_by": state["made_by"], "created_at": wire_time(from_us(state["created_at"]))}


def json_line(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _written(entry: HistoryEntry) -> dict[str, Any]:
    before, after = (_state_said(state) for state in (entry.before, entry.after))
    return {
        "action": entry.action,
        "actor": entry.actor,
        "at": wire_time(entry.at),
        "imported": entry.imported,
        "before": before,
        "after": after,
    }


def _state_said(state: JsonObject | None) -> dict[str, Any] | None:
    written = written_state(state)
    if state is None or written is None or FACTS not in state:
        return written
    return {**written, FACTS: [_fact_said(fact) for fact in state[FACTS]]}


def written_state(state: JsonObject | None) -> dict[str, Any] | None:
    """A former state of a memory, with times as texts; tags and facts are included if it had any."""
    if state is None:
        return None
    times = {name: state.get(name) for name in STATE_TIMES}
    written = {**state, **{name: None if at is None else wire_time(from_us(at)) for name, at in times.items()}}
    if FACTS in state:
        written[FACTS] = [{**fact, "created_at": wire_time(from_us(fact["created_at"]))} for fact in state[FACTS]]
    return written


ForeignId = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""An id of another store, which may count higher than this one; it is mapped, or dropped."""


class _Link(BaseModel):
    to_id: ForeignId
    type: Name
    created_at: OptionalMoment = None


_LINK = TypeAdapter(_Link)


class _Fact(BaseModel):
    text: Text
    made_by: FactsBy = FactsBy.CALLER
    created_at: OptionalMoment = None


Facts = Annotated[list[_Fact], Field(max_length=MAX_FACTS)]


class _HistoryState(BaseModel):
    text: Text
    source: Source
    key: Key | None = None
    metadata: Metadata = Field(default_factory=dict)
    document_at: OptionalMoment = None
    pinned: bool = False
    archived: bool = False
    origin_class: OriginClass = OriginClass.USER
    valid_to: OptionalMoment = None
    created_at: OptionalMoment = None
    updated_at: OptionalMoment = None
    tags: list[str] = Field(default_factory=list)
    facts: Facts = Field(default_factory=list)

    def stored(self, at: datetime) -> JsonObject:
        """:param at: The time of the state, which dates facts without a time."""
        moments: dict[str, datetime | None] = {name: getattr(self, name) for name in STATE_TIMES}
        times = {name: None if at is None else to_us(at) for name, at in moments.items()}
        plain = self.model_dump(mode="json", exclude={TAGS, FACTS})
        return {**plain, **times, "metadata": _with_sources(self.metadata), **self._owned(at)}

    def _owned(self, at: datetime) -> JsonObject:
        """Tags and facts, if there are some, as the history holds them."""
        facts = [
            {"text": one.text, "made_by": one.made_by.value, "created_at": to_us(one.created_at or at)}
            for one in self.facts
        ]
        owned: dict[str, Any] = {TAGS: list(clean_tags(self.tags)), FACTS: facts}
        return {name: held for name, held in owned.items() if held}


class _HistoryEntry(BaseModel):
    action: Name
    actor: Name
    at: Moment
    before: _HistoryState | None = None
    after: _HistoryState | None = None

    def entry(self) -> HistoryEntry:
        before, after = (None if state is None else state.stored(self.at) for state in (self.before, self.after))
        return HistoryEntry(self.action, self.actor, self.at, before, after)


class _Line(BaseModel):
    text: Text
    source: Source
    created_at: OptionalMoment = None
    updated_at: OptionalMoment = None
    custom_fields: Metadata | None = None
    id: ForeignId | None = None
    key: Key | None = None
    document_at: OptionalMoment = None
    pinned: bool | None = None
    archived: bool | None = None
    origin_class: OriginClass | None = None
    valid_to: OptionalMoment = None
    links: list[_Link] = Field(default_factory=list)
    history: list[_HistoryEntry] | None = None
    tags: list[str] = Field(default_factory=list)
    facts: Facts = Field(default_factory=list)

    def line(self) -> ImportLine:
        """:raises InvalidRequest: If its tags cannot be used."""
        metadata = {name: value for name, value in (self.custom_fields or {}).items() if name not in OF_THE_RECORD}
        said = read_fields(metadata)
        for name in ("document_at", "pinned", "archived", "entity_key", "origin_class"):
            metadata.pop(name, None)
        created_at = self.created_at or utc_now()
        draft = MemoryDraft(
            self.text,
            self.source,
            _with_sources(metadata),
            key=self.key or said.key,
            document_at=self.document_at or said.document_at,
            pinned=bool(said.pinned if self.pinned is None else self.pinned),
            archived=bool(said.archived if self.archived is None else self.archived),
            origin_class=self.origin_class or said.origin_class or OriginClass.USER,
            valid_to=self.valid_to,
            tags=clean_tags(self.tags),
            facts=tuple(fact.text for fact in self.facts),
            facts_by=self.facts[0].made_by if self.facts else FactsBy.CALLER,
        )
        history = tuple(entry.entry() for entry in self.history or ())
        split = {fact.text: (fact.made_by, fact.created_at or created_at) for fact in self.facts}
        origin = Origin(created_at, self.updated_at or created_at, self.id, history, split)
        links, dropped = self._all_links()
        found = tuple(LineLink(it.to_id, it.type, it.created_at or created_at) for it in links)
        return ImportLine(draft, origin, found, dropped)

    def _all_links(self) -> tuple[list[_Link], int]:
        """Return the links, also those that other services keep in the metadata, and the number of unusable ones."""
        given = (self.custom_fields or {}).get("links")
        if self.links or not isinstance(given, list):
            return self.links, 0
        found = []
        for one in given:
            with suppress(ValidationError):
                found.append(_LINK.validate_python(one))
        return found, len(given) - len(found)


class ReadAs:
    """Reads imports; implements `ImportFormat`."""

    def check_header(self, first_line: bytes) -> None:
        header = _header(first_line)
        major = str((header or {}).get("version", _MAJOR)).partition(".")[0]
        if header is not None and not (major.isascii() and major.isdigit() and int(major) <= _MAJOR):
            raise InvalidRequest(
                f"The file is of version {header['version']} and this release reads versions up to {FORMAT_VERSION}; "
                "import it with a newer release"
            )

    def read(self, line: bytes) -> ImportLine | None:
        try:
            return _Line.model_validate_json(line, strict=True).line()
        except ValidationError as error:
            if _header(line) is not None:
                return None
            raise InvalidRequest(_sentence(error)) from error


def _header(line: bytes) -> Mapping[str, Any] | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) and said.get("_header") is True else None


def _sentence(error: ValidationError) -> str:
    """The first fault, without the text that it is in."""
    fault = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(map(str, fault["loc"]))
    return f"{where}: {fault['msg']}" if where else str(fault["msg"])


def _with_sources(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata without the sources of a merge, if they are not a list of ids."""
    named = metadata.get(MERGED_FROM)
    ids = isinstance(named, list) and all(isinstance(id_, int) and not isinstance(id_, bool) for id_ in named)
    return {name: value for name, value in metadata.items() if name != MERGED_FROM or ids}
