"""What a text mentions, and what it does not."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.extraction import MAX_MENTIONS, mentioned
from souvenir.knowledge.recognition.spelling import MAX_KEY_CHARS, key_of
from tests.growth import assert_linear

NAME, PHRASE = ConceptKind.NAME, ConceptKind.PHRASE
PERSON, ANIMAL, PLACE, ORGANISATION = (
    ConceptKind.PERSON,
    ConceptKind.ANIMAL,
    ConceptKind.PLACE,
    ConceptKind.ORGANISATION,
)
PRODUCT, EVENT, WORK = ConceptKind.PRODUCT, ConceptKind.EVENT, ConceptKind.WORK
NAMES = (NAME, PERSON, ANIMAL, PLACE, ORGANISATION, PRODUCT, EVENT, WORK)
HASHTAG, CODE = ConceptKind.HASHTAG, ConceptKind.CODE


def keys(text: str) -> list[str]:
    return [mention.key for mention in mentioned(text)]


def kinds(text: str) -> dict[str, ConceptKind]:
    return {mention.key: mention.kind for mention in mentioned(text)}


def test_a_given_name_is_found():
    [alice] = mentioned("My name is Alice")
    assert (alice.key, alice.form, alice.kind) == ("alice", "Alice", PERSON)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("We flew to New York last week.", "new york"),
        ("New York was cold.", "new york"),
        ("I read the Lord of the Rings again.", "lord of the rings"),
        ("I moved here with José García.", "jose garcia"),
        ("That is Melanie's dog.", "melanie"),
        ("I work with NASA.", "nasa"),
        ("I watched it on YouTube.", "youtube"),
        ("Ask @alice_w for it.", "alice_w"),
        ("I saw Dr. Smith.", "dr smith"),
        ("We use React Native.", "react native"),
        ("I bought an iPhone.", "iphone"),
        ("I've been to the Eiffel Tower, the Louvre and Rome.", "eiffel tower"),
        ('He likes "The Old Man and the Sea".', "old man and the sea"),
        ("Я живу в городе Москва.", "москва"),
    ],
)
def test_a_capital_within_a_sentence_makes_a_name(text, key):
    assert kinds(text)[key] in NAMES


@pytest.mark.parametrize(
    "text", ["Sunday was fine.", "Wow! Thanks! Yeah, I will.", "I think I'm OK.", "See you on Monday"]
)
def test_a_word_that_is_always_capitalised_is_no_name(text):
    assert keys(text) == []


def test_the_capital_at_the_start_of_a_sentence_alone_makes_no_name():
    assert kinds("Pottery is great.") == {"pottery": PHRASE}


@pytest.mark.parametrize(
    ("text", "key", "kind"),
    [
        ("Agnes met Tomás and Carlos.", "agnes", PERSON),
        ("Agnes met Tomás and Carlos.", "tomas", PERSON),
        ("My boss Priya approved it.", "priya", PERSON),
        ("Mrs Jones phoned.", "mrs jones", PERSON),
        ("Will is my brother.", "will", PERSON),
        ("i had lunch with my friend sara in lisbon", "sara", PERSON),
        ("i had lunch with my friend sara in lisbon", "lisbon", PLACE),
        ("My mum turns 60 in May.", "mum", PERSON),
        ("Our beagle Pico is ill.", "pico", ANIMAL),
        ("Pickle, our one-eyed tabby, came from a shelter.", "pickle", ANIMAL),
        ("My dog has a cold.", "dog", ANIMAL),
        ("I live in Swindon.", "swindon", PLACE),
        ("I'll send Mel the Figma link.", "mel", PERSON),
        ("I'll send Mel the Figma link.", "figma", PRODUCT),
        ("Mein Hausarzt Dr. Weber hat Zeit.", "dr weber", PERSON),
        ("The flat is on Cotham Hill.", "cotham hill", PLACE),
        ("I work at Spotify.", "spotify", ORGANISATION),
        ("She started working at Medistar.", "medistar", ORGANISATION),
        ("The invoice of St Brigid's School is open.", "st brigid school", ORGANISATION),
        ("I go to the LGBTQ center.", "lgbtq center", ORGANISATION),
        ("Lumen & Oak Partners want a refund.", "lumen & oak partners", ORGANISATION),
        ("We moved to PostgreSQL 16.", "postgresql 16", PRODUCT),
        ("I bought a Pixel 9.", "pixel 9", PRODUCT),
        ("A JR Pass is worth it.", "jr pass", PRODUCT),
        ("I run the Great North Run.", "great north run", EVENT),
        ("We ran a charity race.", "charity race", EVENT),
        ('I read "The Three-Body Problem".', "three body problem", WORK),
        ("Meine Schwester Anneliese wohnt in Nürnberg.", "anneliese", PERSON),
        ("Meine Schwester Anneliese wohnt in Nürnberg.", "nurnberg", PLACE),
        ("Unser Hund Balu war beim Tierarzt.", "balu", ANIMAL),
        ("Der Fußballverein hat ein neues Trikot.", "fussballverein", ORGANISATION),
        ("Mi marido trabaja en Iberdrola y mi abuela vive en Sevilla.", "marido", PERSON),
        ("Voy al club de lectura con mi hermana Inés.", "club de lectura", ORGANISATION),
        ("Mijn dochter speelt bij de voetbalclub in Utrecht.", "dochter", PERSON),
        ("Mijn dochter speelt bij de voetbalclub in Utrecht.", "voetbalclub", ORGANISATION),
        ("我妈妈在北京协和医院工作，李娜下周去上海出差。", "妈妈", PERSON),
        ("我妈妈在北京协和医院工作，李娜下周去上海出差。", "李娜", PERSON),
        ("我妈妈在北京协和医院工作，李娜下周去上海出差。", "北京协和医院", ORGANISATION),
        ("我妈妈在北京协和医院工作，李娜下周去上海出差。", "上海", PLACE),
        ("我在读《三体》。", "三体", WORK),
        ("住在春熙路附近方便吗？", "春熙路", PLACE),
        ("我的膝盖手术很顺利。", "膝盖手术", PHRASE),
        ("豆豆又吐毛球了。", "豆豆", NAME),
    ],
)
def test_names_and_relatives_have_a_kind(text, key, kind):
    assert kinds(text)[key] is kind


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Skip the interview.", ["interview"]),
        ("Bake sourdough bread on Sunday.", ["sourdough bread"]),
        ("My sister Ines is a dentist.", ["ines", "dentist"]),
        ("A pragmatic approach needs dedication and courage.", []),
        ("Meine Chefin kommt am Freitag, die Woche war lang.", ["chefin"]),
    ],
)
def test_verbs_abstract_nouns_and_roles_next_to_a_name_are_no_concepts(text, found):
    assert keys(text) == found


def test_capitals_of_a_heading_make_no_names():
    assert {*kinds("How To Plan Your Sourdough Starter").values()} == {PHRASE}
    assert NAME not in kinds("I LOVE MY DOG AND MY GARDEN").values()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("She cares about mental health.", "mental health"),
        ("We tidied a new budget tracker.", "budget tracker"),
        ("My kids love video games!", "video game"),
        ("The two women took the camping stove to Rome.", "camping stove"),
        ("He does pottery.", "pottery"),
        ("I started a job as a nurse.", "nurse"),
        ("They are into camping.", "camping"),
        ("Allergic to peanuts", "peanut"),
        ("The user prefers the water bath.", "water bath"),
        ("She had fish tacos and raspberry frosting.", "raspberry frosting"),
    ],
)
def test_a_noun_phrase_is_found_by_its_singular_without_descriptive_adjectives(text, key):
    assert kinds(text)[key] is PHRASE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I wrote a short letter about the sea.", []),
        ("She cried on the blue carpet and held a mirror.", []),
        ("We need a better approach and swap ideas on construction challenges.", []),
        ("It has visual diagrams and external libraries.", []),
        ("There was usability and cleanliness.", []),
        ("My essay needs a title.", ["essay"]),
        ("The essay needs a title.", []),
        ("The birthday paradox is a nice step.", ["birthday paradox"]),
        ("I train my ankle for trampolining and a kettlebell.", ["ankle"]),
        ("The probability of rain is the probability of two sixes.", ["probability"]),
        ("Kids in need have no family.", []),
        ("A tutor told me about the gym.", ["tutor", "gym"]),
    ],
)
def test_a_phrase_is_a_concept_only_if_it_is_specific(text, found):
    assert keys(text) == found


@pytest.mark.parametrize(
    ("text", "key", "kind"),
    [
        ("Balder, our dog, ate the cake.", "balder", ANIMAL),
        ("Newton is our tortoise.", "newton", ANIMAL),
        ("Fips ist unser fauler Dackelmischling.", "fips", ANIMAL),
        ("Balder is a Norwegian elkhound, six years.", "balder", ANIMAL),
        ("The Anna Ghost is a neutral shoe for a beginner.", "anna ghost", PRODUCT),
        ("Biscuit, a terrier, from the shelter.", "biscuit", ANIMAL),
        ("I buy the tickets for August, she said.", "august", ConceptKind.NAME),
        ("My friend August called.", "august", PERSON),
        ("im in Wet Cement, its a punk band w my cousin", "wet cement", ORGANISATION),
        ("I run Mavi, the little café on Mill Road.", "mavi", ORGANISATION),
        ("A lady named Constance Heath claims to be my cousin.", "constance heath", PERSON),
        ("my supplier Dave is late", "dave", PERSON),
        ("My supplier Halden Parts is late.", "halden parts", ORGANISATION),
        ("At my gym Anna said hello.", "anna", PERSON),
        ("Eine Nutzungsänderung ist nicht nötig.", "nutzungsanderung", PHRASE),
        ("Volk 2 ist sehr schwach.", "volk 2", PHRASE),
        ("I renewed the Licence, because the Licence has expired.", "licence", ConceptKind.NAME),
        ("Biscuit is our ten-year-old terrier.", "biscuit", ANIMAL),
        ("We walked to Newton. Newton is our tortoise.", "newton", ANIMAL),
        ("Our dog Paris is ill. Paris loves cheese.", "paris", ANIMAL),
        ("The airline Kestrel lost my bag.", "kestrel", ORGANISATION),
        ("I wrote to DSB, a Danish authority.", "dsb", ORGANISATION),
        ("DSB says that the train is late.", "dsb", ORGANISATION),
        ("We flew with Wizz Air to Porto.", "wizz air", ORGANISATION),
        ("My colleagues use Kestrel, a tool for logs.", "kestrel", PRODUCT),
        ("In Berlin, my sister and I met Anna.", "berlin", PLACE),
        ("Lisbon, my sister said, is great.", "lisbon", PLACE),
        ("Berlin is my sister's favourite city.", "berlin", PLACE),
        ("I joined a gym.", "gym", ORGANISATION),
        ("I work at Maria Zorblax.", "maria zorblax", ORGANISATION),
        ("We moved from Mailchimp to Zorblax.", "zorblax", PRODUCT),
        ("Send it to Zorblax & Quibb.", "zorblax & quibb", ORGANISATION),
        ("Mi hermana está en el Hospital La Paz.", "hospital la paz", ORGANISATION),
        ("Mijn broer werkt bij Van Zorblax in Gouda.", "van zorblax", ORGANISATION),
        ("My dad's carer comes.", "carer", PERSON),
        ("My boss is Zorb Quibbix.", "zorb quibbix", PERSON),
        ("My new boss wants it.", "boss", PERSON),
        ("The new guy broke it.", "guy", PERSON),
        ("J. Okafor called.", "j okafor", PERSON),
        ("I met John A. Zorblax there.", "john a zorblax", PERSON),
        ("I wrote to P.K. Zorblax.", "p.k zorblax", PERSON),
        ("Zorbla-san wrote to us.", "zorbla san", PERSON),
        ("The garage in Zorblax has it.", "zorblax", PLACE),
        ("I flew to Zorblax.", "zorblax", PLACE),
        ("上周我去了波尔图。", "波尔图", PLACE),
        ("我妈今天来。", "我妈", PERSON),
        ("行政部的小陈说好。", "小陈", PERSON),
        ("我在市二医院上班。", "市二医院", ORGANISATION),
        ("The data protection officer wrote.", "data protection officer", PERSON),
        ("The career fair was good.", "career fair", EVENT),
        ("I joined the gym.", "gym", ORGANISATION),
        ("I went to a support group yesterday.", "support group", ORGANISATION),
        ("LGBTQ groups are great.", "lgbtq", PHRASE),
        ("Im Leineblick ist eine Frau zuständig.", "leineblick", PHRASE),
        ("Die vierte Lage klingt wie eine Tür.", "lage", PHRASE),
        ("Hi, I'm Dana, my cat is called Pixel.", "dana", PERSON),
        ("Hi, I'm Dana, my cat is called Pixel.", "pixel", ConceptKind.ANIMAL),
    ],
)
def test_the_kind_that_a_text_gives_a_name_precedes_that_of_the_lists(text, key, kind):
    assert kinds(text)[key] is kind


@pytest.mark.parametrize(
    ("text", "key", "kind"),
    [
        ("Our choir sings on Sunday, the brewery pays.", "choir", ORGANISATION),
        ("I had a picnic with friends from church.", "church", ORGANISATION),
        ("She joined the navy.", "navy", ORGANISATION),
        ("He wants to join the military.", "military", ORGANISATION),
        ("I volunteer at the food bank every Wednesday.", "food bank", ORGANISATION),
        ("I told my writers group about it.", "writers group", ORGANISATION),
        ("We visited a veteran's hospital.", "veteran hospital", ORGANISATION),
        ("The coroner's office rang.", "coroner office", PHRASE),
        ("The orchestra rehearses at noon.", "orchestra", ORGANISATION),
        ("My hiking group left.", "hiking group", ORGANISATION),
        ("The Tidebound cult wears grey.", "tidebound cult", ORGANISATION),
        ("I went to a LGBTQ activist group.", "lgbtq activist group", ORGANISATION),
        ("My team won.", "team", ORGANISATION),
        ("The museum shop sold forty.", "museum shop", ORGANISATION),
        ("She left the law firm.", "law firm", ORGANISATION),
        ("My nonprofit failed.", "nonprofit", ORGANISATION),
        ("The school board voted.", "school board", ORGANISATION),
        ("Our bank lends nothing.", "bank", ORGANISATION),
        ("Your store looks great.", "store", ORGANISATION),
        ("We work at a local bakery.", "bakery", ORGANISATION),
        ("Stripe flagged the payment.", "stripe", ORGANISATION),
        ("They owe the Lantern Guild 300 coins.", "lantern guild", ORGANISATION),
        ("Costa's brings the fish.", "costa", ORGANISATION),
        ("St Brigid's gets a discount.", "st brigid", ORGANISATION),
        ("Anne at Kimura Foods is an intern.", "kimura foods", ORGANISATION),
        ("I am insured with Zorblax.", "zorblax", ORGANISATION),
        ("Zorblax charges too much.", "zorblax", ORGANISATION),
        ("Tide declined my application.", "tide", ORGANISATION),
        ("I want roles at Netflix and Zorblax.", "zorblax", ORGANISATION),
        ("Anna bought it at lidl.", "lidl", ORGANISATION),
        ("Zorblax's admins sit there.", "zorblax", ORGANISATION),
        ("Zorblax want everything as a table.", "zorblax", ORGANISATION),
        ("Our group, Zorblax, meets there.", "zorblax", ORGANISATION),
        ("Le pagué a Movistar la factura.", "movistar", ORGANISATION),
        ("she works at zorblax", "zorblax", ORGANISATION),
        ("Wir klagen gegen das Jugendamt.", "jugendamt", ORGANISATION),
        ("La clínica veterinaria del Carmen abre hoy con mi hermana.", "clinica veterinaria del carmen", ORGANISATION),
        ("Se lo paso al estudio Arce y Luján.", "estudio arce y lujan", ORGANISATION),
        ("我在青禾艺术学校上课。", "青禾艺术学校", ORGANISATION),
        ("我在华为工作。", "华为", ORGANISATION),
        ("Zorblax Nursing Homes: eleven sites", "zorblax nursing homes", ORGANISATION),
        ("Wir bauen das bei Zorblax Elektrotechnik ein.", "zorblax elektrotechnik", ORGANISATION),
        ("Van Zorblax Logistiek stopt met het werk.", "van zorblax logistiek", ORGANISATION),
        ("ZBX offered me a job.", "zbx", ORGANISATION),
        ("He pays the allotment society today.", "allotment society", ORGANISATION),
    ],
)
def test_organisations_with_and_without_a_name_are_found_by_their_nouns_and_frames(text, key, kind):
    assert kinds(text)[key] is kind


@pytest.mark.parametrize(
    ("text", "key", "kind"),
    [
        ("Renovate opens requests every week.", "renovate", NAME),
        ("The cut is in Resolve now.", "resolve", NAME),
        ("We host it at Zorblax.com today.", "zorblax.com", PRODUCT),
        ("I keep it in 1Password.", "1password", PRODUCT),
        ("we use black 23.3.0 there", "black", PRODUCT),
        ("Trying Zorblax.", "zorblax", NAME),
        ("I paid for Grammarly Premium, then for Zorbly.", "grammarly premium", PRODUCT),
        ("I paid for Grammarly Premium, then for Zorbly.", "zorbly", NAME),
        ("We moved to React.", "react", PRODUCT),
        ("I take ramipril.", "ramipril", PRODUCT),
        ("Using Strong for my sets.", "strong", PRODUCT),
        ("NDA with Zorblax: keep quiet.", "zorblax", NAME),
        ("we use Node.js and macOS and `numpy`", "node.js", PRODUCT),
        ("we use Node.js and macOS and `numpy`", "macos", PRODUCT),
        ("we use Node.js and macOS and `numpy`", "numpy", PRODUCT),
        ("my nurofen is gone, and google maps is slow", "google maps", PRODUCT),
        ("I take lansoprazole at night.", "lansoprazole", PRODUCT),
        ("I set up zorblax to mock it.", "zorblax", NAME),
        ("I sold my Volvo.", "volvo", PRODUCT),
        ("I bought a second-hand Zorblax.", "zorblax", PRODUCT),
        ("I work for Volvo.", "volvo", ORGANISATION),
        ("My Zorblax XR200 hums.", "zorblax xr200", PRODUCT),
        ("An Omega wristwatch lay there.", "omega", PRODUCT),
        ("I know a library like Helmet.", "helmet", PRODUCT),
        ("Tiles come from MapTiler.", "maptiler", PRODUCT),
        ("I know Alasdair MacInnes and McKay.", "mckay", NAME),
        ("We tried Quill 3.11 there.", "quill", PRODUCT),
        ("Two iPads broke.", "ipads", PRODUCT),
        ("Ik lees het in de NS-app.", "ns app", PRODUCT),
        ("Wij werken met Zorblax.", "zorblax", NAME),
        ("The files of Axios, Zorblax and Quibbix arrived.", "quibbix", PRODUCT),
        ("Confluence is slow.", "confluence", PRODUCT),
        ("They want XML, not Word.", "word", PRODUCT),
        ("we use lazybits v5.3.2 there", "lazybits", PRODUCT),
        ("We sold our Zorblax.", "zorblax", PRODUCT),
        ("我用支付宝还款。", "支付宝", PRODUCT),
    ],
)
def test_products_are_found_by_their_frames_and_have_a_kind(text, key, kind):
    assert kinds(text)[key] is kind


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("We compared the age group and the risk group.", []),
        ("I use whiteboards.", []),
        ("Rain delayed us. Friends declined.", []),
        ("A starling sang.", []),
        ("we run version 2.1.0 there", ["2.1.0"]),
        ("Mein Vermieter will Geduld.", ["vermieter", "geduld"]),
        ("Das ist gut, wenn er böse ist.", []),
    ],
)
def test_nouns_that_look_like_organisations_and_products_are_none(text, found):
    assert keys(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Sí, claro. Sí!", []),
        ("She spent the night in the ER.", []),
        ("Use the POST method.", []),
        ("It fits the Canadian market.", ["canadian market"]),
        ("I like Le Guin a lot.", ["le guin"]),
        ("Balder, our dog, sleeps.", ["balder"]),
        ("Newton is our tortoise.", ["newton"]),
    ],
)
def test_interjections_emphasis_and_adjectives_of_origin_are_no_names_and_a_named_thing_counts_once(text, found):
    assert keys(text) == found


@pytest.mark.parametrize(
    "text",
    [
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
    ],
)
def test_fillers_verbs_placeholders_addresses_times_and_quantities_are_no_concepts(text):
    assert keys(text) == []


@pytest.mark.parametrize("text", ["Am 3. Dezember sehen wir uns.", "El 5 de mayo de 2024 viajo.", "Op 12 maart ga ik."])
def test_days_with_the_name_of_a_month_in_other_languages_are_dates(text):
    assert kinds(text) == {}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Look at src/api/app.py", "app.py"),
        ("the user_name column", "user_name"),
        ("call getUserName() twice", "getusername"),
        ("We run v2.1.0 there", "v2.1.0"),
        ("see https://www.example.com/a?b=c", "example.com"),
        ("look at Main.js", "main.js"),
        ("I write C++", "c++"),
        ("use `useState` there", "usestate"),
    ],
)
def test_identifiers_are_code(text, key):
    assert kinds(text)[key] is CODE


def test_only_identifiers_of_a_code_block_count():
    assert keys("Here:\n```python\nThe house = load_user(name)\nprint('my Dog')\n```\nMy kitchen works.") == [
        "load_user",
        "kitchen",
    ]


def test_a_hashtag_is_found_and_a_heading_or_a_colour_is_none():
    assert kinds("# Title\n#running in #ff00aa") == {"#running": HASHTAG}


def test_another_language_gives_names_but_no_phrases():
    assert kinds("Je suis allé à Paris avec ma soeur le 8.5.2023 dans le jardin") == {"paris": PLACE}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Меня зовут Алексей, я работаю в Яндексе", ["алексей", "яндексе"]),
        ("İstanbul'da kardeşim yaşıyor", []),
        ("dün İstanbul'da kaldık", ["istanbul"]),
        ("We saw ZQ there.", []),
        ("Die Kita schließt im August.", ["kita"]),
    ],
)
def test_words_of_languages_and_scripts_without_rules_and_rare_abbreviations_are_no_phrases(text, found):
    assert keys(text) == found


def test_mentions_come_in_order_and_each_once():
    assert keys("My kitchen and the dog. My kitchen of Anna, and the dogs.") == ["kitchen", "dog", "anna"]


def test_the_most_frequent_mentions_are_kept_in_order():
    text = " ".join(f"My noun{chr(97 + n)}x is here." for n in range(20)) + " My nountx again, my nountx again."
    found = keys(text)
    assert len(found) == MAX_MENTIONS
    assert found[0] == "nounax"
    assert found[-1] == "nountx"


KEYS = ("alice", "support group", "mental health", "video game", "pottery", "#running", "app.py", "user_name", "c++")


@pytest.mark.parametrize("key", KEYS)
def test_a_key_mentions_itself(key):
    assert keys(key) == [key]


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
    assert_linear(mentioned, piece * (250_000 // len(piece)))
