"""Flags of turns, compared with scans of their words and letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.passages import TurnFlag
from souvenir.index.turn_flags import turn_flags
from tests.cases import for_all
from tests.reference import cues

WORDS = sorted(cues.TIME_WORDS | cues.NUMBER_WORDS)
MARKS = [" ", " ", " ", ", ", ". ", "? ", "?", "！", "？", " [", "]", "] ", "\n", "-", "_"]
OTHERS = ["adjust", "weekends", "Lisbon", "A", "McKay", "élan", "Élan", "7", "1999", "20231", "10th", "²", "٣", ""]


def expected(text: str) -> TurnFlag:
    flags = {
        TurnFlag.QUESTION: cues.ends_in_question(text),
        TurnFlag.TIME: cues.has_time_word(text),
        TurnFlag.NUMBER: cues.has_number(text),
        TurnFlag.NAME: cues.has_name(text),
    }
    return TurnFlag(sum(flag for flag, shown in flags.items() if shown))


@given(st.lists(st.sampled_from([*WORDS, *OTHERS, *MARKS, *MARKS]), max_size=8).map("".join))
def test_flags_equal_those_of_a_scan_of_the_text(text: str):
    assert turn_flags(text) == expected(text)


@for_all("word", WORDS)
def test_listed_words_match_in_any_case_and_only_as_whole_words(word: str):
    for written in (word, word.upper(), f"so {word.title()}, yes", f"{word}?"):
        assert turn_flags(written) == expected(written)
        assert turn_flags(written) & (TurnFlag.TIME | TurnFlag.NUMBER)
    assert not turn_flags(f"x{word}") & (TurnFlag.TIME | TurnFlag.NUMBER)
    assert not turn_flags(f"{word}x") & (TurnFlag.TIME | TurnFlag.NUMBER)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("We met Ilse there.", TurnFlag.NAME),
        ("Ilse met us. Nobody else.", TurnFlag(0)),
        ("Well, Ilse", TurnFlag.NAME),
        ("is it so? [photo of Lisbon in 1999]", TurnFlag.QUESTION),
        ("it is so [is it?] and so", TurnFlag(0)),
        ("ok?!", TurnFlag(0)),
        ("好吗？", TurnFlag.QUESTION),
    ],
)
def test_flags_of_example_turns(text: str, flags: TurnFlag):
    assert turn_flags(text) == expected(text) == flags
