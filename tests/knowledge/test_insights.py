"""Insights: sentences that are worth acting on, with their sources."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from souvenir.conversations.agents import Agents
from souvenir.core.errors import AgentNotFound
from souvenir.core.types import MessageRole, RecordKind, Scope
from souvenir.knowledge.insights import MAX_INSIGHTS, Insight, InsightKind
from souvenir.store.selection import Chooses
from tests.cases import for_all
from tests.knowledge.agent import ANN, Agent
from tests.knowledge.insights_by_days import MONDAY, Case, by_days

WEEK = timedelta(days=7)
DAY = date(2024, 1, 27)
DRAFT = "I'll send Priya the draft by Friday."
NO_FISH = "I never eat fish."
CLINIC = "My appointment at the clinic is on 9 January."
BOAT = "I promised Tom the boat by Friday."


def insights(ann: Agent, at: datetime, kind: InsightKind | None = None) -> Sequence[Insight]:
    ann.index()
    return [one for one in ann.graph.insights.of_agent(ANN, at) if kind is None or one.kind is kind]


def test_a_promise_is_upcoming_then_overdue_and_then_forgotten(ann: Agent) -> None:
    [uid] = ann.say("I'll send Priya the draft by Friday.", at=MONDAY)
    [one] = insights(ann, MONDAY + timedelta(hours=1))
    assert one.text == "Due on Friday, 5 January: “I'll send Priya the draft by Friday.” (1 January)."
    assert (one.kind, one.due, one.at) == (InsightKind.UPCOMING, date(2024, 1, 5), MONDAY)
    assert [(source.kind, source.id) for source in one.sources] == [(RecordKind.MESSAGE, uid)]
    assert [concept.name for concept in one.concepts] == ["Priya"]
    [late] = insights(ann, MONDAY + WEEK)
    assert late.kind is InsightKind.OVERDUE
    assert late.text.startswith("Due since 5 January, and nothing says that it was done: “I'll send")
    assert not insights(ann, MONDAY + timedelta(days=90))
    assert not insights(ann, MONDAY - WEEK)


CASES: list[Case] = [
    # A plan or a promise of long ago; a birthday stays.
    ({0: BOAT}, {34: ["overdue"], 36: []}),
    ({0: "The concert with Tom is on 20 February."}, {34: ["upcoming"], 36: []}),
    ({0: "Tom's birthday is on 2 March."}, {50: ["upcoming"]}),
    ({0: "Tom's birthday party is on 2 March."}, {50: []}),
    # Reported as done or dropped later.
    ({0: DRAFT, 2: ("Priya wants a draft?", "Sent Priya the draft at midnight.")}, {3: [], 7: []}),
    ({0: DRAFT, 2: ("Priya wants a draft?", "The draft is finished.")}, {3: [], 7: []}),
    ({0: DRAFT, 2: ("Priya wants a draft?", "Priya says that she has it.")}, {3: [], 7: []}),
    ({0: DRAFT, 2: ("Priya wants a draft?", "Tom takes over the draft.")}, {3: [], 7: []}),
    (
        {0: DRAFT, 2: ("Priya wants a draft?", "I don't have to write the draft any more.")},
        {3: ["change"], 7: ["change"]},
    ),
    # Another report.
    ({0: DRAFT, 2: "The boat is painted and done."}, {7: ["overdue"]}),
    # Talked about again after its day.
    ({0: ("I promised Rosa the new timetable by Friday.", BOAT), 7: "Rosa is happy."}, {7: ["overdue: boat"]}),
    # To a person who is often mentioned.
    ({0: BOAT, 7: ("Tom sings.", "Tom sleeps.", "Tom dances.", "Tom has a cold.")}, {7: ["overdue"]}),
    ({0: BOAT, 7: ("Tom sings.", "Tom sleeps.", "Tom dances.", "Tom has a cold.", "Tom has a boat.")}, {7: []}),
    # A place is no matter of its own.
    ({0: "I have to join the tenants in Hamburg by Friday.", 7: "Hamburg has a good zoo."}, {7: ["overdue"]}),
    # Not done yet.
    (
        {
            0: DRAFT,
            5: "I haven't sent Priya the draft yet.",
            6: "Priya is still waiting for the draft, I have not sent it.",
        },
        {7: ["overdue"]},
    ),
    # A change that is called off itself, also when that is old news.
    (
        {0: "The wedding is on 12 March.", 7: "The wedding is now on 19 March.", 14: "The wedding is cancelled."},
        {15: ["change: Changed: “The wedding is cancelled"], 30: []},
    ),
    # A day of a report.
    ({0: "I fetched my father from the clinic on the 16th as planned."}, {0: []}),
    # A day that comes by itself, and a duty that is past.
    ({0: "The landlord sells, we have to leave by Friday."}, {0: ["upcoming"], 7: []}),
    ({0: "We signed, I ought to have said, on the 5th."}, {0: []}),
    ({0: "I must confess that I bought a truck on Friday."}, {0: []}),
    # An errand of the next day.
    ({0: "I'll call the plumber tomorrow."}, {0: ["upcoming"], 7: []}),
    # About a pronoun.
    ({0: "Nobody told me about the bloods. I shall ring them before Friday."}, {0: ["upcoming"], 7: []}),
    ({0: "I lean to the first of the two cooks. I will call both by Friday."}, {0: ["upcoming"], 7: []}),
    # Another thing is done, or the opposite is said.
    ({0: "I must call Hendrik about the wood by Friday.", 4: "Done: the cello is repaired."}, {7: ["overdue"]}),
    ({0: "I'll send Priya the draft by Friday.", 5: "Priya never got the draft."}, {7: ["overdue"]}),
    # The job of another person.
    ({0: "I work at Acme.", 3: "Samira got a job at Volvo."}, {3: ["change: Changed: “Samira got a job at Volvo.” ("]}),
    # A book is no booking.
    ({0: "I must book the tickets by Friday.", 2: "I finished two books."}, {7: ["overdue"]}),
    # A pronoun that nobody understands alone.
    ({0: "I must ring her by Friday."}, {0: []}),
    ({0: ("Anna and Beatriz rang.", "I told her I'd answer by Friday.")}, {0: []}),
    ({0: ("That works.", "I'll do that by Friday.")}, {0: []}),
    ({0: ("Thanks.", "I'll send it to them by Friday.")}, {0: []}),
    # The only person whom a pronoun can mean.
    (
        {0: "My physio is called Greta. Nice woman. I've got to send her my exercise log by Friday."},
        {0: ["upcoming: I've got to send her [Greta] my exercise log by Friday."]},
    ),
    (
        {0: ("Dr Osei was kind.", "I must ring her about the forms by Friday.")},
        {0: ["upcoming: I must ring her [Dr Osei] about"]},
    ),
    (
        {0: "My sister Ellen is ill. I told her I'd cook on Friday."},
        {0: ["upcoming: My sister Ellen is ill. I told her I'd cook"]},
    ),
    (
        {0: "I told Ray I'd fix his bike by Friday, he needs it."},
        {0: ["upcoming: I told Ray I'd fix his bike by Friday, he needs it."]},
    ),
    # Another person of the message, and of another gender.
    ({0: "My aunt is ill. Karl drove. I told her I'd visit by Friday."}, {0: []}),
    ({0: ("Thomas was here.", "I told her I'd visit by Friday.")}, {0: []}),
    ({0: "Greta is nice. A client rang. It was nine. I've got to send her my log by Friday."}, {0: []}),
    ({0: ("Thomas was here.", "I told him I'd visit by Friday.")}, {0: ["upcoming: I told him [Thomas] I'd visit"]}),
    (
        {0: "Sal is here. Nadia laughed. I promised her a new chain by Friday."},
        {0: []},
    ),
    # A compound completes the promise of its head.
    ({0: "Ich muss die Zone bis Ende Januar bestellen.", 7: "Die Halteverbotszone ist bestellt."}, {7: []}),
    # Agreed to do.
    ({0: "Mach ich, bis Monatsende ist der Zuschuss beantragt."}, {1: ["upcoming: Due on Wednesday, 31 January"]}),
    # A sentence that also introduces a person is quoted once.
    ({0: "Hello", 42: "I promised my boss Henrique the list by Friday."}, {42: ["upcoming"]}),
    # Far ahead, shown while it is fresh.
    ({0: "My appointment at the clinic is on 10 February."}, {1: ["upcoming"], 15: [], 20: ["upcoming"]}),
    # A new day, as long as it is ahead.
    ({0: "The wedding is now on 5 April."}, {70: ["change"], 100: []}),
    # Replaced by a new day.
    (
        {0: CLINIC, 2: "The clinic moved my appointment from 9 to 16 January."},
        {1: ["upcoming: Coming up on Tuesday, 9 January: "], 3: ["change: 16 January"], 20: []},
    ),
    # Another matter of the same person.
    (
        {
            0: "I promised Greg the conference paper with the figures by 20 January.",
            1: "The meeting with Greg is rescheduled to 18 January.",
        },
        {7: ["upcoming: 20 January", "change: “The meeting with Greg is rescheduled to 18 January.” (2 January)."]},
    ),
    # The nearest new day is first, and what is off is not coming up.
    (
        {
            0: ("The rent goes up from 700 to 780.", "My trip to Oslo is on 20 January."),
            1: ("The Oslo trip is off.", "The dentist moved my appointment to 10 January."),
        },
        {2: ["change: 10 January", "change: from 700 to 780"]},
    ),
    # Changed again.
    (
        {0: "My operation is moved from 20 to 27 January.", 1: "My operation is now on 3 February."},
        {7: ["change: Changed: “My operation is now on 3 February.”"]},
    ),
    # Without an old value, for two weeks.
    (
        {0: ("I'm moving to Porto.", "The rent goes up from 700 to 780.")},
        {13: ["change", "change"], 21: ["change: from 700 to 780"]},
    ),
    # Only the latest amount of a unit.
    (
        {0: "The doctor raised it, I take 5 mg now.", 7: "Candesartan replaces it, now 8 mg."},
        {14: ["change: Changed: “Candesartan replaces it, now 8 mg.” (8 January)."]},
    ),
    # Under way.
    ({0: "We're moving the files from Dropbox to Nextcloud."}, {7: ["change"], 21: []}),
    # A setting of a device.
    ({0: "The baud rate was 9600 instead of 115200, works now."}, {1: []}),
    ({0: "De thermostaat stond op 17 in plaats van 20."}, {1: []}),
    ({0: "Mein Chef zahlt 18 statt 16 Euro."}, {1: ["change"]}),
    # Before the rule.
    ({0: "We have sushi every Thursday.", 7: NO_FISH}, {14: []}),
    (
        {0: "We have sushi every Thursday.", 7: NO_FISH, 14: "We have sushi every Friday now."},
        {21: [f"contradiction: “{NO_FISH}” (8 January), but later “We have sushi every Friday now.” (15 January)."]},
    ),
    ({0: ("Hello", "Thanks, that helps!", "What is the capital of Peru?")}, {7: []}),
    # A person without a role and a place do not go quiet.
    (
        {
            **dict.fromkeys((0, 7, 14), "Rosa was in Berlin again."),
            **dict.fromkeys((42, 49, 56, 63), "The server is slow."),
        },
        {70: []},
    ),
]


@for_all("said, shown", CASES)
def test_promises_plans_changes_and_contradictions_are_shown_as_long_as_they_matter(
    ann: Agent, said: dict[int, str | tuple[str, ...]], shown: dict[int, list[str]]
) -> None:
    by_days(ann, said, shown)


KEPT_IN_OTHER_WORDS = [
    ("Ich muss den Mietvertrag bis Freitag unterschreiben.", "Der Vertrag ist unterschrieben."),
    ("Ich muss mich bis Freitag zum Kurs anmelden.", "Angemeldet bin ich."),
    ("Ik moet de offerte voor vrijdag ondertekenen.", "Alles ondertekend."),
    ("Tengo que firmar el préstamo antes del viernes 5 de enero.", "Ya he firmado todo."),
    ("I promised Van Dalen the contract by Friday.", "Signed, on Wednesday."),
    ("Ich muss bis Freitag die Krankenkasse anrufen.", "Die Kasse zahlt die Hälfte."),
    ("Ik moet voor vrijdag de loodgieter opbellen.", "Ik heb hem opgebeld, hij komt."),
]
REPORTED_BEFORE_THE_DAY = [
    ("Ich muss bis Freitag bei der Pflegekasse anrufen.", "Hab am Donnerstag angerufen."),
    ("I have to ask the landlord about the boiler by Friday.", "Landlord refused."),
    ("Tengo que llamar al ayuntamiento antes del viernes 5 de enero.", "El ayuntamiento ha dicho que no."),
    ("Ik moet voor vrijdag de gemeente bellen.", "De gemeente zei nee."),
    ("I need to apply to the grant office by Friday.", "The grant office turned us down."),
    ("Ich muss bis Freitag den Antrag ausfüllen.", "Hab alles ausgefüllt und eingeworfen."),
]
MOVED_IN_OTHER_WORDS = [
    ("We open on 20 January.", "We can't be in there till the 18th, so opening is now Saturday the 27th of January."),
    ("My brother Cem is getting married in Izmir, 20 January.", "Wedding moved btw, it's 27 January now."),
    ("They operate on my knee on 20 January.", "The surgery has been postponed to 27 January."),
    ("I meet the notary on 20 January.", "My appointment is now on 27 January."),
    ("Meine Schwester heiratet am 20. Januar.", "Die Hochzeit ist jetzt am 27. Januar."),
    ("Mi hermana se casa el 20 de enero.", "La boda ahora es el 27 de enero."),
    ("We verhuizen op 20 januari.", "De verhuizing is verplaatst naar 27 januari."),
]
ANOTHER_EVENT = [
    ("I have surgery on my knee on 20 January.", "My sister's operation is now on 27 January."),
    ("I meet the notary on 20 January.", "The dentist appointment is now on 27 January."),
    ("We fly to Oslo on 20 January.", "The surgery is now on 27 January."),
]
WITHDRAWN = [
    ("The meeting with Leo is on 9 January.", "There is no meeting with Leo on 9 January."),
    ("The meeting with Leo is on 9 January.", "I'm not seeing Leo on 9 January."),
    ("We are flying to Rome on 9 January.", "We are not flying to Rome."),
    ("I have to renew my passport by 9 January.", "I won't renew my passport."),
    ("Ich muss bis 9. Januar den Pass verlängern.", "Den Pass muss ich nicht verlängern."),
    ("Tengo que renovar el pasaporte antes del 9 de enero.", "El pasaporte ya no hace falta renovar."),
    ("Ik moet voor 9 januari het paspoort verlengen.", "Ik hoef geen paspoort te verlengen."),
]
CANCELLED = [
    (CLINIC, "The appointment was cancelled by the clinic."),
    ("Our trip to Rome is on 9 January.", "We're not going to Rome after all."),
    ("Das Konzert in der Kirche ist am 9. Januar.", "Das Konzert fällt aus."),
    ("I have a dentist appointment on 9 January.", "The dentist called off the appointment on 9 January."),
    ("I have to renew my passport by 9 January.", "I no longer have to renew my passport."),
]


@for_all("promise, report", KEPT_IN_OTHER_WORDS)
def test_a_promise_that_was_kept_in_other_words_is_not_called_open(ann: Agent, promise: str, report: str) -> None:
    by_days(ann, {0: promise}, {7: ["overdue"]})
    by_days(ann, {0: promise, 2: report}, {7: []})


@for_all("promise, report", REPORTED_BEFORE_THE_DAY)
def test_a_promise_is_kept_by_the_report_of_what_came_of_it(ann: Agent, promise: str, report: str) -> None:
    by_days(ann, {0: promise, 2: report}, {3: [], 7: []})


@for_all("plan, change", MOVED_IN_OTHER_WORDS)
def test_a_plan_that_is_moved_in_other_words_is_shown_with_its_new_day(ann: Agent, plan: str, change: str) -> None:
    by_days(ann, {0: plan, 2: change}, {3: [f"change: before: “{plan}”"]})


@for_all("plan, change", ANOTHER_EVENT)
def test_the_new_day_of_another_event_moves_nothing(ann: Agent, plan: str, change: str) -> None:
    by_days(ann, {0: plan, 2: change}, {3: [f"upcoming: “{plan}”", f"change: Changed: “{change}” (3 January)."]})


@for_all("plan, denial", WITHDRAWN)
def test_a_plan_that_is_negated_later_is_withdrawn(ann: Agent, plan: str, denial: str) -> None:
    by_days(ann, {0: plan}, {0: ["upcoming"]})
    by_days(ann, {0: plan, 1: denial}, {2: [], 20: []})


@for_all("plan, end", CANCELLED)
def test_a_cancelled_appointment_is_not_coming_up(ann: Agent, plan: str, end: str) -> None:
    by_days(ann, {0: (plan, end)}, {1: ["change"], 15: []})


def test_a_report_of_the_assistant_completes_no_promise(ann: Agent) -> None:
    ann.say(DRAFT, at=MONDAY)
    ann.say("You sent Priya the draft.", role=MessageRole.ASSISTANT, session="t", at=MONDAY + timedelta(days=3))
    assert len(insights(ann, MONDAY + WEEK, InsightKind.OVERDUE)) == 1


def test_statements_go_with_their_message(ann: Agent) -> None:
    first, second = ann.say("I'll send Priya the draft by Friday.", "I promised Tom the boat by Sunday.", at=MONDAY)
    assert len(insights(ann, MONDAY)) == 1
    assert len(insights(ann, MONDAY + timedelta(hours=1))) == 2
    ann.edit(first, "Nothing to do.")
    assert [one.sources[0].id for one in insights(ann, MONDAY + timedelta(hours=1))] == [second]
    ann.remove(Chooses.MESSAGE, second)
    assert not insights(ann, MONDAY + timedelta(hours=1))
    assert ann.rows("SELECT count(*) FROM statements WHERE kind = 'promise'") == [(0,)]


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [
        (
            "I have to bake for the school fair on 20 January.",
            "The fair's been put off to the 27th because of the storm.",
            DAY,
        ),
        ("The resit in pharmacology is on 20 January.", "resit moved btw, its 27 january now", DAY),
        ("Die Operation ist am 20. Januar.", "Die Operation ist jetzt erst am 27. Januar.", DAY),
        ("La cita con el dentista es el 20 de enero.", "La cita ahora es el 27 de enero.", DAY),
        ("De afspraak met de aannemer is op 20 januari.", "De afspraak is verschoven naar 27 januari.", DAY),
        ("I live in Antwerp.", "I moved to Bruges.", None),
        ("I live in Lisbon with two cats.", "We live in Porto since Saturday.", None),
        ("I work at Siemens.", "I quit Siemens and joined Barco.", None),
        ("I work at Siemens.", "I started at Barco, I left Siemens.", None),
    ],
)
def test_a_new_day_home_or_job_is_shown_with_the_statement_of_the_old_one(
    ann: Agent, before: str, after: str, due: date | None
) -> None:
    old, new = ann.say(before, at=MONDAY)[0], ann.say(after, session="t", at=MONDAY + WEEK)[0]
    [one] = insights(ann, MONDAY + WEEK + timedelta(hours=1))
    assert one.text == f"Changed: “{after}” (8 January); before: “{before}” (1 January)."
    assert (one.due, [source.id for source in one.sources]) == (due, [old, new])
    assert due is None or not insights(ann, MONDAY + 4 * WEEK)


def test_a_topic_that_the_policy_hides_is_not_quoted(ann: Agent) -> None:
    ann.say(CLINIC, "I'll send Priya the draft by Friday.", at=MONDAY)
    assert len(insights(ann, MONDAY + timedelta(hours=1))) == 2
    Agents(ann.engine).set_policy(ANN, {"hidden_topics": ["health"]})
    [one] = insights(ann, MONDAY + timedelta(hours=1))
    assert "Priya" in one.text


def test_a_role_that_only_a_hidden_message_says_is_not_shown(ann: Agent) -> None:
    ann.say("Kuba is my therapist for depression.", metadata={"sensitive_topics": ["health"]}, at=MONDAY)
    for week in range(3):
        ann.say("I climbed with Kuba again.", session=f"climb{week}", at=MONDAY + week * WEEK)
    for week in range(3, 9):
        ann.say("The server is slow.", session=f"work{week}", at=MONDAY + week * WEEK)
    [one] = insights(ann, MONDAY + 9 * WEEK)
    assert one.text.startswith("Kuba (your therapist for depression) came up")
    Agents(ann.engine).set_policy(ANN, {"hidden_topics": ["health"]})
    assert not insights(ann, MONDAY + 9 * WEEK)


def test_a_person_who_is_said_to_be_new_is_shown_for_two_weeks(ann: Agent) -> None:
    ann.say("Hello", "My new boss Priya is away.", at=MONDAY)
    assert not insights(ann, MONDAY + WEEK, InsightKind.NEW)
    later = MONDAY + 6 * WEEK
    [*_, uid] = ann.say(
        "Ask Omar, he's the boss of the shop.", "Our new editor Henrique is calm.", session="t", at=later
    )
    ann.say("My new boss Priya is back.", session="u", at=later)
    one, explained = insights(ann, MONDAY + 7 * WEEK, InsightKind.NEW)
    assert one.text == "Henrique is new: “Our new editor Henrique is calm.” (12 February)."
    assert explained.text == "First mention of Omar: “Ask Omar, he's the boss of the shop.” (12 February)."
    assert [concept.name for concept in one.concepts] == ["Henrique"]
    assert [source.id for source in one.sources] == [uid]
    assert not insights(ann, MONDAY + 9 * WEEK, InsightKind.NEW)


def test_a_subject_of_several_sessions_goes_quiet(ann: Agent) -> None:
    for week in range(3):
        ann.say("I climbed with my brother Kuba again.", session=f"climb{week}", at=MONDAY + week * WEEK)
    ann.say("The server is slow.", session="t", at=MONDAY + 3 * WEEK)
    ann.say("The server is slower.", session="u", at=MONDAY + 6 * WEEK)
    assert not insights(ann, MONDAY + 6 * WEEK, InsightKind.QUIET)
    ann.say("The server is fast.", session="v", at=MONDAY + 7 * WEEK)
    [one] = insights(ann, MONDAY + 8 * WEEK, InsightKind.QUIET)
    assert one.text == "Kuba (your brother) came up in 3 sessions until 15 January, and not since."
    assert len(one.sources) == 3


def test_people_of_several_sessions_who_are_still_mentioned_matter_most(ann: Agent) -> None:
    met = ("I met my sister Ines.", "And my boss Priya called.", "My friend Anna is here.", "My neighbour Omar too.")
    for week in range(3):
        ann.say(*met, session=f"s{week}", at=MONDAY + week * WEEK)
        assert week == 2 or not insights(ann, MONDAY + (week + 1) * WEEK, InsightKind.IMPORTANT)
    for week in range(3, 5):
        ann.say("Priya, Anna and Omar met.", session=f"s{week}", at=MONDAY + week * WEEK)
    [one] = insights(ann, MONDAY + 5 * WEEK, InsightKind.IMPORTANT)
    assert {"Priya (your boss)", "Anna (your friend)", "Omar (your neighbour)"} == {
        *one.text.partition(": ")[2].rstrip(".").split(", ")
    }


def test_there_are_at_most_seven_by_kind_and_they_are_deterministic(ann: Agent) -> None:
    for place, thing in enumerate(["draft", "boat", "cake", "invoice", "report", "lamp", "roof", "fence", "quilt"]):
        day = MONDAY + timedelta(days=place)
        ann.say(f"I promised Tom the {thing} by {day + timedelta(days=3):%-d %B}.", session=thing, at=day)
    at = MONDAY + timedelta(days=8)
    found = insights(ann, at)
    assert len(found) == MAX_INSIGHTS
    kinds = [one.kind for one in found]
    assert kinds == sorted(kinds, key=list(InsightKind).index)
    assert {InsightKind.OVERDUE, InsightKind.UPCOMING} == {*kinds}
    assert insights(ann, at) == found


def test_an_unknown_agent_has_no_insights(ann: Agent) -> None:
    with pytest.raises(AgentNotFound):
        ann.graph.insights.of_agent(Scope("nobody"))


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)])
def test_the_ends_of_time_have_insights_too(ann: Agent, at: datetime) -> None:
    ann.say("Anna likes tea.", at=datetime(1, 1, 1, tzinfo=UTC))
    assert insights(ann, at) == []
    ann.say("Anna likes tea.", session="t", at=datetime(9999, 12, 31, tzinfo=UTC))
    assert [one.kind for one in insights(ann, at)] in ([], [InsightKind.QUIET])
