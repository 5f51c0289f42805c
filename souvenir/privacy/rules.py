"""Screening of texts by rules: detect personal data and secrets that must not be stored, and redact them.

`PrivacyRules` is created once from the rules file and is thread-safe. It stores nothing of a text, and no text appears
in a log, an error or a `repr` of its results.

Invariant: screening is idempotent. Redaction texts are no findings, and a text is screened again after a redaction,
which can uncover data that a longer finding or a distant context word had hidden.

`Patterns` finds every match, including overlapping ones, and checks it. Patterns run in RE2, in linear time, over the
UTF-8 bytes of the text; findings are in characters of the text.

`Prefilter` finds in one pass which of many patterns match, and `TopicRules` which sensitive topics occur, by the words
of a topic. Words are compared ignoring case; their parts may be joined by spaces, hyphens or underscores, or not at
all. A word matches as a whole or in a plural with s, not inside of another; in scripts without spaces it matches
anywhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import re2

from souvenir.core.concurrency import require_time
from souvenir.core.errors import PersonalDataRejected, PrivacyRulesUnusable
from souvenir.privacy.checks import CHECK_NAMES, check_named
from souvenir.privacy.checks.numbering import options
from souvenir.privacy.checks.surroundings import CHARS_AFTER_MATCH, CHARS_BEFORE_MATCH, Check, Found
from souvenir.privacy.policy import Action, PrivacyPolicy
from souvenir.privacy.rules_file import PatternRule, RulesFile, read_rules_file

MAX_ROUNDS = 8
"""Maximum number of passes over a text. The second one rarely finds anything; an adversarial text is left as after the
last pass.
"""


@dataclass(frozen=True, slots=True)
class Screened:
    """A storable text. `found` counts flagged and redacted findings by kind; `topics` are those of `text`."""

    text: str = field(repr=False)
    found: Mapping[str, int]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScreenedJson:
    """A JSON value with storable texts; `found` and `topics` cover all of them."""

    value: Any = field(repr=False)
    found: Mapping[str, int]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """A finding: `start` and `end` are characters of the text, `kind` is the pattern's name."""

    kind: str
    start: int
    end: int
    is_secret: bool


class _Finding(NamedTuple):
    rule: PatternRule
    start: int
    end: int


class PrivacyRules:
    """The rules of one file. Thread-safe."""

    def __init__(self, file: RulesFile) -> None:
        """:raises PrivacyRulesUnusable: If a pattern is unusable; the message names it."""
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
        """Load a rules file; the shipped one is `Settings.privacy_rules_path` unless PRIVACY_CONFIG names another.

        :raises PrivacyRulesUnusable: If there is none, or it contains an error; the message says which.
        """
        return _made_of(path, path.read_bytes() if path.is_file() else b"")

    @property
    def topic_names(self) -> tuple[str, ...]:
        """All topics, in the order of the file."""
        return self._topics.names

    def spans(self, text: str) -> list[RuleMatch]:
        """Return all findings in order. Overlapping findings are merged, with the kind of the longest."""
        found = _merged(self._find(text, lambda rule: True, {}))
        return [RuleMatch(rule.name, start, end, rule.is_secret) for rule, start, end in found]

    def finds_nothing(self, text: str) -> bool:
        """Return whether no policy changes the text."""
        return not self._find(text, lambda rule: True, {})

    def topics(self, text: str) -> tuple[str, ...]:
        """Return the sensitive topics of the text, in the order of the file; redaction texts have none."""
        return self._topics.in_text(_encoded(self._redactions.sub(" ", text)))

    def screened(self, text: str, policy: PrivacyPolicy) -> str:
        """Return a text after a policy was applied to it, as `screen` does."""
        return self._screened(text, policy, "")[0]

    def screen(self, text: str, policy: PrivacyPolicy) -> Screened:
        """Apply a policy to a text.

        :raises PersonalDataRejected: If the policy rejects its content; the error names the kinds, never the text.
        """
        screened, found = self._screened(text, policy, "")
        return Screened(screened, found, self.topics(screened))

    def screen_json(self, value: Any, policy: PrivacyPolicy) -> ScreenedJson:
        """Apply a policy to every text in a JSON value. Keys are kept, and serve as context of their texts.

        :raises PersonalDataRejected: If the policy rejects one of the texts.
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
        """Return the redacted text, and the number of findings by kind.

        :param before: Context that precedes the text and is not part of it.
        """
        counts: Counter[str] = Counter()
        checked: CheckedMatches = {}
        for _ in range(MAX_ROUNDS):
            require_time()
            by_action = self._by_action(before + text, policy, len(before), checked)
            if not by_action:
                break
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
        """Return the findings to act on, by action, in characters after the offset; empty if there are none."""
        found: defaultdict[Action, list[_Finding]] = defaultdict(list)
        if policy.secrets is policy.pii is Action.ALLOW:
            return found
        for rule, start, end in self._find(text, lambda rule: _action(rule, policy) is not Action.ALLOW, checked):
            if end > offset:
                found[_action(rule, policy)].append(_Finding(rule, max(start, offset) - offset, end - offset))
        return found

    def _find(self, text: str, wanted: Callable[[PatternRule], bool], checked: CheckedMatches) -> list[_Finding]:
        """Return findings that may overlap, without those inside redaction texts."""
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
    """Create the rules; cached, because reading and compiling takes about 0.1 s.

    :param content: Distinguishes versions of the file; otherwise unused.
    """
    return PrivacyRules(read_rules_file(path))


def _action(rule: PatternRule, policy: PrivacyPolicy) -> Action:
    return policy.action(is_secret=rule.is_secret)


def _merged(found: Iterable[_Finding]) -> list[_Finding]:
    """Sort findings and merge overlapping ones over all of their characters, so that none is split.

    The kind is that of a secret before personal data, then of the longest finding, then of the first rule.
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
    """Encode in UTF-8; unpaired surrogates are kept as bytes that no pattern matches."""
    return text.encode("utf-8", "surrogatepass")


MAX_PATTERN_BYTES = 8 * 1024 * 1024
"""Memory limit of one pattern; RE2 rejects those that need more."""

CheckedMatches = dict[tuple[int, int, int, str], Sequence[Found]]
"""Cached results of checks during the passes over a text, by rank of the pattern, the position and length of the match
in its surroundings, and the surroundings. A redaction changes few of them, so further passes check few matches."""

_NOT_IN_MATCH = (-1, -1)
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


class Pattern:
    """A compiled rule.

    If its regex has named groups, the group that took part is the finding; the rest is required context.
    """

    def __init__(self, rule: PatternRule, check: Check | None) -> None:
        """:raises re2.error: If RE2 does not support it."""
        self.rule = rule
        self._check = check
        chosen = options(MAX_PATTERN_BYTES)
        self._regex = re2.compile(rule.regex, chosen)
        self._groups = sorted(self._regex.groupindex.values())
        if not self._groups:
            # Unused groups cost time.
            chosen.never_capture = True
            self._regex = re2.compile(rule.regex, chosen)

    @property
    def matches_nothing(self) -> bool:
        """True if it matches the empty text."""
        return self._regex.fullmatch(b"") is not None

    def matches(self, data: bytes) -> Iterator[Found]:
        """Yield the matches, in bytes."""
        for match in self._regex.finditer(data):
            spans = [match.span(group) for group in self._groups]
            start, end = next((span for span in spans if span != _NOT_IN_MATCH), match.span())
            if start < end:
                yield start, end

    def checked(self, text: str, span: Found, known: CheckedMatches) -> Sequence[Found]:
        """Return the parts of a match, in characters, that pass the check."""
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
    """All patterns of a rules file. Thread-safe.

    :raises PrivacyRulesUnusable: If one of them is unusable; the message names it.
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
        """Return all findings of the wanted patterns, in no order.

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
    """Map byte positions to character positions, by counting bytes that do not continue a character."""
    ordered = sorted({0, *positions})
    characters = {0: 0}
    for before, position in pairwise(ordered):
        characters[position] = characters[before] + len(data[before:position].translate(None, _CONTINUATION_BYTES))
    return characters


MAX_MEMORY_BYTES = 32 * 1024 * 1024
"""Memory limit for all patterns together, including RE2's cache."""

_END_OF_TEXT = r"\z"


class Prefilter:
    """Patterns in RE2 syntax. Thread-safe.

    :raises re2.error: If they are too large together.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._count = len(patterns)
        self._set = re2.Set.SearchSet(options(MAX_MEMORY_BYTES))
        for pattern in patterns:
            self._set.Add(pattern)
        # RE2 does not report an incomplete pass. A complete one always finds the end of the text.
        self._set.Add(_END_OF_TEXT)
        self._set.Compile()

    def candidates(self, data: bytes) -> Sequence[int]:
        """Return the indices of the patterns that occur, in order; all of them if RE2 could not finish."""
        found = self._set.Match(data) or ()
        if self._count not in found:
            return range(self._count)
        return sorted(index for index in found if index != self._count)


_JOINTS = re.compile(r"[\s_-]+")


class TopicRules:
    """Finds all topics of a text in one pass. Thread-safe."""

    def __init__(self, words: Mapping[str, Sequence[str]]) -> None:
        self.names = tuple(words)
        self._any_word = Prefilter([_pattern(words[name]) for name in self.names])

    def in_text(self, data: bytes) -> tuple[str, ...]:
        """Return the topics, in the order of the rules.

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
