"""Locating a model's quotes in a transcript; recalled text never counts as evidence."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.text import fenced
from souvenir.learning.quotes import MIN_SHARE, find_quote, in_removed
from souvenir.learning.transcripts.transcript import read_transcript

TALK = (
    "User: I moved to Lisbon in May — it's near my sister’s flat, and the rent is 900 euros a month.\n"
    "Assistant: Noted, you moved to Lisbon.\n"
    "User: She prefers tea to coffee in the morning, always with milk."
)


def found(text: str, quote: str) -> tuple[int, str] | None:
    quoted = find_quote(read_transcript(text, document_at=None).turns, quote)
    return None if quoted is None else (quoted.turn, text[quoted.span.start : quoted.span.end])


@pytest.mark.parametrize(
    ("quote", "place"),
    [
        ("moved to Lisbon", (0, "moved to Lisbon")),
        ("you moved to Lisbon.", (1, "you moved to Lisbon.")),
        (
            "i MOVED to  lisbon in may - it's near my sister's flat",
            (0, "I moved to Lisbon in May — it's near my sister’s flat"),
        ),
        ("She likes tea to coffee in the morning", (2, "She prefers tea to coffee in the morning")),
        ("She prefers tea to coffee in morning", (2, "She prefers tea to coffee in the morning")),
        ("“She really prefers tea to coffee in the morning”", (2, "She prefers tea to coffee in the morning")),
        ("[2] 2024-03-15 (user): She prefers tea", (2, "She prefers tea")),
        ("She prefers tea to coffee and Alice has three red cars", None),
        ("Lisbon Porto", None),
        ("isbo", None),
        ("Noted, you moved to Lisbon. She prefers tea to coffee", None),
        ("…", None),
        ("", None),
    ],
)
def test_a_quote_is_found_verbatim_by_words_or_with_few_changes(quote: str, place: tuple[int, str] | None):
    assert found(TALK, quote) == place


def test_a_quote_of_an_escaped_message_has_the_offsets_of_its_raw_text():
    text = '[{"role": "user", "content": "Caf\\u00e9 \\"Noir\\"\\nis our favourite place in town."}]'
    assert found(text, 'Café "Noir" is our favourite') == (0, 'Caf\\u00e9 \\"Noir\\"\\nis our favourite')


def test_signs_of_scripts_without_blanks_are_words_of_their_own():
    assert found("User: 我上个月搬到了上海，工作很忙。", "我上个月搬到了北海") == (0, "我上个月搬到了上海")


def test_a_quote_found_only_in_recalled_text_is_recalled():
    text = "User: " + fenced("- 2023-05-08: Alice lives in Boston with her two cats.") + "I moved to Rome in June.\n"
    transcript = read_transcript(text, document_at=None)
    assert find_quote(transcript.turns, "Alice lives in Boston with her two cats") is None
    assert in_removed(transcript, "alice lives in Boston with her two cats")
    assert not in_removed(transcript, "I moved to Rome in June")
    assert not in_removed(transcript, "Alice owns a boat")
    again = read_transcript(text + "Assistant: Right, Alice lives in Boston with her two cats!", document_at=None)
    assert not in_removed(again, "Alice lives in Boston with her two cats")


def test_a_quote_that_matches_recalled_text_better_is_recalled():
    text = "User: " + fenced("Alice lives in Boston with her two cats") + "Alice lives in Denver with her two cats"
    transcript = read_transcript(text, document_at=None)
    assert in_removed(transcript, "Alice lives in Boston with her two cats")
    assert not in_removed(transcript, "Alice lives in Denver with her two cats")


# --- against a slow reference -----------------------------------------------------------------------------------------


def fewest_changes(words: list[str], wanted: list[str]) -> int:
    """The smallest edit distance of the wanted words to any run of words, by its definition."""

    def distance(run: list[str]) -> int:
        @cache
        def of(left: int, right: int) -> int:
            if not left or not right:
                return left + right
            same = wanted[left - 1] != run[right - 1]
            return min(of(left - 1, right) + 1, of(left, right - 1) + 1, of(left - 1, right - 1) + same)

        return of(len(wanted), len(run))

    return min(distance(words[start:end]) for start in range(len(words) + 1) for end in range(start, len(words) + 1))


@given(
    words=st.lists(st.sampled_from("abcd"), min_size=1, max_size=12),
    wanted=st.lists(st.sampled_from("abcd"), min_size=1, max_size=10),
)
def test_the_best_match_equals_the_reference_definition(words: list[str], wanted: list[str]):
    text = "User: " + " ".join(words)
    quoted = find_quote(read_transcript(text, document_at=None).turns, " ".join(wanted))
    share = 1 - fewest_changes(words, wanted) / len(wanted)
    if quoted is None:
        assert share < MIN_SHARE
    else:
        assert quoted.share == pytest.approx(share)
        run = text[quoted.span.start : quoted.span.end].split()
        assert 1 - fewest_changes(run, wanted) / len(wanted) == pytest.approx(share)
