"""Memories and blocks as resources: listed page by page, read by URI, with the scope rules of the tools.

    souvenir://agents/{name}/memories/{id}
    souvenir://agents/{name}/blocks/{label}

`{name}` is the caller's namespace; the data of other namespaces does not exist here, whatever else the key may
see. Parts of a URI are percent-encoded. This module is independent of the protocol.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, unquote

from souvenir.core.errors import AgentNotFound, InvalidRequest, NotFound
from souvenir.core.types import Listing, Memory, Scope
from souvenir.memories.short_ids import Kind, id_of, short_id
from souvenir.server.service import Service
from souvenir.store.messages.blocks import Block

PAGE_SIZE = 100
MAX_TITLE_CHARS = 80
MAX_COMPLETIONS = 100
"""Maximum number of completions in one answer, by the protocol."""

_BEGIN = "souvenir://agents/"
_ADDRESS = re.compile(r"souvenir://agents/([^/]+)/(memories|blocks)/([^/]+)")
_OFFSET = re.compile(r"[0-9]{1,9}")


class ResourceKind(StrEnum):
    """The kinds of resource, named as in their URIs."""

    MEMORY = "memories"
    BLOCK = "blocks"


@dataclass(frozen=True, slots=True)
class ShownResource:
    """A resource in a list."""

    uri: str
    name: str
    title: str
    description: str | None


@dataclass(frozen=True, slots=True)
class Template:
    uri: str
    name: str
    title: str
    description: str


TEMPLATES = (
    Template(
        f"{_BEGIN}{{name}}/{ResourceKind.BLOCK}/{{label}}",
        "block",
        "Memory block",
        "A labelled text that is part of every context of the agent.",
    ),
    Template(f"{_BEGIN}{{name}}/{ResourceKind.MEMORY}/{{id}}", "memory", "Memory", "The text of one memory."),
)


class Resources:
    def __init__(self, service: Service) -> None:
        self._service = service

    def page(self, scope: Scope, cursor: str | None) -> tuple[Sequence[ShownResource], str | None]:
        """Blocks in the order of the context, then memories, newest first; and the cursor of the next page.

        :raises InvalidRequest: If the cursor is invalid.
        """
        offset = _offset_of(cursor)
        blocks, block_count = self._blocks(scope, offset, PAGE_SIZE)
        shown = [_of_block(scope, block) for block in blocks]
        listing, left = Listing(archived=False, newest_first=True), PAGE_SIZE - len(shown)
        page = self._service.engine.page(scope, listing, offset=max(0, offset - block_count), limit=max(1, left))
        shown += [_of_memory(scope, memory) for memory in page.memories[:left]]
        behind = offset + len(shown)
        return shown, str(behind) if shown and behind < block_count + page.total else None

    def read(self, scope: Scope, uri: str) -> str:
        """Return the text at a URI.

        :raises NotFound: If no visible resource has this URI.
        """
        address = _ADDRESS.fullmatch(uri)
        if address is None or unquote(address[1]) != scope.namespace:
            raise _missing(uri)
        try:
            if address[2] == ResourceKind.BLOCK:
                return self._block(scope, uri, unquote(address[3])).value
            number = id_of(Kind.MEMORY, unquote(address[3]))
            return self._service.engine.get(scope, [number])[number].text
        except (KeyError, NotFound) as error:
            raise _missing(uri) from error

    def completions(self, scope: Scope, uri: str, argument: str, begin: str) -> Sequence[str]:
        """Return the values of a template argument that start with a text."""
        known = uri in {template.uri for template in TEMPLATES}
        values: Sequence[str] = ()
        if known and argument == "name":
            values = [scope.namespace]
        elif known and argument == "label":
            values = [block.label for block in self._blocks(scope, 0, PAGE_SIZE)[0]]
        return [value for value in values if value.casefold().startswith(begin.casefold())][:MAX_COMPLETIONS]

    def _block(self, scope: Scope, uri: str, label: str) -> Block:
        if scope.sources is not None:
            raise _missing(uri)
        return self._service.blocks.get(scope, label)

    def _blocks(self, scope: Scope, offset: int, limit: int) -> tuple[Sequence[Block], int]:
        """The blocks, if the scope covers the whole namespace; otherwise none."""
        if scope.sources is not None:
            return (), 0
        try:
            return self._service.blocks.page(scope, offset=offset, limit=limit)
        except AgentNotFound:
            return (), 0


def _of_block(scope: Scope, block: Block) -> ShownResource:
    return ShownResource(
        _uri(scope, ResourceKind.BLOCK, block.label), block.label, f"Block {block.label}", block.description
    )


def _of_memory(scope: Scope, memory: Memory) -> ShownResource:
    memory_id, title = short_id(Kind.MEMORY, memory.id), " ".join(memory.text[: 2 * MAX_TITLE_CHARS].split())
    described = ", ".join(memory.tags) or None
    return ShownResource(_uri(scope, ResourceKind.MEMORY, memory_id), memory_id, title[:MAX_TITLE_CHARS], described)


def _uri(scope: Scope, kind: ResourceKind, name: str) -> str:
    return f"{_BEGIN}{quote(scope.namespace, safe='')}/{kind}/{quote(name, safe='')}"


def _offset_of(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if _OFFSET.fullmatch(cursor) is None:
        raise InvalidRequest("The cursor is none that resources/list gave; begin without one")
    return int(cursor)


def _missing(uri: str) -> NotFound:
    return NotFound(f"There is no resource {uri[:200]!r}; resources/list names those there are")
