"""The files that a build may read: those below WORKSPACE_DIR after resolving links and dots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from souvenir.core.errors import Conflict, InvalidRequest, OutsideWorkspace

DEFAULT_SOURCES = ("MEMORY.md", "about-dk/*.md", "memory/*.md")
MAX_FILES = 10_000
MAX_FILE_BYTES = 8 * 1024 * 1024
MAX_PATH_CHARS = 500


class UnreadableFile(Exception):
    """Raised if a file cannot be the source of memories; the message gives the reason."""


class Workspace:
    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    @property
    def root(self) -> Path:
        """:raises Conflict: If WORKSPACE_DIR is unset or not a readable folder."""
        if self._directory is None:
            raise Conflict("WORKSPACE_DIR is not set; set it to the folder of the Markdown files and start again")
        if not self._directory.is_dir():
            raise Conflict("WORKSPACE_DIR is not a readable folder; create it, or set another")
        return self._directory.resolve()

    def files(self, patterns: Sequence[str] | None) -> list[str]:
        """Return the matching paths below the root, in order; the default patterns if none are given.

        :raises OutsideWorkspace: If one resolves to a path outside.
        :raises InvalidRequest: If a pattern is invalid, or there are too many files.
        """
        root = self.root
        found: set[str] = set()
        for pattern in DEFAULT_SOURCES if patterns is None else patterns:
            path = PurePosixPath(pattern)
            if not path.parts:
                raise InvalidRequest(f"{pattern!r} names no file; name files or globs such as memory/*.md")
            if path.is_absolute() or ".." in path.parts:
                raise OutsideWorkspace(pattern)
            matches = list(islice(self._matching(root, pattern), MAX_FILES + 1))
            for match in matches:
                if not match.resolve().is_relative_to(root):
                    raise OutsideWorkspace(match.relative_to(root).as_posix())
            found.update(match.relative_to(root).as_posix() for match in matches)
        if len(found) > MAX_FILES:
            raise InvalidRequest(f"More than {MAX_FILES} files match; name fewer in sources")
        return sorted(found)

    def _matching(self, root: Path, pattern: str) -> Iterator[Path]:
        try:
            yield from (match for match in root.glob(pattern) if match.is_file() or match.is_symlink())
        except (ValueError, NotImplementedError) as error:
            raise InvalidRequest(f"{pattern!r} is not a file name or glob such as memory/*.md") from error

    def text(self, path: str) -> str:
        """:raises UnreadableFile: If it cannot be read as text, or now resolves to a path outside."""
        file = (self.root / path).resolve()
        if not file.is_relative_to(self.root) or len(path) > MAX_PATH_CHARS:
            raise UnreadableFile("its path is too long or leads out of WORKSPACE_DIR")
        try:
            if not file.is_file():
                raise UnreadableFile("it is not a file that is there")
            with file.open("rb") as opened:
                content = opened.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise UnreadableFile(f"it cannot be read ({error.strerror})") from error
        if len(content) > MAX_FILE_BYTES:
            raise UnreadableFile(f"it is larger than {MAX_FILE_BYTES} bytes")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UnreadableFile("it is not UTF-8") from error
