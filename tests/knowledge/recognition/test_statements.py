"""Statements of people: promises, appointments, changes, facts, denials and habits."""

from __future__ import annotations

from datetime import UTC, date, datetime

from souvenir.core.types import MessageRole
from souvenir.core.types.statements import BARE_REPORT, Statement, StatementKind
from souvenir.knowledge.recognition.due_dates import named_days
from souvenir.knowledge.recognition.sentence_terms import content_terms
from souvenir.knowledge.recognition.statements import definitions_and_statements, statements_in
from tests.cases import for_all

SUNDAY = date(2026, 3, 8)


def found(text: str, kind: StatementKind, *people: str) -> list[Statement]:
    return [one for one in statements_in(text, SUNDAY, people) if one.kind is kind]


@for_all(
    "text, days",
    [
        ("by Friday 20 March", ["2026-03-20"]),
        ("on March 20th, 2027", ["2027-03-20"]),
        ("am 14. April", ["2026-04-14"]),
        ("el 14 de abril", ["2026-04-14"]),
        ("2026-05-01", ["2026-05-01"]),
        ("by sunday (15th)", ["2026-03-15"]),
        ("by the 3rd", ["2026-04-03"]),
        ("tomorrow, or on Friday", ["2026-03-09", "2026-03-13"]),
        ("by Sunday", ["2026-03-15"]),
        ("from 20 to 27 march", ["2026-03-20", "2026-03-27"]),
        ("at the end of May", ["2026-05-31"]),
        ("signed on feb 19", ["2026-02-19"]),
        ("the wedding is on 7 November", ["2026-11-07"]),
        ("bis Ende Mai", ["2026-05-31"]),
        ("voor vrijdag 8 mei", ["2026-05-08"]),
        ("mañana por la mañana", ["2026-03-09"]),
        ("Guten Morgen, es ist heute Morgen kalt", ["2026-03-08"]),
        ("no longer the second of March, it is to be the twenty-third", ["2026-03-02", "2026-03-23"]),
        ("on Wednesday the seventeenth of June", ["2026-06-17"]),
        ("on Thursday June 4, or Friday, June the 5th", ["2026-06-04", "2026-06-05"]),
        ("Friday may do", ["2026-03-13"]),
        ("Sunday the twenty-ninth, after the eleventh hour", ["2026-03-29"]),
        ("am dritten April, nicht am zwölften", ["2026-04-03", "2026-03-12"]),
        ("bis zum 27. unterschreiben, am 3. Tag", ["2026-03-27"]),
        ("26 mei in plaats van de elfde, niet de 12e, de 2e keer", ["2026-05-26", "2026-03-11", "2026-03-12"]),
        ("no vino el 9, viene el 18 y sube el 20%", ["2026-03-09", "2026-03-18"]),
        ("vom 23. bis 29. August", ["2026-08-23", "2026-08-29"]),
        ("del 3 al 5 de mayo, 8 t/m 10 juni", ["2026-05-03", "2026-05-05", "2026-06-08", "2026-06-10"]),
        ("on 7 auguſt, by frİday", ["2026-08-07", "2026-03-13"]),
        ("the first may follow", []),
        ("last Monday and on Tuesdays", []),
        ("from 8 to 2, on 31 June", []),
    ],
)
def test_days_are_resolved_against_the_day_on_which_they_were_said(text: str, days: list[str]) -> None:
    assert [one.day.isoformat() for one in named_days(text, SUNDAY)] == days


@for_all(
    "text, due",
    [
        ("I'll send Priya the draft by Friday.", date(2026, 3, 13)),
        ("I promised my editor the first draft by Friday 20 March.", date(2026, 3, 20)),
        ("I told our head, Mr Okafor, that he will have the report by 13 April.", date(2026, 4, 13)),
        ("promised Piotr the runbook by march 20", date(2026, 3, 20)),
        ("I have to give Henrique the list by 8 May.", date(2026, 5, 8)),
        ("The deposit is due by 22 March.", date(2026, 3, 22)),
        ("Remind me to call the vet tomorrow.", date(2026, 3, 9)),
        ("Ich muss den Bericht bis Freitag abgeben.", date(2026, 3, 13)),
        ("Tengo que enviar el informe el 14 de abril.", date(2026, 4, 14)),
        ("Ich muss am 3. April den Bericht abgeben.", date(2026, 4, 3)),
        ("Ik moet voor 20 maart de verzekering regelen.", date(2026, 3, 20)),
        ("told her she gets twenty pictures by thursday", date(2026, 3, 12)),
        ("I'll send Priya the draft by Friday, can you help me with it?", date(2026, 3, 13)),
        ("I told her I should ring Sophie on Friday.", date(2026, 3, 13)),
        ("I am down for twelve jars on 4 April.", date(2026, 4, 4)),
        ("Tom wants his lamp back, have to drop it off on Friday", date(2026, 3, 13)),
        ("I'll talk to the landlord by Friday.", date(2026, 3, 13)),
        ("Lena wants a preview by Friday, told her she gets 20 by Thursday", date(2026, 3, 12)),
        ("told her it's in her inbox by Friday", date(2026, 3, 13)),
        ("I told Rosa I'd give her an answer on Friday if I want to go.", date(2026, 3, 13)),
        ("need to hand in the papers by 20 march or i dont get the money", date(2026, 3, 20)),
        ("good idea, will send him the list on Friday", date(2026, 3, 13)),
        ("The draft goes to Okonjo by 27 March, I told her that in the meeting.", date(2026, 3, 27)),
        ("Bis Freitag kriegt er die Bohrmaschine wieder.", date(2026, 3, 13)),
        ("He wants the programme from me by 30 March.", date(2026, 3, 30)),
        ("I'm applying for the grant, sending it by Sunday 15 March.", date(2026, 3, 15)),
        ("Told Ines (chair) I'd print the tickets by 15 March.", date(2026, 3, 15)),
        ("On 26 March I'll cook for nine.", date(2026, 3, 26)),
        ("I'll pay the printer by the end of the month.", date(2026, 3, 31)),
        ("I promised Ada the slides by 20th.", date(2026, 3, 20)),
        ("Ich muss das Formular bis Ende des Monats schicken.", date(2026, 3, 31)),
        ("Tengo que mandar el formulario antes de fin de mes.", date(2026, 3, 31)),
        ("Ik moet het formulier voor het eind van maart sturen.", date(2026, 3, 31)),
        ("The tailor wants my measures before the end of the month.", date(2026, 3, 31)),
        ("Ada will wait till 20th for my answer, I promised her.", date(2026, 3, 20)),
    ],
)
def test_a_promise_has_its_day(text: str, due: date) -> None:
    assert [one.due for one in found(text, StatementKind.PROMISE)] == [due]


IN_CONTEXT = [
    # With the sentence before it: a pronoun, no subject, nothing that must be done, or a day alone.
    (StatementKind.PROMISE, "I still owe Mum the registration. I said I'd do it by 20 March."),
    (StatementKind.PROMISE, "The loan is approved. I have to sign by 30 April."),
    (StatementKind.PROMISE, "The old kitchen comes out. Must be empty by 30 April, I told Ed."),
    (StatementKind.APPOINTMENT, "Chema se va. Empieza en Huesca el 1 de abril."),
    (StatementKind.APPOINTMENT, "The fitting is moving. To 9 May, because of the surgery."),
    (StatementKind.CHANGE, "The platform team gave us new runners. 38 down to 11 min."),
    # With the sentence after it, which refers to it.
    (StatementKind.APPOINTMENT, "The Smiths agree to 30 April. I promised them two chapters."),
    (StatementKind.CHANGE, "I've dropped Kahoot. The school now pays for Blooket."),
]


@for_all("kind, text", IN_CONTEXT)
def test_a_statement_that_another_sentence_explains_is_shown_with_it(kind: StatementKind, text: str) -> None:
    [one] = found(f"{text} Jenkins stays.", kind)
    assert one.sentence == text


def test_a_promise_with_a_pronoun_has_the_terms_of_the_sentence_before_it() -> None:
    [one] = found("I still owe Mum the registration. I said I'd do it by 20 March.", StatementKind.PROMISE)
    assert "registr" in one.terms.split()


NOT_STATED = {
    # Questions, conditions and sentences without a coming day.
    (StatementKind.PROMISE, StatementKind.APPOINTMENT): [
        "Should I send the draft by Friday?",
        "If I send the draft by Friday, she reads it.",
        "Maybe I'll send it by Friday.",
        "I'll send Priya the draft.",
        "I sent Priya the draft on 3 March.",
        "We have sushi every Thursday.",
        "```\nI'll send it by Friday.\n```",
        "The talk went off well on Wednesday.",
        "Well done on Friday, everyone.",
        "My cousin said he'll pay by Friday.",
        "I won't be able to send the draft by Friday.",
        "I don't have to pay the rent until 1 April.",
        "She told us “I will send the draft by Friday 13 March”.",
        "I had to decline Laura's invitation for 13 March.",
        "I missed my 13 March session due to a meeting.",
        "My style is better after Leslie's 13 March workshop.",
        "Ich muss den Bericht nicht bis Freitag abgeben.",
        "Wir fahren vielleicht am 20. März nach Rom.",
        # A day of another clause.
        "After the 25th, now only sleep and work.",
        "The cabinets come tomorrow and Dale did the floor, I owe him a cake.",
        "The rent isn't due on 24 March.",
        "The invoice is no longer due on 24 March.",
    ],
    # Nothing but pronouns, an indirect question, and no day by which it is done.
    (StatementKind.PROMISE,): [
        "I'll send it to him on 13 March.",
        "The supper is on 26 March, God knows how I'll cook for nine.",
        "I'm sitting by the sea.",
    ],
    # Accidents, wishes and the distant past.
    (StatementKind.CHANGE,): [
        "I dropped my phone in the sink.",
        "Don't quit, failures bring you closer.",
        "We squeezed them in, nobody was hurt. Nobody died.",
        "Anna is leaving for Rome.",
        "The new season came out.",
        "She's at 15 mg now, liquid.",
        "3.75 now, nobody blinked.",
        "My sister says I should swim instead.",
        "We slept from 8 to 2.",
        "We went to 3 museums.",
        "Ik eet al twaalf jaar geen vlees meer.",
        "I quit my job four years ago.",
        "Ja, hij komt nu 11 april.",
        "There are up to 10 of us.",
        "Ben joined Anna for lunch.",
        "Rate it from 1 up to 10.",
        "I can't do 9 June or 16 June.",
        "The letter from 9 June says 16 June.",
        "The concert is not on 9 June.",
        "I'm thinking of moving to Porto instead of Lisbon.",
        "I've known them since I moved here.",
        "Hallam suggests Abena Osei from Bangor instead.",
        "If he takes the job, we are moving to Cork.",
        "Quite a week, and something awesome happened.",
        "Rauchen darf ich auch nicht mehr, sagt der Arzt.",
        "Ich weiß nicht mehr, wo das ist.",
        "Das Konzert findet am 19. März statt.",
        "He wrote “I quit my job”.",
        "Lena asked whether we can start at 11 instead of 1.",
    ],
    # A negation of something else.
    (StatementKind.DENIAL,): [
        "The coffee is bad, and there is a program which I don't understand at all.",
        "I never said that.",
    ],
    # No home and no work of the user.
    (StatementKind.FACT,): [
        "I live in fear of Mondays.",
        "I'm a bit lost at Ikea.",
        "My boss works at Acme.",
        "I row with our little club here in Bergen.",
    ],
}


@for_all("kinds, text", [(kinds, text) for kinds, texts in NOT_STATED.items() for text in texts])
def test_other_sentences_state_nothing_of_these_kinds(kinds: tuple[StatementKind, ...], text: str) -> None:
    assert not [one for kind in kinds for one in found(text, kind)]


@for_all(
    "text",
    [
        "I have to give a talk on Friday.",
        "I said I'd drive her on Friday.",
        "I'll be in Porto on Friday.",
        "I have to go to the vet on Friday.",
        "Ich werde am 13. März in Wien sein.",
        "My appointment at the dentist is on 13 March.",
    ],
)
def test_a_commitment_to_take_part_is_an_appointment(text: str) -> None:
    assert [one.due for one in found(text, StatementKind.APPOINTMENT)] == [date(2026, 3, 13)]
    assert not found(text, StatementKind.PROMISE)


@for_all(
    "text, due, replaced",
    [
        ("My operation is put off from 12 May to 2 June.", date(2026, 6, 2), date(2026, 5, 12)),
        ("My first appointment is now 19 March, not the 12th.", date(2026, 3, 19), date(2026, 3, 12)),
        (
            "They could not have us on 12 March, so the trip has moved to 26 March.",
            date(2026, 3, 26),
            date(2026, 3, 12),
        ),
        (
            "The wedding is now 7 November, since the church is taken on 17 October.",
            date(2026, 11, 7),
            date(2026, 10, 17),
        ),
        ("june 9 doesn't work for them, now 16 june", date(2026, 6, 16), date(2026, 6, 9)),
        ("Wir öffnen jetzt am 1. September statt am 1. Juli.", date(2026, 9, 1), date(2026, 7, 1)),
        ("La cita se ha cambiado del 12 al 19 de mayo.", date(2026, 5, 19), date(2026, 5, 12)),
        ("De afspraak is verplaatst van 12 mei naar 19 mei.", date(2026, 5, 19), date(2026, 5, 12)),
        ("My leave is now 31 August to 11 September.", date(2026, 8, 31), None),
        ("The second of May was no good, it is to be the twenty-third.", date(2026, 5, 23), date(2026, 5, 2)),
        ("Dr Ames can't do 9 June, so it's 16 June.", date(2026, 6, 16), date(2026, 6, 9)),
        ("Der 9. Juni passt ihnen nicht, wir machen den 16. Juni.", date(2026, 6, 16), date(2026, 6, 9)),
        ("De plaatsing wordt 26 mei in plaats van de elfde.", date(2026, 5, 26), date(2026, 5, 11)),
        ("My call is rescheduled from 3 PM to 5 PM on 20 March.", date(2026, 3, 20), None),
        ("The number of guests is down to 320.", None, None),
        ("The rent goes up from 700 to 780.", None, None),
        ("Die Miete steigt von 700 auf 780 Euro.", None, None),
        ("De huur gaat van 700 naar 780 euro.", None, None),
        ("El alquiler sube a 780.", None, None),
        ("We swapped to Fridays at 5.", None, None),
        ("The job took 38 down to 11 min.", None, None),
        ("So the rent is 690 from July.", None, None),
        ("My last night at the bar was Sunday.", None, None),
        ("The release slipped, 19 May now.", date(2026, 5, 19), None),
        ("The choir is on Wednesdays now.", None, None),
        ("I started as a midwife.", None, None),
        ("There are 9 of us, down from 12.", None, None),
        ("Iker takes over from Chema.", None, None),
        ("The flat fell through.", None, None),
        ("We're not going to Rome after all.", None, None),
        ("Yes! and quit the bakery", None, None),
        ("Die Bank gibt mir nur 40.000 statt 60.000 Euro.", None, None),
        ("Ya no abrimos los jueves por la tarde.", None, None),
        ("Ik drink geen koffie meer.", None, None),
        ("I switched from Word to Scrivener, and I'm wondering if it helps.", None, None),
        ("The meeting with Tom was cancelled.", None, None),
        ("They've swapped her day, it's Thursdays now.", None, None),
        ("Deniz does three days a week from now on.", None, None),
        ("we do 8 songs now not 9", None, None),
        ("A flat white is 3.75 now.", None, None),
        ("Mum is at 15 mg now, liquid.", None, None),
        ("Ich nehme jetzt 5 mg.", None, None),
        ("New card reader came!", None, None),
        ("Our bass player Karin quit.", None, None),
        ("Wen is leaving for a job in Brisbane.", None, None),
        ("My boss left the company last week.", None, None),
        ("Mein Chef hat gekündigt.", None, None),
        ("Our cat Mitzi died.", None, None),
    ],
)
def test_a_change_has_the_new_and_the_replaced_day(text: str, due: date | None, replaced: date | None) -> None:
    assert [(one.due, one.replaced) for one in found(text, StatementKind.CHANGE)] == [(due, replaced)]


@for_all(
    "text, attribute, value",
    [
        ("I live in Lisbon with two cats.", "home", "Lisbon"),
        ("I work at Vestland Elektro.", "work", "Vestland Elektro"),
        ("I'm a mortgage adviser at Harbour Bank.", "work", "Harbour Bank"),
    ],
)
def test_facts_have_an_attribute_and_a_value(text: str, attribute: str, value: str) -> None:
    assert [(one.attribute, one.value) for one in found(text, StatementKind.FACT)] == [(attribute, value)]


@for_all(
    "denial, habit",
    [
        ("I never eat fish, it smells.", "We have sushi every Thursday."),
        ("I quit coffee on 1 January.", "I'm on my third espresso, three a day."),
        ("I don't drive after dark any more.", "I drove home at half past ten at night."),
        ("I never mark at weekends.", "I do my marking on Sundays now."),
        ("I've been vegetarian since new year.", "I had a pork bun every day this week."),
        ("No screens for him until he is two.", "We watch cartoons every evening."),
        ("I don't fly.", "I fly to Gdansk every other week now."),
        ("I never smoked, not one in my life.", "We shared a cigarette, then another."),
        ("I'm off alcohol for good.", "We had two bottles of wine."),
        ("We don't do screens at dinner.", "We watch cartoons at dinner every night."),
        ("No como carne.", "Anoche comí carne con mi hermano."),
        ("Ich bin Vegetarier und esse grundsätzlich kein Fleisch.", "Ich habe ein Rumpsteak gegessen."),
    ],
)
def test_a_habit_has_the_terms_of_the_denial_that_it_contradicts(denial: str, habit: str) -> None:
    [denied] = found(denial, StatementKind.DENIAL)
    [affirmed] = found(habit, StatementKind.HABIT)
    assert {*denied.terms.split()} <= {*affirmed.terms.split()}


@for_all(
    "text, ruled_out",
    [
        ("Gestern habe ich ein Holzfällersteak gegessen.", "meat"),
        ("Wir haben gestern Glühwein und Heringsfisch bestellt.", "fish"),
        ("Ik heb gisteren een biefsteak gegeten.", "meat"),
        ("Ayer comí salmón en la playa.", "fish"),
        ("I ate jollof with chicken.", "meat"),
    ],
)
def test_what_was_eaten_is_a_habit_in_other_languages_and_compounds(text: str, ruled_out: str) -> None:
    [one] = found(text, StatementKind.HABIT)
    assert ruled_out in one.terms.split()


@for_all(
    "text, term",
    [
        ("My daughter eats fish every Friday.", "fish"),
        ("I made a dairy-free cake every day.", "milk"),
        ("I have decaf every morning.", "coffee"),
        ("I ate jollof without the chicken.", "meat"),
    ],
)
def test_the_habits_of_others_substitutes_and_what_a_dish_lacks_contradict_nothing(text: str, term: str) -> None:
    assert not [one for one in found(text, StatementKind.HABIT) if term in one.terms.split()]


BARE = ["Signed, on Wednesday.", "Done!", "Wir haben unterschrieben!", "Getekend, woensdag al.", "Erledigt."]
NOT_BARE = ["Sent Priya the draft.", "Boat again.", "General remark: no."]


@for_all("text", BARE + NOT_BARE)
def test_a_message_that_begins_with_a_report_without_a_subject_is_a_bare_report(text: str) -> None:
    assert [one.attribute for one in found(text, StatementKind.STEP)] == [BARE_REPORT if text in BARE else None]


def test_a_report_has_the_terms_of_its_message_and_of_the_sentence_that_reports() -> None:
    [one] = found("Sent Priya the draft. Now the knee.", StatementKind.STEP)
    assert set(content_terms("Priya draft knee")) <= {*one.terms.split()}
    assert one.value is not None
    assert "knee" not in one.value.split()
    [one] = found("The programme is still not written. The boat is fine.", StatementKind.STEP)
    assert one.terms.split() == content_terms("boat fine"), "what is still open is none of them"


def test_only_messages_of_users_state_something() -> None:
    at, text = datetime(2026, 3, 8, tzinfo=UTC), "I'll send you the draft by Friday."
    assert definitions_and_statements(text, MessageRole.USER, (), at)[1]
    assert not definitions_and_statements(text, MessageRole.ASSISTANT, (), at)[1]
    assert not definitions_and_statements(text, None, (), at)[1]


@for_all(
    "text, person",
    [
        ("My new boss Henrique is calm.", "Henrique"),
        ("There's a new lad, Tomos, who drops cups.", "Tomos"),
        ("New manager is called Ravi.", "Ravi"),
        ("my new supervisor is Dr Lindqvist, he emailed everyone", "Dr Lindqvist"),
        ("We have a new head of science, Ms Lindqvist.", "Ms Lindqvist"),
        ("The social worker, Denise, she's new.", "Denise"),
        ("Ngozi joined the team and is on call.", "Ngozi"),
        ("kasia who i ride w, started last wk", "kasia"),
        ("Unsere neue Kollegin heißt Sabine.", "Sabine"),
        ("Sabine fängt am Montag bei uns an.", "Sabine"),
        ("Ha entrado Verónica, la nueva contable.", "Verónica"),
        ("He contratado a Iker.", "Iker"),
        ("Onze nieuwe buurman heet Arjen.", "Arjen"),
        ("Iker starts 16 March with forty hours.", "Iker"),
        ("The surveyor is a Mr Ferrand, French and quick.", "Mr Ferrand"),
        ("Da ist jetzt ein Herr Polat für die Heizung da.", "Herr Polat"),
        ("There is a woman in Leeds called Odette who prints maps.", "Odette"),
        ("Ha llegado un vecino nuevo, Ramón.", "Ramón"),
    ],
)
def test_a_person_is_introduced_as_new(text: str, person: str) -> None:
    [one] = found(text, StatementKind.INTRODUCTION, person)
    assert (one.value, one.sentence) == (person, text)


@for_all(
    "text",
    [
        "I bought a new phone for Anna.",
        "Anna has a new job.",
        "Anna started crying.",
        "Anna joined the gym.",
        "Anna, my boss, is calm.",
        "If the new boss is Anna, I quit.",
        "The new boss is not Anna.",
        "My new bike and Anna are fine.",
        "An Anna.",
        "I read a Anna Karenina edition.",
        "Anna, who is never late, came.",
        "A letter for Anna is here.",
        "Years ago there was a woman called Anna.",
        "We got a puppy called Anna.",
        "I bought a Zwilling.",
    ],
)
def test_other_news_introduces_nobody(text: str) -> None:
    assert not found(text, StatementKind.INTRODUCTION, "Anna", "Zwilling")
