"""How an agent's graph is written: as one object of JSON, or as GraphML. Implements `GraphFormat`, piece by piece.

Both say the same. In GraphML a list of texts is one text with a line each, and characters that XML cannot hold
(controls other than tab and line ends, U+FFFE and U+FFFF) are written as U+FFFD; JSON keeps every character.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from souvenir.api.fields import wire_time
from souvenir.graph.elements import Edge, Node, Value
from souvenir.moments import utc_now

FORMAT = "souvenir-graph"
FORMAT_VERSION = "1.0"

NODE_TYPES: Mapping[str, str] = {
    "label": "string",
    **dict.fromkeys(("user_id", "session_id", "message_id", "concept_id", "topic_id", "memory_id"), "string"),
    **dict.fromkeys(
        ("name", "created_at", "started_at", "ended_at", "title", "content", "role", "timestamp"), "string"
    ),
    **dict.fromkeys(("description", "key", "kind", "aliases", "stated", "stated_aliases"), "string"),
    **dict.fromkeys(("summary", "source", "document_at"), "string"),
    **dict.fromkeys(("confidence", "importance"), "double"),
}
"""The properties of nodes and the types that GraphML gives them."""

RELATION_TYPES: Mapping[str, str] = {
    "label": "string",
    **dict.fromkeys(("relationship_type", "timestamp", "response_to", "reference_type"), "string"),
    **dict.fromkeys(("relevance", "strength", "trigger_strength"), "double"),
    "sequence_number": "int",
    "primary_topic": "boolean",
}

GRAPH_TYPES: Mapping[str, str] = dict.fromkeys(("agent", "format", "version", "exported_at"), "string")

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"})
_SCHEMA = "http://graphml.graphdrawing.org/xmlns"


class JsonGraph:
    """One object: `format`, `version`, `agent`, `exported_at`, `nodes` and `relations`, each of these on a line."""

    def __init__(self) -> None:
        self._first = True

    def begin(self, agent: str) -> bytes:
        head = json.dumps(_head(agent), ensure_ascii=False)
        return f'{head[:-1]}, "nodes": ['.encode()

    def node(self, node: Node) -> bytes:
        return self._item({"id": str(node.id), "label": node.id.label.value, "properties": _plain(node.properties)})

    def relations(self) -> bytes:
        self._first = True
        return b'\n], "relations": ['

    def relation(self, edge: Edge) -> bytes:
        ends = {"from_id": str(edge.from_id), "to_id": str(edge.to_id)}
        return self._item({"type": edge.type.value, **ends, "properties": _plain(edge.properties)})

    def end(self) -> bytes:
        return b"\n]}\n"

    def _item(self, said: Mapping[str, Any]) -> bytes:
        before, self._first = b"\n" if self._first else b",\n", False
        return before + json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


class GraphMl:
    """GraphML 1.0 (graphml.graphdrawing.org): a directed graph whose values have declared types."""

    def begin(self, agent: str) -> bytes:
        head = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<graphml xmlns="{_SCHEMA}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
            f'xsi:schemaLocation="{_SCHEMA} {_SCHEMA}/1.0/graphml.xsd">',
            *_keys("graph", GRAPH_TYPES),
            *_keys("node", NODE_TYPES),
            *_keys("edge", RELATION_TYPES),
            f'<graph id="G" edgedefault="directed">{_data("graph", _head(agent))}',
        ]
        return ("\n".join(head) + "\n").encode()

    def node(self, node: Node) -> bytes:
        data = _data("node", {"label": node.id.label.value, **_plain(node.properties)})
        return f'<node id="{node.id}">{data}</node>\n'.encode()

    def relations(self) -> bytes:
        return b""

    def relation(self, edge: Edge) -> bytes:
        data = _data("edge", {"label": edge.type.value, **_plain(edge.properties)})
        return f'<edge source="{edge.from_id}" target="{edge.to_id}">{data}</edge>\n'.encode()

    def end(self) -> bytes:
        return b"</graph>\n</graphml>\n"


def _head(agent: str) -> dict[str, str]:
    return {"format": FORMAT, "version": FORMAT_VERSION, "agent": agent, "exported_at": wire_time(utc_now())}


def _plain(properties: Mapping[str, Value]) -> dict[str, Any]:
    """As JSON has them, without what is not there."""
    return {
        name: wire_time(value) if isinstance(value, datetime) else value
        for name, value in properties.items()
        if value is not None
    }


def _keys(of: str, types: Mapping[str, str]) -> Iterator[str]:
    for name, kind in types.items():
        yield f'<key id="{of}_{name}" for="{of}" attr.name="{name}" attr.type="{kind}"/>'


def _data(of: str, values: Mapping[str, Any]) -> str:
    return "".join(f'<data key="{of}_{name}">{_xml(value)}</data>' for name, value in values.items())


def _xml(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _NO_XML.sub("\ufffd", value).translate(_ESCAPES)
        case _:
            return _xml("\n".join(value))
