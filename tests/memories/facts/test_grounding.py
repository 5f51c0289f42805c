"""Statements that a text supports."""

from __future__ import annotations

import pytest

from souvenir.index.analyser import Analyser
from souvenir.memories.grounding import Grounding

TEXT = (
    "I'm allergic to peanuts, and Ana, my two sisters' doctor, told me so on 3 May. The docs of Kestrel are deployed "
    "at https://docs.kestrel.example/start with Node.js 18 and cost 1,200 euros; ask ana@kestrel.example. "
    "Am Abend trinke ich Tee in Berlin."
)


@pytest.fixture(scope="module")
def grounding() -> Grounding:
    return Grounding(TEXT, Analyser("english").terms)


@pytest.mark.parametrize(
    "statement",
    [
        "The user has a peanut allergy",
        "User is allergic to peanuts.",
        "Ana is the doctor of 2 sisters",
        "Kestrel's deployment has docs at docs.kestrel.example/start.",
        "The docs of Kestrel are at <https://docs.kestrel.example/start>",
        "Kestrel costs 1200 euros",
        "Ana's address is ana@kestrel.example",
        "Kestrel uses Node.js 18",
        "Der Nutzer trinkt am Abend Tee in Berlin",
    ],
)
def test_a_statement_in_other_words_of_the_text_is_supported(grounding: Grounding, statement: str):
    assert grounding.supports(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "The docs of Kestrel are deployed at https://docs.kestrel.example/pay",
        "The docs of Kestrel are deployed at kestrel.example.evil.org",
        "The docs of Kestrel are deployed at vil.kestrel.example",
        "Ask ben@kestrel.example for the docs of Kestrel",
        "The docs of Kestrel are deployed with Node.js 20",
        "The docs of Kestrel are deployed with Deno.js 18",
        "Ana is the doctor of four sisters",
        "Carol is the doctor of my two sisters",
        "Ana and Carol told the user of the allergy to peanuts",
        "Ana prefers tea from China",
        "Bananas are yellow",
        "",
    ],
)
def test_a_statement_with_a_number_an_address_a_name_or_many_words_of_its_own_is_not(
    grounding: Grounding, statement: str
):
    assert not grounding.supports(statement)
