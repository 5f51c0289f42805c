"""The subject of a query without its framing, and queries for what the assistant said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.retrieval.query_framing import asks_the_assistant, without_framing


@pytest.mark.parametrize(
    ("question", "about"),
    [
        (
            "Can you list the order in which I brought up different aspects of my garden plan throughout our "
            "conversations? Mention only and only five items.",
            "my garden plan",
        ),
        (
            "Could you please give me a comprehensive summary of the moves of my bakery so far?",
            "the moves of my bakery",
        ),
        ("Hi, tell me about the roof of the old barn", "the roof of the old barn"),
        ("How we talked about the harbour in Lisbon across all of our past sessions", "the harbour in Lisbon"),
    ],
)
def test_the_framing_of_a_query_is_removed(question: str, about: str):
    assert without_framing(question) == about


@pytest.mark.parametrize(
    "question",
    [
        "When did the ship leave the harbour?",
        "Which of the two roofs is older?",
        "Can you summarize our conversations?",  # nothing but a frame
        "Please recap my week",
        "东京的花园在哪里？",
        "",
        "???",
    ],
)
def test_a_query_without_framing_or_with_a_short_subject_is_unchanged(question: str):
    assert without_framing(question) == question


@given(st.text(alphabet=st.sampled_from("can you list order in which I,.? garden"), max_size=80))
def test_the_result_is_the_query_or_has_three_words(question: str):
    left = without_framing(question)
    assert left == question or (len(left.split()) >= 3 and left == left.strip(" ,.?!"))


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("What did you recommend against aphids?", True),
        ("Which pots have you suggested?", True),
        ("What was in your previous answer?", True),
        ("Can you summarize my plans?", True),
        ("An overview of the garden", True),
        ("Can you suggest a pot?", False),
        ("Would you please recommend a roof?", False),
        ("Where did I put the pots?", False),
        ("What did Selma tell me?", False),
    ],
)
def test_queries_for_what_the_assistant_said_are_recognised(question: str, asks: bool):
    assert asks_the_assistant(question) is asks
