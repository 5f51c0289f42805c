"""Patterns and their checks over a text: every finding, also those that overlap.

Patterns run in RE2, whose time is linear in the text, over its UTF-8 bytes; findings are in characters of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import re2

from souvenir.errors import PrivacyRulesUnusable
from souvenir.privacy.checks import CHECK_NAMES, check_named
from souvenir.privacy.checks.surroundings import Check, Found
from souvenir.privacy.prefilter import Prefilter, options
from souvenir.privacy.rules_file import PatternRule, RulesFile

MAX_PATTERN_BYTES = 8 * 1024 * 1024
"""Memory that one pattern may take; RE2 refuses those that would need more."""

_NOT_IN_MATCH = (-1, -1)
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


class Pattern:
    """One rule, ready to run.

    If its regex has named groups, the one that took part is what it finds; the rest is what has to stand around it.
    """

    def __init__(self, rule: PatternRule, check: Check | None) -> None:
        """:raises re2.error: If RE2 cannot run it."""
        self.rule = rule
        self._check = check
        chosen = options(MAX_PATTERN_BYTES)
        self._regex = re2.compile(rule.regex, chosen)
        self._groups = sorted(self._regex.groupindex.values())
        if not self._groups:
            # Groups that nobody reads cost time.
            chosen.never_capture = True
            self._regex = re2.compile(rule.regex, chosen)

    @property
    def matches_nothing(self) -> bool:
        """Whether it matches the empty text."""
        return self._regex.fullmatch(b"") is not None

    def matches(self, data: bytes) -> Iterator[Found]:
        """Where it matches, in bytes."""
        for match in self._regex.finditer(data):
            spans = [match.span(group) for group in self._groups]
            start, end = next((span for span in spans if span != _NOT_IN_MATCH), match.span())
            if start < end:
                yield start, end

    def checked(self, text: str, span: Found) -> Sequence[Found]:
        """The parts of a match, in characters, that stand the check."""
        return [span] if self._check is None else self._check(text, *span)


class Patterns:
    """All patterns of a rules file. Safe for many threads.

    :raises PrivacyRulesUnusable: If one of them cannot be used; the sentence names it.
    """

    def __init__(self, file: RulesFile) -> None:
        checks: dict[str, Check] = {}
        self._patterns = [_compiled(rule, file, checks) for rule in file.patterns]
        try:
            self._prefilter = Prefilter([pattern.rule.regex for pattern in self._patterns])
        except re2.error as error:
            raise PrivacyRulesUnusable(file.path, "its patterns are too large together; remove some") from error

    def found(self, text: str, data: bytes, wanted: Callable[[PatternRule], bool]) -> list[tuple[PatternRule, Found]]:
        """Every finding of the patterns that are wanted, in no order.

        :param data: The text in UTF-8.
        """
        matches: list[tuple[Pattern, list[Found]]] = []
        for index in self._prefilter.candidates(data):
            pattern = self._patterns[index]
            if wanted(pattern.rule):
                matches.append((pattern, list(pattern.matches(data))))
        if len(data) != len(text):
            to_character = _characters_at(data, (at for _, spans in matches for span in spans for at in span))
            matches = [(p, [(to_character[start], to_character[end]) for start, end in spans]) for p, spans in matches]
        return [(p.rule, found) for p, spans in matches for span in spans for found in p.checked(text, span)]


def _compiled(rule: PatternRule, file: RulesFile, checks: dict[str, Check]) -> Pattern:
    if rule.check is not None and rule.check not in CHECK_NAMES:
        known = ", ".join(CHECK_NAMES)
        raise PrivacyRulesUnusable(
            file.path, f"pattern {rule.name!r} asks for the check {rule.check!r}; there are {known}"
        )
    if rule.check is not None and rule.check not in checks:
        checks[rule.check] = check_named(rule.check, file.phone_regions)
    try:
        pattern = Pattern(rule, checks.get(rule.check or ""))
    except re2.error as error:
        reason = f"pattern {rule.name!r} does not run in RE2: {_reason(error)}; write it without"
        raise PrivacyRulesUnusable(file.path, reason) from error
    if pattern.matches_nothing:
        raise PrivacyRulesUnusable(file.path, f"pattern {rule.name!r} matches the empty text; make it need a character")
    return pattern


def _reason(error: re2.error) -> str:
    reason = error.args[0]
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def _characters_at(data: bytes, positions: Iterable[int]) -> Mapping[int, int]:
    """How many characters stand before each of the bytes: those that do not continue a character."""
    ordered = sorted({0, *positions})
    characters = {0: 0}
    for before, position in pairwise(ordered):
        characters[position] = characters[before] + len(data[before:position].translate(None, _CONTINUATION_BYTES))
    return characters
