"""Conversations: recall and precision of reference facts, and the accuracy of their source quotes.

A conversation is one namespace and one source; its sessions are learned from in order. What a session gave is held
against the reference facts of that session, and at the end what stands in memory against those of the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.extraction.data_sets import Conversation, Session
from benchmarks.extraction.learners import Learned, LearnedFact, Learner, Said, standing
from benchmarks.extraction.matching import COSINE, THRESHOLDS, Likeness, matches
from benchmarks.report import progress
from benchmarks.service import Client

SOURCE = "talk"


@dataclass(frozen=True, slots=True)
class Tally:
    """How many were found, how many were wanted, and how many of both are the same."""

    found: int = 0
    wanted: int = 0
    same: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.found + other.found, self.wanted + other.wanted, self.same + other.same)

    @property
    def recall(self) -> float:
        return share(self.same, self.wanted)

    @property
    def precision(self) -> float:
        return share(self.same, self.found)


@dataclass(frozen=True, slots=True)
class FactFigures:
    """:param facts: What was learned against the reference, by measure.

    :param standing: What stands in memory at the end against the reference, by measure.
    :param quoted: Facts whose quote stands in the transcript.
    :param located: Of facts that match by cosine and have a quote, those whose quote is in a turn that the reference
        names as evidence; `locatable` counts all of them.
    """

    facts: Mapping[str, Tally] = field(default_factory=lambda: dict.fromkeys(THRESHOLDS, Tally()))
    standing: Mapping[str, Tally] = field(default_factory=lambda: dict.fromkeys(THRESHOLDS, Tally()))
    learned: int = 0
    quoted: int = 0
    locatable: int = 0
    located: int = 0

    def __add__(self, other: FactFigures) -> FactFigures:
        return FactFigures(
            {name: self.facts[name] + other.facts[name] for name in THRESHOLDS},
            {name: self.standing[name] + other.standing[name] for name in THRESHOLDS},
            self.learned + other.learned,
            self.quoted + other.quoted,
            self.locatable + other.locatable,
            self.located + other.located,
        )


@dataclass(frozen=True, slots=True)
class LearnedTalk:
    """What was learned of a conversation: of each session, and what stands in memory at the end."""

    conversation: Conversation
    sessions: Sequence[Learned]
    standing: Sequence[str]


def learn_talks(learner: Learner, conversations: Sequence[Conversation], client: Client) -> list[LearnedTalk]:
    talks = []
    for conversation in conversations:
        sessions = [
            learner.learn(Said(conversation.id, SOURCE, [turn.line for turn in session.turns], session.at))
            for session in conversation.sessions
        ]
        kept = list(standing(client, conversation.id).values())
        talks.append(LearnedTalk(conversation, sessions, kept))
        progress(f"{learner.name}: {conversation.id}, {len(sessions)} sessions, {len(kept)} memories stand")
    return talks


def figures_of_talks(talks: Sequence[LearnedTalk], measures: Mapping[str, Likeness]) -> FactFigures:
    figures = FactFigures()
    for talk in talks:
        sessions = talk.conversation.sessions
        for session, learned in zip(sessions, talk.sessions, strict=True):
            figures += figures_of(session, learned.facts, measures)
        wanted = [fact.text for session in sessions for fact in session.facts]
        figures += FactFigures(standing=tallies(talk.standing, wanted, measures))
    return figures


def figures_of(session: Session, found: Sequence[LearnedFact], measures: Mapping[str, Likeness]) -> FactFigures:
    """Of one session: every fact counts that was proposed, whatever became of it."""
    same = _same([fact.text for fact in found], [fact.text for fact in session.facts], measures)
    located = [
        session.turn_at(offset) in session.facts[reference].evidence
        for fact, reference in same[COSINE].items()
        if (offset := found[fact].offset) is not None
    ]
    return FactFigures(
        facts={name: Tally(len(found), len(session.facts), len(pairs)) for name, pairs in same.items()},
        learned=len(found),
        quoted=sum(fact.offset is not None for fact in found),
        locatable=len(located),
        located=sum(located),
    )


def tallies(found: Sequence[str], wanted: Sequence[str], measures: Mapping[str, Likeness]) -> dict[str, Tally]:
    return {name: Tally(len(found), len(wanted), len(pairs)) for name, pairs in _same(found, wanted, measures).items()}


def share(part: int, whole: int) -> float:
    """NaN of nothing."""
    return part / whole if whole else float("nan")


def _same(found: Sequence[str], wanted: Sequence[str], measures: Mapping[str, Likeness]) -> dict[str, dict[int, int]]:
    if not found or not wanted:
        return {name: {} for name in measures}
    return {name: matches(likeness(found, wanted), THRESHOLDS[name]) for name, likeness in measures.items()}
