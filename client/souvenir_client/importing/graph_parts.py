"""A graph as it stands in a file, whatever it is written in: nodes with a label, relations with a type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class GraphNode:
    """`label` says what it is: User, Session, Message, Concept, Memory."""

    id: str
    label: str = ""
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class GraphRelation:
    """`type` is written as in the graph: SENT, CONTAINS, MENTIONS."""

    type: str
    from_id: str
    to_id: str
    properties: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class GraphFile:
    """:param agent: Whose it was, where the file says so."""

    nodes: list[GraphNode] = field(default_factory=list)
    relations: list[GraphRelation] = field(default_factory=list)
    agent: str | None = None
