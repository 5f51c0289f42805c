"""GraphML as nodes and relations, of this service's exports and of other programs.

A graph is untrusted, so a file that declares a document type is refused before it is parsed: no entity is ever defined,
expanded or fetched. Nested graphs, hyperedges and ports are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from souvenir_client.errors import NotImportable
from souvenir_client.importing.reading import MAX_DOCUMENT_BYTES, Document, too_large


@dataclass(slots=True)
class FileNode:
    """A node; its `label` is User, Session, Message, Concept or Memory."""

    id: str
    label: str = ""
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class FileRelation:
    """A relation; its `type` is SENT, CONTAINS or MENTIONS, for example."""

    type: str
    from_id: str
    to_id: str
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class GraphFile:
    """:param agent: The agent of the graph, if the file names it."""

    nodes: list[FileNode] = field(default_factory=list)
    relations: list[FileRelation] = field(default_factory=list)
    agent: str | None = None


MAX_DEPTH = 20
"""Maximum nesting of elements; a graph has 5."""

MAX_DATA_CHARS = 32 * 1024**2
"""Limit of a value; a message has up to 50,000."""

PIECE_BYTES = 1024**2
IN_GRAPH = ["graphml", "graph"]

DOCUMENT_TYPE = "it declares a document type; remove the line <!DOCTYPE ...>"
TOO_DEEP = f"its elements are nested deeper than {MAX_DEPTH}"
LONG_DATA = f"a value in it is longer than {MAX_DATA_CHARS} characters"
NO_GRAPH = "it has no <graphml> with a <graph>"


@dataclass(frozen=True, slots=True)
class _Key:
    name: str
    read: Callable[[str], Any]


def read_graphml(document: Document) -> GraphFile:
    """:raises NotImportable: If it is no XML, no graph, or contains forbidden declarations."""
    reader, size = _Reader(document.name), 0
    try:
        with document.opened() as file:
            while piece := file.read(PIECE_BYTES):
                size += len(piece)
                if size > MAX_DOCUMENT_BYTES:
                    raise too_large(document.name)
                reader.feed(piece)
        return reader.end()
    except expat.ExpatError as error:
        raise NotImportable(document.name, f"it is not XML ({error})") from error


class _Reader:
    """Parser state of one file. Names are without namespaces: GraphML has only one."""

    def __init__(self, name: str) -> None:
        self._graph = GraphFile()
        self._name = name
        self._keys: dict[str, _Key] = {}
        self._path: list[str] = []
        self._has_graph = False
        self._part: FileNode | FileRelation | None = None
        self._key = ""
        self._text: list[str] | None = None
        self._chars = 0
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._close
        parser.CharacterDataHandler = self._characters

    def feed(self, piece: bytes) -> None:
        self._parser.Parse(piece, False)

    def end(self) -> GraphFile:
        self._parser.Parse(b"", True)
        if not self._has_graph:
            raise self._refused(NO_GRAPH)
        return self._graph

    def _refused(self, reason: str) -> NotImportable:
        return NotImportable(self._name, reason)

    def _doctype(self, *_: object) -> None:
        raise self._refused(DOCUMENT_TYPE)

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        tag, above = name.rpartition(" ")[2], list(self._path)
        self._path.append(tag)
        if len(self._path) > MAX_DEPTH:
            raise self._refused(TOO_DEEP)
        match tag:
            case "graph" if above == ["graphml"]:
                self._has_graph = True
            case "key" if above == ["graphml"]:
                key, kind = attributes.get("id", ""), attributes.get("attr.type", "string")
                self._keys[key] = _Key(attributes.get("attr.name", key), _READ.get(kind, str))
            case "node" if above == IN_GRAPH:
                label = attributes.get("labels") or attributes.get("label") or ""
                self._part = FileNode(attributes.get("id", ""), label.strip(":").partition(":")[0])
            case "edge" if above == IN_GRAPH:
                ends = attributes.get("source", ""), attributes.get("target", "")
                self._part = FileRelation(attributes.get("label", ""), *ends)
            case "data" if above in (IN_GRAPH, [*IN_GRAPH, "node"], [*IN_GRAPH, "edge"]):
                self._key, self._text, self._chars = attributes.get("key", ""), [], 0

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._chars += len(text)
            if self._chars > MAX_DATA_CHARS:
                raise self._refused(LONG_DATA)
            self._text.append(text)

    def _close(self, name: str) -> None:
        tag = self._path.pop()
        if tag == "data" and self._text is not None:
            self._put("".join(self._text))
            self._text = None
        elif self._path == IN_GRAPH and isinstance(self._part, FileNode):
            self._part.label = self._part.label or _label_in(self._part.properties)
            self._graph.nodes.append(self._part)
            self._part = None
        elif self._path == IN_GRAPH and isinstance(self._part, FileRelation):
            self._part.type = self._part.type or _label_in(self._part.properties)
            self._graph.relations.append(self._part)
            self._part = None

    def _put(self, text: str) -> None:
        key = self._keys.get(self._key) or _Key(self._key, str)
        try:
            value = key.read(text)
        except ValueError:
            value = text
        if self._part is not None:
            self._part.properties[key.name] = value
        elif key.name == "agent":
            self._graph.agent = text


def _label_in(properties: dict[str, Any]) -> str:
    """The label of a node or the type of an edge: `label`, `labels` (`:User`) or `type`."""
    for name in ("label", "labels", "type"):
        if isinstance(properties.get(name), str):
            return str(properties.pop(name)).strip(":").partition(":")[0]
    return ""


def _boolean(text: str) -> bool:
    return text.strip().lower() in ("true", "1")


_READ: Mapping[str, Callable[[str], Any]] = {
    "boolean": _boolean,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
}
