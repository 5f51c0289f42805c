"""Drafts of insights: the sentences about an agent that a person would act on, by the row ids of their sources.

They are made from the statements, definitions and mentions that indexing found, so that no text is read again. A
sentence quotes its source, and precision comes before recall: where nothing is worth a sentence there is none. The same
memory and time give the same insights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from souvenir.core.dates import MONTHS
from souvenir.core.ended_roles import EndCause
from souvenir.core.timestamps import from_us, to_us
from souvenir.core.types import RecordKind
from souvenir.core.types.statements import EXPLAINED, StatementKind
from souvenir.knowledge.antecedents import clarified
from souvenir.knowledge.recognition.definitions import is_relation
from souvenir.knowledge.statement_comparison import (
    by_time,
    cancels,
    completed,
    differs,
    has_old_value,
    is_about_the_same,
    is_cancellation,
    is_fixed,
    is_left_by,
    is_moved_by,
    is_under_way,
    is_with,
    may_be_overdue,
    says_what_changed,
    without_repeats,
    without_replaced,
)
from souvenir.knowledge.subjects import Subject
from souvenir.store.graph import activity, concepts, statements
from souvenir.store.graph.concepts import Concept
from souvenir.store.graph.statements import Stated
from souvenir.store.messages import agents
from souvenir.store.privacy import Hidden
from souvenir.store.sql import Connection

MAX_INSIGHTS = 7

RECENT = timedelta(days=42)
"""Period in which a change or a contradiction is worth a sentence."""

HOLDS = timedelta(days=35)
"""Period after it was said in which a plan or a promise holds: most older ones were changed or kept since, in words
that no rule joins with them."""

AHEAD = timedelta(days=21)
"""Period ahead in which a promise or an appointment is worth a sentence."""

FAR_AHEAD, FRESH = timedelta(days=45), timedelta(days=14)
"""The same for one that was said so recently that it still holds. A cancellation, and a change without an old value, is
worth a sentence as long."""

NEW = timedelta(days=14)
"""Period in which a person who was not mentioned before is new."""

QUIET = timedelta(days=14)
"""Minimum time without a mention, and minimum length of the history before which nobody is new."""

MANY_SESSIONS = 3
"""Number of sessions that mention a subject before it can have gone quiet."""

SESSIONS_WITHOUT = 3
"""Number of later sessions that do not."""

CURRENT_SESSIONS = 2
"""Number of the latest sessions, one of which mentions a person who matters now."""

UNUSUAL = 1.5
"""Ratio of the silence to the longest one before it."""

READ, READ_STEPS, READ_FAR = 64, 128, 32
"""Maximum numbers of statements of a kind, of messages that may complete a promise, and of statements of a day that is
further ahead: the newest ones."""

RANKED = 100
"""Number of the most mentioned concepts among which the quiet and the important ones are sought."""

QUIET_CANDIDATES = 12
"""Maximum number of concepts whose sessions are counted."""

MIN_WORD = 3
"""Minimum length of a word that is a subject: shorter ones are mostly parts of others."""

MENTIONS_READ = 32
"""Maximum number of the latest mentions of each concept by which sessions are counted."""

PEOPLE = 8
"""Maximum number of people that are considered."""

NAMED = 3
"""Maximum number of people in a sentence."""

EARLIEST, LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

LONGEST = timedelta(days=366)
"""More than any of the periods."""

_BEFORE = "; before: "


class InsightKind(StrEnum):
    """The kinds of insights, in the order in which they are listed."""

    OVERDUE = "overdue"
    UPCOMING = "upcoming"
    CHANGE = "change"
    CONTRADICTION = "contradiction"
    NEW = "new"
    QUIET = "quiet"
    IMPORTANT = "important"


RecordId = tuple[RecordKind, int]


@dataclass(frozen=True, slots=True)
class Draft:
    """An insight by the row ids of its sources.

    :param concept_ids: None for those of its sources.
    :param quote: The sentence that it quotes, if another insight may quote it instead.
    """

    text: str
    kind: InsightKind
    sources: tuple[RecordId, ...]
    at: datetime
    due: date | None = None
    concept_ids: tuple[int, ...] | None = None
    quote: str | None = None


def _messages(*ids: int) -> tuple[RecordId, ...]:
    return tuple((RecordKind.MESSAGE, id_) for id_ in ids)


class Drafts:
    """The drafts of one agent as of a time."""

    def __init__(
        self, connection: Connection, namespace_id: int, at: datetime, hidden_messages: Set[int], hidden: Hidden
    ) -> None:
        self._connection = connection
        self._namespace_id = namespace_id
        self._hidden_messages = hidden_messages
        self._hidden = hidden
        self._unclear = set[int]()
        # Room for every period before and after it.
        self._at = min(max(at.astimezone(UTC), EARLIEST + LONGEST), LATEST - LONGEST)
        self._today = self._at.replace(hour=0, minute=0, second=0, microsecond=0)

    def all(self) -> Iterator[Draft]:
        changes = self._clarified(self._latest(StatementKind.CHANGE, self._at - 2 * RECENT))
        near = self._clarified(self._dated(self._today - RECENT, self._today + FAR_AHEAD, limit=READ))
        dated = [*near, *self._dated(self._today + FAR_AHEAD, self._today + LONGEST, limit=READ_FAR)]
        changed = self._changes(changes, dated)
        yield from self._due(near, changes, changed)
        yield from changed
        yield from self._contradictions()
        yield from self._new()
        mentioned = activity.most_mentioned(self._connection, self._namespace_id, limit=RANKED)
        yield from self._quiet(mentioned, changes)
        yield from self._important(mentioned)

    def _latest(self, kind: StatementKind, since: datetime, *, limit: int = READ) -> list[Stated]:
        return statements.latest(self._connection, self._namespace_id, kind, since, self._at, limit=limit)

    def _dated(self, since: datetime, until: datetime, *, limit: int) -> list[Stated]:
        found = statements.due_between(self._connection, self._namespace_id, since, until, limit=limit)
        return [one for one in found if one.at <= self._at]

    def _clarified(self, said: Sequence[Stated]) -> list[Stated]:
        understood, unclear = clarified(self._connection, self._namespace_id, said, self._hidden_messages)
        self._unclear |= unclear
        return understood

    # --- promises and appointments -----------------------------------------------------------------------------

    def _due(self, said: Sequence[Stated], changes: Sequence[Stated], shown: Sequence[Draft]) -> Iterator[Draft]:
        """Yield what is due, without the sentences of other insights."""
        withdrawals = self._latest(StatementKind.WITHDRAWAL, self._at - RECENT)
        waiting = _not_shown(self._undone(without_repeats(without_replaced(said, changes, withdrawals))), shown)
        waiting = [one for one in waiting if one.id not in self._unclear and not is_with(one, self._dead)]
        for one in waiting:
            holds = one.at >= self._at - HOLDS and may_be_overdue(one)
            if one.due is not None and one.due < self._today and holds:
                day = self._day(one.due)
                text = f"Due since {day}, and nothing says that it was done: {self._quoted(one)}."
                yield Draft(text, InsightKind.OVERDUE, _messages(one.message_id), one.at, one.due.date())
        for one in reversed(waiting):
            if one.due is not None and one.due >= self._today and self._still_holds(one, one.due):
                start = "Due on" if one.kind is StatementKind.PROMISE else "Coming up on"
                text = f"{start} {one.due:%A}, {self._day(one.due)}: {self._quoted(one)}."
                yield Draft(text, InsightKind.UPCOMING, _messages(one.message_id), one.at, one.due.date())

    def _still_holds(self, one: Stated, due: datetime) -> bool:
        if due > self._today + AHEAD:
            return one.at >= self._at - FRESH
        return one.at >= self._at - HOLDS or is_fixed(one)

    def _undone(self, said: Sequence[Stated]) -> list[Stated]:
        """Return those but the promises that a message of the user may have completed, or that are too old to tell."""
        since = min((one.at for one in said if one.kind is StatementKind.PROMISE), default=self._at)
        steps = self._latest(StatementKind.STEP, since, limit=READ_STEPS)
        done = completed(said, steps, self._today)
        read_since = steps[-1].at if len(steps) == READ_STEPS else EARLIEST
        return [
            one
            for one in said
            if one.id not in done and (one.kind is not StatementKind.PROMISE or one.at >= read_since)
        ]

    # --- changes and contradictions ----------------------------------------------------------------------------

    def _changes(self, changes: Sequence[Stated], dated: Sequence[Stated]) -> list[Draft]:
        """Return the changes, with the earlier statement where there is one.

        One of a day needs the day that it replaces, in its sentence or in an earlier one, or a verb such as "moved".
        """
        facts = self._latest(StatementKind.FACT, EARLIEST)
        earlier = by_time(dated)
        ahead = [one for one in changes if one.id not in self._unclear and (one.due is None or one.due >= self._today)]
        cancelled = [one for one in changes if is_cancellation(one)]
        found: list[tuple[Stated, Stated | None]] = []
        for one in by_time(one for one in (*ahead, *facts) if one.due is not None or self._is_recent(one)):
            before = next((fact for fact in facts if differs(fact, one) or is_left_by(fact, one)), None)
            if before is None and one.due is not None:
                before = next((other for other in earlier if is_moved_by(other, one)), None)
            is_stated = one.kind is StatementKind.CHANGE and (one.replaced is not None or says_what_changed(one))
            is_new = (is_stated and one.terms != "") or before is not None
            is_over = any(cancels(other, one) for other in cancelled)
            is_old = any(is_about_the_same(later, one) or is_moved_by(one, later) for later, _ in found)
            if is_new and not is_over and not is_old and (has_old_value(one, before) or self._is_fresh(one)):
                found.append((one, before))
        found.sort(key=lambda pair: (pair[0].due or LATEST, not has_old_value(*pair)))
        return [self._change(*pair) for pair in found[:MAX_INSIGHTS]]

    def _is_recent(self, change: Stated) -> bool:
        return change.at >= self._at - (FRESH if is_cancellation(change) or is_under_way(change) else RECENT)

    def _is_fresh(self, change: Stated) -> bool:
        """Return whether a change is no old news: it is fresh, or a day that is ahead."""
        return change.at >= self._at - FRESH or change.due is not None

    def _change(self, one: Stated, before: Stated | None) -> Draft:
        old = "" if before is None else f"{_BEFORE}{self._quoted(before)}"
        sources = dict.fromkeys(said.message_id for said in (before, one) if said is not None)
        text = f"Changed: {self._quoted(one)}{old}."
        return Draft(text, InsightKind.CHANGE, _messages(*sources), one.at, one.due and one.due.date())

    def _contradictions(self) -> Iterator[Draft]:
        habits = self._latest(StatementKind.HABIT, self._at - RECENT)
        terms_of = {habit.id: frozenset(habit.terms.split()) for habit in habits}
        seen = set[str]()
        for denial in self._latest(StatementKind.DENIAL, EARLIEST):
            if denial.terms in seen:
                continue
            ruled_out = frozenset(denial.terms.split())
            habit = next((one for one in habits if one.at > denial.at and ruled_out <= terms_of[one.id]), None)
            if habit is not None:
                seen.add(denial.terms)
                text = f"You said {self._quoted(denial)}, but later {self._quoted(habit)}."
                yield Draft(text, InsightKind.CONTRADICTION, _messages(denial.message_id, habit.message_id), habit.at)

    # --- people and subjects -----------------------------------------------------------------------------------

    def _new(self) -> Iterator[Draft]:
        """Yield people who are said to be new, then those with a role; no earlier text mentions them."""
        since = self._at - NEW
        if not self._was_said_before(since):
            return
        introductions = self._latest(StatementKind.INTRODUCTION, since)
        mentioned = statements.mentions_of(self._connection, {one.message_id for one in introductions})
        ids = [
            next((mention.concept_id for mention in mentioned[one.message_id] if mention.form == one.value), None)
            for one in introductions
        ]
        shown = self._concepts(id_ for id_ in ids if id_ is not None)
        found: dict[int, Draft] = {}
        introduced = sorted(zip(introductions, ids, strict=True), key=lambda row: row[0].attribute == EXPLAINED)
        for one, id_ in introduced:
            person = None if id_ is None else shown.get(id_)
            if person is not None and person.first_at is not None and person.first_at >= since:
                start = f"First mention of {person.name}" if one.attribute == EXPLAINED else f"{person.name} is new"
                text = f"{start}: {self._quoted(one)}."
                sources = _messages(one.message_id)
                found[person.id] = Draft(
                    text, InsightKind.NEW, sources, one.at, concept_ids=(person.id,), quote=one.sentence
                )
        yield from list(found.values())[:NAMED]

    def _quiet(self, mentioned: Sequence[activity.MentionSpan], changes: Sequence[Stated]) -> Iterator[Draft]:
        """Yield the named subject of the most sessions that has gone quiet; those with a common word are one subject.

        One whose last mention is in a change is over, and the dead are not said to be quiet.
        """
        last = agents.last_message_at(self._connection, self._namespace_id, self._at)
        if last is None:
            return
        by_word: defaultdict[str, list[activity.MentionSpan]] = defaultdict(list)
        for one in mentioned:
            for word in one.key.split():
                if one.key.replace(" ", "").isalpha() and len(word) >= MIN_WORD and word not in MONTHS:
                    by_word[word].append(one)
        silent = {
            word: of_word
            for word, of_word in by_word.items()
            if all(one.last_at <= to_us(last) - QUIET // timedelta(microseconds=1) for one in of_word)
        }
        ranked = sorted(silent.keys() - self._dead, key=lambda word: (-sum(one.owners for one in silent[word]), word))
        found: list[tuple[str, list[activity.MentioningSession]]] = []
        over = {one.message_id for one in changes}
        for word in ranked[:QUIET_CANDIDATES]:
            ids = [one.concept_id for one in silent[word]]
            of_sessions = activity.sessions_mentioning(self._connection, ids, mentions=MENTIONS_READ)
            is_over = of_sessions != [] and of_sessions[0].message_id in over
            if len(of_sessions) >= MANY_SESSIONS and not is_over and self._is_unusual(of_sessions, last):
                found.append((word, of_sessions))
        ids = [one.concept_id for word, _ in found for one in silent[word]]
        shown = self._concepts(ids)
        subjects = [
            Subject.of(word, [shown[one.concept_id] for one in silent[word] if one.concept_id in shown], of_sessions)
            for word, of_sessions in found
        ]
        named = [one for one in subjects if one.is_name]
        for subject in sorted(named, key=lambda one: len(one.sessions), reverse=True)[:1]:
            until = from_us(subject.sessions[0].at)
            text = (
                f"{subject.name} came up in {len(subject.sessions)} sessions until {self._day(until)}, and not since."
            )
            sources = _messages(*(one.message_id for one in reversed(subject.sessions[:NAMED])))
            yield Draft(text, InsightKind.QUIET, sources, until, concept_ids=subject.concept_ids)

    @cached_property
    def _dead(self) -> set[str]:
        """Return the words of the names of those of whom a message says that they have died."""
        ends = self._latest(StatementKind.END, EARLIEST, limit=statements.MAX_ENDS)
        return {word for one in ends if one.attribute == EndCause.DIED and one.value for word in one.value.split()}

    def _is_unusual(self, of_sessions: Sequence[activity.MentioningSession], last: datetime) -> bool:
        """Return whether the silence is longer than any before it, and several sessions long."""
        gaps = [later.at - earlier.at for later, earlier in pairwise(of_sessions)]
        silence = to_us(last) - of_sessions[0].at
        after = activity.sessions_after(self._connection, self._namespace_id, of_sessions[0].at, limit=SESSIONS_WITHOUT)
        return silence >= UNUSUAL * max(gaps) and after >= SESSIONS_WITHOUT

    def _important(self, mentioned: Sequence[activity.MentionSpan]) -> Iterator[Draft]:
        """Yield the people of many sessions who are still talked about."""
        related = self._related([one.concept_id for one in mentioned if one.owners >= MANY_SESSIONS])
        sessions_of = {
            one.id: activity.sessions_mentioning(self._connection, [one.id], mentions=MENTIONS_READ) for one in related
        }
        current = [one for one in related if len(sessions_of[one.id]) >= MANY_SESSIONS]
        current = [one for one in current if self._is_current(sessions_of[one.id][0])]
        named = sorted(current, key=lambda one: -len(sessions_of[one.id]))[:NAMED]
        if len(named) == NAMED:
            defined = statements.best_definitions(self._connection, [one.id for one in named], self._hidden)
            listed = ", ".join(f"{one.name} ({one.role})" for one in named)
            text = f"Who matters most in these conversations: {listed}."
            sources = tuple((defined[one.id].kind, defined[one.id].owner_id) for one in named if one.id in defined)
            last = max(one.last_at for one in named if one.last_at is not None)
            yield Draft(text, InsightKind.IMPORTANT, sources, last, concept_ids=tuple(one.id for one in named))

    def _is_current(self, session: activity.MentioningSession) -> bool:
        after = activity.sessions_after(self._connection, self._namespace_id, session.at, limit=SESSIONS_WITHOUT)
        return after < CURRENT_SESSIONS

    def _related(self, ids: Sequence[int]) -> list[Concept]:
        """Return the first ones of the concepts that a text relates to a person."""
        defined = statements.best_definitions(self._connection, ids, self._hidden)
        with_role = [id_ for id_ in ids if id_ in defined and is_relation(defined[id_].role or "")]
        shown = self._concepts(with_role[:PEOPLE])
        found = {shown[id_].id: shown[id_] for id_ in with_role if id_ in shown}
        return [one for one in found.values() if is_relation(one.role or "")]

    def _concepts(self, ids: Iterable[int]) -> dict[int, Concept]:
        return concepts.by_ids(self._connection, self._namespace_id, set(ids), self._hidden)

    def _was_said_before(self, since: datetime) -> bool:
        first = agents.first_message_at(self._connection, self._namespace_id)
        return first is not None and first <= since - QUIET

    # --- words -------------------------------------------------------------------------------------------------

    def _quoted(self, one: Stated) -> str:
        return f"“{one.sentence}” ({self._day(one.at)})"

    def _day(self, day: datetime) -> str:
        year = "" if day.year == self._at.year else f" {day.year}"
        return f"{day.day} {day:%B}{year}"


def _not_shown(found: Iterable[Stated], shown: Sequence[Draft]) -> list[Stated]:
    """Return those whose sentence no draft quotes, but as that of the old value."""
    texts = [draft.text.partition(_BEFORE)[0] for draft in shown]
    return [one for one in found if not any(f"“{one.sentence}”" in text for text in texts)]
