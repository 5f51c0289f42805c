"""Texts of tool results: listings of directories, contents of files, and excerpts around a change.

Their form is that of the vendor's own tools, which the model was trained with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from souvenir.conversations.document_paths import DocumentPath

LEVELS = 2
"""Levels of directories in a listing."""

NUMBER_WIDTH = 6
LINES_AROUND = 2
"""Lines of an excerpt before the changed line, and after it."""

_UNITS = "BKMG"


def contents(path: DocumentPath, text: str, first: int, last: int) -> str:
    """Return the lines of a file from `first` to `last`, counted from 1, with their numbers."""
    lines = text.split("\n")[first - 1 : last]
    return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first)}"


def excerpt(text: str, line: int) -> str:
    """Return the lines around one, with their numbers."""
    first = max(line - LINES_AROUND, 1)
    return _numbered(text.split("\n")[first - 1 : line + LINES_AROUND], first)


def listing(folder: DocumentPath, sizes: Mapping[DocumentPath, int]) -> str:
    """Return the files and directories below one, with their sizes; that of a directory is the sum of its files.

    :param sizes: The bytes of every file below the directory.
    """
    tree = _Directory()
    for path, size in sizes.items():
        tree.put(path.names[len(folder.names) :], size)
    header = f"Here're the files and directories up to {LEVELS} levels deep in {folder}, excluding hidden items:"
    return "\n".join([header, f"{size_of(tree.size)}\t{folder}", *tree.lines(f"{folder}/", LEVELS)])


def size_of(count: int) -> str:
    """Return a number of bytes in the largest unit that it reaches, such as `1.5K`."""
    power = min((max(count, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    shown = f"{count / 1024**power:.1f}".removesuffix(".0")
    return f"{shown}{_UNITS[power]}"


@dataclass(slots=True)
class _Directory:
    size: int = 0
    files: dict[str, int] = field(default_factory=dict)
    folders: dict[str, _Directory] = field(default_factory=dict)

    def put(self, names: Sequence[str], size: int) -> None:
        self.size += size
        if len(names) == 1:
            self.files[names[0]] = size
        else:
            self.folders.setdefault(names[0], _Directory()).put(names[1:], size)

    def lines(self, path: str, levels: int) -> list[str]:
        found: list[str] = []
        for name in sorted(name for name in {*self.files, *self.folders} if not name.startswith(".")):
            if name in self.files:
                found.append(f"{size_of(self.files[name])}\t{path}{name}")
            if name in self.folders:
                inner = self.folders[name]
                found.append(f"{size_of(inner.size)}\t{path}{name}/")
                found += inner.lines(f"{path}{name}/", levels - 1) if levels > 1 else ()
        return found


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))
