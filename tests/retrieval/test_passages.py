"""Splitting a text into passages: complete coverage, maximum length, and cuts at sentence ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.types import Profile
from souvenir.retrieval.preparation import FACT_MAX_TOKENS, OVERLAP_TOKENS, head_of, memory_profile, split_passages

Tokenize = Callable[[str], list[tuple[int, int]]]


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def characters(text: str) -> list[tuple[int, int]]:
    """Tokenise a script without spaces: every letter is a token."""
    return [(at, at + 1) for at, letter in enumerate(text) if not letter.isspace()]


def pieces(text: str) -> list[tuple[int, int]]:
    """Tokenise like word pieces: at most three letters, from the start of the word."""
    spans: list[tuple[int, int]] = []
    for start, end in words(text):
        spans += [(at, min(at + 3, end)) for at in range(start, end, 3)]
    return spans


def moody(text: str) -> list[tuple[int, int]]:
    """Tokenise a long word as one token, and its parts as letters: parts have more tokens than the whole."""
    spans: list[tuple[int, int]] = []
    for start, end in words(text):
        whole = end - start >= 8 or end - start == 1
        spans += [(start, end)] if whole else [(at, at + 1) for at in range(start, end)]
    return spans


texts = st.one_of(
    st.text(alphabet="abé猫。.!? \n\t'\")", max_size=300),
    st.lists(st.text(alphabet="abcdefgh", min_size=1, max_size=12), max_size=120).map(" ".join),
    st.lists(st.text(alphabet="abc ", min_size=1, max_size=30).map(str.strip), max_size=40).map(". ".join),
)


def covered(text: str, windows: list[str]) -> bool:
    """Return whether the windows cover the text in order and without gaps."""
    ends = {0}
    for number, window in enumerate(windows):
        starts = {match.start() for match in re.finditer(f"(?={re.escape(window)})", text)}
        ends = {
            start + len(window)
            for start in starts
            if (start == 0 if number == 0 else any(start <= end for end in ends))
        }
    return len(text) in ends


@given(text=texts, tokenize=st.sampled_from([words, characters, pieces, moody]), max_tokens=st.integers(1, 40))
def test_passages_cover_the_text_and_none_is_too_long(text: str, tokenize: Tokenize, max_tokens: int):
    windows, tokens = split_passages(text, tokenize, max_tokens=max_tokens)
    assert tokens == len(tokenize(text))
    assert windows
    assert all(len(tokenize(window)) <= max_tokens for window in windows)
    assert covered(text, windows)
    if tokens <= max_tokens:
        assert windows == [text]


@given(count=st.integers(0, 1500), max_tokens=st.integers(4, 256))
def test_each_passage_repeats_the_end_of_the_one_before(count: int, max_tokens: int):
    text = " ".join(f"w{number}" for number in range(count))
    windows, _ = split_passages(text, words, max_tokens=max_tokens)
    overlap = min(OVERLAP_TOKENS, max_tokens // 4)
    for earlier, later in pairwise(windows):
        assert earlier.split()[-overlap:] == later.split()[:overlap]
    assert len(windows) <= max(1, -(-count // (max_tokens - overlap)))


@given(lengths=st.lists(st.integers(1, 15), min_size=1, max_size=80))
def test_a_cut_is_at_the_last_sentence_end_in_the_second_half(lengths: list[int]):
    """No sentence is longer than half a passage, so there is an end for every cut."""
    sentences = [" ".join(f"s{number}w{at}" for at in range(length)) + "." for number, length in enumerate(lengths)]
    windows, _ = split_passages(" ".join(sentences), words, max_tokens=32)
    assert all(window.rstrip().endswith(".") for window in windows)
    for sentence in sentences:
        assert any(sentence in window for window in windows)


@pytest.mark.parametrize("end", [". ", "! ", "? ", "… ", '." ', ".) ", "\n", "。", "？"])
def test_every_kind_of_sentence_end_is_a_place_to_cut(end: str):
    text = "one two three four five six" + end + "seven eight nine ten eleven twelve"
    windows, _ = split_passages(text, words, max_tokens=10)
    assert windows[0] == "one two three four five six" + end


def test_a_sentence_end_in_the_first_half_is_no_place_to_cut():
    text = "One. " + " ".join(f"w{number}" for number in range(40))
    windows, _ = split_passages(text, words, max_tokens=20)
    assert len(words(windows[0])) == 20


def test_a_text_without_tokens_is_one_passage():
    assert split_passages("  \n ", words, max_tokens=8) == (["  \n "], 0)
    assert split_passages("", words, max_tokens=8) == ([""], 0)


def test_surrounding_white_space_stays_in_the_first_and_last_passage():
    text = "  \n" + "word " * 30 + "\n "
    windows, _ = split_passages(text, words, max_tokens=8)
    assert windows[0].startswith("  \nword")
    assert windows[-1].endswith("word \n ")


@pytest.mark.parametrize(("tokens", "profile"), [(0, Profile.FACT), (59, Profile.FACT), (60, Profile.DOC)])
def test_a_text_of_60_tokens_is_a_document_and_a_shorter_one_a_fact(tokens: int, profile: Profile):
    assert FACT_MAX_TOKENS == 60
    assert memory_profile(tokens) is profile


@given(text=texts, tokenize=st.sampled_from([words, characters]), tokens=st.integers(4, 30), repeat=st.integers(1, 60))
def test_the_head_of_a_text_has_the_first_window_of_the_whole(text: str, tokenize: Tokenize, tokens: int, repeat: int):
    whole = text * repeat
    head = head_of(whole, tokenize, tokens=tokens)
    assert whole.startswith(head)
    assert tokenize(head)[:tokens] == tokenize(whole)[:tokens]
    windows = [split_passages(one, tokenize, max_tokens=tokens)[0] for one in (head, whole)]
    assert windows[0][0] == windows[1][0]


def test_of_a_long_message_only_the_beginning_is_tokenised():
    read: list[int] = []

    def tokenize(text: str) -> list[tuple[int, int]]:
        read.append(len(text))
        return words(text)

    head_of("word " * 10_000, tokenize, tokens=254)
    assert max(read) < 10_000
