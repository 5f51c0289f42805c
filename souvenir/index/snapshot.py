"""An index on disk, so that a start does not have to analyse every text. Only a copy: the database is authoritative.

Four files per index: `<name>.faiss` (vectors), `<name>.tokens` (token vectors), `<name>.npz` (words, passage ids and
flags), `<name>.json` (the manifest: origin, state and checksums). The manifest is removed before the others are
replaced, and renamed to its name last, so after a kill there is none. A snapshot of a state that the database never
had, of another model or analyser, or with a wrong checksum is deleted. Its content is never executed.

A folder that cannot be read or written is an operator's warning, never an error of a search: indexes are then built
from the database.
"""

from __future__ import annotations

import errno
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from souvenir.core.files import sha256_of, sync
from souvenir.core.passages import CommitId
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.types import Profile
from souvenir.index.attributes import TURN_FLAGS_VERSION
from souvenir.index.passage_words import PassageWords, WordRules
from souvenir.index.vector import TokenVectors, VectorIndex

LAYOUT = f"4.{TURN_FLAGS_VERSION}"
"""Version of the arrays and of their contents other than terms."""

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

DAMAGES = (ValueError, TypeError, LookupError, OverflowError, RuntimeError, EOFError, zipfile.BadZipFile)
"""Errors for content that was not written like that, those of FAISS and numpy included."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Origin:
    """The inputs of an index; a snapshot is used only if all of them are equal."""

    model_id: str
    dim: int
    analyser: str
    token_space: str | None = None
    layout: str = LAYOUT


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A valid snapshot: all parts have the same rows."""

    passage_ids: NDArray[np.int64]
    flags: NDArray[np.uint8]
    vectors: VectorIndex
    words: PassageWords
    tokens: TokenVectors


class SnapshotFiles:
    """The snapshots of all indexes of one database."""

    def __init__(
        self, directory: Path, origin: Origin, rules: Mapping[Profile, WordRules], warnings: ServiceWarnings
    ) -> None:
        self._directory = directory
        self._origin = origin
        self._rules = rules
        self._warnings = warnings

    def write(
        self,
        name: str,
        *,
        commit: CommitId,
        passage_ids: NDArray[np.int64],
        flags: NDArray[np.uint8],
        vectors: VectorIndex,
        words: PassageWords,
        tokens: TokenVectors,
    ) -> bool:
        """Replace the snapshot of that name; return False, with a warning, if the folder does not allow it.

        The parts must not change meanwhile. A failed write leaves no files of it.

        :param commit: The state of the database that they agree with.
        """
        *parts, manifest_path = paths = self._paths(name)
        arrays: dict[str, NDArray[Any]] = {
            "passage_ids": passage_ids,
            "passage_flags": flags,
            **words.to_arrays(),
            **tokens.to_arrays(),
        }
        replacing = False
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            faiss_path, tokens_path, words_path = map(_partial, parts)
            vectors.write(faiss_path)
            tokens.write(tokens_path)
            with words_path.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
            checksums = {path.name: sha256_of(_partial(path)) for path in parts}
            state = {"generation": commit.generation, "commit": commit.number, "rows": len(passage_ids)}
            manifest = {**state, "sha256": checksums, **asdict(self._origin)}
            _partial(manifest_path).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
            for path in paths:
                sync(_partial(path))
            replacing = True
            _delete(manifest_path)
            for path in paths:
                os.replace(_partial(path), path)
            sync(self._directory)
        except (OSError, RuntimeError) as error:  # FAISS raises the latter
            self.warn(UNWRITABLE, error)
            self._discard([*map(_partial, paths), *(paths if replacing else ())])
            return False
        self._warnings.clear(UNREADABLE)
        self._warnings.clear(UNWRITABLE)
        return True

    def read(self, name: str, includes: Includes) -> Snapshot | None:
        """Return the snapshot of that name, or None, with a log line that gives the reason.

        One that cannot be used is deleted.
        """
        *parts, manifest_path = paths = self._paths(name)
        try:
            manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
            if not isinstance(manifest, dict):
                raise ValueError("its manifest is not a JSON object")
            stale = self._difference(manifest, includes)
            if stale is None:
                for path in parts:
                    if manifest["sha256"][path.name] != sha256_of(path):
                        raise ValueError(f"{path.name} is not the file that was written")
                snapshot = self._load(name, manifest)
                self._warnings.clear(UNREADABLE)
                return snapshot
        except (FileNotFoundError, IsADirectoryError, *DAMAGES) as error:
            if not (isinstance(error, FileNotFoundError) and error.filename == str(manifest_path)):
                log.warning("index_snapshot_damaged", index=name, reason=str(error), action="rebuilding")
        except OSError as error:
            self.warn(UNREADABLE, error)
            return None
        else:
            tell = log.info if stale.removeprefix(MADE_WITH) in UPGRADED else log.warning
            tell("index_snapshot_stale", index=name, reason=stale, action="deleted; rebuilding")
        self._warnings.clear(UNREADABLE)
        self._discard(paths)
        return None

    def names(self) -> set[str]:
        """Return the names of all complete and partial snapshots.

        :raises OSError: If the folder cannot be read.
        """
        try:
            return {path.name.split(".")[0] for path in self._directory.iterdir() if "." in path.name}
        except (FileNotFoundError, NotADirectoryError):
            return set()

    def remove(self, name: str) -> None:
        """Remove the snapshot of that name, including partial files left by a crash.

        :raises OSError: If a file cannot be removed.
        """
        paths = self._paths(name)
        removed = [_delete(one) for path in reversed(paths) for one in (path, _partial(path))]
        if any(removed):
            sync(self._directory)

    def remove_unusable(self, name: str, includes: Includes) -> None:
        """Remove partial files, and snapshots of another history.

        :raises OSError: If a file cannot be removed.
        """
        try:
            ours = includes(_commit_of(json.loads(self._paths(name)[-1].read_text(encoding="utf-8"))))
        except (OSError, *DAMAGES):
            ours = False
        if not ours:
            self.remove(name)
            return
        for path in self._paths(name):
            _delete(_partial(path))

    def reject(self, name: str, message: str) -> None:
        """Remove the snapshot of an index that disagrees with the database, and warn operators."""
        self._warnings.put(REPAIRED, message)
        self._discard(self._paths(name))

    def check_access(self) -> None:
        """Clear the warnings of the folder if it can be read and written again."""
        probe = _partial(self._paths("probe")[-1])
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

    def _discard(self, paths: Iterable[Path]) -> None:
        """Delete files that must not be used; one that cannot be deleted is refused again when it is read."""
        for path in paths:
            try:
                _delete(path)
            except OSError as error:
                log.warning("index_file_not_deleted", path=str(path), reason=str(error))

    def _difference(self, manifest: Mapping[str, Any], includes: Includes) -> str | None:
        for name, value in asdict(self._origin).items():
            if manifest.get(name) != value:
                return f"{MADE_WITH}{name}"
        return None if includes(_commit_of(manifest)) else "made of a state that the database never had"

    def _load(self, name: str, manifest: Mapping[str, object]) -> Snapshot:
        faiss_path, tokens_path, words_path, _ = self._paths(name)
        vectors = VectorIndex.read(faiss_path, self._origin.dim)
        with np.load(words_path, allow_pickle=False) as arrays:
            stored = {name: arrays[name] for name in arrays.files}
        passage_ids, flags = stored["passage_ids"].astype(np.int64), stored["passage_flags"].astype(np.uint8)
        words = PassageWords.from_arrays(stored, self._rules)
        tokens = TokenVectors.read(tokens_path, stored, self._origin.token_space)
        if not len(passage_ids) == len(flags) == len(vectors) == len(words) == len(tokens) == manifest["rows"]:
            raise ValueError("its parts hold different numbers of rows")
        return Snapshot(passage_ids, flags, vectors, words, tokens)

    def _paths(self, name: str) -> tuple[Path, Path, Path, Path]:
        faiss_path, tokens_path, words_path, manifest_path = (
            self._directory / f"{name}.{suffix}" for suffix in ("faiss", "tokens", "npz", "json")
        )
        return faiss_path, tokens_path, words_path, manifest_path


def _commit_of(manifest: Mapping[str, Any]) -> CommitId:
    return CommitId(str(manifest["generation"]), int(manifest["commit"]))


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


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
