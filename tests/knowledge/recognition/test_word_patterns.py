"""Patterns with necessary words, against the plain patterns."""

from __future__ import annotations

import json
import re
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from souvenir.core.text import sentences
from souvenir.knowledge.recognition import appointment_patterns as appointments
from souvenir.knowledge.recognition import due_dates, exact
from souvenir.knowledge.recognition import introduction_patterns as introductions
from souvenir.knowledge.recognition import report_patterns as reports
from souvenir.knowledge.recognition import statement_patterns as patterns
from souvenir.knowledge.recognition.definition_forms import FORMS, Form, N, words_before
from souvenir.knowledge.recognition.word_patterns import WordPattern, with_one_of, words_of

LABELS = Path(__file__).parents[3] / "benchmarks" / "labels"

WORD_PATTERNS = [
    *(
        (name, one)
        for of in (patterns, introductions, reports, appointments)
        for name, one in vars(of).items()
        if isinstance(one, WordPattern)
    ),
    *((f"{attribute} {number}", one) for number, (attribute, one) in enumerate(patterns.FACTS)),
]

SAMPLE = 7
"""One of so many labelled messages is read."""

ALPHABET = N + "".join(map(chr, (*range(32, 127), *range(160, 256))))


@cache
def _labelled_sentences() -> list[str]:
    lines = (LABELS / "conversations" / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines[::SAMPLE])
    texts = [row["text"] for row in rows if not row["aside"]]
    return [" ".join(text[start:end].split()) for text in texts for start, end in sentences(text)]


@pytest.mark.parametrize(("name", "pattern"), WORD_PATTERNS, ids=[name for name, _ in WORD_PATTERNS])
def test_a_pattern_with_words_finds_in_every_labelled_sentence_what_the_plain_pattern_finds(
    name: str, pattern: WordPattern
) -> None:
    missed = [one for one in _labelled_sentences() if pattern.plain.search(one) and not pattern.search(one)]
    assert missed == [], name


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.data())
@pytest.mark.parametrize(("name", "pattern"), WORD_PATTERNS, ids=[name for name, _ in WORD_PATTERNS])
def test_every_generated_match_of_a_pattern_has_its_words(name: str, pattern: WordPattern, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(pattern.plain, alphabet=ALPHABET))
    assert (pattern.search(text) is None) == (pattern.plain.search(text) is None), name


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.data())
@pytest.mark.parametrize("form", FORMS, ids=range(len(FORMS)))
def test_every_generated_match_of_a_form_has_its_words_and_one_of_those_before_the_concept(
    form: Form, data: st.DataObject
) -> None:
    text = data.draw(st.from_regex(form.pattern, alphabet=ALPHABET))
    assert not form.words or not form.words.isdisjoint(words_of(text))
    assert not form.before or not form.before.isdisjoint(words_before(text))


def test_words_before_a_concept_end_at_a_hyphen_and_are_none_after_a_comma() -> None:
    assert words_before(f"{N} met (My {N}, step-our {N} and so, {N}") == ["my", "our", ""]


def test_quick_tokens_are_those_of_the_other_alternatives() -> None:
    slow = re.compile(
        "|".join(f"(?P<{name}>{one})" for name, one in exact._ALTERNATIVES if name not in ("plain", "capitalised"))
    )
    for sentence in (*_labelled_sentences(), "May, 2024", "In March, Mayor", "Since 2019 Marc-", "On Friday"):
        found = [(match[0], match.start()) for match in slow.finditer(sentence) if match.lastgroup != "blank"]
        assert [(token.text, token.start) for token in exact.tokens(sentence)] == found


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
