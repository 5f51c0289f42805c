"""The arrays of a snapshot as they are read again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from souvenir.core.array_file import FileArray, Rows, Streamed

Arrays = Mapping[str, NDArray[Any] | Streamed]


def whole(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Return them in memory."""
    return {name: _joined(part) if isinstance(part, Streamed) else part.copy() for name, part in arrays.items()}


def partly_in_file(arrays: Arrays) -> dict[str, Rows]:
    """Return them as from a large snapshot, those that are streamed in a file, which is removed while it is open."""
    with TemporaryDirectory() as folder:
        return {
            name: _in_file(Path(folder, name), array) if isinstance(arrays[name], Streamed) else array
            for name, array in whole(arrays).items()
        }


def _in_file(path: Path, array: NDArray[Any]) -> FileArray:
    path.write_bytes(b"before" + array.tobytes())
    return FileArray(path, array.dtype, array.shape, len(b"before"))


def _joined(part: Streamed) -> NDArray[Any]:
    joined = np.concatenate([np.zeros((0, *part.shape[1:]), part.dtype), *part.blocks()])
    assert (joined.dtype, joined.shape) == (part.dtype, part.shape)
    return joined
