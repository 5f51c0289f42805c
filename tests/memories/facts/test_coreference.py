"""Sentences that are understood alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.text import sentences
from souvenir.memories.coreference import MAX_TOGETHER_CHARS, standalone


def split(text: str) -> list[str]:
    return [piece.strip() for piece in standalone([text[start:end] for start, end in sentences(text)])]


@pytest.mark.parametrize(
    ("before", "sentence", "resolved"),
    [
        ("Ana leads the billing team.", "She is on call this week.", "Ana is on call this week."),
        ("Ana Silva moved to Porto in May.", "She's learning to surf.", "Ana Silva is learning to surf."),
        ("Dr. Silva is the dentist.", "But her office is closed.", "But Dr. Silva's office is closed."),
        ("My sister is a nurse in Berlin.", "She has two kids.", "My sister has two kids."),
        ("Lena's brother Tom is a pilot.", "He's been there once.", "Lena's brother Tom has been there once."),
        ("The landlord wrote in March.", "Now he wants more.", "Now the landlord wants more."),
        ("The billing database runs on Postgres 17.", "Its dumps go to S3.", "The billing database's dumps go to S3."),
        ("My car is a red Toyota.", "And it needs new tyres.", "And my car needs new tyres."),
        ("kestrel-api is a Go service.", "It listens on 8080.", "kestrel-api listens on 8080."),
        ("Ana and Ben live in Lisbon.", "They've two cats.", "Ana and Ben have two cats."),
        ("The tickets are for Friday.", "They're in the drawer.", "The tickets are in the drawer."),
    ],
)  # fmt: skip
def test_a_pronoun_is_replaced_by_the_plain_subject_of_the_sentence_before(before: str, sentence: str, resolved: str):
    assert split(f"{before} {sentence}") == [before, resolved]


def test_a_subject_is_passed_on_from_sentence_to_sentence():
    assert split("Ana leads billing. She likes tea. She is on call.") == [
        "Ana leads billing.",
        "Ana likes tea.",
        "Ana is on call.",
    ]


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("Mira prefers TypeScript for Heron.", "It runs in strict mode."),
        ("Ana met Mira at the fair.", "She works for Acme."),
        ("Ana has a sister.", "She lives in Rome."),
        ("My sister Ana lives in Rome.", "He hates it."),
        ("I have a dog.", "It is called Rex."),
        ("Likes cats.", "She has two."),
        ("Deployment is manual.", "He does it on Fridays."),
        ("He and Priya are on decent terms.", "They share the car."),
        ("The problem is the cache.", "It is never cleared."),
        ("The key is under the mat.", "It is red."),
        ("The engineers are happy with the laptops.", "They weigh a kilogram."),
        ("The app is new.", "It takes time to learn."),
        ("Where is Ana?", "She is out."),
    ],
)
def test_a_sentence_with_a_doubtful_pronoun_follows_the_one_before(before: str, sentence: str):
    assert split(f"{before} {sentence}") == [before, f"{before} {sentence}"]


def test_a_place_is_no_person():
    before = "Ana moved to Lisbon. Lisbon is great."
    assert split(f"{before} She loves it.")[-1] == "Lisbon is great. She loves it."


@pytest.mark.parametrize(
    "text",
    ["She is on call. Ana leads billing.", "We looked. It turned out that the cache was full.", "Ana left. Ben came."],
)
def test_sentences_without_a_pronoun_to_resolve_stay_as_they_are(text: str):
    assert split(text) == [text[start:end].strip() for start, end in sentences(text)]


def test_sentences_are_put_together_up_to_a_limit():
    pieces = split("I have a dog. " + "It barks at everything. " * 100)
    assert len(pieces) == 101
    assert max(map(len, pieces)) <= MAX_TOGETHER_CHARS


@given(st.lists(st.sampled_from(["Ana ", "She ", "it ", "They're ", "is ", "the ", "and ", "a dog", ". ", "? "])))
def test_each_sentence_ends_a_piece_of_its_own(words: list[str]):
    text = "".join(words)
    spans = sentences(text)
    pieces = standalone([text[start:end] for start, end in spans])
    assert len(pieces) == len(spans)
    for piece, (start, end) in zip(pieces, spans, strict=True):
        assert piece.split()[-1:] == text[start:end].split()[-1:] or "They're" in text[start:end]
