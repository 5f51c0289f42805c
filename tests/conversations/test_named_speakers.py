"""Speakers named in a question: the current speakers of a conversation, without deleted ones."""

from __future__ import annotations

import pytest

from souvenir.conversations.messages import Conversations
from souvenir.core.types import PassageKind, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals
from souvenir.retrieval.relevance import Found
from souvenir.store.selection import Chooses
from tests.conversations.talk import ANN, say

SAID = [
    ("the violin is in the harbour", "Mia"),
    ("who has seen the violin of Olga?", "Noa"),
    ("bread and a river", "Mia Lind"),
    ("Noa plays the violin", None),
]


@pytest.fixture
def uids(conversations: Conversations) -> list[str]:
    return [say(conversations, content, speaker=speaker, session_id="s").uid for content, speaker in SAID]


def ask(engine: MemoryEngine, question: str) -> Found:
    found = engine.recall(ANN, PassageKind.MESSAGE, SearchQuery(question, 50))
    assert found is not None
    return found


def named(engine: MemoryEngine, question: str) -> list[int]:
    """Which messages, counted from 0, have the speaker's part of the score."""
    ranked = ask(engine, question).ranked
    first = min(one.owner_id for one in ranked)
    return sorted(one.owner_id - first for one in ranked if one.parts.get("speaker"))


@pytest.mark.usefixtures("uids")
@pytest.mark.parametrize(
    ("question", "turns"),
    [
        ("the violin", []),
        ("noa and the violin", [1]),
        ("What is NOA'S?", [1]),
        ("lind", [2]),
        ("mia", []),  # two speakers have this name
        ("noa and lind", []),
        ("olga", []),  # says nothing
    ],
)
def test_turns_of_the_speaker_named_in_the_question_come_first(engine: MemoryEngine, question: str, turns: list[int]):
    assert named(engine, question) == turns


@pytest.mark.usefixtures("uids")
def test_a_speakers_name_filters_and_does_not_match_content(engine: MemoryEngine):
    """Every turn has a speaker's name in its words; only what nobody says by name is searched for it."""
    parts = {one.owner_id: one.parts["lexical"] for one in ask(engine, "noa").ranked}
    *talk, chat = [parts[id_] for id_ in sorted(parts)]
    assert talk == [0.0, 0.0, 0.0]
    assert chat > 0


def test_a_name_without_turns_is_an_ordinary_word(engine: MemoryEngine, conversations: Conversations, uids: list[str]):
    say(conversations, "Noa has bread", speaker="Olga", session_id="s")
    assert named(engine, "noa") == [1]
    assert not ask(engine, "noa").candidates.lexical[-1]
    Removals(engine, on_jobs_gone=lambda: None).remove(ANN, Chooses.MESSAGE, uids[1])
    assert named(engine, "noa") == []
    lexical = {one.owner_id: one.parts["lexical"] for one in ask(engine, "noa").ranked}
    assert lexical[max(lexical)] > 0
