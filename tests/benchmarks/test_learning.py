"""The benchmark of extraction beside searches: its model answers what the pipeline can use, and it sees wrong order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.learning.jobs import Ended, out_of_order
from benchmarks.learning.model import decisions, facts
from benchmarks.learning.transcripts import MAX_CHARS, MIN_CHARS, transcript
from souvenir.core.text import fenced
from souvenir.learning.questions import Decisions, Proposals
from souvenir.learning.quotes import find_quote
from souvenir.learning.transcripts.transcript import read_transcript
from souvenir.learning.transcripts.windows import windows

BEGIN = datetime(2025, 4, 2, 9, 30, tzinfo=UTC)


def job(source: str, number: int, *, starts: float, ends: float, added: tuple[int, ...]) -> Ended:
    start, end = (BEGIN + timedelta(seconds=seconds) for seconds in (starts, ends))
    return Ended(source, number, "completed", start, end, added, len(added))


@pytest.mark.parametrize("seed", [1, 2])
def test_every_quote_of_the_model_is_in_the_transcript(seed: int):
    said = transcript(seed)
    assert 0.9 * MIN_CHARS < len(said) <= MAX_CHARS
    read = read_transcript(said, document_at=None)
    found = [fact for window in windows(read, max_chars=16_000, overlap_turns=2) for fact in facts(window.text)]
    assert len(found) > 20
    quotes = [find_quote(read.turns, fact.quote) for fact in Proposals.model_validate({"facts": found}).facts]
    assert {quote.share if quote else None for quote in quotes} == {1.0}


def test_each_fact_gets_one_decision_and_no_memory_is_changed_twice():
    sentences = [f"Alma bought the kayak in Oslo on day {day}" for day in range(1, 13)]
    listed = "\n".join(f"[{number}] (DETAIL): {text}" for number, text in enumerate(sentences, start=1))
    stored = f"[1] 2025-04-02: {sentences[0]} after the meeting\n[2] 2025-04-02: Boris bought the kayak in Oslo"
    made = Decisions.model_validate(
        {"decisions": decisions(fenced(listed, name="facts") + "\n" + fenced(stored, name="memories"))}
    ).decisions
    assert [one.fact for one in made] == list(range(1, 13))
    assert (made[0].verdict, made[0].memory) == ("NOOP", 1)
    assert [(one.fact, one.memory) for one in made if one.verdict == "UPDATE"] == [(6, 1)]
    assert all(one.memory is None for one in made if one.verdict == "ADD")


def test_jobs_of_one_source_are_in_order_if_each_begins_and_writes_after_the_one_before():
    first = job("a", 0, starts=0, ends=5, added=(1, 2))
    second = job("a", 1, starts=5, ends=9, added=(5,))
    other = job("b", 0, starts=1, ends=7, added=(3, 4))
    assert out_of_order([second, other, first]) == 0
    assert out_of_order([first, replace(second, started_at=BEGIN + timedelta(seconds=4)), other]) == 1
    assert out_of_order([replace(first, added=(1, 6)), second, other]) == 1
    assert out_of_order([first, replace(second, added=())]) == 0
