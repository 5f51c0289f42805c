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


PLANS_OF_OTHERS = [
    ("Dinner with Samira is on 12 January.", "Dinner with Bram is moved to Sunday 14 January."),
    ("Dinner with Samira is on 12 January.", "Dinner with Bram is now on 14 January."),
    ("Samira's birthday dinner is on 12 January.", "Bram's birthday dinner is now on 14 January."),
    ("Dinner with my sister is on 12 January.", "Dinner with my boss is now on 14 January."),
    ("Das Essen mit Samira ist am 12. Januar.", "Das Essen mit Bram ist auf den 14. Januar verschoben."),
    ("La cena con Samira es el 12 de enero.", "La cena con Bram se ha cambiado al 14 de enero."),
    ("Het etentje met Samira is op 12 januari.", "Het etentje met Bram is verplaatst naar 14 januari."),
]


@for_all("plan, change", PLANS_OF_OTHERS)
def test_the_moved_appointment_with_another_person_leaves_the_plan(ann: Agent, plan: str, change: str) -> None:
    by_days(ann, {0: plan, 1: change}, {2: [f"upcoming: “{plan}”", f"change: Changed: “{change}” (2 January)."]})


@for_all("end", ["Dinner with Bram is cancelled.", "We don't have the dinner with Bram on 12 January."])
def test_the_end_of_a_plan_with_another_person_leaves_the_plan(ann: Agent, end: str) -> None:
    by_days(ann, {0: "Dinner with Samira is on 12 January.", 1: end}, {2: ["upcoming", "change"][: 2 - ("n't" in end)]})


@for_all(
    "plan, change",
    [
        ("Dinner with Samira is on 12 January.", "Dinner with Samira Haddad is moved to 14 January."),
        ("Dinner with my boss Samira is on 12 January.", "Dinner with Samira is moved to 14 January."),
        ("Dinner with Samira is on 12 January.", "Dinner is moved to 14 January."),
        ("My appointment with Dr Osei is on 12 January.", "Osei moved my appointment to 14 January."),
    ],
)
def test_the_moved_appointment_with_the_same_person_replaces_the_plan(ann: Agent, plan: str, change: str) -> None:
    by_days(ann, {0: plan, 1: change}, {2: [f"change: before: “{plan}”"]})
