"""Insights where the deeds and plans of another person, or of another matter, could be taken for those of the user."""

from __future__ import annotations

from tests.cases import for_all
from tests.knowledge.agent import Agent
from tests.knowledge.insights_by_days import by_days

RENT = "I'll pay the rent by Friday."

DEEDS_OF_OTHERS = [
    (RENT, "Priya has paid her rent."),
    (RENT, "She finally paid her rent."),
    (RENT, "My flatmate has already paid her rent."),
    (RENT, "Tom and Lea paid their rent."),
    ("I have to submit the report by Friday.", "My colleague submitted a report."),
    ("Ich muss bis Freitag die Miete bezahlen.", "Jonas hat seine Miete bezahlt."),
    ("Tengo que pagar el alquiler antes del viernes 5 de enero.", "Marta ha pagado su alquiler."),
    ("Ik moet voor vrijdag de huur betalen.", "Jeroen heeft zijn huur betaald."),
]
DEEDS_THAT_KEEP_A_PROMISE = [
    (RENT, "I have paid the rent."),
    (RENT, "Priya has paid my rent."),
    (RENT, "Priya paid the rent for me."),
    ("We have to pay the rent by Friday.", "Priya has paid the rent."),
    ("I promised Priya to pay the rent by Friday.", "Priya has paid the rent."),
    ("I promised Priya a new bike by Friday.", "Priya bought a new bike."),
    ("I told Priya I'd fix the bike by Friday.", "She has fixed her bike."),
    ("Wir müssen bis Freitag die Miete bezahlen.", "Jonas hat seine Miete bezahlt."),
]


@for_all("promise, report", DEEDS_OF_OTHERS)
def test_the_deed_of_another_person_keeps_no_promise_of_the_user(ann: Agent, promise: str, report: str) -> None:
    by_days(ann, {0: promise, 2: report}, {3: ["upcoming"], 7: ["overdue"]})


def test_the_deed_of_another_person_leaves_a_promise_open_until_its_day_only(ann: Agent) -> None:
    by_days(ann, {0: RENT, 2: "Priya has paid the rent."}, {3: ["upcoming"], 7: []})


@for_all("promise, report", DEEDS_THAT_KEEP_A_PROMISE)
def test_a_deed_keeps_a_promise_about_its_person_and_a_joint_one(ann: Agent, promise: str, report: str) -> None:
    by_days(ann, {0: promise, 2: report}, {3: []})
