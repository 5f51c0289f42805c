"""The kind that the clause around a name gives it, and names in small letters and in Chinese."""

from __future__ import annotations

import pytest

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.extraction import mentioned

NAME, ORGANISATION, PERSON = ConceptKind.NAME, ConceptKind.ORGANISATION, ConceptKind.PERSON
PHRASE, PLACE, PRODUCT = ConceptKind.PHRASE, ConceptKind.PLACE, ConceptKind.PRODUCT


def kinds(text: str) -> dict[str, ConceptKind]:
    return {mention.key: mention.kind for mention in mentioned(text)}


@pytest.mark.parametrize(
    ("text", "key", "kind"),
    [
        ("We booked the cottage through Zorblax.", "zorblax", ORGANISATION),
        ("I retired from Zorblax in May.", "zorblax", ORGANISATION),
        ("The interview for the Senior Zorblax position is over.", "senior zorblax", NAME),
        ("We meet in the Zorblax Building.", "zorblax building", PLACE),
        ("They speak of Nation Building there.", "nation building", NAME),
        ("The vet at Zorblax said it heals.", "zorblax", ORGANISATION),
        ("The call with Zorblax moved to Thursday.", "zorblax", NAME),
        ("Can you email Zorblax about the refund?", "zorblax", ORGANISATION),
        ("Zorblax Quibbix sent me a bill.", "zorblax quibbix", ORGANISATION),
        ("The manuscript went to Zorblax.", "zorblax", ORGANISATION),
        ("We beat Zorblax in the final.", "zorblax", ORGANISATION),
        ("The Zorblax contract is signed.", "zorblax", ORGANISATION),
        ("Marlow Tigers play on Sunday.", "marlow tigers", ORGANISATION),
        ("Hab den Ranzen bei Zorblax bestellt.", "zorblax", ORGANISATION),
        ("Ich war bei Heizung Kramer.", "heizung kramer", ORGANISATION),
        ("Wir nehmen den Bus, mein Bruder fährt selbst.", "bus", PHRASE),
        ("Das ist kein Witz, der Tierarzt sagt das.", "witz", PHRASE),
        ("De verzekering bij Zorblax loopt af.", "zorblax", ORGANISATION),
        ("La silla la compré en Zorblax ayer.", "zorblax", ORGANISATION),
        ("The hike from Zorblax to Quibbix is long.", "quibbix", PLACE),
        ("She lives in a home near Zorblax.", "zorblax", PLACE),
        ("Dinner at the Zorblax was lovely.", "zorblax", PLACE),
        ("Wir fahren im August nach Zorblax.", "zorblax", PLACE),
        ("I uploaded all drawings to Zorblax.", "zorblax", PRODUCT),
        ("I read them in Zorblax.", "zorblax", PRODUCT),
        ("The tickets are on Zorblax.", "zorblax", PRODUCT),
        ("Ich habe es mit Zorblax erstellt.", "zorblax", PRODUCT),
        ("I ordered it on Ebay.", "ebay", PRODUCT),
        ("They referred me to the Zorblax Quibbix.", "zorblax quibbix", ORGANISATION),
        ("Wir haben das Sofa bestellt und den Teppich bei Zorblax.", "zorblax", ORGANISATION),
        ("We bought new tyres from Zorblax.", "zorblax", ORGANISATION),
        ("The boiler was made by HomeZorb.", "homezorb", ORGANISATION),
        ("We like Zorb&Us a lot.", "zorb&us", ORGANISATION),
        ("Sie geht in die Waldkita Zorblax.", "waldkita zorblax", ORGANISATION),
        ("Zij zit op basisschool Zorblax.", "zorblax", ORGANISATION),
        ("Wir sind bei Oma in Bad Zorblax.", "bad zorblax", PLACE),
        ("I set up authentication with Zorblax.", "zorblax", PRODUCT),
        ("I have a pension through Zorblax.", "zorblax", ORGANISATION),
        ("We got into the Zorblax accelerator.", "zorblax", ORGANISATION),
        ("Ik ben verwezen naar het Zorblax.", "zorblax", ORGANISATION),
        ("The tests for XSS will be important.", "xss", PHRASE),
        ("De batterij van mn Gazelle is op.", "gazelle", PRODUCT),
        ("The glossary is in zorblaQ.", "zorblaq", PRODUCT),
        ("The monolith, Zorblax, stays.", "zorblax", PRODUCT),
        ("She wrote the release notes for Zorblax.", "zorblax", PRODUCT),
        ("They have a flat in Zorblax.", "zorblax", PLACE),
        ("We stopped in Zorblax, Portugal, on the way.", "zorblax", PLACE),
        ("We slept two nights in Zorblax.", "zorblax", PLACE),
        ("We are evaluating Zorblax.", "zorblax", PRODUCT),
        ("Ik lees de krant op Zorblax.", "zorblax", PRODUCT),
        ("The Dyson makes a noise.", "dyson", PRODUCT),
        ("Hij wil de oude Volvo verkopen.", "volvo", PRODUCT),
        ("It came from Instructor Anna.", "instructor anna", PERSON),
        ("i went to currys, it was shut", "currys", ORGANISATION),
        ("heb net een mail van vattenfall gekregen", "vattenfall", ORGANISATION),
    ],
)
def test_the_clause_around_a_name_tells_its_kind(text, key, kind):
    assert kinds(text)[key] is kind


@pytest.mark.parametrize(
    ("text", "key", "kind"),
    [
        ("my kindle died", "kindle", PRODUCT),
        ("we met on zoom", "zoom", PRODUCT),
        ("got an iphone 15 pro max", "iphone 15 pro max", PRODUCT),
        ("The galaxy s23 ultra is mine.", "galaxy s23 ultra", PRODUCT),
        ("sony bravia xr55 ist da", "sony bravia xr55", PRODUCT),
        ("I got the bosch drill x20 now", "bosch drill x20", PRODUCT),
        ("Now dhl lost it.", "dhl", ORGANISATION),
        ("the apple watch is mine", "apple watch", PRODUCT),
        ("picked him up at st brigid's late again", "st brigid", ORGANISATION),
        ("First Direct called me.", "first direct", ORGANISATION),
        ("need a library like zorblax for it", "zorblax", PRODUCT),
    ],
)
def test_names_in_small_letters_are_found_where_no_common_word_may_stand(text, key, kind):
    assert kinds(text)[key] is kind


@pytest.mark.parametrize(
    "text", ["I want to excel in it", "solve it step by step", "how about you", "the best buy yet"]
)
def test_words_that_are_also_names_are_none_elsewhere(text):
    assert not {ORGANISATION, PRODUCT} & {*kinds(text).values()}


@pytest.mark.parametrize(
    ("text", "key", "kind"),
    [
        ("比Excel方便多了", "excel", PRODUCT),
        ("我在阿里云上买了服务器", "阿里云", PRODUCT),
        ("新买的小米14拍照不错", "小米14", PRODUCT),
        ("戴森吹风机坏了", "戴森", PRODUCT),
        ("我换了一台戴森", "戴森", PRODUCT),
        ("我用微医App约了", "微医", PRODUCT),
        ("孩子在朝阳实验小学读书", "朝阳实验小学", ORGANISATION),
        ("我买了辆红旗H5", "红旗h5", PRODUCT),
        ("我晚点发飞书给你", "飞书", PRODUCT),
        ("她报了小提琴课", "小提琴课", PHRASE),
        ("周末的夏令营还没有通知", "夏令营", ConceptKind.EVENT),
    ],
)
def test_names_in_chinese_texts_have_a_kind(text, key, kind):
    assert kinds(text)[key] is kind


@pytest.mark.parametrize("text", ["公司今年上市了", "我在走路去那边", "客服说明天修手机", "同事和邻居都来"])
def test_chinese_words_without_a_particular_meaning_are_no_names(text):
    assert not {NAME, PERSON, PLACE, PRODUCT} & {*kinds(text).values()}


def test_a_common_english_word_in_a_chinese_text_is_no_name():
    assert "offer" not in kinds("给我发个Offer")


@pytest.mark.parametrize(
    ("text", "key", "kind"),
    [
        ("He adopted her from a shelter.", "shelter", ORGANISATION),
        ("I opened my own studio.", "studio", ORGANISATION),
        ("Pharmacy changed my pills.", "pharmacy", ORGANISATION),
        ("It is in the village hall.", "village hall", PLACE),
        ("We walked to the beach.", "beach", PLACE),
        ("It is by the station.", "station", PLACE),
        ("They fixed our town.", "town", PLACE),
        ("bei der kdv war heute zu", "kdv", ORGANISATION),
        ("we slept well in bad aibling", "bad aibling", PLACE),
    ],
)
def test_nouns_for_a_particular_organisation_or_place_have_its_kind(text, key, kind):
    assert kinds(text)[key] is kind


@pytest.mark.parametrize(
    "text", ["Cars fill the city.", "The docking station broke.", "I pick from a group of five.", "We need a hotel."]
)
def test_nouns_for_no_particular_organisation_or_place_have_none(text):
    assert not {ORGANISATION, PLACE} & {*kinds(text).values()}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("wir treffen uns in der zorblaxstraße um acht", "zorblaxstrasse"),
        ("Ich wohne in der Zorblaxstraße 12 in Köln.", "zorblaxstrasse 12"),
        ("my flat on zorblaxallee is cold", "zorblaxallee"),
        ("ik woon aan de zorblaxgracht", "zorblaxgracht"),
        ("vivo en calle mayor", "calle mayor"),
        ("quedamos en la calle mayor 12", "calle mayor 12"),
        ("他住在春熙大道附近", "春熙大道"),
    ],
)
def test_streets_are_places_in_small_letters_too(text, key):
    assert kinds(text)[key] is PLACE


@pytest.mark.parametrize(
    "text", ["mein heimweg war lang", "de file op de snelweg", "en la calle hace frío", "trabajo en plaza fija"]
)
def test_nouns_that_end_like_streets_are_no_places(text):
    assert PLACE not in kinds(text).values()


def test_a_german_noun_that_ends_like_a_street_is_a_phrase():
    assert kinds("Der Parkplatz am Kaufhaus war voll.")["parkplatz"] is PHRASE


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("They use zorbVet at the clinic.", "zorbvet"),
        ("I read the sheets in forZorb now.", "forzorb"),
        ("My iZorb broke.", "izorb"),
        ("We load it with zorbizes v5.3.2.", "zorbizes"),
        ("We upgraded to zorb-manager 1.14 last week.", "zorb manager"),
    ],
)
def test_names_with_a_capital_inside_or_a_version_are_products(text, key):
    assert kinds(text)[key] is PRODUCT


@pytest.mark.parametrize(
    "text",
    [
        "The fetchZorb call is slow.",
        "I keep it in localStorage for now.",
        "We loop with forEach there.",
        "zorbVet calls zorbData and then it hangs.",
        "My body-fat is 22.5 now.",
        "It supports 1.2.3 only.",
    ],
)
def test_code_and_figures_are_no_products(text):
    assert PRODUCT not in kinds(text).values()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("der schrank von fliesen-zorbler", "fliesen zorbler"),
        ("hab es bei autohaus zorbler gekauft", "autohaus zorbler"),
        ("bij bakkerij zorbler gehaald", "bakkerij zorbler"),
        ("got the sofa from zorbler & quibb", "zorbler & quibb"),
        ("got the sofa from lisbon & zorbler", "lisbon & zorbler"),
        ("dongels van tp-link", "tp link"),
    ],
)
def test_firms_in_small_letters_are_found_after_a_preposition(text, key):
    assert kinds(text)[key] is ORGANISATION


@pytest.mark.parametrize(
    "text", ["bei autohaus gekauft", "bij bakkerij bestellen", "from salt & vinegar", "van brood & kaas"]
)
def test_other_words_after_a_preposition_and_a_trade_are_no_names(text):
    assert not [key for key in kinds(text) if " " in key]


def test_a_verb_is_no_line_of_a_maker():
    assert "siemens" in kinds("the siemens gave c3 out")
