"""The plain arrays that a lexical index is stored as: their names and types, and what must hold between them.

V terms, P postings, n rows: term t is `term_bytes[term_offsets[t] : term_offsets[t + 1]]`, in UTF-8, and its postings
are entries `posting_offsets[t]` to `posting_offsets[t + 1]` of `posting_rows` and `posting_tfs`, which ascend by row.
The terms of a row are not stored again: the postings say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from souvenir.types import Profile

DTYPES = {
    "term_bytes": np.uint8,
    "term_offsets": np.int64,
    "posting_offsets": np.int64,
    "posting_rows": np.uint32,
    "posting_tfs": np.uint16,
    "row_lengths": np.uint32,
    "row_profiles": np.uint8,
}


def offsets(sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of some consecutive pieces starts, and where the last one ends: shape (len(sizes) + 1,)."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def posting_terms(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """The term id of every posting, shape (P,)."""
    dfs = np.diff(arrays["posting_offsets"])
    return np.repeat(np.arange(len(dfs), dtype=np.int64), dfs)


def check_arrays(arrays: Mapping[str, NDArray[Any]], profiles: Iterable[Profile], *, max_tf: int) -> None:
    """Refuse arrays that break an invariant of the index, before anything is built from them.

    :param profiles: Those that rows may have.
    :param max_tf: What a higher term frequency was stored as.
    :raises ValueError: Names the first thing that is wrong.
    """
    for name, dtype in DTYPES.items():
        if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
            raise ValueError(f"lexical snapshot: {name} is not a one-dimensional array of {np.dtype(dtype)}")
    rows, tfs, lengths = (arrays[name].astype(np.int64) for name in ("posting_rows", "posting_tfs", "row_lengths"))
    check(_are_offsets(arrays["term_offsets"], len(arrays["term_bytes"]), least=0), "term offsets")
    check(_are_offsets(arrays["posting_offsets"], len(rows), least=1), "posting offsets")
    check(len(arrays["term_offsets"]) == len(arrays["posting_offsets"]), "number of terms")
    check(len(rows) == len(tfs) and len(lengths) == len(arrays["row_profiles"]), "lengths of columns")
    check(bool(np.isin(arrays["row_profiles"], [profile.value for profile in profiles]).all()), "profiles")
    check(bool((rows < len(lengths)).all()), "rows of postings")
    ascending = np.diff(posting_terms(arrays) << 32 | rows) > 0
    check(bool(ascending.all()), "order of postings")
    check(bool((tfs > 0).all()), "term frequencies")
    counted = np.bincount(rows, weights=tfs, minlength=len(lengths))
    clipped = np.bincount(rows, weights=tfs == max_tf, minlength=len(lengths)) > 0
    check(bool(((counted == lengths) | clipped & (counted < lengths)).all()), "lengths of rows")


def _are_offsets(offsets: NDArray[Any], total: int, *, least: int) -> bool:
    """Whether offsets cut `total` things into consecutive pieces of at least `least` each."""
    starts_and_ends = len(offsets) > 0 and int(offsets[0]) == 0 and int(offsets[-1]) == total
    return starts_and_ends and bool((np.diff(offsets) >= least).all())


def check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"lexical snapshot: {what} are inconsistent")
