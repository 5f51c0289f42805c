"""Read files as lines or as JSON, within limits: a hostile file causes an error, not memory or stack exhaustion.

Nothing is unpacked to disk: of a zip, only members with the name of an export are read, in memory. A JSON document is
loaded completely, because the standard library has no incremental parser: it takes several times its size in memory.
Lines are read one by one.
"""

from __future__ import annotations

import codecs
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from souvenir_client.errors import NotImportable

MAX_DOCUMENT_BYTES = 1024**3
MAX_LINE_BYTES = 32 * 1024**2
MAX_RATIO = 200
"""Maximum compression ratio of a zip member: conversations compress about 10 times, zip bombs 1,000 times."""

SNIFFED_BYTES = 1024**2

_CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json", re.IGNORECASE)
_OTHER_ENCODINGS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Document:
    """A JSON file, alone or within a zip. `name` is its name for people."""

    def __init__(self, path: Path, member: zipfile.ZipInfo | None = None) -> None:
        self._path = path
        self._member = member
        self.name = path.name if member is None else f"{path.name}:{member.filename}"

    def begin(self) -> bytes:
        """Return its first part, without a byte order mark."""
        with self.opened() as file:
            return _marked(self.name, file.read(SNIFFED_BYTES))

    def load(self) -> Any:
        """:raises NotImportable: If it is no JSON, too large or nested too deeply."""
        with self.opened() as file:
            content = file.read(MAX_DOCUMENT_BYTES + 1)
        if len(content) > MAX_DOCUMENT_BYTES:
            raise too_large(self.name)
        try:
            return parsed(_marked(self.name, content))
        except ValueError as error:
            raise NotImportable(self.name, f"it is not JSON ({error})") from error

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        try:
            if self._member is None:
                with self._path.open("rb") as file:
                    yield file
            else:
                _check_ratio(self.name, self._member)
                with zipfile.ZipFile(self._path) as archive, archive.open(self._member) as file:
                    yield file
        except OSError as error:
            raise NotImportable(self.name, f"it cannot be read ({error.strerror or error})") from error
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, zlib.error) as error:
            raise NotImportable(self.name, f"the zip is damaged or encrypted ({error})") from error


def too_large(name: str) -> NotImportable:
    return NotImportable(name, f"it is larger than {MAX_DOCUMENT_BYTES // 1024**2} MiB; import it in parts")


def documents(path: Path) -> list[Document]:
    """The file itself, or the conversation files in a zip or a folder, by name."""
    if path.is_dir():
        return [Document(one) for one in sorted(path.iterdir()) if one.is_file() and _CONVERSATIONS.fullmatch(one.name)]
    if not zipfile.is_zipfile(path):
        return [Document(path)]
    try:
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if _CONVERSATIONS.fullmatch(one.filename)]
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise NotImportable(str(path), f"the zip is damaged ({error})") from error
    return [Document(path, one) for one in sorted(members, key=lambda one: one.filename)]


def parsed(content: bytes) -> Any:
    """:raises ValueError: If it is no JSON in UTF-8, or nested too deeply."""
    try:
        return json.loads(content.decode("utf-8"), parse_constant=lambda _: None)
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not empty, with their numbers from 1; None for a line above the limit."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if number == 1:
                    line = _marked(str(path), line)
                too_long = len(line) > MAX_LINE_BYTES
                while too_long and line and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES)
                if too_long or line.strip():
                    yield number, None if too_long else line.strip()
    except OSError as error:
        raise NotImportable(str(path), f"it cannot be read ({error.strerror or error})") from error


def count_lines(path: Path) -> int:
    """Return the number of lines that `lines` yields."""
    return sum(1 for _ in lines(path))


def _marked(name: str, content: bytes) -> bytes:
    """Remove the byte order mark of UTF-8, which some editors on Windows write."""
    if content.startswith(_OTHER_ENCODINGS):
        raise NotImportable(name, "it is UTF-16; save it as UTF-8")
    return content.removeprefix(codecs.BOM_UTF8)


def _check_ratio(name: str, member: zipfile.ZipInfo) -> None:
    if member.file_size > MAX_RATIO * max(member.compress_size, 1024):
        raise NotImportable(name, f"it is more than {MAX_RATIO} times larger when unpacked, unlike any export")
