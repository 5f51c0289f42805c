"""The graph of an agent in JSON or GraphML, as the service exports it or as another system writes the same nodes.

Users, sessions, messages and memories are imported. Mentions, topics and co-occurrence follow from the messages and are
computed again; only statements about concepts are imported: descriptions, other names, and relations of types other
than `co_occurs`. The whole graph is held in memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing import storable
from souvenir_client.importing.conversations import SourceMessage, conversation
from souvenir_client.importing.exports import IMPORT_ID
from souvenir_client.importing.graphml import FileNode, FileRelation, GraphFile, read_graphml
from souvenir_client.importing.reading import Document
from souvenir_client.importing.records import (
    ConceptRelationStatement,
    ConceptStatement,
    ExportedLine,
    Reading,
    Record,
    Skipped,
)

DEFAULT_SOURCE = "graph"
CO_OCCURS = "co_occurs"
"""The type of relations that the service computes itself."""

LABELS = frozenset({"User", "Session", "Message", "Concept", "Topic", "Memory"})
UNKNOWN_LABEL = "it is not a node of an agent's graph"
LOST_END = "one of its concepts is not in the file"
NO_LISTS = "it has no nodes"
_FROM, _TO = ("from_id", "from", "source"), ("to_id", "to", "target")


def read(path: Path, source: str | None) -> Reading:
    """:param source: Source of memories without one, and the prefix of the others."""
    document = Document(path)
    is_xml = document.begin().lstrip().startswith(b"<")
    graph = _Graph(read_graphml(document) if is_xml else _of_json(document.name, document.load()), source)
    return Reading(len(graph.sessions) + len(graph.memories) + 1, graph.items(), agent=graph.agent)


def _of_json(name: str, said: object) -> GraphFile:
    nodes = said.get("nodes") if isinstance(said, dict) else None
    if not isinstance(said, dict) or not isinstance(nodes, list):
        raise NotImportable(name, NO_LISTS)
    relations = next((said[key] for key in ("relations", "edges", "links") if isinstance(said.get(key), list)), None)
    return GraphFile(
        [_node(one) for one in storable.objects_in(nodes)],
        [_relation(one) for one in storable.objects_in(relations)],
        storable.name_of(said.get("agent")) or None,
    )


def _node(said: Mapping[str, Any]) -> FileNode:
    labels = said.get("labels")
    label = said.get("label") or (labels[0] if isinstance(labels, list) and labels else "")
    return FileNode(_id(said.get("id")), str(label), _properties(said))


def _relation(said: Mapping[str, Any]) -> FileRelation:
    one, other = (next((_id(said[key]) for key in keys if key in said), "") for keys in (_FROM, _TO))
    return FileRelation(str(said.get("type") or said.get("label") or ""), one, other, _properties(said))


def _properties(said: Mapping[str, Any]) -> dict[str, Any]:
    held = said.get("properties")
    return held if isinstance(held, dict) else dict(said)


def _id(value: object) -> str:
    return str(value) if isinstance(value, str | int) else ""


@dataclass(frozen=True, slots=True)
class _Place:
    """The session of a message (its node, or its name if it has no node) and its position there."""

    session: str
    number: float


class _Graph:
    def __init__(self, file: GraphFile, source: str | None) -> None:
        self._file = file
        self._source = source
        self.agent = file.agent
        self._of_label: dict[str, dict[str, FileNode]] = defaultdict(dict)
        for number, node in enumerate(file.nodes):
            self._of_label[node.label][node.id or f"node {number}"] = node

    @property
    def memories(self) -> Mapping[str, FileNode]:
        return self._of_label["Memory"]

    def items(self) -> Iterator[Sequence[Record]]:
        for session, messages in self.sessions.items():
            yield tuple(self._conversation(session, messages))
        for number, (node_id, memory) in enumerate(self.memories.items(), 1):
            yield (self._memory(number, node_id, memory),)
        yield tuple(self._statements())

    # --- conversations -----------------------------------------------------------------------------------------

    @cached_property
    def sessions(self) -> Mapping[str, Sequence[str]]:
        """Return the messages of each session, by the ids of their nodes, in order."""
        found: dict[str, list[tuple[float, str, int, str]]] = defaultdict(list)
        for index, (node_id, message) in enumerate(self._of_label["Message"].items()):
            place = self._places.get(node_id) or self._named_place(message)
            at = storable.timestamp_of(message.properties.get("timestamp")) or ""
            found[place.session].append((place.number, at, index, node_id))
        return {session: [node_id for *_, node_id in sorted(messages)] for session, messages in found.items()}

    @cached_property
    def _places(self) -> Mapping[str, _Place]:
        found = {}
        for one in self._file.relations:
            if one.type == "CONTAINS":
                found[one.to_id] = _Place(one.from_id, _number(one.properties.get("sequence_number")))
            elif one.type == "PART_OF":
                found[one.from_id] = _Place(one.to_id, _number(one.properties.get("position")))
        return found

    def _named_place(self, message: FileNode) -> _Place:
        """Place a message without relations in the session that it names."""
        name = storable.text_of(message.properties.get("session_id")) or DEFAULT_SOURCE
        return _Place(self._sessions_by_name.get(name, name), 0)

    @cached_property
    def _sessions_by_name(self) -> Mapping[str, str]:
        return {_own_id(node, "session_id"): node_id for node_id, node in self._of_label["Session"].items()}

    @cached_property
    def _users(self) -> Mapping[str, str]:
        """The users of each message."""
        users = {node_id: _own_id(node, "user_id") for node_id, node in self._of_label["User"].items()}
        sent = [one for one in self._file.relations if one.type in ("SENT", "RECEIVED")]
        return {one.to_id: users[one.from_id] for one in sent if one.from_id in users}

    def _conversation(self, session: str, messages: Sequence[str]) -> Iterator[Record]:
        node = self._of_label["Session"].get(session) or FileNode(session)
        name, said = _own_id(node, "session_id"), node.properties
        user = storable.name_of(said.get("user_id")) or next(filter(None, map(self._users.get, messages)), None)
        yield from conversation(
            [self._said(node_id) for node_id in messages],
            session_id=storable.name_of(name) or storable.digest(name),
            place=f"session {name}",
            title=said.get("title") or said.get("name"),
            user=storable.name_of(user) or None,
            created_at=said.get("started_at", said.get("created_at")),
            started_at=said.get("started_at", said.get("created_at")),
            ended_at=said.get("ended_at"),
        )

    def _said(self, node_id: str) -> SourceMessage:
        node = self._of_label["Message"][node_id]
        said = node.properties
        return SourceMessage(
            said["role"] if said.get("role") in ("user", "assistant", "system") else "user",
            storable.exact_text_of(said.get("content")),
            _line(_own_id(node, "message_id")) or node_id,
            said.get("timestamp"),
            user=storable.name_of(self._users.get(node_id)) or None,
            name=storable.line_of(said.get("name"), storable.MAX_SPEAKER_CHARS) or None,
            exact=True,
        )

    # --- memories ----------------------------------------------------------------------------------------------

    def _memory(self, number: int, node_id: str, node: FileNode) -> Record:
        """Return the memory as a line of an export, so that it keeps its times."""
        said, named = node.properties, _own_id(node, "memory_id")
        text, place = storable.exact_text_of(said.get("content")), f"memory {named}"
        if not text.strip():
            return Skipped(place, storable.NO_TEXT)
        if len(text) > storable.MAX_TEXT_CHARS:
            return Skipped(place, storable.TOO_LONG)
        own_source = storable.line_of(said.get("source"), storable.MAX_SOURCE_CHARS)
        own_id = int(named) if named.isdecimal() and own_source else None
        line = {
            "text": text,
            "source": "/".join(filter(None, (self._source, own_source))) or DEFAULT_SOURCE,
            "id": own_id,
            "key": storable.text_of(said.get("key")) or (None if own_id is not None else storable.short_key(named)),
            "created_at": storable.timestamp_of(said.get("created_at")),
            "document_at": storable.timestamp_of(said.get("document_at")),
            "custom_fields": {IMPORT_ID: storable.digest(named), **_importance(said.get("importance"))},
        }
        return ExportedLine({name: value for name, value in line.items() if value is not None}, number)

    # --- what is said of concepts ------------------------------------------------------------------------------

    def _statements(self) -> Iterator[Record]:
        keys = {node_id: _key(node.properties) for node_id, node in self._of_label["Concept"].items()}
        for node_id, node in self._of_label["Concept"].items():
            if keys[node_id]:
                yield from _stated(keys[node_id], node.properties, f"concept {keys[node_id]}")
        for number, one in enumerate(self._file.relations, 1):
            kind = _line(one.properties.get("relationship_type"))
            if one.type != "RELATES_TO" or kind in ("", CO_OCCURS):
                continue
            place, ends = f"relation {number}", [keys.get(one.from_id), keys.get(one.to_id)]
            if ends[0] and ends[1]:
                yield ConceptRelationStatement(ends[0], ends[1], kind, _share(one.properties.get("strength")), place)
            else:
                yield Skipped(place, LOST_END)
        for node in self._file.nodes:
            if node.label not in LABELS:
                yield Skipped(f"node {node.id}", UNKNOWN_LABEL)


def _key(said: Mapping[str, Any]) -> str:
    return _line(said.get("key")) or _line(said.get("name"))


def _stated(key: str, said: Mapping[str, Any], place: str) -> Iterator[Record]:
    """The statements about a concept: `stated` in our own files, otherwise its description and other names."""
    ours = "key" in said
    stated = _several(said.get("stated")) if ours else ("description",)
    description = storable.text_of(said.get("description")).strip() if "description" in stated else ""
    aliases = _several(said.get("stated_aliases" if ours else "aliases"))
    name, kind = (_line(said.get(one)) if one in stated else "" for one in ("name", "kind"))
    if name or kind or description or aliases:
        yield ConceptStatement(key, name or None, description or None, aliases, kind or None, place)


def _several(value: object) -> Sequence[str]:
    """Return the texts of a list, or the lines of a text, as in GraphML."""
    held = value if isinstance(value, list) else storable.text_of(value).split("\n")
    return tuple(filter(None, map(_line, held)))


def _line(value: object) -> str:
    return storable.line_of(value, storable.MAX_NAME_CHARS)


def _own_id(node: FileNode, name: str) -> str:
    """Return the id in its properties, whatever the id of its node is."""
    said = node.properties
    return next((_id(said[key]) for key in (name, "id") if _id(said.get(key))), node.id)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _share(value: object) -> float:
    """Return the value in [0, 1]; 1 by default."""
    return min(1.0, max(0.0, float(value))) if isinstance(value, int | float) else 1.0


def _importance(value: object) -> dict[str, float]:
    return {"importance": _share(value)} if isinstance(value, int | float) and not isinstance(value, bool) else {}
