"""Named arrays in one file, written in one pass without a copy of them, and read one by one.

The arrays follow each other, each aligned to `ALIGNMENT` bytes. A footer in JSON holds the caller's header, and type,
shape, offset and SHA-256 of every array. The file ends with the SHA-256 of the footer, its length as eight bytes, least
significant first, and `MAGIC`. Its content is never executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from souvenir.core.errors import Unavailable

MAGIC = b"souvarr1"
ALIGNMENT = 64
TRAILER_BYTES = 32 + 8 + len(MAGIC)

LARGE_FROM_BYTES = 1 << 28
"""From this size on, arrays may be left in the file. Reading a row takes some microseconds, which a smaller file does
not save enough memory for; and each occupies a file descriptor."""

HASHED_ROWS = 1 << 12
"""Rows of an array in the file that are hashed at once."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """An array that is written block by block.

    :param blocks: Returns arrays that result in it if they are concatenated.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    blocks: Callable[[], Iterable[NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class _Section:
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    sha256: str

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * prod(self.shape)


def write_arrays(path: Path, header: Mapping[str, object], arrays: Mapping[str, NDArray[Any] | Streamed]) -> None:
    """Write a file, durably.

    :raises OSError: If it cannot be written; what was written of it stays.
    """
    with path.open("wb") as file:
        sections: dict[str, Any] = {}
        for name, part in arrays.items():
            file.write(bytes(-file.tell() % ALIGNMENT))
            offset, hashed = file.tell(), hashlib.sha256()
            blocks = part.blocks() if isinstance(part, Streamed) else [part]
            for block in blocks:
                content = np.ascontiguousarray(block, part.dtype).reshape(-1).view(np.uint8).data
                hashed.update(content)
                file.write(content)
            sections[name] = {
                "dtype": part.dtype.str,
                "shape": part.shape,
                "offset": offset,
                "sha256": hashed.hexdigest(),
            }
        footer = json.dumps({**header, "arrays": sections}).encode()
        file.write(footer + hashlib.sha256(footer).digest() + len(footer).to_bytes(8, "little") + MAGIC)
        file.flush()
        os.fsync(file.fileno())


class FileArray:
    """An array of one or more dimensions in a file, whose rows are read when they are taken.

    It is not mapped into memory: the process then holds nothing of it, and a failing disk raises an error.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> None:
        self.dtype, self.shape = dtype, shape
        self.ndim = len(shape)
        self._path = path
        self._offset = offset
        self._row_bytes = dtype.itemsize * prod(shape[1:])
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._descriptor)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: NDArray[np.integer]) -> NDArray[Any]:
        """Return copies of the rows at these places, (len(rows), ...); those that follow each other are read at once.

        :raises Unavailable: If they cannot be read.
        """
        found = np.empty((len(rows), *self.shape[1:]), self.dtype)
        if not found.nbytes:
            return found
        content, size = found.reshape(-1).view(np.uint8).data, self._row_bytes
        starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        ends = [*starts[1:].tolist(), len(rows)]
        parts = zip(starts.tolist(), ends, rows[starts].tolist(), strict=True)
        read, descriptor, offset = os.preadv, self._descriptor, self._offset
        try:
            lengths = [read(descriptor, [content[a * size : b * size]], offset + row * size) for a, b, row in parts]
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read ({error.strerror}); look at the disk") from error
        if sum(lengths) != found.nbytes:
            raise Unavailable(f"{self._path} is shorter than it was; look at the disk")
        return found


Rows = NDArray[Any] | FileArray
"""Rows in memory or in a file."""


def take(rows: Rows, places: NDArray[np.integer]) -> NDArray[Any]:
    """Return copies of the rows at these places."""
    return rows.take(places) if isinstance(rows, FileArray) else rows.take(places, axis=0)


class ArrayFile(Mapping[str, Rows]):
    """The arrays of a file, read and checked when they are asked for; all of a small file are read at once.

    If the file is large, those named by `left` are left there and checked by `damage`, later.
    """

    def __init__(self, path: Path, left: Iterable[str]) -> None:
        """:raises ValueError: If the file was not written like this, or is damaged."""
        self._path = path
        with path.open("rb") as file:
            self.header, size = _footer(file)
        self.is_large = size >= LARGE_FROM_BYTES
        try:
            self._sections = {name: _section(stated) for name, stated in self.header.pop("arrays").items()}
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path.name} has no list of arrays") from error
        if any(section.offset < 0 or section.offset + section.nbytes > size for section in self._sections.values()):
            raise ValueError(f"{path.name} is shorter than its arrays")
        self._left = {
            name: FileArray(path, section.dtype, section.shape, section.offset)
            for name, section in self._sections.items()
            if self.is_large and name in left
        }

    def __len__(self) -> int:
        return len(self._sections)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sections)

    def __getitem__(self, name: str) -> Rows:
        """Return a writable array in memory, or one that is left in the file.

        :raises ValueError: If it is not the array that was written.
        """
        section = self._sections[name]
        if name in self._left:
            return self._left[name]
        if self.is_large:
            content = np.fromfile(self._path, np.uint8, section.nbytes, offset=section.offset)
        else:
            # A copy, so that one array does not keep the whole file in memory.
            content = self._content[section.offset : section.offset + section.nbytes].copy()
        if hashlib.sha256(content.data).hexdigest() != section.sha256:
            raise ValueError(f"{self._path.name} does not hold the {name} that were written")
        return content.view(section.dtype).reshape(section.shape)

    @cached_property
    def _content(self) -> NDArray[np.uint8]:
        return np.fromfile(self._path, np.uint8)

    def damage(self) -> str | None:
        """Return what is wrong with the arrays that are left in the file, if anything is; reads them as a whole."""
        try:
            for name, array in self._left.items():
                if _sha256(array) != self._sections[name].sha256:
                    return f"{self._path.name} does not hold the {name} that were written"
        except Unavailable as error:
            return error.message
        return None


def _sha256(array: FileArray) -> str:
    hashed = hashlib.sha256()
    for start in range(0, len(array), HASHED_ROWS):
        rows = array.take(np.arange(start, min(start + HASHED_ROWS, len(array))))
        hashed.update(rows.reshape(-1).view(np.uint8).data)
    return hashed.hexdigest()


def in_memory(arrays: Mapping[str, Rows], name: str) -> NDArray[Any]:
    """Return an array that is not left in the file.

    :raises ValueError: If there is none.
    """
    found = arrays.get(name)
    if not isinstance(found, np.ndarray):
        raise ValueError(f"there is no array {name} in memory")
    return found


def header_of(path: Path) -> Mapping[str, Any]:
    """Return the header of a file.

    :raises ValueError: If the file was not written like this, or its footer is damaged.
    """
    with path.open("rb") as file:
        return _footer(file)[0]


def _footer(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """Return the footer, and the size of the file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - TRAILER_BYTES))
    trailer = file.read()
    length = int.from_bytes(trailer[32:40], "little")
    if len(trailer) < TRAILER_BYTES or trailer[40:] != MAGIC or length > size - TRAILER_BYTES:
        raise ValueError(f"{Path(file.name).name} is not a whole file of arrays")
    file.seek(size - TRAILER_BYTES - length)
    footer = file.read(length)
    if hashlib.sha256(footer).digest() != trailer[:32]:
        raise ValueError(f"{Path(file.name).name} has another footer than the one that was written")
    found: dict[str, Any] = json.loads(footer)
    return found, size


def _section(stated: Mapping[str, Any]) -> _Section:
    return _Section(np.dtype(stated["dtype"]), tuple(stated["shape"]), int(stated["offset"]), str(stated["sha256"]))
