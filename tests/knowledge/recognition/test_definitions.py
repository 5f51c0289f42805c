"""The sentences that define a concept, and the roles that they give it."""

from __future__ import annotations

import pytest

from souvenir.core.types import ConceptKind, Mentioned, MessageRole
from souvenir.core.types.statements import DESCRIBING_QUALITY, Definition
from souvenir.knowledge.recognition.definitions import definitions_in, is_relation


def defined(text: str, form: str, role: MessageRole = MessageRole.USER) -> Definition | None:
    return definitions_in(text, role, [Mentioned(form.lower(), form, ConceptKind.NAME)]).get(form.lower())


@pytest.mark.parametrize(
    ("text", "form", "role"),
    [
        ("Pico is our ten-year-old beagle and he pulls.", "Pico", "your ten-year-old beagle"),
        ("Gladys has been my friend since nursing school.", "Gladys", "your friend since nursing school"),
        ("Rui, my husband, can work from anywhere.", "Rui", "your husband"),
        ("And our conductor, Dr Falcão, wants it by heart!", "Falcão", "your conductor"),
        ("My sister Ines says so.", "Ines", "your sister"),
        ("Dec's sister Gráinne, who is a nurse, says what?", "Gráinne", "Dec's sister"),
        ("It was me and a guy called Bashir.", "Bashir", "a guy"),
        ("We have a new head of science, Ms Lindqvist.", "Lindqvist", "a new head of science"),
        ("The ship was the Hercules, imagine.", "Hercules", "The ship"),
        ("I work three nights at Bubble Cup.", "Bubble Cup", None),
        ("Trados stores every sentence that you translate.", "Trados", None),
        ("We went to Ann Arbor. Ann is the head of sales.", "Ann", "the head of sales"),
        ("Katharina, meine Frau, arbeitet dort.", "Katharina", "meine Frau"),
        ("Das sage ich meinem Chef Bernd.", "Bernd", "meinem Chef"),
        ("Mein Pate ist Herr Wagner.", "Wagner", "Mein Pate"),
        ("kernel is our cat, obviously", "kernel", "your cat"),
        ("Ann, my old piano teacher from Cork, called.", "Ann", "your old piano teacher from Cork"),
        ("Ann, my friend who sings, called.", "Ann", "your friend who sings"),
    ],
)
def test_a_copula_an_apposition_or_a_role_defines(text: str, form: str, role: str | None) -> None:
    one = defined(text, form)
    assert one is not None
    assert one.role == role
    assert one.sentence in text


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("No PgBouncer yet.", "PgBouncer"),
        ("Nice to meet you, Alice!", "Alice"),
        ("Is Ann a doctor?", "Ann"),
        ("I told Ann about it.", "Ann"),
        ("Ann is a bit of a pain.", "Ann"),
        ("Annabel is a painter.", "Ann"),
        ("Ask Ann about the boat.", "Ann"),
        ("Fitting is in April, my sister Paola flies in.", "April"),
        ("I met Tobias, my car is broken.", "Tobias"),
        ("We sold the house to Priya, my brother is furious.", "Priya"),
        ("We visited Nordvik, my favourite uncle lives there.", "Nordvik"),
        ("I met Tobias, my husband left.", "Tobias"),
        ("I met Tobias, my brother works hard.", "Tobias"),
        ("Ich traf Tobias, mein Bruder ist krank.", "Tobias"),
        ("Third floor, no lift, my knee says thanks.", "lift"),
        (f"Ann is my sister {'and so on ' * 40}.", "Ann"),
    ],
)
def test_mentions_questions_greetings_and_judgements_define_nothing(text: str, form: str) -> None:
    assert defined(text, form) is None


@pytest.mark.parametrize(
    ("text", "form", "role", "describes"),
    [
        ("My charge nurse Yolanda cried.", "Yolanda", "your charge nurse", False),
        ("My sister Ines called yesterday.", "Ines", "your sister", False),
        ("My sister Ines is a dentist in Porto.", "Ines", "your sister", True),
        ("I live with my husband Rui in Faro.", "Rui", "your husband", True),
        ("This is my boss Priya.", "Priya", "your boss", True),
        ("Rui, my husband, can work from anywhere.", "Rui", "your husband", True),
        ("After the meeting with the team I told Priya, my boss, that I quit.", "Priya", "your boss", False),
        ("Pip is our beagle and turns five tomorrow.", "Pip", "your beagle", True),
    ],
)
def test_a_role_in_passing_is_kept_and_describes_nothing(text: str, form: str, role: str, describes: bool) -> None:
    one = defined(text, form)
    assert one is not None
    assert one.role == role
    assert (one.quality >= DESCRIBING_QUALITY) is describes


def test_a_copula_that_holds_for_one_day_defines_nothing() -> None:
    assert defined("Pip is a five months old puppy tomorrow.", "Pip") is None


def test_the_best_form_is_chosen_and_a_person_precedes_the_assistant() -> None:
    best = defined("I work at Acme. Acme is a small publisher.", "Acme")
    assert best is not None
    assert best.sentence == "Acme is a small publisher."
    by_assistant = defined("Acme is a small publisher.", "Acme", MessageRole.ASSISTANT)
    assert by_assistant is not None
    assert by_assistant.quality < best.quality


def test_roles_of_people_are_relations() -> None:
    assert is_relation("your boss")
    assert is_relation("Dec's sister")
    assert not is_relation("a hint")
    assert not is_relation("the ship")


@pytest.mark.parametrize(
    ("text", "author", "role"),
    [
        ("My name is Alice and I work at Spotify.", MessageRole.USER, "you"),
        ("Hallo, ich heiße Alice, bin 41.", MessageRole.USER, "you"),
        ("I'm Alice, hello.", MessageRole.USER, "you"),
        ("My name is Alice.", MessageRole.ASSISTANT, None),
        ("My name is not Alice.", MessageRole.USER, None),
        ("My sister Alice called.", MessageRole.USER, "your sister"),
    ],
)
def test_the_name_of_the_user_has_the_role_you(text: str, author: MessageRole, role: str | None):
    found = defined(text, "Alice", author)
    assert (found and found.role) == role
