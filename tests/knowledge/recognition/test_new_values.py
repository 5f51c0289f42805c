"""Recognition of changes by a new amount, place or plan, and of people whose role is said."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from souvenir.core.types import MessageRole
from souvenir.core.types.statements import EXPLAINED, Statement, StatementKind
from souvenir.knowledge.recognition.extraction import mentions_in
from souvenir.knowledge.recognition.statements import definitions_and_statements, statements_in

SUNDAY = date(2026, 6, 7)


def changes(text: str) -> list[Statement]:
    return [one for one in statements_in(text, SUNDAY) if one.kind is StatementKind.CHANGE]


def explained(text: str) -> list[tuple[str, str | None]]:
    """Return the sentences that introduce or explain a person, with the name."""
    at = datetime(2026, 6, 7, tzinfo=UTC)
    _, stated = definitions_and_statements(text, MessageRole.USER, mentions_in(text, MessageRole.USER), at)
    return [(one.sentence, one.value) for one in stated if one.attribute == EXPLAINED]


@pytest.mark.parametrize(
    "text",
    [
        "The permit is 165 now.",
        "The cleaner wants twenty an hour now.",
        "Netflix went up again, it's 15.99 now.",
        "We've renegotiated to 452.",
        "I talked the dealer down to 5,900.",
        "The doctor put me on 20 mg.",
        "We've gone over to Teams.",
        "I swapped running for swimming.",
        "Rehearsals have moved to the gym.",
        "We're five now in the office.",
        "The lead is now Aisha.",
        "Die Miete steigt auf 780 Euro.",
        "Ich fange im Mai bei Bosch an.",
        "De cursus is verplaatst naar donderdag.",
        "Ik ben per 1 april begonnen bij Coolblue.",
        "He empezado en Mercadona.",
        "Our till software is Lightspeed and they've put it up to €139 a month.",
        "Hanley came down to 1,600, said his wife.",
        "Tolley has come back at 44k: weekend loading.",
        "Mr Pettigrew now writes of £1,600.",
        "The union wrote a letter and the rent is back at 145.",
        "Herr Kuntzsch hat von sich aus auf 47 runter.",
        "Rupert wants two hotels and not three.",
        "The buyers want 800, not 600.",
        "Niet 210 maar 120 panelen, getekend op de negende.",
        "My whole experiment slides from November to January.",
        "We have engaged Mrs Clarisse Baptiste, of Vacoas.",
        "Dot's moved in with her son in Dayton.",
        "I passed the exam too!",
        "Mrs Kamau has, besides, been transferred to Roads.",
        "Tasneem got moved to the Solihull branch.",
        "Going with Brannock Haulage at 39.5k, same dates.",
        "We went with Parker and Sons for the boiler.",
        "Und statt Oberon Krahl kommt ein Gast aus Graz.",
    ],
)
def test_new_amounts_places_and_plans_are_changes(text: str) -> None:
    assert changes(text)


@pytest.mark.parametrize(
    "text",
    [
        "It's 10.30 now, time for bed.",
        "Theo is 4 now.",
        "I'm on the train now.",
        "Put the oven on 200 degrees.",
        "We went from the station to the castle.",
        "I no longer understand this message.",
        "Rewrite this: we have moved to a new office.",
        "I went over to Anna's.",
        "Anna came back at 10.30, tired.",
        "Anna came back at 1730.",
        "The count came back at 10 this morning.",
        "He wants two hotels.",
        "It took 6 hrs, not 3.",
        "Albert was born in 1896, not 1898.",
        "She says 20 people came.",
        "Anna is engaged to Tom.",
        "Only the man says 1,820 now.",
        "Going with Anna to Rome.",
        "We went with Anna.",
        "Statt Blumen kaufe ich Brot.",
    ],
)
def test_times_ages_walks_and_texts_to_write_are_no_changes(text: str) -> None:
    assert not changes(text)


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("I must ring Anna, she's the owner of the shop.", "Anna"),
        ("The woman from the insurance, Petra Lang, rang about the claim.", "Petra Lang"),
    ],
)
def test_a_person_is_explained_by_a_role(text: str, person: str) -> None:
    assert explained(text) == [(text, person)]


@pytest.mark.parametrize(
    "text",
    [
        "My grandmother Edith makes jam.",
        "Our architect is called Finn Moreau.",
        "The hairdresser is the best.",
        "My old boss Derek sends me puns.",
        "My friend Tess thinks I should go.",
        "Did you know that the painter Vermeer had eleven children?",
        "If I hire a cleaner called Dot it costs 60 a week.",
    ],
)
def test_roles_alone_and_conditions_explain_nobody(text: str) -> None:
    assert not explained(text)
