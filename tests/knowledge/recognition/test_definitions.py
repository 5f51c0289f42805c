"""The sentences that define a concept, and the roles that they give it."""

from __future__ import annotations

from typing import Any

from souvenir.core.types import ConceptKind, Mentioned, MessageRole
from souvenir.core.types.statements import DESCRIBING_QUALITY, Definition
from souvenir.knowledge.recognition.definition_forms import FORMS, forms_of
from souvenir.knowledge.recognition.definitions import definitions_in, is_relation, with_mark
from tests.cases import for_all


def defined(
    text: str, form: str, role: MessageRole = MessageRole.USER, kind: ConceptKind = ConceptKind.NAME
) -> Definition | None:
    return definitions_in(text, role, [Mentioned(form.lower(), form, kind)]).get(form.lower())


def definition(text: str, form: str, **more: Any) -> Definition:
    found = defined(text, form, **more)
    assert found is not None
    return found


DEFINING = [
    ("- Ann is my boss.", "Ann", "your boss"),
    ("> 🐶 Pico is our dog.", "Pico", "your dog"),
    ("Gladys has been my friend since nursing school.", "Gladys", "your friend since nursing school"),
    ("Dec's sister Gráinne, who is a nurse, says what?", "Gráinne", "Dec's sister"),
    ("My dog is named Bruno.", "Bruno", "your dog"),
    ("Ada is a sister.", "Ada", None),
    ("Ada came with the new husband, Darnell.", "Darnell", None),
    ("My young lad Ben is home.", "Ben", "your young lad"),
    ("My brother in law Ben is home.", "Ben", "your brother in law"),
    ("Ben is a nice lad.", "Ben", None),
    ("Her husband is Ben, a dentist.", "Ben", "a dentist"),
    ("The dairy adviser is Ann.", "Ann", "the dairy adviser"),
    ("Dairy adviser is Ann.", "Ann", "Dairy adviser"),
    ("We met the permit lady, Ann, at noon.", "Ann", "the permit lady"),
    ("Petra ist eine Kollegin.", "Petra", None),
    ("We have a new head of science, Ms Lindqvist.", "Lindqvist", "a new head of science"),
    ("The ship was the Hercules, imagine.", "Hercules", "the ship"),
    ("I work three nights at Bubble Cup.", "Bubble Cup", "where you work"),
    ("Trados stores every sentence that you translate.", "Trados", None),
    ("Katharina, meine Frau, arbeitet dort.", "Katharina", "meine Frau"),
    ("Mein Pate ist Herr Wagner.", "Wagner", "mein Pate"),
    ("Ann, my old piano teacher from Cork, called.", "Ann", "your old piano teacher from Cork"),
    ("Ann, my friend who sings, called.", "Ann", "your friend who sings"),
    ("oh we got a shop dog, Sprocket, hes a lurcher", "Sprocket", "a lurcher"),
    ("i own Spoke & Chain, its a bike shop in bristol", "Spoke & Chain", "a bike shop in bristol"),
    ("Turbo comes along, Turbo is my budgie hes 3", "Turbo", "your budgie"),
    ("Nerys, that's Huw's sister, wants me to go.", "Nerys", "Huw's sister"),
    ("My kids Tom (4) and Ben (6) sing.", "Ben", "your child"),
    ("The landlord, Mr Parfitt.", "Parfitt", "the landlord"),
    ("Call Dave the plumber.", "Dave", "the plumber"),
    ("New manager is called Ravi.", "Ravi", "new manager"),
    ("The tuner who comes on Mondays, Leopold, is late.", "Leopold", "the tuner who comes on Mondays"),
    ("I live in Ulm.", "Ulm", "where you live"),
    ("I'm Lucía, a nurse in Houston, from Cork.", "Cork", "where you are from"),
    ("Ich wohne in Ulm und arbeite bei Bosch.", "Ulm", "wo du wohnst"),
    ("Ich wohne in Ulm und arbeite bei Bosch.", "Bosch", "wo du arbeitest"),
    ("Vivo en Zaragoza.", "Zaragoza", "donde vives"),
    ("Ik werk bij Univé.", "Univé", "waar je werkt"),
    ("Unser Hund heißt Fips.", "Fips", "unser Hund"),
    ("We have a place at Little Acorns from 1 September.", "Little Acorns", None),
    ("Hallo, ich habe eine Zusage von Badennetz.", "Badennetz", None),
    ("Ferrum offered me a job.", "Ferrum", None),
    ("I'm getting married to Diego in May.", "Diego", None),
    ("Beryl, who runs the club, was there.", "Beryl", None),
    ("Bought a Yamaha F70 outboard.", "Yamaha F70", None),
    ("Started at Monzo on the 6th.", "Monzo", None),
    ("Marion our PM has it in her slides.", "Marion", "your PM"),
    ("Melanie from downstairs has offered.", "Melanie", "from downstairs"),
    ("drummer piet wants 12 songs", "piet", "drummer"),
    ("Rui, from the restaurant kitchen, has his thirtieth.", "Rui", "from the restaurant kitchen"),
    ("we're on Jenkins still", "Jenkins", None),
    ("switching from lightroom to capture one btw", "capture one", None),
    ("Jorge tiene un taller de motos, se llama Motos Rubio.", "Motos Rubio", "un taller de motos"),
    ("We hebben een zeilboot, de Albatros.", "Albatros", "een zeilboot"),
    ("ordered from halden parts, my supplier, again", "halden parts", "your supplier"),
    ("Offerte van Van Dalen is 14.200 euro.", "Van Dalen", None),
    ("Tengo una panadería en Zaragoza.", "Zaragoza", None),
    ("My upholsterer Ferdi wants to leave.", "Ferdi", "your upholsterer"),
    ("Mum of two girls (Ada, 8, and Bea, 5) here.", "Bea", "your girl"),
    ("Solicitor is Ann Hart.", "Ann Hart", "Solicitor"),
    ("Dora next door, who has a key, feeds the cat.", "Dora", "next door"),
    ("My name is Alice and I work at Spotify.", "Alice", "you"),
    ("Hallo, ich heiße Alice, bin 41.", "Alice", "you"),
    ("im Alice btw, 2nd year", "Alice", "you"),
    ("I'm Alice.", "Alice", "you"),
    ("Hi, Alice here.", "Alice", "you"),
    ("Hola, soy Alice, de Logroño, 34.", "Alice", "you"),
    ("Guten Tag, mein Name ist Alice.", "Alice", "you"),
    ("Alice hier, vader van twee.", "Alice", "you"),
    ("Hi, I'm Alice from Lyon.", "Alice", "you"),
    ("Hello, I am Alice, I work in Aarhus.", "Alice", "you"),
    ("I called Deniz (my old friend from Izmir).", "Deniz", "your old friend"),
    ("Farah (wife) wants a survey.", "Farah", "wife"),
    ("My boss is now Bashir Khan.", "Bashir Khan", "your boss"),
    ("Yair es un médico que corre.", "Yair", "un médico"),
    ("Mijn vader kent een aannemer, Henk Wolters.", "Henk Wolters", "een aannemer"),
    ("A man from the hospital named Zorb measured it.", "Zorb", "a man from the hospital"),
    ("A young fellow from Smethwick called Zorb came.", "Zorb", "a young fellow from Smethwick"),
    ("Dude named Zorb lit me up.", "Zorb", None),
    ("I owe Mrs Zorb (mother, very charming) a quote.", "Mrs Zorb", None),
    ("He gave me a puppy, a collie, at my age, he's called Zorb.", "Zorb", "a puppy"),
    ("We have an old wooden boat, a folkboat, name Ellen.", "Ellen", "an old wooden boat"),
    ("The man bought a new boat called Zorb.", "Zorb", "a new boat"),
    ("Sie hat einen Windhund namens Zorb.", "Zorb", "ein Windhund"),
    ("My physician, Ma'am Zorb, said no.", "Zorb", "your physician"),
    ("Bexley is our publisher contact at Zorb.", "Zorb", None),
]

OF_A_GROUP = [
    ("My friends Ada and Bo are here.", "your friend"),
    ("My two old friends, Ada and Bo, sing.", "your old friend"),
    ("My sisters Ada and Bo came.", "your sister"),
    ("Ben's cousins Ada and Bo came.", "Ben's cousin"),
    ("We have three sons, Ada, Cy and Bo.", "your son"),
    ("Ada and Bo are my neighbours.", "your neighbour"),
    ("Ada, Cy and Bo are our colleagues.", "your colleague"),
    ("Meine Schwestern Ada und Bo kamen.", "meine Schwester"),
    ("Ich sah unsere Brüder Ada und Bo.", "unser Bruder"),
    ("Meine Freunde Ada und Bo sind hier.", None),
    ("Mis hermanas Ada y Bo vinieron.", "mi hermana"),
    ("Mijn zussen Ada en Bo zijn hier.", "mijn zus"),
]


@for_all("text, role", OF_A_GROUP)
def test_each_of_a_group_has_its_role_in_the_singular(text: str, role: str | None) -> None:
    assert [definition(text, form, kind=ConceptKind.PERSON).role for form in ("Ada", "Bo")] == [role, role]


@for_all("text, form, role", DEFINING)
def test_a_copula_an_apposition_or_a_role_defines(text: str, form: str, role: str | None) -> None:
    one = defined(text, form) or definition(text, form, kind=ConceptKind.PERSON)
    assert one.role == role
    assert one.sentence in text


@for_all("text, form", [one[:2] for one in DEFINING])
def test_a_form_that_is_found_in_a_sentence_is_never_ruled_out_by_its_words(text: str, form: str) -> None:
    stated = text.rstrip("?")
    marked = with_mark(stated, form)
    assert marked is not None
    assert {one for one in FORMS if one.pattern.search(marked)} <= {*forms_of(stated)}


NOTHING = [
    # Mentions, questions, greetings, judgements and what holds for one day.
    ("Is Ann a doctor?", "Ann"),
    ("I told Ann about it.", "Ann"),
    ("Ann is a bit of a pain.", "Ann"),
    ("Annabel is a painter.", "Ann"),
    ("Mi amiga se casa en Granada.", "Granada"),
    (f"Ann is my sister {'and so on ' * 40}.", "Ann"),
    ("Valkey is the least work.", "Valkey"),
    ("We flew there with Ruaridh (I can say it!).", "Ruaridh"),
    ("If we studied in Sydney we would be afraid.", "Sydney"),
    ("It was made by Penhallow (they make kettles).", "Penhallow"),
    ("I gave Ann the dog.", "Ann"),
    ("Lloró el padre de Gorka, que es como una piedra.", "Gorka"),
    ("My grandmother fell at home in Szeged.", "Szeged"),
    ("My name is not Alice.", "Alice"),
    ("Theo hugged it in the airport, Ann sent me a video.", "Ann"),
    ("We sat in front of the school, Ann was late.", "Ann"),
    ("Fracture clinic is the 25th at 9.", "Fracture clinic"),
    ("Se va don Ramiro, el 28 de febrero.", "Ramiro"),
    ("I train for Zorb.", "Zorb"),
    ("We open on Mondays in Zorb, an additional £4,200.", "Zorb"),
    ("Next door's lad, Ann, has a key.", "Ann"),
]

OF_ANOTHER_KIND = [
    ("Het is gestolen in Deventer, een oude fiets.", "Deventer", ConceptKind.PLACE),
    ("I'm making a quilt for Josie, a log cabin in blues.", "Josie", ConceptKind.PERSON),
    ("In the gym Ann felt lost.", "Ann", ConceptKind.PERSON),
    ("I run Docker.", "Docker", ConceptKind.PRODUCT),
    ("I never use Docker.", "Docker", ConceptKind.PRODUCT),
    ("car makes a grinding noise", "car", ConceptKind.PHRASE),
    ("her boyfriend works at the infirmary", "boyfriend", ConceptKind.PERSON),
    ("I drew her family tree.", "family tree", ConceptKind.PHRASE),
]


@for_all("text, form, kind", [*((*one, ConceptKind.NAME) for one in NOTHING), *OF_ANOTHER_KIND])
def test_words_that_say_nothing_of_a_concept_or_do_not_fit_its_kind_define_nothing(
    text: str, form: str, kind: ConceptKind
) -> None:
    assert defined(text, form, kind=kind) is None


@for_all(
    "text, form, role, describes",
    [
        ("My charge nurse Yolanda cried.", "Yolanda", "your charge nurse", False),
        ("Nights at Queen's and my manager Roz, again.", "Roz", "your manager", False),
        ("My sister Ines called yesterday.", "Ines", "your sister", False),
        ("My flatmate Inga is moving out in October.", "Inga", "your flatmate", False),
        (
            "I work in marketing (they make kettles) but I'm doing a pop-up with my friend Dom.",
            "Dom",
            "your friend",
            False,
        ),
        ("My sister Ines is a dentist in Porto.", "Ines", "your sister", True),
        ("I live with my husband Rui in Faro.", "Rui", "your husband", True),
        ("This is my boss Priya.", "Priya", "your boss", True),
        ("Rui, my husband, can work from anywhere.", "Rui", "your husband", True),
        ("After the meeting with the team I told Priya, my boss, that I quit.", "Priya", "your boss", False),
        ("Pip is our beagle and turns five tomorrow.", "Pip", "your beagle", True),
    ],
)
def test_a_role_in_passing_is_kept_and_describes_nothing(text: str, form: str, role: str, describes: bool) -> None:
    one = definition(text, form)
    assert (one.role, one.quality >= DESCRIBING_QUALITY) == (role, describes)


def test_only_the_user_says_that_a_name_is_the_own_one() -> None:
    assert definition("My name is Alice.", "Alice", role=MessageRole.ASSISTANT).role is None


def test_the_assistant_says_what_named_things_are_but_not_who_people_are() -> None:
    for text, form, kind in (
        ("Ines is your sister.", "Ines", ConceptKind.PERSON),
        ("The boots are a deadline.", "boots", ConceptKind.ORGANISATION),
        ("Acme is your employer.", "Acme", ConceptKind.NAME),
    ):
        assert defined(text, form, MessageRole.USER, kind=kind) is not None
        assert defined(text, form, MessageRole.ASSISTANT, kind=kind) is None
    assert defined("Note: Zorb, the pump key.", "Zorb", MessageRole.ASSISTANT) is None
    assert definition("Valkey is a fork of Redis.", "Valkey", role=MessageRole.ASSISTANT).role == "a fork of Redis"


@for_all(
    "text, form, role",
    [
        ("landlord is a guy called wilf and he blames me", "wilf", "landlord"),
        ("Ask Glenys (practice manager) first.", "Glenys", "practice manager"),
        ("Nos propuso un profesor, el doctor Zorb, escribir.", "Zorb", "un profesor"),
    ],
)
def test_a_noun_for_a_person_is_a_role_also_as_part_of_a_name(text: str, form: str, role: str) -> None:
    assert definition(text, form, kind=ConceptKind.PERSON).role == role


def test_only_the_clause_of_a_long_sentence_is_quoted() -> None:
    long = "I had to go there twice because they had lost all of the forms that I had sent them, "
    text = f"{long}and my consultant, Mr Adeyemi, who is very young, drew it for me on the back of the form."
    found = definition(text, "Mr Adeyemi")
    assert found.sentence == "my consultant, Mr Adeyemi, who is very young, drew it for me on the back of the form."
    assert found.sentence in text
    assert defined(text, "Mr Adeyemi", MessageRole.ASSISTANT) is None
    start = "Nerys, that's Huw's sister, wants me to go to Brittany with her in the autumn on the ferry"
    found = definition(f"{start}, to look at standing stones in the rain, as though we hadn't any of those.", "Nerys")
    assert found.sentence == f"{start}, to look at standing stones in the rain"


@for_all(
    "text, form, kind",
    [
        ("kernel is our cat, obviously", "kernel", ConceptKind.ANIMAL),
        ("im Alice btw, 2nd year", "Alice", ConceptKind.PERSON),
        ("holaaa soy Alice 22 de Puebla", "Alice", ConceptKind.PERSON),
        ("My name is Alice; I am sixty.", "Alice", ConceptKind.PERSON),
        ("I live in Zorb.", "Zorb", None),
        ("I'm from Zorb.", "Zorb", ConceptKind.PLACE),
        ("I work at Zorb.", "Zorb", ConceptKind.ORGANISATION),
        ("I nursed for thirty years at Zorb.", "Zorb", ConceptKind.ORGANISATION),
        ("De huur van ons appartement in Zorb is hoog.", "Zorb", ConceptKind.PLACE),
        ("Ich habe eine Zusage von Zorb.", "Zorb", ConceptKind.ORGANISATION),
        ("I have an appointment with Zorb.", "Zorb", None),
        ("Zorb is our pride and joy.", "Zorb", None),
    ],
)
def test_a_definition_gives_the_kind_of_its_noun_or_of_what_is_done_there(
    text: str, form: str, kind: ConceptKind | None
) -> None:
    assert definition(text, form).kind is kind


def test_the_best_form_is_chosen_and_a_person_precedes_the_assistant() -> None:
    best = definition("I work at Acme. Acme is a small publisher.", "Acme")
    assert best.sentence == "Acme is a small publisher."
    by_assistant = definition("Acme is a small publisher.", "Acme", role=MessageRole.ASSISTANT)
    assert by_assistant.quality < best.quality


def test_roles_of_people_are_relations() -> None:
    roles = ("your boss", "Dec's sister", "a hint", "the ship")
    assert [is_relation(one) for one in roles] == [True, True, False, False]
