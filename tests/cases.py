"""Many cases in one test, for cases that take less time than a test does: about three milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any

import pytest

Test = Callable[..., None]
FAILURES = (Exception, pytest.fail.Exception, BaseExceptionGroup)
"""Exceptions of a failed test. Two of them do not derive from `Exception`; a nested `for_all` raises the group."""


def for_all(names: str, cases: Sequence[Any]) -> Callable[[Test], Test]:
    """Call a test with each case as the argument of a name, as `pytest.mark.parametrize` does, but in one test.

    A case of several names, which commas separate, is a tuple with a value for each.
    Fixtures are those of one test. Every case is tried, also after one that fails.

    :raises BaseExceptionGroup: By the test, of all that failed, each with a note that names its case.
    """
    split = names.split(", ")

    def in_one(test: Test) -> Test:
        @wraps(test)
        def try_all(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for case in cases:
                try:
                    test(**fixtures, **dict(zip(split, case if len(split) > 1 else [case], strict=True)))
                except FAILURES as failure:
                    failure.add_note(f"{names}: {case}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} cases fail", failures)

        asked = signature(test)
        left = [one for one in asked.parameters.values() if one.name not in split]
        try_all.__signature__ = asked.replace(parameters=left)  # type: ignore[attr-defined]
        return try_all

    return in_one
