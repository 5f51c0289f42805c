"""An index on disk, so that a start does not have to analyse every text. Only a copy: the database is authoritative.

Four files per index: `<name>.faiss` (vectors), `<name>.tokens` (token vectors), `<name>.npz` (words, passage ids and
flags), `<name>.json` (origin and checksums), renamed to their names in that order. A snapshot of a state that the
database never had, of another model or analyser, or with a wrong checksum is not used. Its content is never executed.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from souvenir.core.files import sha256_of, sync
from souvenir.core.passages import CommitId
from souvenir.core.types import Profile
from souvenir.index.attributes import TURN_FLAGS_VERSION
from souvenir.index.passage_words import PassageWords, WordRules
from souvenir.index.vector import TokenVectors, VectorIndex

LAYOUT = f"4.{TURN_FLAGS_VERSION}"
"""Version of the arrays and of their contents other than terms."""

Includes = Callable[[CommitId], bool]
"""Returns whether the history of the database contains a commit."""

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

    def __init__(self, directory: Path, origin: Origin, rules: Mapping[Profile, WordRules]) -> None:
        self._directory = directory
        self._origin = origin
        self._rules = rules

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
    ) -> None:
        """Replace the snapshot of that name. The parts must not change meanwhile.

        :param commit: The state of the database that they agree with.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        faiss_path, tokens_path, words_path, manifest_path = self._paths(name)
        checksums: dict[str, str] = {}
        vectors.write(_partial(faiss_path))
        tokens.write(_partial(tokens_path))
        arrays: dict[str, NDArray[Any]] = {
            "passage_ids": passage_ids,
            "passage_flags": flags,
            **words.to_arrays(),
            **tokens.to_arrays(),
        }
        with _partial(words_path).open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        for path in (faiss_path, tokens_path, words_path):
            checksums[path.name] = sha256_of(_partial(path))
        state = {"generation": commit.generation, "commit": commit.number, "rows": len(passage_ids)}
        manifest = {**state, "sha256": checksums, **asdict(self._origin)}
        _partial(manifest_path).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        for path in self._paths(name):
            sync(_partial(path))
            os.replace(_partial(path), path)
        sync(self._directory)

    def read(self, name: str, includes: Includes) -> Snapshot | None:
        """Return the snapshot of that name, or None, with a log line that gives the reason."""
        *parts, manifest_path = self._paths(name)
        if not manifest_path.exists():
            return None
        try:
            manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
            if not isinstance(manifest, dict):
                raise ValueError("its manifest is not a JSON object")
            stale = self._difference(manifest, includes)
            if stale is None:
                for path in parts:
                    if manifest["sha256"][path.name] != sha256_of(path):
                        raise ValueError(f"{path.name} is not the file that was written")
                return self._load(name, manifest)
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile) as error:
            log.warning("index_snapshot_damaged", index=name, reason=str(error), action="rebuilding")
            return None
        log.info("index_snapshot_stale", index=name, reason=stale, action="rebuilding")
        return None

    def names(self) -> set[str]:
        """Return the names of all complete and partial snapshots."""
        return {path.name.split(".")[0] for path in self._directory.glob("*.*")}

    def remove(self, name: str) -> None:
        """Remove the snapshot of that name, including partial files left by a crash."""
        paths = self._paths(name)
        if any(one.exists() for path in paths for one in (path, _partial(path))):
            for path in paths:
                path.unlink(missing_ok=True)
                _partial(path).unlink(missing_ok=True)
            sync(self._directory)

    def remove_unusable(self, name: str, includes: Includes) -> None:
        """Remove partial files, and snapshots of another history."""
        try:
            ours = includes(_commit_of(json.loads(self._paths(name)[-1].read_text(encoding="utf-8"))))
        except (OSError, ValueError, KeyError, TypeError):
            ours = False
        if not ours:
            self.remove(name)
            return
        for path in self._paths(name):
            _partial(path).unlink(missing_ok=True)

    def _difference(self, manifest: Mapping[str, Any], includes: Includes) -> str | None:
        for name, value in asdict(self._origin).items():
            if manifest.get(name) != value:
                return f"made with another {name}"
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
