"""Boundaries of sentences."""

from __future__ import annotations

import pytest

from souvenir.core.text import sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Am 3. Dezember komme ich. Am 4. gehe ich.", ["Am 3. Dezember komme ich. ", "Am 4. gehe ich."]),
        ("Bis 15. März, nicht 1. Apr. oder später.", ["Bis 15. März, nicht 1. Apr. ", "oder später."]),
        ("We came 3. Dezember is late.", ["We came 3. Dezember is late."]),
        ("It was 2024. August came.", ["It was 2024. ", "August came."]),
        ("Page 3. Marzipan is sweet.", ["Page 3. ", "Marzipan is sweet."]),
        (
            "Vertrag am 27. unterschrieben. Nicht 9. one is too high.",
            ["Vertrag am 27. unterschrieben. ", "Nicht 9. ", "one is too high."],
        ),
        ("Das 3. Mal war gut.", ["Das 3. ", "Mal war gut."]),
    ],
)
def test_an_ordinal_of_german_ends_no_sentence(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == expected


@pytest.mark.parametrize("title", ["Dra", "Sra", "Srta", "Mevr", "Rev", "Mme", "Fr"])
def test_a_title_ends_no_sentence(title: str) -> None:
    text = f"Mañana veo a la {title}. Vidal. Gracias."
    assert [text[start:end] for start, end in sentences(text)] == [f"Mañana veo a la {title}. Vidal. ", "Gracias."]
