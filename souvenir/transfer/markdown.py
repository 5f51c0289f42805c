"""Split a Markdown file into sections that can each be a memory, with the path of their headings.

Front matter is skipped, code fences are never split, and a long section is split between its blocks.
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
"""A longer section is split between its blocks; a single block may be longer."""

MAX_BLOCK_CHARS = 40_000
"""A longer block is split between lines: a memory has at most 50,000 characters, including its headings."""

MAX_KEY_CHARS = 500
MAX_HEADING_CHARS = 200
SEPARATOR = " > "

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_PARSER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True)
class Section:
    """The text under the headings `Top > Below`, or a part of it; `ordinal` counts parts with equal headings."""

    headings: str
    ordinal: int
    content: str

    @property
    def text(self) -> str:
        """The content after its headings, so that it is understandable by itself."""
        return f"{self.headings}\n\n{self.content}" if self.headings else self.content

    @property
    def key(self) -> str:
        """A key that stays the same while headings and order do."""
        key = f"{self.headings}#{self.ordinal}"
        if len(key) <= MAX_KEY_CHARS:
            return key
        return f"{hashlib.sha256(self.headings.encode()).hexdigest()}#{self.ordinal}"


def sections(document: str) -> Iterator[Section]:
    """Return the sections in order; headings without content produce none."""
    text = _FRONT_MATTER.sub("", document.replace("\r\n", "\n").replace("\r", "\n").replace("\0", ""), count=1)
    lines = text.split("\n")
    parts: Counter[str] = Counter()
    for headings, blocks in _under_headings(_PARSER.parse(text), lines):
        for content in _joined(blocks):
            path = SEPARATOR.join(headings)
            parts[path] += 1
            yield Section(path, parts[path], content)


def _under_headings(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield the blocks between two headings, with the path of their headings."""
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
    """Join as many blocks as fit in one part."""
    part = ""
    for block in (piece for whole in blocks for piece in _pieces(whole) if piece.strip()):
        if part and len(part) + len(block) + 2 > MAX_PART_CHARS:
            yield part
            part = ""
        part = f"{part}\n\n{block}" if part else block
    if part:
        yield part


def _pieces(block: str) -> Iterator[str]:
    """Return the block itself, or its pieces if it is too long for a memory."""
    piece = ""
    for line in block.split("\n") if len(block) > MAX_BLOCK_CHARS else [block]:
        for start in range(0, max(1, len(line)), MAX_BLOCK_CHARS):
            cut = line[start : start + MAX_BLOCK_CHARS]
            if piece and len(piece) + len(cut) + 1 > MAX_BLOCK_CHARS:
                yield piece
                piece = ""
            piece = f"{piece}\n{cut}" if piece else cut
    yield piece
