"""What a text mentions, and what it does not."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.extraction import MAX_MENTIONS, mentioned
from souvenir.knowledge.recognition.spelling import MAX_KEY_CHARS, key_of
from tests.cases import for_all
from tests.growth import assert_linear
from tests.knowledge.recognition.test_kinds_of_names import kinds

NAMES = {*ConceptKind} - {ConceptKind.PHRASE, ConceptKind.HASHTAG, ConceptKind.CODE}

IN_CAPITALS = [
    ("Ask @alice_w for it.", "alice_w"),
    ('He likes "The Old Man and the Sea".', "old man and the sea"),
]

FOUND = [
    # Only identifiers of a code block.
    (
        "Here:\n```python\nThe house = load_user(name)\nprint('my Dog')\n```\nMy kitchen works.",
        ["load_user", "kitchen"],
    ),
    # Verbs, abstract nouns and roles next to a name.
    ("My sister Ines is a dentist.", ["ines", "dentist"]),
    # Phrases that are not specific.
    ("We need a better approach and swap ideas on construction challenges.", []),
    ("It has visual diagrams and external libraries.", []),
    ("I train my ankle for trampolining and a kettlebell.", ["ankle"]),
    ("The probability of rain is the probability of two sixes.", ["probability"]),
    ("Kids in need have no family.", []),
    # Nouns that look like organisations and products.
    ("We compared the age group and the risk group.", []),
    ("I use whiteboards.", []),
    ("Rain delayed us. Friends declined.", []),
    ("we run version 2.1.0 there", ["2.1.0"]),
    ("Mein Vermieter will Geduld.", ["vermieter", "geduld"]),
    ("Das ist gut, wenn er böse ist.", []),
    # Interjections, emphasis and adjectives of origin; a named thing counts once.
    ("Use the POST method.", []),
    ("It fits the Canadian market.", ["canadian market"]),
    ("Newton is our tortoise.", ["newton"]),
    # Languages and scripts without rules, and rare abbreviations.
    ("Меня зовут Алексей, я работаю в Яндексе", ["алексей", "яндексе"]),
    ("İstanbul'da kardeşim yaşıyor", []),
    ("dün İstanbul'da kaldık", ["istanbul"]),
    ("We saw ZQ there.", []),
    ("Die Kita schließt im August.", ["kita"]),
    # The keys of keys.
    *(
        (key, [key])
        for key in (
            *("alice", "support group", "mental health", "video game", "pottery", "#running", "app.py", "user_name"),
            "c++",
        )
    ),
]

NOTHING = [
    # Words that are always capitalised.
    *("Sunday was fine.", "Wow! Thanks! Yeah, I will.", "I think I'm OK.", "See you on Monday"),
    # Fillers, verbs, placeholders, addresses, times and quantities.
    "Thanks a lot for the way you help me!",
    "hey how are you doing today",
    "it was a good thing",
    "a b c",
    "We will work and they will play.",
    "I want to run and to swim.",
    "[EMAIL] <PERSON> [PHONE_NUMBER] [REDACTED]",
    "someone@example.org",
    "at 10:30 or 7 pm",
    "Pero quiere subirme a 640.",
    "我的膝盖很疼，有什么建议？",
    "theres black stuff again",
    'He says "my Dr." and waves.',
    *("We met on May 8th, 2023.", "We met on 8 May 2023.", "We met on 2023-05-08.", "We met on 2023/5/8."),
    *("We met on the 8th of May 2023.", "We met on 8.5.2023.", "2023年5月8日", "on 5/8/2023", "May 8"),
    *("in May 2023", "since 2021", "on May 8", "every December", "March 2023", "In July."),
    *("We ran 15km.", "We ran 15 kilometres.", "It costs $1,000.", "about 50 percent", "重15公斤", "$5 million"),
    "",
    *("Am 3. Dezember sehen wir uns.", "El 5 de mayo de 2024 viajo.", "Op 12 maart ga ik."),
]


def keys(text: str) -> list[str]:
    return [mention.key for mention in mentioned(text)]


def test_a_mention_has_a_key_and_the_form_of_the_text():
    assert [(one.key, one.form, one.kind) for one in mentioned("My name is Alice")] == [("alice", "Alice", "person")]


@for_all("text, key", IN_CAPITALS)
def test_a_capital_within_a_sentence_makes_a_name(text: str, key: str):
    assert kinds(text)[key] in NAMES


@for_all(
    "text, found",
    [
        ("Pottery is great.", {"pottery": "phrase"}),
        ("# Title\n#running in #ff00aa", {"#running": "hashtag"}),
        ("Je suis allé à Paris avec ma soeur le 8.5.2023 dans le jardin", {"paris": "place"}),
    ],
)
def test_the_start_of_a_sentence_a_heading_a_colour_and_a_noun_of_another_language_make_no_name(
    text: str, found: dict[str, str]
):
    assert kinds(text) == found


def test_capitals_of_a_heading_make_no_names():
    assert {*kinds("How To Plan Your Sourdough Starter").values()} == {"phrase"}


@for_all("text, found", [*FOUND, *((text, []) for text in NOTHING)])
def test_concepts_are_found_in_order_and_each_once(text: str, found: list[str]):
    assert keys(text) == found


def test_the_most_frequent_mentions_are_kept_in_order():
    text = " ".join(f"My noun{chr(97 + n)}x is here." for n in range(20)) + " My nountx again, my nountx again."
    found = keys(text)
    assert (len(found), found[0], found[-1]) == (MAX_MENTIONS, "nounax", "nountx")


@given(st.text(max_size=300))
def test_extraction_is_deterministic_bounded_and_yields_each_key_once(text):
    found = mentioned(text)
    assert found == mentioned(text)
    assert len(found) <= MAX_MENTIONS
    assert len({mention.key for mention in found}) == len(found)
    assert all(mention.key.strip() and len(mention.key) <= MAX_KEY_CHARS for mention in found)


@given(st.text(max_size=200))
@example("St.-Pauli")
def test_the_key_of_a_key_is_itself(name):
    assert key_of(key_of(name)) == key_of(name)


@pytest.mark.parametrize("piece", ["a", "-", "中1", "a.b", "A of ", "1,", "ﷺ", "a_", "[A", "```\n", "May "])
def test_a_long_text_of_anything_is_read_in_bounded_time(piece):
    assert_linear(mentioned, piece * (100_000 // len(piece)))
