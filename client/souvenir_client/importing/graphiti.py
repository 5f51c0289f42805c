"""Graphs of Graphiti and of Zep: nodes, edges and episodes as JSON, also one a line, or as Zep Cloud answers them.

- The fact of an edge becomes a memory; one that is no longer valid is archived.
- Nodes become entities of the knowledge graph, and the edges between them its relations, as long as they are valid.
- An episode that is a message becomes one of a session; any other becomes a memory.

The fields are those of Graphiti's EntityNode, EntityEdge and EpisodicNode, and of Zep's Node, Edge and Episode. What an
object is follows from its fields. The whole graph is held in memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing import jsonl, knowledge_graph, storable
from souvenir_client.importing.conversations import SourceMessage, conversation, returned
from souvenir_client.importing.records import Altered, ImportedEntity, ImportedRelation, Reading, Record, Skipped

DEFAULT_SOURCE = "graphiti"
PARTS = ("nodes", "entities", "edges", "episodes", "items")
_OTHER_PARTS = ("communities", "sagas", "observations", "thread_summaries", "hyperedges")
TELLING = frozenset(
    {
        *("source_node_uuid", "source_description", "entity_edges"),
        *("name_embedding", "fact_embedding", "graph_uuid", "episode_uuids"),
    }
)
"""Fields that only parts of such graphs have."""

_OF_AN_EDGE = frozenset({"uuid", "fact", "name", "group_id", "valid_at", "attributes", "fact_embedding"})
_OF_AN_EPISODE = frozenset({"uuid", "content", "metadata", "episode_metadata", "valid_at", "role", "role_type"})
_SPEAKER = re.compile(r"(?P<name>[^\n:()]{0,100})\((?P<role>user|assistant|system)\):\s*")
"""How Graphiti's server stores a message: `name(role): text`."""

_ROLE = re.compile(r"(?P<name>)(?P<role>user|assistant|system):\s*")

NO_GRAPH = "it has neither nodes nor edges nor episodes of a graph of Graphiti or Zep"
NO_PART = "it is neither a node nor an edge nor an episode"
NO_FACT = "it is an edge without a fact"
OTHER_PART = "communities, sagas, observations, summaries of threads and hyperedges are not imported"
SAME_NAME = "another node has its name; both are one entity"
NO_RELATION = "its fact is imported, but not as a relation: a node is not in the file, or a name or type is unusable"
ENDED = "its fact is archived, and not a relation: it is no longer valid"
LONG_SUMMARY = "its summary is too long and was omitted"
Part = tuple[str, Mapping[str, Any]]


def tells(said: Mapping[str, Any]) -> bool:
    """Return True for a part of such a graph, or an object with lists of them."""
    held = [said, *(one for name in PARTS for one in storable.objects_in(said.get(name))[:20])]
    return any(not TELLING.isdisjoint(one) for one in held)


def read(path: Path, source: str | None) -> Reading:
    """:param source: Prefix of the sources of memories; entities of the knowledge graph have their own."""
    graph = _Graph(source or DEFAULT_SOURCE)
    for place, said in jsonl.document_or_lines(path):
        graph.take(said, place)
    if graph.is_empty:
        raise NotImportable(str(path), NO_GRAPH)
    items = list(graph.items())
    return Reading(len(items), iter(items), graph.prefix)


class _Graph:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._nodes: list[Part] = []
        self._edges: list[Part] = []
        self._episodes: list[Part] = []
        self._unusable: list[Skipped] = []
        self._names: dict[str, str] = {}
        self._known: set[str] = set()
        self._now = datetime.now(UTC).isoformat(timespec="microseconds")

    @property
    def is_empty(self) -> bool:
        return not (self._nodes or self._edges or self._episodes)

    def take(self, said: object, place: str) -> None:
        """Sort a part, or the parts in a list or an object, by what they are."""
        if isinstance(said, list):
            for number, one in enumerate(said, 1):
                self._take_part(one, f"{place or 'part'} {number}")
        elif isinstance(said, dict) and self._list_of(said) is None:
            of_lists = [name for name in (*PARTS, *_OTHER_PARTS) if isinstance(said.get(name), list)]
            for name in of_lists:
                for number, one in enumerate(said[name], 1):
                    where = f"{place}, {name} {number}".removeprefix(", ")
                    if name in _OTHER_PARTS:
                        self._unusable.append(Skipped(where, OTHER_PART))
                    else:
                        self._take_part(one, where)
            if not of_lists:
                self._take_part(said, place)
        else:
            self._take_part(said, place)

    def _take_part(self, said: object, place: str) -> None:
        found = self._list_of(said) if isinstance(said, dict) else None
        if isinstance(said, Skipped):
            self._unusable.append(said)
        elif found is None or not isinstance(said, dict):
            self._unusable.append(Skipped(place, NO_PART))
        else:
            found.append((storable.line_of(said.get("uuid"), storable.MAX_NAME_CHARS) or place, said))

    def _list_of(self, said: Mapping[str, Any]) -> list[Part] | None:
        """The list of the parts like this; None if it is no part."""
        if "fact" in said or "source_node_uuid" in said:
            return self._edges
        if "content" in said:
            return self._episodes
        return self._nodes if "name" in said and not {"uuid", "summary", "labels"}.isdisjoint(said) else None

    def items(self) -> Iterator[Sequence[Record]]:
        """The sessions first: without an agent, nothing is sent."""
        yield from self._sessions()
        yield from (tuple(self._entity(place, said)) for place, said in self._nodes)
        yield from (tuple(self._fact(place, said)) for place, said in self._edges)
        yield from (tuple(self._document(place, said)) for place, said in self._episodes if not _is_message(said))
        if self._unusable:
            yield self._unusable

    # --- the knowledge graph -----------------------------------------------------------------------------------

    def _entity(self, place: str, said: Mapping[str, Any]) -> Iterator[Record]:
        name = storable.line_of(said.get("name"), 2 * storable.MAX_SOURCE_CHARS)
        if not 1 <= len(name) <= storable.MAX_SOURCE_CHARS:
            yield Skipped(place, knowledge_graph.NO_NAME)
            return
        if name in self._known:
            yield Altered(place, SAME_NAME)
        self._known.add(name)
        self._names[place] = name
        summary = storable.text_of(said.get("summary")).strip()
        if len(summary) > storable.MAX_TEXT_CHARS:
            yield Altered(place, LONG_SUMMARY)
            summary = ""
        yield ImportedEntity(name, _label(said.get("labels")), [summary] if summary else [], place)

    def _relation(self, place: str, said: Mapping[str, Any]) -> Iterator[Record]:
        ends = []
        for end in ("source", "target"):
            uuid = storable.line_of(said.get(f"{end}_node_uuid"), storable.MAX_NAME_CHARS)
            own = storable.line_of(said.get(f"{end}_node_name"), 2 * storable.MAX_SOURCE_CHARS)
            if uuid and uuid not in self._names and 1 <= len(own) <= storable.MAX_SOURCE_CHARS:
                # Zep names the ends of an edge, so its nodes need not be in the file.
                self._names[uuid] = own
                yield ImportedEntity(own, _label(said.get(f"{end}_node_labels")), [], place)
            ends.append(self._names.get(uuid, ""))
        kind = storable.line_of(said.get("name"), 2 * knowledge_graph.MAX_RELATION_TYPE_CHARS)
        if ends[0] and ends[1] and 1 <= len(kind) <= knowledge_graph.MAX_RELATION_TYPE_CHARS:
            yield ImportedRelation(ends[0], ends[1], kind, place)
        else:
            yield Altered(place, NO_RELATION)

    # --- memories ----------------------------------------------------------------------------------------------

    def _fact(self, place: str, said: Mapping[str, Any]) -> Iterator[Record]:
        if not storable.text_of(said.get("fact")).strip():
            yield Skipped(place, NO_FACT)
            return
        is_over = self._is_over(said)
        held = said.get("attributes")
        others = {name: one for name, one in said.items() if name not in _OF_AN_EDGE}
        metadata = {**(held if isinstance(held, dict) else {}), **others, "relation": said.get("name")}
        for end in ("source", "target"):
            uuid = storable.line_of(said.get(f"{end}_node_uuid"), storable.MAX_NAME_CHARS)
            metadata[f"{end}_node_name"] = said.get(f"{end}_node_name") or self._names.get(uuid)
        yield from self._memory(
            place,
            said,
            said["fact"],
            # A language model derived it from the episodes.
            {**storable.foreign_metadata(metadata, "graphiti"), "origin_class": "inferred"},
            archived=is_over,
        )
        if is_over:
            yield Altered(place, ENDED)
        else:
            yield from self._relation(place, said)

    def _is_over(self, said: Mapping[str, Any]) -> bool:
        """Return True if it was superseded, or its time is over."""
        if storable.timestamp_of(said.get("expired_at")):
            return True
        until = storable.timestamp_of(said.get("invalid_at"))
        return until is not None and until <= self._now

    def _document(self, place: str, said: Mapping[str, Any]) -> Iterator[Record]:
        held = [one for name in ("metadata", "episode_metadata") if isinstance(one := said.get(name), dict)]
        others = {name: one for name, one in said.items() if name not in _OF_AN_EPISODE}
        metadata = {name: one for part in (*held, others) for name, one in part.items()}
        kept = {**storable.foreign_metadata(metadata, "graphiti"), "origin_class": "document"}
        return self._memory(place, said, said.get("content"), kept)

    def _memory(
        self, place: str, said: Mapping[str, Any], text: object, metadata: dict[str, Any], *, archived: bool = False
    ) -> Iterator[Record]:
        group = _group(said)
        return storable.memory(
            text,
            source=f"{self.prefix}/{group}" if group else self.prefix,
            key=storable.line_of(said.get("uuid"), storable.MAX_SOURCE_CHARS)
            or storable.digest(storable.text_of(text), storable.timestamp_of(said.get("valid_at"))),
            place=place,
            created_at=_at(said),
            metadata={**metadata, "archived": True} if archived else metadata,
        )

    # --- sessions ----------------------------------------------------------------------------------------------

    def _sessions(self) -> Iterator[Sequence[Record]]:
        sessions: dict[str, list[tuple[str, int, SourceMessage]]] = defaultdict(list)
        for number, (_, said) in enumerate(self._episodes):
            if _is_message(said):
                thread = (storable.name_of(said.get(name)) for name in ("thread_uuid", "thread_id"))
                name = next(filter(None, thread), "") or _group(said)
                at = storable.timestamp_of(_at(said)) or ""
                sessions[name].append((at, number, _message(said)))
        for name, messages in sessions.items():
            yield tuple(
                conversation(
                    [one for *_, one in sorted(messages, key=lambda one: one[:2])],
                    session_id=storable.name_of(f"graphiti-{name}" if name else "graphiti"),
                    place=f"session {name}",
                    metadata={"imported_from": "graphiti"},
                )
            )


def _is_message(said: Mapping[str, Any]) -> bool:
    return said.get("source") == "message" or any(isinstance(said.get(name), str) for name in ("role", "role_type"))


def _message(said: Mapping[str, Any]) -> SourceMessage:
    content = storable.text_of(said.get("content"))
    # Zep 4 has the role in `role` and the name in `role_name`, and Zep 3 in `role_type` and `role`.
    is_older = isinstance(said.get("role_type"), str)
    role = storable.text_of(said.get("role_type" if is_older else "role"))
    name = storable.line_of(said.get("role" if is_older else "role_name"), storable.MAX_SPEAKER_CHARS)
    written = None if role else _SPEAKER.match(content) or _ROLE.match(content)
    if written is not None:
        role, name, content = written["role"], written["name"].strip(), content[written.end() :]
    key = storable.line_of(said.get("uuid"), storable.MAX_NAME_CHARS)
    message = SourceMessage(
        role if role in ("user", "assistant", "system") else "user",
        content,
        key or storable.digest(content, storable.timestamp_of(_at(said))),
        _at(said),
        storable.foreign_metadata({"source_description": said.get("source_description")}, "graphiti"),
        name=name or None,
    )
    return returned(name or "tool", message) if role in ("tool", "function") else message


def _at(said: Mapping[str, Any]) -> object:
    """The time of what it says: `reference_time` is Zep's, and the time of an episode that an edge came from."""
    return next((said[name] for name in ("valid_at", "reference_time", "created_at") if said.get(name)), None)


def _group(said: Mapping[str, Any]) -> str:
    return next((name for key in ("group_id", "graph_uuid") if (name := storable.name_of(said.get(key)))), "")


def _label(labels: object) -> str:
    """The first label; that of every node says nothing."""
    names = [storable.line_of(one, storable.MAX_NAME_CHARS) for one in labels] if isinstance(labels, list) else []
    return next((name for name in names if name and name != "Entity"), "")
