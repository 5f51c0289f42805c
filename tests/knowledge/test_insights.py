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
from tests.knowledge.agent import ANN, Agent

MONDAY = datetime(2024, 1, 1, 9, 5, tzinfo=UTC)
WEEK = timedelta(days=7)
DAY = date(2024, 1, 27)


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


@pytest.mark.parametrize(
    "done",
    [
        "Sent Priya the draft at midnight.",
        "The draft is finished.",
        "Priya says that she has it.",
        "Tom takes over the draft.",
        "I don't have to write the draft any more.",
    ],
)
def test_a_promise_that_a_later_message_reports_as_done_or_dropped_is_not_mentioned(ann: Agent, done: str) -> None:
    ann.say("I'll send Priya the draft by Friday.", at=MONDAY)
    ann.say("Priya wants a draft?", done, session="t", at=MONDAY + timedelta(days=2))
    assert not insights(ann, MONDAY + timedelta(days=3), InsightKind.UPCOMING)
    assert not insights(ann, MONDAY + WEEK, InsightKind.OVERDUE)


def test_another_report_and_one_of_the_assistant_complete_no_promise(ann: Agent) -> None:
    ann.say("I'll send Priya the draft by Friday.", at=MONDAY)
    ann.say("The boat is painted and done.", session="t", at=MONDAY + timedelta(days=2))
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
    with ann.engine.namespace(ANN) as (connection, _):
        assert connection.execute("SELECT count(*) FROM statements WHERE kind = 'promise'").get == 0


def test_a_promise_past_its_day_that_was_talked_about_again_is_not_called_open(ann: Agent) -> None:
    ann.say("I promised Rosa the new timetable by Friday.", "I promised Tom the boat by Friday.", at=MONDAY)
    ann.say("Rosa is happy.", session="t", at=MONDAY + WEEK)
    [one] = insights(ann, MONDAY + WEEK + timedelta(hours=1), InsightKind.OVERDUE)
    assert "boat" in one.text


def test_a_promise_to_a_person_who_is_often_mentioned_is_still_called_open(ann: Agent) -> None:
    ann.say("I promised Tom the boat by Friday.", at=MONDAY)
    ann.say("Tom sings.", "Tom sleeps.", "Tom dances.", "Tom has a cold.", session="t", at=MONDAY + WEEK)
    assert len(insights(ann, MONDAY + WEEK + timedelta(hours=1), InsightKind.OVERDUE)) == 1
    ann.say("Tom has a boat.", session="u", at=MONDAY + WEEK)
    assert not insights(ann, MONDAY + WEEK + timedelta(hours=1), InsightKind.OVERDUE)


@pytest.mark.parametrize(
    ("promise", "report"),
    [
        ("Ich muss den Mietvertrag bis Freitag unterschreiben.", "Der Vertrag ist unterschrieben."),
        ("Ich muss bis Freitag die Steuererklärung machen.", "Steuer ist weg."),
        ("Ich muss mich bis Freitag zum Kurs anmelden.", "Angemeldet bin ich."),
        ("Ik moet de offerte voor vrijdag ondertekenen.", "Alles ondertekend."),
        ("Tengo que firmar el préstamo antes del viernes 5 de enero.", "Ya he firmado todo."),
        ("I promised Van Dalen the contract by Friday.", "Signed, on Wednesday."),
        ("I have to send the package by Friday.", "Posted the parcel."),
        ("Ich muss bis Freitag das Paket abholen.", "Das Päckchen ist da."),
    ],
)
def test_a_promise_that_was_kept_in_other_words_is_not_called_open(ann: Agent, promise: str, report: str) -> None:
    ann.say(promise, at=MONDAY)
    assert len(insights(ann, MONDAY + WEEK, InsightKind.OVERDUE)) == 1
    ann.say(report, session="t", at=MONDAY + timedelta(days=2))
    assert not insights(ann, MONDAY + WEEK)


def test_a_plan_that_is_far_ahead_is_shown_while_it_is_fresh(ann: Agent) -> None:
    ann.say("My appointment at the clinic is on 10 February.", at=MONDAY)
    assert len(insights(ann, MONDAY + timedelta(days=1), InsightKind.UPCOMING)) == 1
    assert not insights(ann, MONDAY + timedelta(days=15))
    assert len(insights(ann, MONDAY + timedelta(days=20), InsightKind.UPCOMING)) == 1


def test_a_new_day_is_shown_as_long_as_it_is_ahead(ann: Agent) -> None:
    ann.say("The wedding is now on 5 April.", at=MONDAY)
    assert len(insights(ann, MONDAY + timedelta(days=70), InsightKind.CHANGE)) == 1
    assert not insights(ann, MONDAY + timedelta(days=100))


def test_an_errand_of_the_next_day_is_not_called_open(ann: Agent) -> None:
    ann.say("I'll call the plumber tomorrow.", at=MONDAY)
    assert len(insights(ann, MONDAY + timedelta(hours=1), InsightKind.UPCOMING)) == 1
    assert not insights(ann, MONDAY + WEEK)


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


def test_a_change_that_was_changed_again_is_not_shown(ann: Agent) -> None:
    ann.say("My operation is moved from 20 to 27 January.", at=MONDAY)
    ann.say("My operation is now on 3 February.", session="t", at=MONDAY + timedelta(days=1))
    [one] = insights(ann, MONDAY + WEEK)
    assert one.text.startswith("Changed: “My operation is now on 3 February.”")


def test_another_matter_of_the_same_person_moves_no_promise(ann: Agent) -> None:
    ann.say("I promised Greg the conference paper with the figures by 20 January.", at=MONDAY)
    ann.say("The meeting with Greg is rescheduled to 18 January.", session="t", at=MONDAY + timedelta(days=1))
    changed, due = (insights(ann, MONDAY + WEEK, kind) for kind in (InsightKind.CHANGE, InsightKind.UPCOMING))
    assert [one.text for one in changed] == [
        "Changed: “The meeting with Greg is rescheduled to 18 January.” (2 January)."
    ]
    assert [one.due for one in due] == [date(2024, 1, 20)]


def test_an_appointment_is_replaced_by_its_new_day(ann: Agent) -> None:
    ann.say("My appointment at the clinic is on 9 January.", at=MONDAY)
    [one] = insights(ann, MONDAY + timedelta(days=1))
    assert one.text.startswith("Coming up on Tuesday, 9 January: ")
    ann.say("The clinic moved my appointment from 9 to 16 January.", session="t", at=MONDAY + timedelta(days=2))
    [changed] = insights(ann, MONDAY + timedelta(days=3))
    assert (changed.kind, changed.due) == (InsightKind.CHANGE, date(2024, 1, 16))
    assert not insights(ann, MONDAY + timedelta(days=20))


def test_a_topic_that_the_policy_hides_is_not_quoted(ann: Agent) -> None:
    ann.say("My appointment at the clinic is on 9 January.", "I'll send Priya the draft by Friday.", at=MONDAY)
    assert len(insights(ann, MONDAY + timedelta(hours=1))) == 2
    Agents(ann.engine).set_policy(ANN, {"hidden_topics": ["health"]})
    [one] = insights(ann, MONDAY + timedelta(hours=1))
    assert "Priya" in one.text


@pytest.mark.parametrize(
    ("plan", "denial"),
    [
        ("The meeting with Leo is on 9 January.", "There is no meeting with Leo on 9 January."),
        ("The meeting with Leo is on 9 January.", "I'm not seeing Leo on 9 January."),
        ("We are flying to Rome on 9 January.", "We are not flying to Rome."),
        ("I have to renew my passport by 9 January.", "I won't renew my passport."),
        ("Ich muss bis 9. Januar den Pass verlängern.", "Den Pass muss ich nicht verlängern."),
        ("Tengo que renovar el pasaporte antes del 9 de enero.", "El pasaporte ya no hace falta renovar."),
        ("Ik moet voor 9 januari het paspoort verlengen.", "Ik hoef geen paspoort te verlengen."),
    ],
)
def test_a_plan_that_is_negated_later_is_withdrawn(ann: Agent, plan: str, denial: str) -> None:
    ann.say(plan, at=MONDAY)
    assert len(insights(ann, MONDAY + timedelta(hours=1))) == 1
    ann.say(denial, session="t", at=MONDAY + timedelta(days=1))
    for days in (2, 20):
        at = MONDAY + timedelta(days=days)
        assert not [one for one in insights(ann, at) if one.kind is not InsightKind.CHANGE]


def test_what_is_not_done_yet_is_still_called_open(ann: Agent) -> None:
    ann.say("I'll send Priya the draft by Friday.", at=MONDAY)
    ann.say("I haven't sent Priya the draft yet.", session="t", at=MONDAY + timedelta(days=5))
    ann.say("Priya is still waiting for the draft, I have not sent it.", session="u", at=MONDAY + timedelta(days=6))
    assert len(insights(ann, MONDAY + WEEK, InsightKind.OVERDUE)) == 1


@pytest.mark.parametrize(
    ("plan", "end"),
    [
        ("My appointment at the clinic is on 9 January.", "The appointment was cancelled by the clinic."),
        ("Our trip to Rome is on 9 January.", "We're not going to Rome after all."),
        ("Das Konzert in der Kirche ist am 9. Januar.", "Das Konzert fällt aus."),
        ("I have a dentist appointment on 9 January.", "The dentist called off the appointment on 9 January."),
        ("I have to renew my passport by 9 January.", "I no longer have to renew my passport."),
    ],
)
def test_a_cancelled_appointment_is_not_coming_up(ann: Agent, plan: str, end: str) -> None:
    ann.say(plan, end, at=MONDAY)
    assert [one.kind for one in insights(ann, MONDAY + timedelta(days=1))] == [InsightKind.CHANGE]
    assert not insights(ann, MONDAY + timedelta(days=15))


def test_the_nearest_new_day_is_the_first_change_and_what_is_off_is_not_coming_up(ann: Agent) -> None:
    ann.say("The rent goes up from 700 to 780.", "My trip to Oslo is on 20 January.", at=MONDAY)
    ann.say(
        "The Oslo trip is off.", "The dentist moved my appointment to 10 January.", session="t", at=MONDAY + WEEK / 7
    )
    assert [one.due for one in insights(ann, MONDAY + WEEK / 3, InsightKind.CHANGE)] == [date(2024, 1, 10), None]
    assert not insights(ann, MONDAY + WEEK / 3, InsightKind.UPCOMING)


def test_a_change_without_an_old_value_is_shown_for_two_weeks(ann: Agent) -> None:
    ann.say("I'm moving to Porto.", at=MONDAY)
    ann.say("The rent goes up from 700 to 780.", session="t", at=MONDAY)
    assert len(insights(ann, MONDAY + 2 * WEEK, InsightKind.CHANGE)) == 2
    [one] = insights(ann, MONDAY + 3 * WEEK, InsightKind.CHANGE)
    assert "from 700 to 780" in one.text


def test_a_promise_about_a_pronoun_is_never_overdue(ann: Agent) -> None:
    ann.say("Nobody told me about the bloods. I shall ring them before Friday.", at=MONDAY)
    assert insights(ann, MONDAY + timedelta(hours=1), InsightKind.UPCOMING)
    assert not insights(ann, MONDAY + WEEK)


def test_a_book_and_a_booking_are_not_the_same(ann: Agent) -> None:
    ann.say("I must book the tickets by Friday.", at=MONDAY)
    ann.say("I finished two books.", session="t", at=MONDAY + timedelta(days=2))
    assert len(insights(ann, MONDAY + WEEK, InsightKind.OVERDUE)) == 1


def test_a_compound_completes_the_promise_of_its_head(ann: Agent) -> None:
    ann.say("Ich muss die Zone bis Ende Januar bestellen.", at=MONDAY)
    ann.say("Die Halteverbotszone ist bestellt.", session="t", at=MONDAY + WEEK)
    assert not insights(ann, MONDAY + WEEK + timedelta(hours=1))


def test_only_the_latest_amount_of_a_unit_is_shown(ann: Agent) -> None:
    ann.say("The doctor raised it, I take 5 mg now.", at=MONDAY)
    ann.say("Candesartan replaces it, now 8 mg.", session="t", at=MONDAY + WEEK)
    [one] = insights(ann, MONDAY + 2 * WEEK, InsightKind.CHANGE)
    assert one.text == "Changed: “Candesartan replaces it, now 8 mg.” (8 January)."


def test_a_new_home_is_shown_with_the_old_one(ann: Agent) -> None:
    old = ann.say("I live in Lisbon with two cats.", at=MONDAY)
    new = ann.say("We live in Porto since Saturday.", session="t", at=MONDAY + 4 * WEEK)
    [one] = insights(ann, MONDAY + 5 * WEEK, InsightKind.CHANGE)
    assert one.text == (
        "Changed: “We live in Porto since Saturday.” (29 January); "
        "before: “I live in Lisbon with two cats.” (1 January)."
    )
    assert [source.id for source in one.sources] == [*old, *new]


def test_the_same_home_said_again_is_no_change(ann: Agent) -> None:
    ann.say("I live in Lisbon with two cats.", at=MONDAY)
    ann.say("As you know, I live in Lisbon.", session="t", at=MONDAY + WEEK)
    assert not insights(ann, MONDAY + 2 * WEEK, InsightKind.CHANGE)


def test_a_habit_contradicts_an_earlier_rule_only(ann: Agent) -> None:
    ann.say("We have sushi every Thursday.", at=MONDAY)
    ann.say("I never eat fish.", session="t", at=MONDAY + WEEK)
    assert not insights(ann, MONDAY + 2 * WEEK, InsightKind.CONTRADICTION)
    ann.say("We have sushi every Friday now.", session="u", at=MONDAY + 2 * WEEK)
    [one] = insights(ann, MONDAY + 3 * WEEK, InsightKind.CONTRADICTION)
    assert one.text == (
        "You said “I never eat fish.” (8 January), but later “We have sushi every Friday now.” (15 January)."
    )


def test_a_person_who_is_said_to_be_new_is_shown_for_two_weeks(ann: Agent) -> None:
    ann.say("Hello", "My new boss Priya is away.", at=MONDAY)
    assert not insights(ann, MONDAY + WEEK, InsightKind.NEW)
    later = MONDAY + 6 * WEEK
    [*_, uid] = ann.say("My boss Omar is calm.", "Our new editor Henrique is calm.", session="t", at=later)
    ann.say("My new boss Priya is back.", session="u", at=later)
    one, explained = insights(ann, MONDAY + 7 * WEEK, InsightKind.NEW)
    assert one.text == "Henrique is new: “Our new editor Henrique is calm.” (12 February)."
    assert explained.text == "First mention of Omar: “My boss Omar is calm.” (12 February)."
    assert [concept.name for concept in one.concepts] == ["Henrique"]
    assert [source.id for source in one.sources] == [uid]
    assert not insights(ann, MONDAY + 9 * WEEK, InsightKind.NEW)


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        (
            ["My physio is called Greta. Nice woman. I've got to send her my exercise log by Friday."],
            "I've got to send her [Greta] my exercise log by Friday.",
        ),
        (["Dr Osei was kind.", "I must ring her about the forms by Friday."], "I must ring her [Dr Osei] about"),
        (["My sister Ellen is ill. I told her I'd cook on Friday."], "My sister Ellen is ill. I told her I'd cook"),
        (
            ["I told Ray I'd fix his bike by Friday, he needs it."],
            "I told Ray I'd fix his bike by Friday, he needs it.",
        ),
    ],
)
def test_a_pronoun_has_the_name_of_the_only_person_who_can_be_meant(ann: Agent, said: list[str], quoted: str) -> None:
    ann.say(*said, at=MONDAY)
    [one] = insights(ann, MONDAY + timedelta(hours=1), InsightKind.UPCOMING)
    assert quoted in one.text


@pytest.mark.parametrize(
    "said",
    [
        ["I must ring her by Friday."],
        ["Anna and Beatriz rang.", "I told her I'd answer by Friday."],
        ["That works.", "I'll do that by Friday."],
        ["Thanks.", "I'll send it to them by Friday."],
    ],
)
def test_a_promise_that_nobody_understands_alone_is_not_shown(ann: Agent, said: list[str]) -> None:
    ann.say(*said, at=MONDAY)
    assert not insights(ann, MONDAY + timedelta(hours=1))


def test_a_sentence_is_quoted_by_one_insight(ann: Agent) -> None:
    ann.say("Hello", at=MONDAY)
    ann.say("I promised my boss Henrique the list by Friday.", session="t", at=MONDAY + 6 * WEEK)
    assert [one.kind for one in insights(ann, MONDAY + 6 * WEEK + timedelta(hours=1))] == [InsightKind.UPCOMING]


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


def test_a_person_without_a_role_and_a_place_do_not_go_quiet(ann: Agent) -> None:
    for week in range(3):
        ann.say("Rosa was in Berlin again.", session=f"s{week}", at=MONDAY + week * WEEK)
    for week in range(6, 10):
        ann.say("The server is slow.", session=f"t{week}", at=MONDAY + week * WEEK)
    assert not insights(ann, MONDAY + 10 * WEEK)


def test_people_of_several_sessions_who_are_still_mentioned_matter_most(ann: Agent) -> None:
    met = ("I met my sister Ines.", "And my boss Priya called.", "My friend Anna is here.", "My neighbour Omar too.")
    for week in range(3):
        ann.say(*met, session=f"s{week}", at=MONDAY + week * WEEK)
        assert week == 2 or not insights(ann, MONDAY + (week + 1) * WEEK, InsightKind.IMPORTANT)
    for week in range(3, 5):
        ann.say("Priya, Anna and Omar met.", session=f"s{week}", at=MONDAY + week * WEEK)
    [one] = insights(ann, MONDAY + 5 * WEEK, InsightKind.IMPORTANT)
    assert one.kind is InsightKind.IMPORTANT
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


def test_small_talk_has_no_insights(ann: Agent) -> None:
    ann.say("Hello", "Thanks, that helps!", "What is the capital of Peru?", at=MONDAY)
    assert not insights(ann, MONDAY + WEEK)
    with pytest.raises(AgentNotFound):
        ann.graph.insights.of_agent(Scope("nobody"))


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)])
def test_the_ends_of_time_have_insights_too(ann: Agent, at: datetime) -> None:
    ann.say("Anna likes tea.", at=datetime(1, 1, 1, tzinfo=UTC))
    assert insights(ann, at) == []
    ann.say("Anna likes tea.", session="t", at=datetime(9999, 12, 31, tzinfo=UTC))
    assert [one.kind for one in insights(ann, at)] in ([], [InsightKind.QUIET])


def test_a_change_that_is_under_way_is_no_news_some_weeks_later(ann: Agent) -> None:
    ann.say("We're moving the files from Dropbox to Nextcloud.", at=MONDAY)
    assert len(insights(ann, MONDAY + WEEK, InsightKind.CHANGE)) == 1
    assert not insights(ann, MONDAY + 3 * WEEK)
