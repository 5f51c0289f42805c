"""Patterns with necessary words, against the plain patterns."""

from __future__ import annotations

import json
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from souvenir.core.text import sentences
from souvenir.knowledge.recognition import due_dates
from souvenir.knowledge.recognition import statement_patterns as patterns
from souvenir.knowledge.recognition.word_patterns import WordPattern, with_one_of, words_of

LABELS = Path(__file__).parents[3] / "benchmarks" / "labels"

WORD_PATTERNS = [
    *((name, one) for name, one in vars(patterns).items() if isinstance(one, WordPattern)),
    *((f"{attribute} {number}", one) for number, (attribute, one) in enumerate(patterns.FACTS)),
]


@cache
def _labelled_sentences() -> list[str]:
    lines = (LABELS / "conversations" / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    texts = [row["text"] for row in rows if not row["aside"]]
    return [" ".join(text[start:end].split()) for text in texts for start, end in sentences(text)]


@pytest.mark.parametrize(("name", "pattern"), WORD_PATTERNS, ids=[name for name, _ in WORD_PATTERNS])
def test_a_pattern_with_words_finds_in_every_labelled_sentence_what_the_plain_pattern_finds(
    name: str, pattern: WordPattern
) -> None:
    missed = [one for one in _labelled_sentences() if pattern.plain.search(one) and not pattern.search(one)]
    assert missed == [], name


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.data())
@pytest.mark.parametrize(("name", "pattern"), WORD_PATTERNS, ids=[name for name, _ in WORD_PATTERNS])
def test_every_generated_match_of_a_pattern_has_its_words(name: str, pattern: WordPattern, data: st.DataObject) -> None:
    alphabet = st.characters(codec="latin-1", exclude_categories=("Cc",))
    text = data.draw(st.from_regex(pattern.plain, alphabet=alphabet))
    assert (pattern.search(text) is None) == (pattern.plain.search(text) is None), name


def test_words_are_in_lower_case_and_end_at_an_apostrophe() -> None:
    assert words_of("I'll CALL Zoë-Ann") == {"i", "ll", "call", "zoë", "ann"}


def test_a_part_of_a_word_suffices_where_it_is_listed() -> None:
    pattern = with_one_of("off", "cancel", parts=("cancel",))
    assert pattern.search("It was cancelled")
    assert pattern.sub("", "It was cancelled") == "It was led"


def test_a_sentence_without_digit_or_word_of_a_day_names_none() -> None:
    said_on = date(2026, 3, 2)
    missed = [
        one
        for one in _labelled_sentences()
        if any(due_dates._all_days(one, said_on)) and not due_dates.named_days(one, said_on)
    ]
    assert missed == []
