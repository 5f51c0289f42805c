"""The names of speakers as codes, and the terms by which a query names them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, KeysView, Sequence


class Speakers:
    """Codes of names, from 1; 0 means no speaker. A query can only name speakers of stored passages.

    :param analyse: Returns the terms of a name.
    """

    def __init__(self, analyse: Callable[[str], Sequence[str]]) -> None:
        self._analyse = analyse
        self._names: list[str] = [""]
        self._codes: dict[str, int] = {"": 0}
        self._counts: list[int] = [0]
        self._named_by: defaultdict[str, set[int]] = defaultdict(set)

    def code(self, name: str) -> int:
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self._names)
            self._names.append(name)
            self._counts.append(0)
        return code

    def count_of(self, code: int) -> int:
        """Return the number of passages of a speaker."""
        return self._counts[code]

    def name_of(self, code: int) -> str:
        return self._names[code]

    def count(self, code: int, change: int) -> None:
        """Change the number of passages of a speaker."""
        if not code:
            return
        before, after = self._counts[code], self._counts[code] + change
        self._counts[code] = after
        if not before or not after:
            for term in self._analyse(self._names[code]):
                of_term = self._named_by[term]
                of_term.add(code) if after else of_term.discard(code)
                if not of_term:
                    del self._named_by[term]

    def joined(
        self, counts: Sequence[int], other: Speakers, counts_of_other: Sequence[int]
    ) -> tuple[Speakers, list[int]]:
        """Return the speakers of some passages of two indexes, and the code there of each one of `other`.

        Those of this index keep their codes.

        :param counts: The number of these passages of each speaker, by code; missing ones are 0.
        """
        both = Speakers(self._analyse)
        codes: list[int] = []
        for speakers, of_each in ((self, counts), (other, counts_of_other)):
            codes = [both.code(name) for name in speakers._names]
            for code, count in zip(codes, of_each, strict=False):
                both.count(code, count)
        return both, codes

    @property
    def names(self) -> KeysView[str]:
        """The terms that occur in the names of speakers."""
        return self._named_by.keys()

    def only_one_named(self, terms: Iterable[str]) -> int | None:
        """Return the speaker that the terms of a query name, if they name exactly one."""
        named = {code for term in terms if term in self._named_by for code in self._named_by[term]}
        return named.pop() if len(named) == 1 else None
