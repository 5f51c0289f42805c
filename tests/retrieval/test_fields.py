"""Classification of queries, compared with scans of their words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.retrieval.fields import Question
from tests.reference import cues

PARTS = (
    "when When whenever where who What which how many long much often old date year month day the is did somehow , ? x"
).split()


@given(st.lists(st.sampled_from(PARTS), max_size=6).map(" ".join), st.sampled_from(["", " ", "\n "]))
def test_the_classification_of_a_query_equals_a_scan_of_its_words(words: str, indent: str):
    question = Question.of(indent + words)
    assert question.asks_when == cues.asks_when(indent + words)
    assert question.asks_how_many == cues.asks_how_many(indent + words)
    assert question.asks_who == cues.asks_for_a_name(indent + words)


@pytest.mark.parametrize(
    ("text", "when", "how_many", "who"),
    [
        ("When did she leave?", True, False, False),
        ("In which year did she leave, and how often?", True, True, False),
        ("WHAT MONTH is it", True, False, True),
        ("Who is it?", False, False, True),
        ("She asked where", False, False, False),
        ("", False, False, False),
    ],
)
def test_classification_of_example_queries(text: str, when: bool, how_many: bool, who: bool):
    question = Question.of(text)
    assert (question.asks_when, question.asks_how_many, question.asks_who) == (when, how_many, who)
