"""What an agent's graph consists of: nodes with a label, relations with a type, and their properties by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

Value = str | int | float | bool | datetime | Sequence[str] | Sequence[float] | None
"""Of a property; one that is None is not there."""


class Label(StrEnum):
    """What a node is."""

    USER = "User"
    SESSION = "Session"
    MESSAGE = "Message"
    CONCEPT = "Concept"
    TOPIC = "Topic"
    MEMORY = "Memory"


class RelationType(StrEnum):
    """What one node is to another."""

    SENT = "SENT"
    RECEIVED = "RECEIVED"
    CONTAINS = "CONTAINS"
    MENTIONS = "MENTIONS"
    RELATES_TO = "RELATES_TO"
    DISCUSSES = "DISCUSSES"
    BELONGS_TO = "BELONGS_TO"
    TRIGGERS = "TRIGGERS"
    REFERENCES = "REFERENCES"


@dataclass(frozen=True, slots=True)
class NodeId:
    """Names a node within one graph, and does not change as long as it is there."""

    label: Label
    row: int

    def __str__(self) -> str:
        """As GraphML wants it: an XML name."""
        return f"{self.label.lower()}-{self.row}"


@dataclass(frozen=True, slots=True)
class Node:
    id: NodeId
    properties: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation of one node to another."""

    type: RelationType
    from_id: NodeId
    to_id: NodeId
    properties: Mapping[str, Value]


class GraphFormat(Protocol):
    """How a graph is written: bytes that follow each other."""

    def begin(self, agent: str) -> bytes: ...

    def node(self, node: Node) -> bytes: ...

    def relations(self) -> bytes:
        """What stands between the last node and the first relation."""

    def relation(self, edge: Edge) -> bytes: ...

    def end(self) -> bytes: ...
