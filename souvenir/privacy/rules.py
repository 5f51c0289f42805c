"""Screening of texts by rules: personal data and secrets that must not be stored, and the text without them.

`PrivacyRules` is made once from the rules file and used by many threads. It keeps nothing of a text, and no text stands
in a log, an error or a `repr` of what it gives.

Invariant: screening what was screened changes nothing. Redaction texts are no findings, and a text is looked at again
after a redaction, which can uncover what a longer finding or a word too far away had hidden.

`Patterns` finds every match, also those that overlap, and checks it. Patterns run in RE2, whose time is linear in the
text, over its UTF-8 bytes; findings are in characters of the text.

`Prefilter` finds in one pass which of many patterns match, and `TopicRules` which sensitive topics occur, by the words
of a topic. Words are compared without case; their parts may be joined by spaces, hyphens or underscores, or not
at all. A word is found as a whole or in a plural with s, not inside of another; in scripts without spaces it is found
anywhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import re2

from souvenir.core.errors import PersonalDataRejected, PrivacyRulesUnusable
from souvenir.privacy.checks import CHECK_NAMES, check_named
from souvenir.privacy.checks.numbering import options
from souvenir.privacy.checks.surroundings import CHARS_AFTER_MATCH, CHARS_BEFORE_MATCH, Check, Found
from souvenir.privacy.policy import Action, PrivacyPolicy
from souvenir.privacy.rules_file import PatternRule, RulesFile, read_rules_file

MAX_ROUNDS = 8
"""Looks at one text. The second mostly finds nothing; a text made to need more is left as the last one leaves it."""


@dataclass(frozen=True, slots=True)
class Screened:
    """A text as it may be stored. `found` counts by kind what was flagged or redacted; `topics` are those of `text`."""

    text: str = field(repr=False)
    found: Mapping[str, int]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScreenedJson:
    """A JSON value whose texts may be stored; `found` and `topics` are those of all of them together."""

    value: Any = field(repr=False)
    found: Mapping[str, int]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """Something that was found: `start` and `end` are characters of the text, `kind` is the pattern's name."""

    kind: str
    start: int
    end: int
    is_secret: bool


class _Finding(NamedTuple):
    rule: PatternRule
    start: int
    end: int


class PrivacyRules:
    """The rules of one file. Safe for many threads."""

    def __init__(self, file: RulesFile) -> None:
        """:raises PrivacyRulesUnusable: If a pattern cannot be used; the sentence names it."""
        self.default_policy = PrivacyPolicy(pii=Action.REDACT if file.redact_before_storage else Action.ALLOW)
        self.categories = file.categories
        self._patterns = Patterns(file)
        try:
            self._topics = TopicRules(file.topics)
        except re2.error as error:
            raise PrivacyRulesUnusable(file.path, "sensitive_topics has too many words; remove some") from error
        redactions = sorted({rule.redaction for rule in file.patterns}, key=len, reverse=True)
        self._redactions = re.compile("|".join(map(re.escape, redactions)) or r"(?!)")
        for rule in file.patterns:
            self._refuse_if_found(rule, file.path)

    @classmethod
    def load(cls, path: Path) -> PrivacyRules:
        """Read a rules file; the shipped one is `Settings.privacy_rules_path` unless PRIVACY_CONFIG names another.

        :raises PrivacyRulesUnusable: If there is none, or something in it cannot be used; the sentence says what.
        """
        return _made_of(path, path.read_bytes() if path.is_file() else b"")

    @property
    def topic_names(self) -> tuple[str, ...]:
        """Every topic that a text can have, in the order of the file."""
        return self._topics.names

    def spans(self, text: str) -> list[RuleMatch]:
        """Everything found, in order. Findings that overlap are one, of the kind of the longest among them."""
        found = _merged(self._find(text, lambda rule: True, {}))
        return [RuleMatch(rule.name, start, end, rule.is_secret) for rule, start, end in found]

    def topics(self, text: str) -> tuple[str, ...]:
        """Names of the sensitive topics that the text touches, in the order of the file; redaction texts touch none."""
        return self._topics.in_text(_encoded(self._redactions.sub(" ", text)))

    def screen(self, text: str, policy: PrivacyPolicy) -> Screened:
        """The text as the policy lets it in.

        :raises PersonalDataRejected: If it holds what the policy rejects; the error names the kinds, never the text.
        """
        screened, found = self._screened(text, policy, "")
        return Screened(screened, found, self.topics(screened))

    def screen_json(self, value: Any, policy: PrivacyPolicy) -> ScreenedJson:
        """The same for every text inside of a JSON value. Keys stay; they are read as what stands before their texts.

        :raises PersonalDataRejected: If one of the texts holds what the policy rejects.
        """
        total: Counter[str] = Counter()
        touched: set[str] = set()

        def screened(value: Any, before: str) -> Any:
            match value:
                case str():
                    text, found = self._screened(value, policy, before)
                    total.update(found)
                    touched.update(self.topics(text))
                    return text
                case Mapping():
                    return {key: screened(inner, f"{key}: ") for key, inner in value.items()}
                case list() | tuple():
                    return [screened(inner, before) for inner in value]
                case _:
                    return value

        safe = screened(value, "")
        return ScreenedJson(safe, dict(total), tuple(name for name in self._topics.names if name in touched))

    def _screened(self, text: str, policy: PrivacyPolicy, before: str) -> tuple[str, dict[str, int]]:
        """The text, and what was found in it.

        :param before: What is read in front of the text, and is no part of it.
        """
        counts: Counter[str] = Counter()
        checked: CheckedMatches = {}
        for _ in range(MAX_ROUNDS):
            by_action = self._by_action(before + text, policy, len(before), checked)
            if by_action[Action.REJECT]:
                raise PersonalDataRejected(sorted({finding.rule.name for finding in by_action[Action.REJECT]}))
            flagged, redacted = _merged(by_action[Action.FLAG]), _merged(by_action[Action.REDACT])
            if not redacted:
                counts.update(finding.rule.name for finding in flagged)
                break
            counts.update(finding.rule.name for finding in redacted)
            text = _replaced(text, redacted)
        return text, dict(counts)

    def _by_action(
        self, text: str, policy: PrivacyPolicy, offset: int, checked: CheckedMatches
    ) -> Mapping[Action, Sequence[_Finding]]:
        """What has to be acted on, in characters after the offset."""
        found: dict[Action, list[_Finding]] = {action: [] for action in Action}
        if policy.secrets is policy.pii is Action.ALLOW:
            return found
        for rule, start, end in self._find(text, lambda rule: _action(rule, policy) is not Action.ALLOW, checked):
            if end > offset:
                found[_action(rule, policy)].append(_Finding(rule, max(start, offset) - offset, end - offset))
        return found

    def _find(self, text: str, wanted: Callable[[PatternRule], bool], checked: CheckedMatches) -> list[_Finding]:
        """Findings that may overlap, without those inside of a redaction text."""
        found = [_Finding(rule, *span) for rule, span in self._patterns.found(text, _encoded(text), wanted, checked)]
        if not found:
            return []
        redactions = [match.span() for match in self._redactions.finditer(text)]
        starts = [start for start, _ in redactions]

        def is_redaction(finding: _Finding) -> bool:
            last = bisect_right(starts, finding.start) - 1
            return last >= 0 and finding.end <= redactions[last][1]

        return [finding for finding in found if not is_redaction(finding)]

    def _refuse_if_found(self, rule: PatternRule, path: Path) -> None:
        for finder, _ in self._patterns.found(rule.redaction, _encoded(rule.redaction), lambda rule: True, {}):
            reason = f"the redaction text of {rule.name!r} is found by the pattern {finder.name!r}; choose another"
            raise PrivacyRulesUnusable(path, reason)


@lru_cache(maxsize=4)
def _made_of(path: Path, content: bytes) -> PrivacyRules:
    """Once a process, since reading and compiling takes some 0.1 s.

    :param content: Only tells the states of the file apart.
    """
    return PrivacyRules(read_rules_file(path))


def _action(rule: PatternRule, policy: PrivacyPolicy) -> Action:
    return policy.action(is_secret=rule.is_secret)


def _merged(found: Iterable[_Finding]) -> list[_Finding]:
    """Findings in order; those that overlap become one over all of their characters, so that none is cut in two.

    A secret gives the kind before personal data, then the longest, then the rule that stands first.
    """
    merged: list[_Finding] = []
    best = (False, 0, 0)
    for finding in sorted(found, key=lambda finding: finding.start):
        weight = _weight(finding)
        if not merged or finding.start >= merged[-1].end:
            merged.append(finding)
            best = weight
            continue
        rule, start, end = merged[-1]
        merged[-1] = _Finding(finding.rule if weight > best else rule, start, max(end, finding.end))
        best = max(weight, best)
    return merged


def _weight(finding: _Finding) -> tuple[bool, int, int]:
    return finding.rule.is_secret, finding.end - finding.start, -finding.rule.rank


def _replaced(text: str, redacted: Sequence[_Finding]) -> str:
    pieces: list[str] = []
    position = 0
    for rule, start, end in redacted:
        pieces += (text[position:start], rule.redaction)
        position = end
    return "".join([*pieces, text[position:]])


def _encoded(text: str) -> bytes:
    """In UTF-8; half of a surrogate pair is kept, as bytes that no pattern finds."""
    return text.encode("utf-8", "surrogatepass")


MAX_PATTERN_BYTES = 8 * 1024 * 1024
"""Memory that one pattern may take; RE2 refuses those that would need more."""

CheckedMatches = dict[tuple[int, int, int, str], Sequence[Found]]
"""Results of checks in the rounds of one text, by the rank of the pattern, the place and length of the match in its
surroundings, and the surroundings. A redaction changes few of them, so that a further round checks few matches."""

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

    def checked(self, text: str, span: Found, known: CheckedMatches) -> Sequence[Found]:
        """The parts of a match, in characters, that pass the check."""
        if self._check is None:
            return [span]
        start, end = span
        left = max(0, start - CHARS_BEFORE_MATCH)
        surroundings = text[left : end + CHARS_AFTER_MATCH]
        key = self.rule.rank, start - left, end - start, surroundings
        found = known.get(key)
        if found is None:
            found = known[key] = tuple(self._check(surroundings, start - left, end - left))
        return [(left + start, left + end) for start, end in found]


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

    def found(
        self, text: str, data: bytes, wanted: Callable[[PatternRule], bool], known: CheckedMatches
    ) -> list[tuple[PatternRule, Found]]:
        """Every finding of the patterns that are wanted, in no order.

        :param data: The text in UTF-8. :param known: Results of checks; new ones are added.
        """
        matches: list[tuple[Pattern, list[Found]]] = []
        for index in self._prefilter.candidates(data):
            pattern = self._patterns[index]
            if wanted(pattern.rule):
                matches.append((pattern, list(pattern.matches(data))))
        if len(data) != len(text):
            to_character = _characters_at(data, (at for _, spans in matches for span in spans for at in span))
            matches = [(p, [(to_character[start], to_character[end]) for start, end in spans]) for p, spans in matches]
        return [(p.rule, found) for p, spans in matches for span in spans for found in p.checked(text, span, known)]


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


_JOINTS = re.compile(r"[\s_-]+")


class TopicRules:
    """Finds topics in texts, all in one pass. Safe for many threads."""

    def __init__(self, words: Mapping[str, Sequence[str]]) -> None:
        self.names = tuple(words)
        self._any_word = Prefilter([_pattern(words[name]) for name in self.names])

    def in_text(self, data: bytes) -> tuple[str, ...]:
        """Names of the topics, in the order of the rules.

        :param data: The text in UTF-8.
        """
        return tuple(self.names[index] for index in self._any_word.candidates(data))


def _pattern(words: Sequence[str]) -> str:
    return "(?i)" + "|".join(map(_word_pattern, words))


def _word_pattern(word: str) -> str:
    whole = r"[\s_-]*".join(re2.escape(part) for part in _JOINTS.split(word) if part)
    before = "(?:^|[^A-Za-z])" if _is_western(word[0]) else ""
    after = "(?:'?s)?(?:$|[^A-Za-z])" if _is_western(word[-1]) else ""
    return f"{before}{whole}{after}"


def _is_western(letter: str) -> bool:
    return letter.isascii() and letter.isalpha()
