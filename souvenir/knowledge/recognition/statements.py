"""Find the statements of a person that an insight may report: promises, changes and the like.

By rules on the words of a sentence, in English, and in German, Spanish and Dutch in part. A question, a condition, a
wish, a joke and quoted speech state nothing, and the opinions of others no change. Only messages of people are read,
not those of the assistant. The result is a function of the text and of the day on which it was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise

import structlog

from souvenir.core.types import ConceptKind, Mentioned, MessageRole
from souvenir.core.types.statements import EXPLAINED, VAGUE, Definition, Statement, StatementKind
from souvenir.knowledge.recognition import appointment_patterns as appointments
from souvenir.knowledge.recognition import introduction_patterns as introductions
from souvenir.knowledge.recognition import report_patterns as reports
from souvenir.knowledge.recognition import statement_patterns as patterns
from souvenir.knowledge.recognition.definitions import definitions_in, with_mark
from souvenir.knowledge.recognition.due_dates import NamedDay, named_days, next_of_month
from souvenir.knowledge.recognition.ends import deaths_in, ends_in, may_end, may_tell_death, replaced_in
from souvenir.knowledge.recognition.extraction import said
from souvenir.knowledge.recognition.gazetteer import GIVEN_NAMES, KNOWN, RELATIVES, ROLES, TITLES
from souvenir.knowledge.recognition.sentence_terms import (
    MAX_TERMS,
    Sentence,
    analyser,
    content_terms,
    sentences_of,
    terms_of,
)
from souvenir.knowledge.recognition.statement_words import CLASS_OF, COMPOUND_HEADS, CONSUMED
from souvenir.knowledge.recognition.steps import steps_in
from souvenir.knowledge.recognition.vocabulary import WordClass, class_of

log = structlog.get_logger(__name__)

MAX_CHARS_READ = 8_000
"""Only the beginning of a longer text is read, which bounds the time."""

FEW_WORDS = 8
"""A change that is said in fewer words is shown with the sentence after it."""

FEW_TERMS = 3
"""A sentence with fewer terms is shown with the one before it, which has its subject."""

MAX_CONTEXT_WORDS = 25
"""A longer sentence is not shown with the one after it, which refers to it."""

_OF_A_CLAUSE = frozenset((WordClass.SUBJECT, WordClass.VERB, WordClass.MODAL, WordClass.BE))
"""Words of a clause with a subject of its own."""


def definitions_and_statements(
    text: str, role: MessageRole | None, mentions: Sequence[Mentioned], at: datetime
) -> tuple[Mapping[str, Definition], Sequence[Statement]]:
    """Return the definitions of the concepts that a text mentions, by key, and the statements of a person's message.

    :param role: The role of the author of a message; None for a memory.
    """
    try:
        read = said(text, role)
        defined = definitions_in(read, role, mentions)
        if role is not MessageRole.USER:
            return defined, ()
        people = [one for one in mentions if one.kind is ConceptKind.PERSON]
        named = [one.form for one in people if one.key not in ROLES and one.key not in RELATIVES]
        ended = (*_ended(read[:MAX_CHARS_READ], mentions), *replaced_in(defined))
        return defined, (*statements_in(read, at.date(), named), *ended)
    except Exception:  # the boundary of background work: one text must not block the queue
        log.exception("statement_extraction_failed", chars=len(text))
        return {}, ()


def statements_in(text: str, said_on: date, people: Sequence[str] = ()) -> tuple[Statement, ...]:
    """Return the statements of a person's message, in order of appearance.

    :param text: Without recalled text. :param said_on: The day to which relative dates refer.
    :param people: The people whom it mentions, as they are written.
    """
    if not date.min.year < said_on.year < date.max.year:
        # "Tomorrow" may be no date.
        return ()
    found = sentences_of(text[:MAX_CHARS_READ])
    stated: list[Statement] = []
    for place, sentence in enumerate(found):
        if sentence.is_statement:
            stated += _stated(found, place, said_on)
            stated += _introductions(found, place, people)
    return (*stated, *steps_in(found))


def _ended(text: str, mentions: Sequence[Mentioned]) -> Iterator[Statement]:
    if not may_tell_death(text) and not may_end(text):
        return
    stated = [one.read for one in sentences_of(text) if one.is_statement]
    yield from deaths_in(stated, mentions)
    for read in stated:
        if not any(one.search(read) for one in (patterns.HYPOTHETICAL, patterns.LONG_AGO)):
            yield from ends_in(read, text, mentions)


def _stated(found: Sequence[Sentence], place: int, said_on: date) -> Iterator[Statement]:
    read, shown = found[place].read, found[place].shown
    if patterns.HYPOTHETICAL.search(patterns.INDIRECT_QUESTION.sub("", read)):
        return
    days = named_days(read, said_on)
    change, fact, denied = _change(read, days, said_on), _fact(found[place]), _denied(read)
    if change is not None:
        due, replaced = change
        attribute, value = (
            (fact.attribute, fact.value) if fact else (_unit(read), _subject(read, days) if due else None)
        )
        text = _with_next(found, place)
        terms = terms_of(text)
        if terms or replaced or (patterns.OLD_AND_NEW.search(read) and not patterns.CONTINUES.search(read)):
            yield Statement(StatementKind.CHANGE, text, terms, attribute, value, due, replaced)
    elif fact is not None:
        yield fact
    ahead = [one for one in days if one.day >= said_on]
    if ahead and change is None and not re.search(r"\bevery\b", read, re.IGNORECASE):
        base, month = said_on, _later_month(found, place, ahead, said_on)
        for clause in _matters(read, days):
            of_clause = days if clause == read else named_days(clause, said_on)
            near = [_from(one, clause, base) for one in of_clause if one.day >= said_on]
            if month is not None and not patterns.COMMITMENT.search(clause):
                near = [one for one in near if one.is_exact or not one.is_numbered]
            if near:
                yield from _due(found, place, clause, near, said_on)
            base = max([base, *(one.day for one in near if one.is_exact)])
    if patterns.WITHDRAWS.search(read) and not reports.STILL_OPEN.search(read):
        named = days[0].day if days else None
        yield Statement(StatementKind.WITHDRAWAL, shown, terms_of(shown), replaced=named)
    if denied:
        yield Statement(StatementKind.DENIAL, shown, " ".join(denied))
    elif _is_habit(read):
        yield Statement(StatementKind.HABIT, shown, " ".join(_classes(read)))


def _from(day: NamedDay, clause: str, base: date) -> NamedDay:
    """Return a day without a month as the first one from a day on: "I fly on 20 April, the wedding is on the 25th"."""
    is_of_month = day.is_numbered and not day.is_exact and not _is_deadline(clause, day)
    return day._replace(day=next_of_month(day.day.day, base) or day.day) if is_of_month else day


def _later_month(found: Sequence[Sentence], place: int, days: Sequence[NamedDay], said_on: date) -> date | None:
    """Return the later day with a month of the sentence before, which may be the month of a day without one."""
    if not place or not any(one.is_numbered and not one.is_exact for one in days):
        return None
    before = [one.day for one in named_days(found[place - 1].read, said_on) if one.is_exact]
    return max((one for one in before if one > days[0].day), default=None)


def _unit(read: str) -> str | None:
    """Return the unit of a present amount, by which only the latest of several is shown."""
    amount = patterns.QUANTITY_NOW.search(read)
    return None if amount is None else (amount["before"] or amount["after"] or "").casefold() or None


def _introductions(found: Sequence[Sentence], place: int, people: Sequence[str]) -> Iterator[Statement]:
    sentence = found[place]
    if len(sentence.shown.split()) < FEW_TERMS:
        # "A Gordon."
        return
    marks = [(person, with_mark(sentence.read, person)) for person in people]
    none_new = (patterns.HYPOTHETICAL, patterns.NEGATED, patterns.LONG_AGO)
    if not any(marked for _, marked in marks) or any(one.search(sentence.read) for one in none_new):
        return
    for person, marked in marks:
        first = person.casefold().split()[0].rstrip(".")
        is_name = first in GIVEN_NAMES or first in TITLES
        if marked and (
            introductions.INTRODUCED.search(marked) or (is_name and introductions.BY_ARTICLE.search(marked))
        ):
            yield Statement(StatementKind.INTRODUCTION, sentence.shown, "", value=person)
        elif marked and introductions.EXPLAINED.search(marked):
            shown = sentence.shown if len(content_terms(sentence.shown)) > FEW_TERMS else _in_context(found, place)
            yield Statement(StatementKind.INTRODUCTION, shown, "", EXPLAINED, person)


def _is_habit(read: str) -> bool:
    """Return whether a sentence says what the author does often, or did with a member of a class."""
    if not patterns.OF_AUTHOR.search(read) or patterns.NEGATED.search(read) or patterns.REPORTED.search(read):
        return False
    if patterns.HABIT_FREQUENCY.search(read):
        return True
    return patterns.EVENT_PAST.search(read) is not None and any(one in CLASS_OF for one in _classes(read))


def _in_context(found: Sequence[Sentence], place: int) -> str:
    """Return a sentence with the one before it; a short first one with the one after it, if that refers to it."""
    shown = found[place].shown
    if place:
        return f"{found[place - 1].shown} {shown}" if _is_context(found[place - 1]) else shown
    after = found[1] if len(found) > 1 and len(shown.split()) < FEW_WORDS + 2 else None
    is_meant = after is not None and _is_context(after) and patterns.REFERS_BACK.search(after.read)
    return f"{shown} {after.shown}" if after is not None and is_meant else shown


def _is_context(other: Sentence) -> bool:
    return other.is_statement and 2 < len(other.shown.split()) <= MAX_CONTEXT_WORDS


def _with_next(found: Sequence[Sentence], place: int) -> str:
    """Return the sentence of a change, with the one before it to which it refers, or the one after a short one."""
    shown = found[place].shown
    if patterns.CONTINUES.search(found[place].read) or (place and len(content_terms(shown)) < 2):
        return _in_context(found, place)
    if len(shown.split()) < FEW_WORDS and len(found) > place + 1 and found[place + 1].is_statement:
        return f"{shown} {found[place + 1].shown}"
    return shown


def _change(read: str, days: Sequence[NamedDay], said_on: date) -> tuple[date | None, date | None] | None:
    """Return the new and the replaced day of a change; None if the sentence states no change."""
    if len(read.split()) < 2:
        return None
    named = [one for one in days if _may_be_moved_to(read, one) and not patterns.AFTER.search(read[: one.start])]
    ended = [one for one in named[:-1] if patterns.NOT_UNTIL.search(read[: one.start])]
    numbered = [one for one in _without_periods(read, named) if one not in ended]
    is_one_off = len(numbered) > 1 and sum(_no_longer_holds(read, one) for one in numbered) == 1
    if numbered and (is_one_off or _signs_of_move(read)) and _is_decided(read, numbered[-1].start):
        moved = _moved_day(read, numbered, said_on)
        if moved is not None:
            return moved
    found = patterns.CHANGES.search(read) or patterns.QUANTITY_NOW.search(read)
    if found is None and patterns.NUMBER_OR_NOW.search(read):
        found = patterns.NEW_VALUES.search(read)
    if found is None or not _is_decided(read, found.start()):
        return None
    no_news = (patterns.REPORTED, patterns.LONG_AGO, patterns.OF_A_DEVICE)
    return None if any(one.search(read) for one in no_news) else (None, None)


def _may_be_moved_to(read: str, day: NamedDay) -> bool:
    if day.is_numbered:
        return True
    before = read[: day.start]
    return appointments.MOVED_TO_DAY.search(before) is not None and not appointments.FROM_A_DAY.search(before)


def _is_decided(read: str, place: int) -> bool:
    """Return whether the clause at a place in a sentence is no mere intention."""
    begin = max((end.end() for end in patterns.CLAUSE_END.finditer(read, 0, place)), default=0)
    end = patterns.CLAUSE_END.search(read, place)
    return not patterns.UNDECIDED.search(read[begin : end.start() if end else len(read)])


def _signs_of_move(read: str) -> list[re.Match[str]]:
    return [*patterns.MOVED.finditer(read), *patterns.NOW.finditer(read)]


def _subject(read: str, days: Sequence[NamedDay]) -> str | None:
    """Return the term of what was moved: the last one before the word that says so, else the first one after it.

    Of several such words it is the last one before a day.
    """
    signs = sorted(_signs_of_move(read), key=lambda sign: (sign.start() < days[-1].start, sign.start()))
    if not signs:
        return None
    before = content_terms(patterns.CIRCUMSTANCE.sub(" ", read[: signs[-1].start()]))
    after = content_terms(read[signs[-1].end() :])
    return before[-1] if before else next(iter(after), None)


def _no_longer_holds(read: str, day: NamedDay) -> bool:
    return bool(patterns.OLD_DAY.search(read[: day.start]) or patterns.DAY_THAT_FAILS.search(read[day.end :]))


def _moved_day(read: str, numbered: Sequence[NamedDay], said_on: date) -> tuple[date, date | None] | None:
    no_longer = [
        one for one in numbered[:2] if _no_longer_holds(read, one) or patterns.FROM_DAY.search(read[: one.start])
    ]
    if len(numbered) == 1:
        return (numbered[0].day, None) if numbered[0].day >= said_on and not no_longer else None
    first, second = numbered[:2]
    old = no_longer[0] if no_longer else first
    if patterns.NEW_DAY.search(read[: first.start]):
        old = second
    new = second if old is first else first
    due, replaced = new.day, old.day
    if not old.is_exact and new.is_exact and old.day.day <= 28:
        replaced = due.replace(day=replaced.day)
    elif old.is_exact and not new.is_exact:
        due = next_of_month(due.day, replaced) or due
    return (due, replaced) if due >= said_on else None


def _without_periods(read: str, days: Sequence[NamedDay]) -> list[NamedDay]:
    """Return the days without those that end a period: "24 August to 4 September"."""
    kept: list[NamedDay] = []
    for one in days:
        between = read[kept[-1].end : one.start].strip().casefold() if kept else ""
        is_end = kept and between in ("to", "-", "–", "until", "till", "bis", "al", "hasta", "tot", "and", "und")
        if not is_end or re.search(r"\b(?:from|vom|von|van|del?)\b[^,.;]*$", read[: kept[-1].start], re.IGNORECASE):
            kept.append(one)
    return kept


def _matters(read: str, days: Sequence[NamedDay]) -> list[str]:
    """Return the clauses of a sentence that have a matter and a day each: "Ana on the 3rd and Bo on the 9th".

    One without a verb has the commitment of the clause before it. A sentence with one matter is one clause.
    """
    begin, clauses = 0, list[str]()
    for one, following in pairwise(days):
        ends = list(appointments.NEXT_MATTER.finditer(read, one.end, following.start))
        clause = read[ends[-1].end() :] if ends else ""
        is_matter = content_terms(clause) and not patterns.CONTINUES.search(clause)
        if is_matter and content_terms(read[begin : ends[-1].start()]):
            clauses.append(read[begin : ends[-1].start()])
            begin = ends[-1].end()
    clauses.append(read[begin:])
    commitment = patterns.COMMITMENT.search(clauses[0])
    return [
        f"{commitment[0]} {clause}" if commitment and place and _is_elliptic(clause) else clause
        for place, clause in enumerate(clauses)
    ]


def _is_elliptic(clause: str) -> bool:
    return all(class_of(word.casefold()) not in _OF_A_CLAUSE for word in re.findall(r"[^\W\d_]+", clause))


def _due(
    found: Sequence[Sentence], place: int, read: str, ahead: Sequence[NamedDay], said_on: date
) -> Iterator[Statement]:
    """:param read: The sentence, or one of its clauses."""
    shown, is_whole = found[place].shown, read == found[place].read
    is_refused = patterns.NO_COMMITMENT.search(patterns.CONSEQUENCE.split(read)[0])
    commitment = None if is_refused else patterns.COMMITMENT.search(read)
    terms = content_terms(shown if is_whole else read)
    refers_back = is_whole and patterns.REFERS_BACK.search(read) is not None
    if refers_back or len(terms) < FEW_TERMS:
        shown = _in_context(found, place)
    if refers_back or not terms:
        terms = content_terms(" ".join(one.shown for one in found[max(0, place - 2) : place + 1]))
    if not terms:
        return
    is_due = patterns.IS_DUE.search(read) and not patterns.NOT_DUE.search(read)
    if commitment or is_due:
        begin = commitment.start() if commitment else 0
        due = max(ahead, key=lambda one: (one.start > begin, _is_deadline(read, one), one.is_exact, -one.start))
        # "The cabinets come tomorrow, and I owe him a cake": the day belongs to the other clause.
        in_other_clause = due.end < begin and not patterns.BY_THEN.search(read, begin)
        if in_other_clause and re.search(r"\b(?:and|but|und|aber|y|pero|en|maar)\b|;", read[due.end : begin]):
            return
        takes_part = commitment and patterns.TAKES_PART.search(read) and not _is_deadline(read, due)
        is_event = takes_part or patterns.COMES_ANYWAY.search(read)
        kind = StatementKind.APPOINTMENT if is_event else StatementKind.PROMISE
        vague = VAGUE if patterns.ONLY_PRONOUN.search(read) else None
        yield Statement(kind, shown, " ".join(terms), vague, due=due.day)
    elif len(read.split()) > 3 and not any(
        pattern.search(read)
        for pattern in (
            patterns.PAST,
            patterns.NEGATED,
            patterns.NO_COMMITMENT,
            patterns.NOT_PLANNED,
            patterns.WITHDRAWS,
        )
    ):
        later = next((one for one in ahead if _is_dated(read, one, said_on)), None)
        if later is not None and _is_decided(read, later.start):
            yield Statement(StatementKind.APPOINTMENT, shown, " ".join(terms), due=later.day)


def _is_deadline(read: str, day: NamedDay) -> bool:
    return patterns.DEADLINE.search(read[: day.start]) is not None


def _is_dated(read: str, day: NamedDay, said_on: date) -> bool:
    """Return whether a day that is ahead is that of an appointment: by its month, or by what takes place."""
    named = read[day.start : day.end].casefold()
    if patterns.AFTER.search(read[: day.start]) or (day.day == said_on and named not in appointments.TONIGHT):
        return False
    if day.is_exact or named.startswith("next "):
        return True
    is_future = day.is_relative or not appointments.TOOK_PLACE.search(read)
    return is_future and appointments.EVENT.search(read) is not None


def _fact(sentence: Sentence) -> Statement | None:
    """Return the statement of an attribute that changes rarely: home or work."""
    shown, read = sentence
    for attribute, pattern in patterns.FACTS:
        match = pattern.search(read)
        if match is not None:
            if any(one.search(read) for one in (patterns.NEGATED, patterns.NOT_A_FACT)):
                return None
            if patterns.REPORTED.search(read[: match.start()]):
                return None
            return Statement(StatementKind.FACT, shown, terms_of(shown), attribute=attribute, value=match["value"])
    moved = patterns.MOVED_TO.search(read)
    if moved is not None and KNOWN.get(moved["value"].casefold()) is ConceptKind.PLACE:
        return Statement(StatementKind.FACT, shown, terms_of(shown), attribute="home", value=moved["value"])
    return None


def _denied(read: str) -> list[str]:
    """Return the terms of the clause that rules something out, if it names a known class."""
    if not patterns.NEVER.search(read) or patterns.REPORTED.search(read):
        return []
    for clause in re.split(r"[,;:]|\b(?:and|but|und|aber)\b", read):
        known = [one for one in _classes(clause) if one in CLASS_OF] if patterns.NEVER.search(clause) else []
        consumed = [term for term in known if term in CONSUMED]
        if consumed:
            return consumed[:1]
        if known:
            verb = re.search(r"\b(?:never|don['’]?t|do not|stopped|quit|nie)\s+(\w+)", clause, re.IGNORECASE)
            return list(dict.fromkeys([*(_classes(verb[1]) if verb else []), *known]))
    return []


def _classes(text: str) -> list[str]:
    """Return the terms of a text, with members of a class as that class."""
    words = re.findall(r"[^\W\d_]+", patterns.SUBSTITUTE.sub(" ", text).casefold())
    found = [_class_of(word) or next(iter(analyser().terms(word)), word) for word in words]
    return list(dict.fromkeys(found))[:MAX_TERMS]


def _class_of(word: str) -> str | None:
    heads = COMPOUND_HEADS if word.endswith(COMPOUND_HEADS) else ()
    head = next((head for head in heads if word.endswith(head)), word)
    return CLASS_OF.get(word) or CLASS_OF.get(head)
