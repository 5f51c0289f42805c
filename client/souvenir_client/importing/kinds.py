"""The kinds of files that can be imported, and the detection of the kind by content, not by name alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

from souvenir_client.errors import NotImportable
from souvenir_client.importing import (
    agent_graph,
    chatgpt,
    claude,
    graphiti,
    hindsight,
    jsonl,
    knowledge_graph,
    letta,
    locrit,
    markdown,
    mcp_sqlite,
    mem0,
)
from souvenir_client.importing.reading import documents, parsed
from souvenir_client.importing.records import Reading


class Kind(StrEnum):
    """The format of a file."""

    JSONL = "jsonl"
    """JSON lines with memories, our own or of others; also our exports of an agent."""

    MARKDOWN = "markdown"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    MEM0 = "mem0"
    MCP_MEMORY = "mcp-memory"
    GRAPH = "graph"
    """The graph of an agent, in JSON or GraphML."""

    LOCRIT = "locrit"
    MCP_SQLITE = "mcp-sqlite"
    """The SQLite file of the MCP Local Memory server."""

    LETTA = "letta"
    """Agent files, `.af`."""

    GRAPHITI = "graphiti"
    """Graphs of Graphiti and Zep."""

    HINDSIGHT = "hindsight"


NAMES = ", ".join(Kind)
CONVERSATIONS = frozenset({Kind.CHATGPT, Kind.CLAUDE})
"""Kinds with conversations only."""

_READERS: Mapping[Kind, Callable[[Path, str | None], Reading]] = {
    Kind.JSONL: jsonl.read,
    Kind.MARKDOWN: markdown.read,
    Kind.CHATGPT: chatgpt.read,
    Kind.CLAUDE: claude.read,
    Kind.MEM0: mem0.read,
    Kind.MCP_MEMORY: knowledge_graph.read,
    Kind.GRAPH: agent_graph.read,
    Kind.LOCRIT: locrit.read,
    Kind.MCP_SQLITE: mcp_sqlite.read,
    Kind.LETTA: letta.read,
    Kind.GRAPHITI: graphiti.read,
    Kind.HINDSIGHT: hindsight.read,
}
_OF_GRAPHITI = rf'"(?:{"|".join(sorted(graphiti.TELLING))})"\s*:'
_TELLING: Mapping[Kind, str] = {
    Kind.CHATGPT: r'"mapping"\s*:\s*\{',
    Kind.CLAUDE: r'"chat_messages"\s*:\s*\[',
    Kind.MCP_MEMORY: r'"(?:entityType|relationType)"\s*:\s*"',
    Kind.MEM0: r'"memory"\s*:\s*"',
    Kind.GRAPH: r'"nodes"\s*:\s*\[',
    Kind.LOCRIT: r'"session_id"\s*:\s*"',
    Kind.LETTA: r'"(?:core_memory|memory_blocks|in_context_message_(?:ids|indices))"\s*:\s*\[',
    Kind.GRAPHITI: _OF_GRAPHITI,
    Kind.HINDSIGHT: r'"fact_type"\s*:',
}
# A key, not a text that quotes one: there the quotation marks are escaped.
_TELLS = re.compile("|".join(rf"(?P<{kind.name}>(?<!\\){pattern})" for kind, pattern in _TELLING.items()))


def check(path: Path) -> None:
    """:raises NotImportable: If it is neither a file nor a folder."""
    if not path.exists():
        raise NotImportable(str(path), "the file does not exist")
    if not (path.is_file() or path.is_dir()):
        raise NotImportable(str(path), "it is neither a file nor a folder")


def detect(path: Path) -> Kind:
    """:raises NotImportable: If it is of no known kind; the message lists the kinds."""
    check(path)
    if path.is_dir() and not documents(path):
        if locrit.parts(path):
            return Kind.LOCRIT
        if markdown.files(path):
            return Kind.MARKDOWN
        raise NotImportable(str(path), f"the folder has neither Markdown nor conversations.json; the kinds are {NAMES}")
    found = documents(path)
    if not found:
        raise NotImportable(str(path), f"the zip has no conversations.json; the kinds are {NAMES}")
    begin = found[0].begin()
    if not begin.strip():
        raise NotImportable(str(path), "it is empty")
    if begin.startswith(mcp_sqlite.MAGIC):
        return Kind.MCP_SQLITE
    kind = _of_xml(begin) or _of_first_line(begin) or _of_names(begin)
    if kind is None and markdown.is_markdown(path):
        kind = Kind.MARKDOWN
    if kind is None:
        raise NotImportable(str(path), f"its kind cannot be detected; set one of {NAMES}")
    return kind


def read(kind: Kind, path: Path, source: str | None = None) -> Reading:
    """Return the file's records, item by item; nothing is sent.

    :param source: Prefix of the sources of its memories; each kind has a default.
    :raises NotImportable: If the file is not of that kind; possibly only while it is read.
    """
    check(path)
    return _READERS[kind](path, source)


def _of_xml(begin: bytes) -> Kind | None:
    """Return GraphML, also for files that are refused later."""
    return Kind.GRAPH if begin.lstrip().startswith(b"<") and b"<graphml" in begin else None


def _of_first_line(begin: bytes) -> Kind | None:
    """Return the kind of a file of lines, by its first line; None for other files."""
    try:
        said = parsed(begin.lstrip().partition(b"\n")[0])
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    if said.get("_header") is True or said.get("type") == "header":
        return Kind.JSONL
    if hindsight.tells(said):
        return Kind.HINDSIGHT
    if "text" not in said and graphiti.tells(said):
        return Kind.GRAPHITI
    names: Mapping[str, Kind] = {
        "text": Kind.JSONL,
        "mapping": Kind.CHATGPT,
        "chat_messages": Kind.CLAUDE,
        "memory": Kind.MEM0,
        "entityType": Kind.MCP_MEMORY,
        "relationType": Kind.MCP_MEMORY,
        "nodes": Kind.GRAPH,
        "session_id": Kind.LOCRIT,
        "agents": Kind.LETTA,
        "core_memory": Kind.LETTA,
        "in_context_message_indices": Kind.LETTA,
    }
    return next((kind for name, kind in names.items() if name in said), None)


def _of_names(begin: bytes) -> Kind | None:
    """Return the kind of a document, by the first key that only one kind has."""
    text = begin.decode("utf-8", "ignore").lstrip()
    found = _TELLS.search(text) if text.startswith(("{", "[")) else None
    kind = Kind[str(found.lastgroup)] if found else None
    # Its nodes have another name in the same list.
    return Kind.GRAPHITI if kind is Kind.GRAPH and re.search(rf"(?<!\\){_OF_GRAPHITI}", text) else kind
