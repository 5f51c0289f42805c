"""Paths of documents: `/memories`, and the files and folders below it.

The path of a file is the source of its memory with a slash before it, so no two paths name one file: there is nothing
to resolve, and a path that would need it is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

from souvenir.core.errors import InvalidRequest
from souvenir.core.labels import DOCUMENTS, MAX_SOURCE_CHARS, SEPARATOR
from souvenir.core.text import is_blank

ROOT = SEPARATOR + DOCUMENTS
MAX_NAME_CHARS = 200

_ENCODED = re.compile("%[0-9a-fA-F]{2}")


@dataclass(frozen=True, slots=True, order=True)
class DocumentPath:
    """:param names: From the folder at the top to the file; none for `/memories` itself."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse the path of a file or folder. A folder may end with a slash.

        :raises InvalidRequest: If it is not a path below `/memories`.
        """
        top, *names = text.removeprefix(SEPARATOR).removesuffix(SEPARATOR).split(SEPARATOR)
        if not text.startswith(SEPARATOR) or top != DOCUMENTS:
            raise InvalidRequest(f"A path starts with {ROOT}; send one such as {ROOT}/notes.md")
        if len(text) > MAX_SOURCE_CHARS:
            raise InvalidRequest(f"A path has at most {MAX_SOURCE_CHARS} characters; send a shorter one")
        for name in names:
            _check(name)
        return cls(tuple(names))

    @classmethod
    def of_file(cls, text: str) -> Self:
        """Parse the path of a file.

        :raises InvalidRequest: If it cannot be one.
        """
        path = cls.of(text)
        if not path.names or text.endswith(SEPARATOR):
            raise InvalidRequest(f"The path names a directory; send that of a file, such as {ROOT}/notes.md")
        return path

    @classmethod
    def of_source(cls, source: str) -> Self | None:
        """Return the path of a memory's source; None if another client chose one that no path has."""
        try:
            return cls.of_file(SEPARATOR + source)
        except InvalidRequest:
            return None

    @property
    def source(self) -> str:
        return SEPARATOR.join((DOCUMENTS, *self.names))

    @property
    def folders(self) -> list[str]:
        """The sources that its folders would have as files."""
        return list(accumulate((DOCUMENTS, *self.names[:-1]), lambda path, name: path + SEPARATOR + name))[1:]

    def contains(self, other: DocumentPath) -> bool:
        """Return whether another path is below this one."""
        return len(other.names) > len(self.names) and other.names[: len(self.names)] == self.names

    def moved(self, old: DocumentPath, new: DocumentPath) -> DocumentPath:
        """Return the path after a folder, or the file itself, was renamed.

        :raises InvalidRequest: If it becomes too long.
        """
        return DocumentPath.of_file(str(DocumentPath(new.names + self.names[len(old.names) :])))

    def __str__(self) -> str:
        return SEPARATOR + self.source


def _check(name: str) -> None:
    if not name or is_blank(name):
        raise InvalidRequest("A path has a name between two slashes; leave out the second slash")
    if name in (".", ".."):
        raise InvalidRequest(f"A path has no name . or ..; send the whole path from {ROOT} on")
    if "\\" in name or not name.isprintable() or _ENCODED.search(name):
        raise InvalidRequest("A path has no backslash, control character or percent-encoding; send plain characters")
    if len(name) > MAX_NAME_CHARS:
        raise InvalidRequest(f"A name in a path has at most {MAX_NAME_CHARS} characters; send a shorter one")
