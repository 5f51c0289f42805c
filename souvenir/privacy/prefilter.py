"""Which of many patterns occur in a text at all, found in one pass over it."""

from __future__ import annotations

from collections.abc import Sequence

import re2

MAX_MEMORY_BYTES = 32 * 1024 * 1024
"""For all patterns together, with what RE2 remembers of the texts that it saw."""

_END_OF_TEXT = r"\z"


class Prefilter:
    """Patterns in the syntax of RE2. Safe for many threads.

    :raises re2.error: If they are too large together.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._count = len(patterns)
        self._set = re2.Set.SearchSet(options(MAX_MEMORY_BYTES))
        for pattern in patterns:
            self._set.Add(pattern)
        # RE2 says nothing of a pass that it could not finish. The end of the text is always found by one that it could.
        self._set.Add(_END_OF_TEXT)
        self._set.Compile()

    def candidates(self, data: bytes) -> Sequence[int]:
        """Positions of the patterns that occur, in order; all of them if RE2 could not tell."""
        found = self._set.Match(data) or ()
        if self._count not in found:
            return range(self._count)
        return sorted(index for index in found if index != self._count)


def options(max_memory_bytes: int) -> re2.Options:
    chosen = re2.Options()
    chosen.max_mem = max_memory_bytes
    # It would write to standard error; our sentence says it.
    chosen.log_errors = False
    return chosen
