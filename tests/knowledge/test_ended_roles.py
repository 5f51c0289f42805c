"""Roles that have ended: they are not shown, but for the time before, and while the text that ends them stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from souvenir.conversations.agents import Agents
from souvenir.core.types import MessageRole
from tests.knowledge.agent import ANN, Agent

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
BOSS, RESIGNED = "My manager Lorraine wants a list.", "Lorraine has resigned with effect from July."


@pytest.mark.parametrize(
    ("said", "end", "name"),
    [
        (BOSS, "Our practice manager, Lorraine, has resigned.", "lorraine"),
        (BOSS, "Lorraine left, now is Mr Dhaliwal and half of the people have flu.", "lorraine"),
        (BOSS, "Lorraine is no longer my boss.", "lorraine"),
        (BOSS, "The shop was sold. Lorraine quit the same day.", "lorraine"),
        ("Our treasurer Bert is rude.", "Sacked Bert, finally.", "bert"),
        ("My apprentice Yaw is good.", "But Yaw left me, he has gone to Accra.", "yaw"),
        ("My supplier is Puregold.", "My supplier is Iloilo Grand now, no more Puregold.", "puregold"),
        ("Our treasurer Bert is rude.", "We had to meet, and we let Bert go.", "bert"),
        (BOSS, "Quit Torchys, last shift was yesterday.", "lorraine"),
        (BOSS, "I handed in my notice.", "lorraine"),
        (BOSS, "So the new manager is called Kyle and he is 21.", "lorraine"),
        (BOSS, "My manager is now Bashir Khan.", "lorraine"),
        ("My flatmate Inga is nice.", "Inga is moving in with her boyfriend.", "inga"),
        ("Our landlord Glenn is kind.", "New landlady is Wendy, she has two alpacas.", "glenn"),
        ("I work at Torchys in Leeds.", "also i quit torchys, last shift is the 11th.", "torchys"),
        ("I work for Vestland Elektro.", "I quit Vestland.", "vestland elektro"),
        ("I live in Leeds now.", "We moved out of Leeds.", "leeds"),
        ("I live in Leeds now.", "We moved from Leeds to York at the weekend.", "leeds"),
        ("Meine Kollegin Sabine ist nett.", "Sabine hat gekündigt, sagt sie.", "sabine"),
        ("Mi jefa Marisa es simpática.", "Marisa ha renunciado, dice Juan.", "marisa"),
        ("Mijn collega Wietske is aardig.", "Wietske is met pensioen, zegt Jan.", "wietske"),
    ],
)
def test_a_role_that_has_ended_is_shown_no_more(ann: Agent, said: str, end: str, name: str) -> None:
    ann.tell(said, at=START)
    assert ann.concept(name).role is not None
    ann.tell(end, at=START + timedelta(days=9))
    assert (ann.concept(name).role, ann.concept(name).description) == (None, None)


@pytest.mark.parametrize(
    ("said", "end", "name"),
    [
        *(
            (BOSS, end, "lorraine")
            for end in (
                "Lorraine left at five.",
                "Lorraine left early, for lunch.",
                "Lorraine left the new keys here.",
                "I quit my job in 2019, to travel.",
                "We moved out of Leeds, says my boss.",
                "Lorraine left me the keys, and a message.",
                "Lorraine is leaving the firm in October.",
                "If Lorraine quit, I would be glad.",
                "Has Lorraine resigned?",
                "I quit Duolingo, it was dull.",
                "I resigned from the choir.",
                "My sister has a new boss, Kyle.",
                "Lorraine moved out of the kitchen.",
                "We let Lorraine go first.",
                "There is no more Lorraine can do.",
            )
        ),
        ("My sister Ines is kind.", "Ines quit, and she left the company.", "ines"),
        ("My friend Priya is kind.", "Priya has moved out.", "priya"),
        ("My flatmate Inga is nice.", "Inga is moving out in October.", "inga"),
        ("I'm from Leeds, in the north.", "I've left Leeds.", "leeds"),
        ("My operations manager is Efua.", "My new manager is Kyle.", "efua"),
        ("My supervisor is Dr Hartley.", "My new manager is Kyle.", "dr hartley"),
    ],
)
def test_a_role_stays_that_a_sentence_does_not_end(ann: Agent, said: str, end: str, name: str) -> None:
    ann.tell(said, at=START)
    role = ann.concept(name).role
    assert role is not None
    ann.tell(end, at=START + timedelta(days=9))
    assert ann.concept(name).role == role


def test_a_role_that_is_said_after_the_end_is_shown(ann: Agent) -> None:
    ann.tell("Lorraine is my manager.", RESIGNED, at=START)
    ann.tell("My colleague Lorraine phoned.", at=START + timedelta(days=40))
    assert ann.concept("lorraine").role == "your colleague"


def test_what_ended_is_as_of_a_time_and_by_the_messages_that_stand_and_are_shown(ann: Agent) -> None:
    ann.tell(BOSS, at=START)
    before = datetime.now(UTC)
    [end] = ann.tell(RESIGNED, at=START + timedelta(days=9), metadata={"sensitive_topics": ["health"]})

    def roles() -> list[str | None]:
        then = (None, before)
        return [ann.graph.concepts.details(ANN, "lorraine", as_of).concept.role for as_of in then]

    assert roles() == [None, "your manager"]
    assert ann.graph.concepts.details(ANN, "lorraine", datetime.now(UTC)).concept.role is None
    Agents(ann.engine).set_policy(ANN, {"hidden_topics": ["health"]})
    assert roles() == ["your manager"] * 2
    Agents(ann.engine).set_policy(ANN, {"hidden_topics": []})
    ann.edit(end, "Lorraine is well.")
    ann.index()
    assert roles() == ["your manager"] * 2


def test_the_assistant_ends_no_role(ann: Agent) -> None:
    ann.tell(BOSS, at=START)
    ann.tell(RESIGNED, at=START + timedelta(days=9), role=MessageRole.ASSISTANT)
    assert ann.concept("lorraine").role == "your manager"


def test_who_has_left_does_not_introduce_the_agent_unless_something_else_is_said_of_them(ann: Agent) -> None:
    ann.tell("Pavel starts on the tiles.", "Pavel did not come.", "My uncle Bert tiles too.", "Bert came.", at=START)
    assert {"pavel", "bert"} <= ann.leading().keys()
    ann.tell("Sacked Pavel, no show again.", "Bert retired.", at=START)
    assert ann.leading().keys() & {"pavel", "bert"} == {"bert"}


def test_who_is_mentioned_once_introduces_the_agent_for_four_weeks_by_a_role_that_can_end(ann: Agent) -> None:
    ann.tell("My boss Priya is nice.", "My landlord Omar is nice.", "My sister Ines sings.", "Omar came.", at=START)
    for day, leading in ((27, {"priya", "omar", "ines"}), (29, {"omar", "ines"})):
        ann.tell("Lisbon is far.", at=START + timedelta(days=day))
        assert ann.leading().keys() & {"priya", "omar", "ines"} == leading
