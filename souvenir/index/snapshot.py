"""An index on disk, so that a start does not have to analyse every text. Only a copy: the database is authoritative.

One file per index, `<name>.index` (`souvenir.core.array_file`), which is renamed to its name after it was written. Its
header holds the origin and the state. A snapshot of a state that the database never had, of another model or analyser,
or that is damaged is deleted. Its content is never executed.

A folder that cannot be read or written is an operator's warning, never an error of a search: indexes are then built
from the database.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import structlog
from numpy.typing import NDArray

from souvenir.core.array_file import ArrayFile, Streamed, header_of, write_arrays
from souvenir.core.files import sync
from souvenir.core.passages import CommitId
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.index.namespace import READ_FOR_CANDIDATES
from souvenir.index.turn_flags import TURN_FLAGS_VERSION

T = TypeVar("T")

LAYOUT = f"5.{TURN_FLAGS_VERSION}"
"""Version of the arrays and of their contents other than terms."""

PARTIAL = ".partial"
FORMER_SUFFIXES = (".json", ".faiss", ".tokens", ".npz")
"""Suffixes of the files of layouts before 5."""

Includes = Callable[[CommitId], bool]
"""Returns whether the history of the database contains a commit."""
UPGRADED = frozenset({"analyser", "layout", "token_space"})
"""Parts of an origin that an upgrade of the service changes."""

MADE_WITH = "made with another "

UNREADABLE, UNWRITABLE, REPAIRED = "index_unreadable", "index_unwritable", "index_repaired"
EFFECTS = {
    UNREADABLE: "Searches are answered from indexes built from the database, which makes a start slower",
    UNWRITABLE: "Snapshots of the search indexes cannot be kept up to date, which makes the next start slower",
}

DAMAGES = (ValueError, TypeError, LookupError, OverflowError, AttributeError)
"""Errors for content that was not written like that, those of numpy included."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Origin:
    """The inputs of an index; a snapshot is used only if all of them are equal."""

    model_id: str
    dim: int
    analyser: str
    token_space: str | None = None
    layout: str = LAYOUT


class State(NamedTuple):
    """The state of the database that a snapshot agrees with.

    :param change_seq: The number of writes to the namespace.
    """

    commit: CommitId
    change_seq: int


class SnapshotFiles:
    """The snapshots of all indexes of one database."""

    def __init__(self, directory: Path, origin: Origin, warnings: ServiceWarnings) -> None:
        self._directory = directory
        self._origin = origin
        self._warnings = warnings

    def write(self, name: str, state: State, arrays: Mapping[str, NDArray[Any] | Streamed]) -> ArrayFile | None:
        """Replace the snapshot of that name; return None, with a warning, if the folder does not allow it.

        The arrays must not change meanwhile. A failed write leaves the former snapshot, and no other files.
        """
        path = self._path(name)
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            generation, commit = state.commit
            written_at = {"generation": generation, "commit": commit, "change_seq": state.change_seq}
            header = {**written_at, **asdict(self._origin)}
            write_arrays(_partial(path), header, arrays)
            os.replace(_partial(path), path)
            sync(self._directory)
            written = ArrayFile(path, READ_FOR_CANDIDATES)
        except OSError as error:
            self.warn(UNWRITABLE, error)
            self._discard(_partial(path))
            return None
        self._warnings.clear(UNREADABLE)
        self._warnings.clear(UNWRITABLE)
        return written

    def read(self, name: str, includes: Includes, load: Callable[[State, ArrayFile], T]) -> T | None:
        """Return what is loaded from the snapshot of that name, or None, with a log line that gives the reason.

        One that cannot be used is deleted.

        :param load: May raise `DAMAGES`.
        """
        path = self._path(name)
        for suffix in FORMER_SUFFIXES:
            self._discard(path.with_suffix(suffix))
        try:
            file = ArrayFile(path, READ_FOR_CANDIDATES)
            stale = self._difference(file.header, includes)
            if stale is None:
                loaded = load(_state_of(file.header), file)
                self._warnings.clear(UNREADABLE)
                return loaded
        except (FileNotFoundError, IsADirectoryError, *DAMAGES) as error:
            if not isinstance(error, FileNotFoundError):
                log.warning("index_snapshot_damaged", index=name, reason=str(error), action="rebuilding")
        except OSError as error:
            self.warn(UNREADABLE, error)
            return None
        else:
            tell = log.info if stale.removeprefix(MADE_WITH) in UPGRADED else log.warning
            tell("index_snapshot_stale", index=name, reason=stale, action="deleted; rebuilding")
        self._warnings.clear(UNREADABLE)
        self._discard(path)
        return None

    def names(self, before: float = math.inf) -> set[str]:
        """Return the names of all complete and partial snapshots that were written before a time.

        :raises OSError: If the folder cannot be read.
        """
        try:
            files = [path for path in self._directory.iterdir() if "." in path.name]
            return {path.name.split(".")[0] for path in files if path.stat().st_mtime < before}
        except (FileNotFoundError, NotADirectoryError):
            return set()

    def remove(self, name: str) -> None:
        """Remove the snapshot of that name, including partial files left by a crash, and files of a former layout.

        :raises OSError: If a file cannot be removed.
        """
        self._remove_all(name, except_for=None)

    def remove_unusable(self, name: str, includes: Includes) -> None:
        """Remove all files of that name, except for a snapshot of this history.

        :raises OSError: If a file cannot be removed.
        """
        path = self._path(name)
        try:
            ours = includes(_state_of(header_of(path)).commit)
        except (OSError, *DAMAGES):
            ours = False
        self._remove_all(name, except_for=path if ours else None)

    def _remove_all(self, name: str, *, except_for: Path | None) -> None:
        suffixes = [one + partial for one in (".index", *FORMER_SUFFIXES) for partial in ("", PARTIAL)]
        paths = [self._path(name).with_suffix(suffix) for suffix in suffixes]
        removed = [_delete(path) for path in paths if path != except_for]
        if any(removed):
            sync(self._directory)

    def reject(self, name: str, message: str) -> None:
        """Remove the snapshot of an index that disagrees with the database, and warn operators."""
        self._warnings.put(REPAIRED, message)
        self._discard(self._path(name))

    def check_access(self) -> None:
        """Clear the warnings of the folder if it can be read and written again."""
        probe = _partial(self._path("probe"))
        if not {UNREADABLE, UNWRITABLE}.isdisjoint(warning.code for warning in self._warnings.current()):
            try:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                list(self._directory.iterdir())
                self._warnings.clear(UNREADABLE)
                probe.write_bytes(b"x")
                _delete(probe)
                self._warnings.clear(UNWRITABLE)
            except OSError as error:
                log.info("index_folder_unusable", reason=str(error))

    def warn(self, code: str, error: Exception) -> None:
        """Tell operators that the folder cannot be read, or not be written."""
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        where = getattr(error, "filename", None) or self._directory
        effect, action = EFFECTS[code], _action(error, self._directory)
        self._warnings.put(code, f"{where}: {reason}. {effect}; {action}")

    def _discard(self, path: Path) -> None:
        """Delete a file that must not be used; one that cannot be deleted is refused again when it is read."""
        try:
            _delete(path)
        except OSError as error:
            log.warning("index_file_not_deleted", path=str(path), reason=str(error))

    def _difference(self, header: Mapping[str, Any], includes: Includes) -> str | None:
        for name, value in asdict(self._origin).items():
            if header.get(name) != value:
                return f"{MADE_WITH}{name}"
        return None if includes(_state_of(header).commit) else "made of a state that the database never had"

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.index"


def _state_of(header: Mapping[str, Any]) -> State:
    commit = CommitId(str(header["generation"]), int(header["commit"]))
    return State(commit, int(header["change_seq"]))


def _partial(path: Path) -> Path:
    return path.with_name(path.name + PARTIAL)


def _delete(path: Path) -> bool:
    """Delete a file, or an empty folder in its place; return whether there was one."""
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except IsADirectoryError:
        path.rmdir()
    return True


def _action(error: Exception, folder: Path) -> str:
    """Return the next step of an operator."""
    match getattr(error, "errno", None):
        case errno.EACCES | errno.EPERM:
            return f"run `chown -R {os.geteuid()} {folder}` and `chmod -R u+rwX {folder}`"
        case errno.ENOTDIR | errno.EEXIST:
            return f"move the file that replaces the folder: `mv {folder} {folder}.old`"
        case errno.EROFS:
            return "mount the file system writable"
        case errno.ENOSPC | errno.EDQUOT:
            return "free some disk space"
        case _:
            return "look at the disk and at the system's log"


def namespace_in(name: str) -> int:
    """Return the id of the namespace of a snapshot; 0 if the name is none of a snapshot."""
    number = name.partition("-")[0]
    return int(number) if number.isdecimal() else 0
