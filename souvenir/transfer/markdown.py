"""A Markdown file as sections that can each be a memory: under which headings, and what stands there.

Front matter is left out, code fences are never cut, and a long section is split between its blocks.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_PART_CHARS = 4_000
"""A section is split between its blocks when it is longer; a block alone may be."""

MAX_BLOCK_CHARS = 40_000
"""A block that is longer is cut between lines: a memory takes 50,000 characters, its headings among them."""

MAX_KEY_CHARS = 500
MAX_HEADING_CHARS = 200
SEPARATOR = " > "

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_PARSER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under the headings `Top > Below`, or a part of it; `ordinal` counts the parts under equal ones."""

    headings: str
    ordinal: int
    content: str

    @property
    def text(self) -> str:
        """The content below its headings, so that it says by itself what it is about."""
        return f"{self.headings}\n\n{self.content}" if self.headings else self.content

    @property
    def key(self) -> str:
        """Stays the same as long as headings and order do."""
        key = f"{self.headings}#{self.ordinal}"
        if len(key) <= MAX_KEY_CHARS:
            return key
        return f"{hashlib.sha256(self.headings.encode()).hexdigest()}#{self.ordinal}"


def sections(document: str) -> Iterator[Section]:
    """The sections in their order; headings without content below them make none."""
    text = _FRONT_MATTER.sub("", document.replace("\r\n", "\n").replace("\r", "\n").replace("\0", ""), count=1)
    lines = text.split("\n")
    parts: Counter[str] = Counter()
    for headings, blocks in _under_headings(_PARSER.parse(text), lines):
        for content in _joined(blocks):
            path = SEPARATOR.join(headings)
            parts[path] += 1
            yield Section(path, parts[path], content)


def _under_headings(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """The blocks between two headings, with the path of headings that they stand under."""
    path: list[tuple[int, str]] = []
    blocks: list[str] = []
    for position, token in enumerate(tokens):
        if token.level != 0 or token.map is None:
            continue
        if token.type == "heading_open":
            yield tuple(title for _, title in path), blocks
            blocks = []
            level = int(token.tag[1:])
            path = [(above, title) for above, title in path if above < level]
            path.append((level, " ".join(tokens[position + 1].content.split())[:MAX_HEADING_CHARS]))
        elif token.type != "hr":
            first, end = token.map
            blocks.append("\n".join(lines[first:end]).strip("\n"))
    yield tuple(title for _, title in path), blocks


def _joined(blocks: Sequence[str]) -> Iterator[str]:
    """As many blocks together as fit in one part."""
    part = ""
    for block in (piece for whole in blocks for piece in _pieces(whole) if piece.strip()):
        if part and len(part) + len(block) + 2 > MAX_PART_CHARS:
            yield part
            part = ""
        part = f"{part}\n\n{block}" if part else block
    if part:
        yield part


def _pieces(block: str) -> Iterator[str]:
    """The block itself, unless no memory can hold it."""
    piece = ""
    for line in block.split("\n") if len(block) > MAX_BLOCK_CHARS else [block]:
        for start in range(0, max(1, len(line)), MAX_BLOCK_CHARS):
            cut = line[start : start + MAX_BLOCK_CHARS]
            if piece and len(piece) + len(cut) + 1 > MAX_BLOCK_CHARS:
                yield piece
                piece = ""
            piece = f"{piece}\n{cut}" if piece else cut
    yield piece
