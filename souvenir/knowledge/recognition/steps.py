"""Find what a message reports as done or under way, and who did it, which may complete a promise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from souvenir.core.types.statements import BARE_REPORT, BY_ANOTHER, Statement, StatementKind
from souvenir.index.analyser import fold
from souvenir.knowledge.recognition import report_patterns as reports
from souvenir.knowledge.recognition.gazetteer import GIVEN_NAMES, RELATIVES, ROLES, TITLES
from souvenir.knowledge.recognition.sentence_terms import Sentence, terms_of
from souvenir.knowledge.recognition.statement_words import PRONOUNS


def steps_in(found: Sequence[Sentence], people: Sequence[str]) -> Iterator[Statement]:
    """Yield one statement with the terms of a message, and those of its sentences that report something as done.

    What is said to be still open is not among them. The deed of another person is a statement of its own; the message
    has its terms only if it may be about something of the author.
    """
    stated = [one for one in found if one.is_statement and not reports.STILL_OPEN.search(one.read)]
    deeds = {one: deed for one in stated if (deed := _deed(one.read, people)) is not None}
    for one, (doer, _) in deeds.items():
        yield Statement(StatementKind.STEP, "", terms_of(one.shown), BY_ANOTHER, terms_of(doer) or None)
    of_author = [one for one in stated if one not in deeds or not deeds[one][1]]
    terms = terms_of(" ".join(one.shown for one in of_author))
    is_bare = stated != [] and reports.BARE_REPORT.search(stated[0].read) is not None
    if terms or is_bare:
        done = [one for one in of_author if one not in deeds and reports.STEP.search(one.read)]
        value = terms if len(done) == len(of_author) else terms_of(" ".join(one.shown for one in done))
        yield Statement(StatementKind.STEP, "", terms, BARE_REPORT if is_bare else None, value or None)


def _deed(read: str, people: Sequence[str]) -> tuple[str, bool] | None:
    """Return the other person who did something, and whether certainly with something of their own."""
    for pattern in reports.DEEDS_OF_OTHERS:
        deed = pattern.search(read)
        if (
            deed is not None
            and _is_person(deed["doer"], people)
            and not reports.FOR_THE_AUTHOR.search(read, deed.end("doer"))
        ):
            return deed["doer"], deed["own"] is not None
    return None


def _is_person(words: str, people: Sequence[str]) -> bool:
    folded = [fold(word).casefold() for word in words.split()]
    named = {fold(word).casefold() for person in people for word in person.split()}
    return any(word in known for word in folded for known in (PRONOUNS, GIVEN_NAMES, RELATIVES, ROLES, TITLES, named))
