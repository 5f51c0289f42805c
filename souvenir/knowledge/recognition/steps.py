"""Find what a message reports as done or under way, which may complete a promise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from souvenir.core.types.statements import BARE_REPORT, Statement, StatementKind
from souvenir.knowledge.recognition import report_patterns as reports
from souvenir.knowledge.recognition.sentence_terms import Sentence, terms_of


def steps_in(found: Sequence[Sentence]) -> Iterator[Statement]:
    """Yield a statement with the terms of a message, and those of its sentences that report something as done.

    What is said to be still open, and what another person did with their own things, is not among them.
    """
    no_step = (reports.STILL_OPEN, reports.OF_ANOTHER)
    stated = [one for one in found if one.is_statement and not any(pattern.search(one.read) for pattern in no_step)]
    terms = terms_of(" ".join(one.shown for one in stated))
    is_bare = stated != [] and reports.BARE_REPORT.search(stated[0].read) is not None
    if terms or is_bare:
        done = terms_of(" ".join(one.shown for one in stated if reports.STEP.search(one.read)))
        yield Statement(StatementKind.STEP, "", terms, BARE_REPORT if is_bare else None, done or None)
