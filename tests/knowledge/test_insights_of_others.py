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
    ("I promised Ada and Bo to fix the fence by Friday.", "Bo fixed his bike."),
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
]


@for_all("promise, report", DEEDS_OF_OTHERS)
def test_what_another_person_did_with_their_own_thing_keeps_no_promise_of_the_user(
    ann: Agent, promise: str, report: str
) -> None:
    by_days(ann, {0: promise, 2: report}, {3: ["upcoming"], 7: ["overdue"]})


@for_all("promise, report", DEEDS_THAT_KEEP_A_PROMISE)
def test_another_deed_keeps_a_promise(ann: Agent, promise: str, report: str) -> None:
    by_days(ann, {0: promise, 2: report}, {3: []})


PLANS_OF_OTHERS = [
    ("Dinner with Samira is on 12 January.", "Dinner with Bram is moved to Sunday 14 January."),
    ("Dinner with Samira is on 12 January.", "Dinner with Bram is now on 14 January."),
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


TOMORROW = [
    "I have a dentist appointment tomorrow at 9.",
    "I fly to Oslo tomorrow.",
    "I have a haircut tomorrow at 3pm.",
    "Tomorrow I'm going to the cinema with Bo.",
    "Ich habe morgen ein Treffen mit Jonas.",
    "Morgen um 9 Uhr habe ich einen Zahnarzttermin.",
    "Tengo cita con el dentista mañana a las 9.",
    "Morgen heb ik om 9 uur een afspraak bij de tandarts.",
]
TONIGHT = [
    "Dinner with Bram tonight at eight.",
    "Heute Abend habe ich ein Konzert.",
    "Esta noche tengo una cena con Bram.",
    "Vanavond heb ik een afspraak met Bram.",
]


@for_all("text", TOMORROW)
def test_an_appointment_of_tomorrow_is_that_of_the_day_after_its_message(ann: Agent, text: str) -> None:
    by_days(ann, {0: text}, {day: [f"upcoming: on Tuesday, 2 January: “{text}”"] for day in (0, 1)} | {2: []})


@for_all("text", TONIGHT)
def test_an_appointment_of_tonight_is_that_of_the_day_of_its_message(ann: Agent, text: str) -> None:
    by_days(ann, {0: text}, {0: [f"upcoming: on Monday, 1 January: “{text}”"], 1: []})


@for_all(
    "text, day",
    [
        ("I have dinner with Samira on Friday.", "Friday, 5 January"),
        ("My physio is on the 9th.", "Tuesday, 9 January"),
        ("Am Freitag habe ich einen Zahnarzttermin.", "Friday, 5 January"),
    ],
)
def test_an_event_of_a_weekday_or_of_the_month_is_an_appointment(ann: Agent, text: str, day: str) -> None:
    by_days(ann, {0: text}, {0: [f"upcoming: {day}"]})


@for_all(
    "text",
    [
        "It will rain tomorrow.",
        "I see the point now, on Friday or later.",
        "Talk to you tomorrow!",
        "We get a new dentist a week tomorrow, Dr Okonjo.",
        "I had dinner with Samira on Friday.",
        "The meeting is the day before, not tomorrow.",
        "Morgen, ich habe keine Fragen zum Termin.",
        "Esta mañana tengo una cita con Bram.",
        "I fly on 20 April. The wedding is on the 25th.",
    ],
)
def test_other_days_near_by_are_those_of_no_appointment(ann: Agent, text: str) -> None:
    by_days(ann, {0: text}, {0: []})


TWO_MATTERS = [
    ("I have the dentist on the 3rd and physio on the 9th.", "Wednesday, 3 January", "Tuesday, 9 January"),
    ("Dentist on 3 January, physio on 9 January.", "Wednesday, 3 January", "Tuesday, 9 January"),
    ("I have to send the draft by Friday and the report by Monday.", "Friday, 5 January", "Monday, 8 January"),
    ("I have to send the draft by Friday and my sister comes on 8 January.", "Due on Friday", "Coming up on Monday"),
    ("I fly to Oslo on 3 January and the wedding is on the 9th.", "Wednesday, 3 January", "Tuesday, 9 January"),
    ("Am 3. Januar ist der Zahnarzt und am 9. Januar die Physio.", "Wednesday, 3 January", "Tuesday, 9 January"),
    ("El 3 de enero es la cita y el 9 de enero la boda.", "Wednesday, 3 January", "Tuesday, 9 January"),
    ("Op 3 januari is de tandarts en op 9 januari de bruiloft.", "Wednesday, 3 January", "Tuesday, 9 January"),
]


@for_all("text, first, second", TWO_MATTERS)
def test_each_of_two_matters_in_a_sentence_has_its_day(ann: Agent, text: str, first: str, second: str) -> None:
    by_days(ann, {0: text}, {0: [f"upcoming: {first}", f"upcoming: {second}"]})


def test_one_of_two_matters_is_done_or_moved_by_itself(ann: Agent) -> None:
    drafts = "I have to send the draft by Friday and the report by Monday."
    by_days(ann, {0: drafts, 2: "I sent the draft."}, {3: ["upcoming: Due on Monday, 8 January"]})
    plans = "Dentist on 10 January and physio on 12 January."
    moved = "The dentist is now on 15 January."
    by_days(ann, {0: plans, 2: moved}, {3: ["upcoming: Friday, 12 January", f"change: {moved}"]})


@for_all(
    "text",
    [
        "My physio is on the 3rd and the 9th.",
        "I meet Ana on 3 January, she flies on 9 January.",
        "The trip to Oslo is from 3 to 9 January.",
    ],
)
def test_one_matter_of_two_days_is_shown_once(ann: Agent, text: str) -> None:
    by_days(ann, {0: text}, {0: ["upcoming: Wednesday, 3 January"]})


def test_an_appointment_is_moved_to_a_weekday(ann: Agent) -> None:
    plan, moved = "Dinner with Bram is on 5 January.", "Dinner with Bram is moved to Sunday."
    by_days(ann, {0: plan, 1: moved}, {2: [f"change: {moved}” (2 January); before: “{plan}”"], 7: []})


@for_all(
    "last, kinds",
    [
        ("I climbed with my brother Kuba again.", ["quiet"]),
        ("My brother Kuba nearly died on the wall.", ["quiet"]),
        ("My brother Kuba died on Sunday.", []),
        ("It was the funeral of my brother Kuba.", []),
        ("My brother Kuba was ill. He passed away in the night.", []),
        ("Mein Bruder Kuba ist am Sonntag gestorben.", []),
        ("Mi hermano Kuba ha muerto.", []),
        ("Mijn broer Kuba is zondag overleden.", []),
    ],
)
def test_the_dead_do_not_go_quiet(ann: Agent, last: str, kinds: list[str]) -> None:
    climbed = dict.fromkeys((0, 7), "I climbed with my brother Kuba again.")
    later = dict.fromkeys((90, 97, 104, 111), "The server is slow.")
    by_days(ann, {**climbed, 14: last, 21: "We talked about my brother Kuba.", **later}, {112: kinds})


TWO_CHANGES = [
    ("Anna quit.", "Anna died."),
    ("Dinner with Samira is now on 27 January.", "Dinner with Bram is now on 27 January."),
]


@for_all("first, second", TWO_CHANGES)
def test_two_changes_of_a_person_or_a_thing_are_both_shown(ann: Agent, first: str, second: str) -> None:
    by_days(ann, {0: first, 1: second}, {2: ["change", "change"]})


@for_all(
    "first, second",
    [
        ("The wedding is now on 27 January.", "The wedding is now on 29 January."),
        ("The rent goes up from 700 to 780.", "The rent goes up from 700 to 790 after all."),
        ("The wedding is now on 27 January.", "Yes, the wedding is now on the 27th."),
    ],
)
def test_the_latest_of_the_changes_of_a_matter_is_shown(ann: Agent, first: str, second: str) -> None:
    by_days(ann, {0: first, 1: second}, {2: [f"change: Changed: “{second}”"]})


@for_all(
    "last, shown",
    [
        ("Edith died yesterday.", ["upcoming: dinner with Marlon", "change: Edith died"]),
        ("Edith rang yesterday.", ["upcoming: lunch with Edith", "upcoming: dinner with Marlon"]),
    ],
)
def test_an_appointment_with_a_dead_person_is_not_shown(ann: Agent, last: str, shown: list[str]) -> None:
    said = "I have lunch with Edith on 10 January and dinner with Marlon on 11 January."
    by_days(ann, {0: said, 3: last}, {4: shown})


@for_all(
    "said",
    [
        "I forgot to pay the rent.",
        "I didn't pay the rent.",
        "I never paid the rent.",
        "Ich habe vergessen, die rent zu zahlen.",
        "Olvidé pagar la rent.",
    ],
)
def test_a_promise_that_was_not_kept_is_overdue(ann: Agent, said: str) -> None:
    by_days(ann, {0: "I'll pay the rent by Friday.", 5: said}, {6: ["overdue: pay the rent"]})
