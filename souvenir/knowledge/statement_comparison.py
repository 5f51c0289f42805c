"""Comparison of statements: which one moves, completes, repeats or changes another.

Two statements are about the same matter by the terms that they have in common. Nothing is read; pure functions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from datetime import datetime, timedelta
from functools import lru_cache

from souvenir.core.types import ConceptKind
from souvenir.core.types.statements import BARE_REPORT, VAGUE, StatementKind
from souvenir.knowledge.recognition.gazetteer import KNOWN, RELATIVES
from souvenir.knowledge.recognition.sentence_terms import content_terms
from souvenir.knowledge.recognition.statement_patterns import CALLED_OFF, CHANGES, LEAVES, MOVED, OLD_AND_NEW, UNDER_WAY
from souvenir.knowledge.recognition.statement_words import COMMON_EVENTS, EVENT_OF
from souvenir.store.graph.statements import Stated

MIN_LEAD = timedelta(days=1)
"""Minimum time until the day of a promise that is overdue: errands of the next day are mostly done without a word."""

JUST_OVER = timedelta(days=4)
"""Time after its day in which an appointment may be given a new one."""

FEW_MESSAGES = 3
"""A term of more messages than this is a person or a subject of which there is more to say than one promise."""

MIN_CONSONANTS = 3
"""Words with fewer of them have more in common with others."""

MIN_PART = 5
"""Minimum length of a word of a compound; the rest of it may be one shorter."""

MIN_HEAD = 4
"""Minimum length of the head of a compound that may be named alone."""

_PARTICIPLE = re.compile(
    r"^(ab|an|auf|aus|ein|mit|nach|vor|zu|um|weg|fest|zuruck|aan|af|op|uit|in|mee|na|terug|over|door)?"
    r"(?:ge|(?<=[a-z])zu)(?=\w{3,}(?:t|d|en)$)"
)
_WITH = re.compile(r"\b(?:[Ww]ith|[Mm]it|[Cc]on|[Mm]et) (?:[a-zà-ÿ]+ ){0,2}((?:[A-ZÀ-Ý][\w-]+\b ?)+)")
"""The names of the people of an appointment: "dinner with Bram", "dinner with my boss Samira"."""

_ENDING = re.compile(r"(?<=\w{3})(\w)\1?(?:ung|ado|ido|en|et|ar|er|ir|[dtneaoi])$")
_VOWELS = re.compile(r"[aeiou]+")

_FIXED = re.compile(r"birthday(?! party)|anniversary|geburtstag|cumplea|verjaardag|\bjarig\b", re.IGNORECASE)
"""Words of days that nobody moves."""


def is_fixed(one: Stated) -> bool:
    return _FIXED.search(one.sentence) is not None


def may_be_overdue(one: Stated) -> bool:
    is_promise = one.kind is StatementKind.PROMISE and one.attribute != VAGUE
    return is_promise and one.due is not None and one.due - one.at >= MIN_LEAD


@lru_cache(maxsize=2_048)
def _terms(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _common(one: Stated, other: Stated) -> int:
    return len(_terms(one.terms) & _terms(other.terms))


def is_of_another(one: Stated, other: Stated) -> bool:
    """Return whether two appointments are with people of different names."""
    names, other_names = _people(one.sentence), _people(other.sentence)
    return bool(names and other_names) and names.isdisjoint(other_names)


def is_with(one: Stated, names: Set[str]) -> bool:
    """Return whether an appointment is with one of these people, given by the words of their keys."""
    met = (word for word in _people(one.sentence) if word.casefold() in names)
    return any(not _terms(one.terms).isdisjoint(content_terms(word)) for word in met)


@lru_cache(maxsize=2_048)
def _people(sentence: str) -> frozenset[str]:
    """Return the words of the names of the people of an appointment; cached, since every two are compared."""
    return frozenset(" ".join(_WITH.findall(sentence)).split())


def by_time(found: Iterable[Stated]) -> list[Stated]:
    return sorted(found, key=lambda one: (one.at, one.id), reverse=True)


def says_what_changed(one: Stated) -> bool:
    return one.due is None or any(pattern.search(one.sentence) for pattern in (MOVED, CHANGES))


def is_cancellation(change: Stated) -> bool:
    return CALLED_OFF.search(change.sentence) is not None


def cancels(change: Stated, one: Stated) -> bool:
    """Return whether a change calls off what an earlier one is about."""
    return is_cancellation(change) and change.at > one.at and _follows(change, one)


def is_under_way(change: Stated) -> bool:
    return UNDER_WAY.search(change.sentence) is not None


def has_old_value(one: Stated, before: Stated | None) -> bool:
    """Return whether a change has an old and a new value: of an earlier statement, or in its sentence."""
    return before is not None or one.replaced is not None or OLD_AND_NEW.search(one.sentence) is not None


def without_replaced(found: Sequence[Stated], changes: Sequence[Stated], withdrawals: Sequence[Stated]) -> list[Stated]:
    """Return those for which no later statement sets another day, or withdraws them."""
    moving = [change for change in changes if change.due is not None]
    cancelling = [change for change in changes if is_cancellation(change)]
    return [
        one
        for one in found
        if not any(is_moved_by(one, change) for change in moving)
        and not any(_follows(change, one) for change in cancelling)
        and not any(_withdraws(withdrawal, one) for withdrawal in withdrawals)
        and not any(_sets_another_day(other, one) for other in found)
    ]


def is_moved_by(one: Stated, change: Stated) -> bool:
    """Return whether a change sets another day for a statement whose day was still ahead, or just over."""
    if change.due is None or one.due is None or change.at <= one.at:
        return False
    if change.message_id == one.message_id or is_of_another(change, one):
        return False
    if change.replaced is not None:
        return change.replaced == one.due and _common(change, one) > 0
    if change.value not in _terms(one.terms):
        return _is_same_event(change, one) and _sets_another_day(change, one, terms=0)
    return _sets_another_day(change, one, terms=min(len(_terms(change.terms)), len(_terms(one.terms))) / 3)


def _is_same_event(change: Stated, one: Stated) -> bool:
    """Return whether what a change moves is the event of a statement by another word: "wedding", "is getting married".

    A relative whom only the change names has an event of their own.
    """
    value = change.value or ""
    event, terms = EVENT_OF.get(value), _terms(one.terms)
    further = _terms(change.terms) - {value}
    if event is None or event not in {EVENT_OF.get(term) for term in terms}:
        return False
    is_certain = event not in COMMON_EVENTS or not further or not further.isdisjoint(terms)
    return is_certain and RELATIVES.isdisjoint(further - terms)


def _sets_another_day(other: Stated, one: Stated, *, terms: float = 3) -> bool:
    """Return whether a later statement with so many common terms has another day than one that was not over."""
    if other.at <= one.at or other.due is None or one.due is None or is_of_another(other, one):
        return False
    return other.due != one.due and one.due >= other.at - JUST_OVER and _common(other, one) >= terms


def _withdraws(withdrawal: Stated, one: Stated) -> bool:
    """Return whether a negated sentence names the day of an earlier statement and a term of it, or two terms."""
    needed = 1 if withdrawal.replaced == one.due else min(2, len(_terms(one.terms)))
    return _follows(withdrawal, one) and _common(withdrawal, one) >= needed


def _follows(other: Stated, one: Stated) -> bool:
    is_later = other.at >= one.at and other.message_id != one.message_id
    return is_later and _common(other, one) > 0 and not is_of_another(other, one)


def is_left_by(fact: Stated, one: Stated) -> bool:
    """Return whether a change says that the value of an earlier fact no longer holds: "I quit Siemens"."""
    is_change = one.kind is StatementKind.CHANGE and fact.at < one.at and LEAVES.search(one.sentence) is not None
    return is_change and re.search(rf"\b{re.escape(fact.value or '')}\b", one.sentence, re.IGNORECASE) is not None


def without_repeats(found: Iterable[Stated]) -> list[Stated]:
    """Return the newest of the statements with a common term on one day."""
    kept: list[Stated] = []
    seen: defaultdict[datetime | None, set[str]] = defaultdict(set)
    for one in sorted(found, key=lambda one: (one.at, one.id), reverse=True):
        terms = _terms(one.terms)
        if not terms & seen[one.due]:
            kept.append(one)
        seen[one.due] |= terms
    return sorted(kept, key=lambda one: (one.due or one.at, one.id), reverse=True)


def differs(fact: Stated, one: Stated) -> bool:
    """Return whether an earlier fact of the author gives the attribute another value."""
    if one.value is None or fact.value is None or fact.attribute != one.attribute or fact.at >= one.at:
        return False
    old, new = fact.value.casefold(), one.value.casefold()
    return old not in new and new not in old


def is_about_the_same(one: Stated, other: Stated) -> bool:
    if is_of_another(one, other):
        return False
    is_near = one.message_id == other.message_id or (one.due is not None and one.due == other.due)
    return _common(one, other) > (0 if is_near else 1) or (
        one.attribute is not None and one.attribute == other.attribute
    )


def completed(said: Iterable[Stated], steps: Sequence[Stated], today: datetime) -> set[int]:
    """Return the ids of the promises that a later message may have completed.

    One common term completes a promise if it is in a sentence that reports something as done. One that is past its day
    is completed by any later mention of a term that few messages have and that is no place, or of two terms, since
    "nothing says that it was done" would not be certain; and the latest promise before it by a report without a subject
    ("Signed on Monday!").
    """
    by_root: defaultdict[str, list[Stated]] = defaultdict(list)
    promises = [one for one in said if one.kind is StatementKind.PROMISE]
    for one in promises:
        for root in _roots(one.terms) | _heads(one.terms):
            by_root[root].append(one)
    frequency = Counter(root for step in steps for root in by_root.keys() & _forms(step.terms))
    done = set[int]()
    for step in steps:
        reported = _forms(step.value or "")
        before = [one for one in promises if one.at < step.at and one.message_id != step.message_id]
        if step.attribute == BARE_REPORT and before:
            latest = max(before, key=lambda one: one.at)
            done |= {one.id for one in before if one.message_id == latest.message_id and _is_past(one, today)}
        common = Counter[int]()
        for root in by_root.keys() & _forms(step.terms):
            for one in by_root[root]:
                if root in reported or (_is_past(one, today) and root not in _places(one.terms)):
                    common[one.id] += 2 if root in reported or frequency[root] <= FEW_MESSAGES else 1
        done |= {one.id for one in before if common[one.id] > 1}
    return done


def _is_past(one: Stated, today: datetime) -> bool:
    return one.due is not None and one.due < today


@lru_cache(maxsize=2_048)
def _roots(terms: str) -> frozenset[str]:
    return frozenset(_root(term) for term in terms.split())


@lru_cache(maxsize=2_048)
def _places(terms: str) -> frozenset[str]:
    return frozenset(_root(term) for term in terms.split() if KNOWN.get(term) is ConceptKind.PLACE)


def _forms(terms: str) -> frozenset[str]:
    return _roots(terms) | _terms(terms) | _heads(terms)


@lru_cache(maxsize=2_048)
def _heads(terms: str) -> frozenset[str]:
    """Return the ends of long terms, some of which are the head of a compound: "Halteverbotszone"."""
    return frozenset(term[begin:] for term in _terms(terms) for begin in range(MIN_PART, len(term) - MIN_HEAD + 1))


def _root(term: str) -> str:
    """Return what the forms of a verb have in common: "unterschreiben" and "unterschrieben", "firmar" and "firmado"."""
    stem = _ENDING.sub(r"\1", _PARTICIPLE.sub(r"\1", term))
    consonants = _VOWELS.sub("", stem[1:])
    return stem[0] + consonants if len(consonants) >= MIN_CONSONANTS else stem
