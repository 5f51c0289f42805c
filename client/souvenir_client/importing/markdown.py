"""Markdown: a file, or every `.md` below a folder, as memories.

A short file is one memory. A longer one is split at its headings, and a long section between its blocks; each part
starts with its headings. The source is the path without `.md`. The first part of a file has the key `#1`, the others a
key from their headings, so parts keep their keys when a file grows. Simple lines of front matter (`key: value`) become
metadata (`date`, `created` and `created_at` also set the time); other lines stay in the text. Names that start with a
dot are skipped.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from souvenir_client.errors import NotImportable
from souvenir_client.importing import storable
from souvenir_client.importing.records import Reading, Record, Skipped

SUFFIXES = (".md", ".markdown")
MAX_PART_CHARS = 4_000
MAX_FILE_BYTES = 32 * 1024**2
MAX_HEADING_CHARS = 200

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_SIMPLE = re.compile(r"([A-Za-z_][\w -]{0,99})[ \t]*:[ \t]+(\S.*?)[ \t]*")
_OPENS_MORE = ("|", ">", "[", "{", "&", "*", "!")
"""The first characters of YAML values that are not plain text."""

_TIMES = ("date", "created", "created_at")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a file under its headings; `ordinal` counts those under equal ones."""

    headings: tuple[str, ...]
    ordinal: int
    content: str


def files(path: Path) -> list[Path]:
    """The file, or the Markdown files below the folder in the order of their paths."""
    if not path.is_dir():
        return [path]
    found = []
    for folder, below, names in os.walk(path):
        below[:] = [name for name in below if not name.startswith(".")]
        found += [one for name in names if is_markdown(one := Path(folder, name)) and one.is_file()]
    return sorted(found)


def is_markdown(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def read(path: Path, source: str | None) -> Reading:
    """:param source: Prefix of the sources. Default: the folder's name."""
    prefix = (source or path.resolve().name) if path.is_dir() else (source or "")
    found = files(path)
    below = prefix or storable.text_of(path.name.rpartition(".")[0])
    return Reading(len(found), (tuple(_records(one, path, prefix)) for one in found), below)


def _records(file: Path, top: Path, prefix: str) -> Iterator[Record]:
    relative = file.relative_to(top).as_posix() if top.is_dir() else file.name
    try:
        text = _text(file)
    except NotImportable as error:
        yield Skipped(relative, error.reason)
        return
    metadata, body = front_matter(text)
    source = storable.text_of("/".join(part for part in (prefix, relative.rpartition(".")[0]) if part))
    at = next((metadata[name] for name in _TIMES if storable.timestamp_of(metadata.get(name))), None)
    found = parts(body)
    if not found:
        yield Skipped(relative, storable.NO_TEXT)
    for number, part in enumerate(found, 1):
        path = " > ".join(part.headings)
        yield from storable.memory(
            f"{path}\n\n{part.content}" if path else part.content,
            source=source,
            key="#1" if number == 1 else f"{path}#{part.ordinal}",
            place=relative if len(found) == 1 else f"{relative}, part {number}",
            created_at=at,
            metadata={
                **({"heading": path} if path else {}),
                **({"front_matter": metadata} if metadata else {}),
                "origin_class": "document",
            },
        )


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise NotImportable(file.name, f"it cannot be read ({error.strerror or error})") from error
    if len(content) > MAX_FILE_BYTES:
        raise NotImportable(file.name, f"it is larger than {MAX_FILE_BYTES // 1024**2} MiB")
    try:
        return storable.text_of(content.decode("utf-8-sig")).replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise NotImportable(file.name, "it is not UTF-8") from error


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The simple lines of the front matter, and the text with the other lines."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        return {}, text
    said: dict[str, Any] = {}
    rest = []
    for line in found[1].split("\n"):
        simple = _SIMPLE.fullmatch(line)
        if simple is None or simple[2].startswith(_OPENS_MORE):
            rest.append(line)
        else:
            said[simple[1].strip()] = _unquoted(simple[2])
    left = "\n".join(rest).strip("\n")
    return said, f"{left}\n\n{text[found.end() :]}" if left.strip() else text[found.end() :]


def _unquoted(value: str) -> str:
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def parts(text: str) -> Sequence[Section]:
    """The whole text if it is short, otherwise its sections."""
    if len(text.strip()) <= MAX_PART_CHARS:
        return [Section((), 1, text.strip())] if text.strip() else []
    found = []
    counts: Counter[tuple[str, ...]] = Counter()
    for headings, blocks in _sections(text):
        for content in _joined(blocks):
            counts[headings] += 1
            found.append(Section(headings, counts[headings], content))
    return found


def _sections(text: str) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """The blocks between two headings, with the headings above them."""
    path: list[tuple[int, str]] = []
    blocks: list[str] = []
    for block, level in _blocks(text):
        if level == 0:
            blocks.append(block)
            continue
        yield tuple(title for _, title in path), blocks
        blocks = []
        path = [*((above, title) for above, title in path if above < level), (level, block)]
    yield tuple(title for _, title in path), blocks


def _blocks(text: str) -> Iterator[tuple[str, int]]:
    """Paragraphs and fenced code with level 0, and the titles of headings with theirs. A fence is never cut."""
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line.strip(" `~\t") else fence
            block.append(line)
            continue
        heading = _HEADING.fullmatch(line)
        if (heading or not line.strip()) and block:
            yield "\n".join(block), 0
            block = []
        if heading:
            title = storable.line_of(heading[2] or "", MAX_HEADING_CHARS)
            if title:
                yield title, len(heading[1])
        elif line.strip():
            fence = mark[1] if mark else ""
            block.append(line)
    if block:
        yield "\n".join(block), 0


def _joined(blocks: Sequence[str]) -> Iterator[str]:
    """Join as many blocks as fit in one part; a block that is too long for a memory is split between lines."""
    part = ""
    for block in (piece for whole in blocks for piece in storable.pieces(whole, 10 * MAX_PART_CHARS)):
        if part and len(part) + len(block) + 2 > MAX_PART_CHARS:
            yield part
            part = ""
        part = f"{part}\n\n{block}" if part else block
    if part:
        yield part
