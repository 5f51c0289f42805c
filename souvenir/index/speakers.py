"""Who speaks in a namespace's talks, and by which terms a question names them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence


class Speakers:
    """A code for every name, from 1 on; 0 is nobody. Only names that some passage still has can be named.

    :param analyse: A name's terms.
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

    def name_of(self, code: int) -> str:
        return self._names[code]

    def count(self, code: int, change: int) -> None:
        """One passage more or less that this speaker said."""
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

    def is_name(self, term: str) -> bool:
        """Whether it is a term of some speaker's name."""
        return term in self._named_by

    def only_one_named(self, terms: Iterable[str]) -> int | None:
        """The speaker whom the terms of a question name, if they name just one."""
        named = {code for term in terms if term in self._named_by for code in self._named_by[term]}
        return named.pop() if len(named) == 1 else None
