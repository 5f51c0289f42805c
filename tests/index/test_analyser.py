"""Terms of texts: a table of cases, and properties of every text."""

from __future__ import annotations

import string
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from souvenir.index.analyser import MAX_TERM_LENGTH, Analyser, QueryWord, WordKind
from tests.cases import for_all
from tests.growth import assert_linear

ENGLISH = Analyser()

TABLE = [
    # plain words: case, stop words, stems, punctuation around them
    ("The cats were running quickly", ["cat", "run", "quick"]),
    ("Hello, world! (again)", ["hello", "world", "again"]),
    ("“quoted” — dashed–text… end", ["quot", "dash", "text", "end"]),
    ("_emphasis_ and **bold** `code`", ["emphasi", "bold", "code"]),
    ("what is it", ["what", "is", "it"]),
    ("To be or not to be", ["not"]),
    ("", []),
    (" .,;!? -- __ ''", [".,;!?", "--", "__", "''"]),
    (":-)", [":-)"]),
    ("n't", ["n't"]),
    (" \u200b\u2800\ufe0f\n", []),
    # possessives and contractions
    ("Jane's dog", ["jane", "dog"]),
    ("Jane’s dog", ["jane", "dog"]),
    ("JANE'S DOG", ["jane", "dog"]),
    ("the Smiths' house", ["smith", "hous"]),
    ("I'm sure we'd've", ["sure"]),
    ("I can't, won't and don’t", ["can"]),
    ("couldn't", ["could"]),
    ("O'Brien o'clock", ["obrien", "o", "brien", "oclock", "o", "clock"]),
    # numbers, dates, times, versions, units
    ("1,000,000 people in 2023,2024", ["1000000", "peopl", "2023", "2024"]),
    ("in the 1990s", ["1990"]),
    ("the 1990's", ["1990"]),
    ("3.14", ["3.14", "3"]),
    ("2023-05-08", ["2023-05-08", "2023", "05", "08"]),
    ("05/08/2023.", ["05/08/2023", "05", "08", "2023"]),
    ("10:30", ["10:30", "10"]),
    ("555-1234", ["555-1234", "555", "1234"]),
    ("v2.1", ["v2.1", "2.1", "2"]),
    ("Version 2.1.0-beta", ["version", "2.1.0beta", "2.1.0", "2", "2.1", "beta"]),
    ("10.5GB", ["10.5gb", "10.5", "10", "gb"]),
    ("10am", ["10am", "10", "am"]),
    ("python3.11", ["python3.11", "3.11", "3", "python"]),
    ("vitamin B12", ["vitamin", "b12"]),
    (
        "2023-05-08T10:30:00Z",
        ["2023-05-08t10:30:00z", "2023-05-08", "2023", "05", "08", "10:30:00z", "10:30:00", "10", "10:30"],
    ),
    # emoji and symbols
    ("🎂 for Ana🎉🎉!", ["🎂", "ana", "🎉", "🎉"]),
    ("👍🏽 ❤️", ["👍", "❤"]),
    ("Lyon 🇫🇷, Bern 🇨🇭", ["lyon", "🇫🇷", "bern", "🇨🇭"]),
    ("€5 → £4", ["€", "5", "→", "£", "4"]),
    ("│ rows ├── files\ufffd", ["row", "file"]),
    ("क्षि 🎂", ["क्षि", "🎂"]),
    # names in parts
    ("Deploy on fly.io, please", ["deploy", "fly.io", "fli", "io", "pleas"]),
    ("fly.io", ["fly.io", "fli", "io"]),
    ("Node.js.", ["node.js", "node", "js"]),
    ("getUserName()", ["getusernam", "get", "user", "name"]),
    ("HTTPServer", ["httpserver", "http", "server"]),
    ("parseHTTP2Header", ["parsehttp2header", "2", "parsehttp", "pars", "http", "header"]),
    ("iPhone, eBay, PhD, PDFs", ["iphon", "phone", "ebay", "bay", "phd", "pdfs"]),
    ("snake_case", ["snakecas", "snake", "case"]),
    ("__init__", ["init"]),
    ("MAX_BODY_BYTES", ["maxbodybyt", "max", "bodi", "byte"]),
    ("kebab-case", ["kebabcas", "kebab", "case"]),
    ("wi-fi e-mail", ["wifi", "wi", "fi", "email", "e", "mail"]),
    ("COVID-19 UTF-8", ["covid19", "covid", "19", "utf8", "utf", "8"]),
    ("state-of-the-art", ["stateoftheart", "state", "art"]),
    ("--dry-run", ["dryrun", "dri", "run"]),
    ("U.S.A. at 5 p.m.", ["usa", "5", "pm"]),
    ("R&D", ["r&d", "r", "d"]),
    ("C++, C# and g++.", ["c++", "c", "c#", "c", "g++", "g"]),
    ("C++11", ["c++", "c", "11"]),
    ("jane.doe@example.org", ["jane.doe@example.org", "jane.doe", "jane", "doe", "example.org", "exampl", "org"]),
    ("src/app/main.py", ["src/app/main.py", "src", "app", "main.py", "main", "py"]),
    (r"C:\temp\log.txt", ["c", "temp\\log.txt", "temp", "log.txt", "log", "txt"]),
    ("https://example.org/a?b=c", ["https", "example.org/a", "example.org", "exampl", "org", "b", "c"]),
    ("wait...what", ["wait"]),
    ("std::vector", ["std", "vector"]),
    # Unicode: compatibility forms, diacritics, other scripts
    ("Café NAÏVE Ångström Łódź Øre straße", ["cafe", "naiv", "angstrom", "lodz", "ore", "strass"]),
    ("cafe\u0301", ["cafe"]),
    ("ＡＢＣ ﬁne x²", ["abc", "fine", "x2"]),
    ("co\u00adoper\u200date", ["cooper"]),
    ("1️⃣ ❤️", ["1", "❤"]),
    ("١٢٣ ۴۵", ["123", "45"]),
    ("Ёлка мой", ["елка", "мой"]),
    ("हिन्दी में", ["हिन्दी", "में"]),
    ("مُحَمَّد", ["محمد"]),
    # scripts without spaces
    ("我的上司叫赵雅琳。", ["我的", "的上", "上司", "司叫", "叫赵", "赵雅", "雅琳"]),
    ("好", ["好"]),
    ("手机号是13651039007。", ["手机", "机号", "号是", "13651039007"]),
    ("2024年4月", ["2024", "年", "4", "月"]),
    ("iPhone手机很好", ["iphon", "phone", "手机", "机很", "很好"]),
    ("ラーメンを食べた", ["ラー", "ーメ", "メン", "ンを", "を食", "食べ", "べた"]),
    ("ﾊﾞｽ", ["バス"]),
    ("안녕하세요 친구", ["안녕", "녕하", "하세", "세요", "친구"]),
    ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
]

BOMBS = {
    name: (unit * (50_000 // len(unit) + 1))[:50_000]
    for name, unit in {
        "dots": "a.",
        "underscores": "_",
        "one letter then underscores": "a" + "_" * 49_999,
        "snake": "a_",
        "kebab": "ab-",
        "camel": "aB",
        "camel in parts": "aB.",
        "acronyms": "HTTPa",
        "slashes": "a/",
        "at signs": "ab@",
        "every joint": "a/b@c.d-e1",
        "thousands": "1,000",
        "commas": "1,",
        "version": "1.",
        "time": "1:",
        "timestamps": "2023-05-08T10:",
        "possessives": "a's",
        "only possessives": "'s",
        "negations": "n't",
        "pluses": "a++",
        "hashes": "a#",
        "digits": "9",
        "digits and letters": "a9",
        "capitals": "A",
        "spaces": " ",
        "Han": "我",
        "Han and Latin": "我a",
        "Thai": "ก็",
        "Devanagari": "हि",
        "accents": "é",
        "dotted accents": "éB.",
        "unsorted marks": "\u0300\u0316",
        "halfwidth marks": "\uff9e\u0300",
        "ligatures of 18 letters": "\ufdfa ",
        "casefolding to two": "İ",
    }.items()
}

texts = st.text(
    st.one_of(
        st.characters(), st.sampled_from(string.ascii_letters + string.digits + " .-_'/@:,+#&’éß我手मिก็\u0301\u0316")
    ),
    max_size=200,
)


@pytest.mark.parametrize(("text", "terms"), TABLE)
def test_a_text_gives_these_terms(text: str, terms: list[str]) -> None:
    assert ENGLISH.terms(text) == terms


@pytest.mark.parametrize(("text", "terms"), TABLE)
def test_a_token_gives_the_same_terms_the_second_time(text: str, terms: list[str]) -> None:
    fresh = Analyser()
    assert fresh.terms(text) == fresh.terms(text) == terms


@for_all("mark", [".", ",", "!", "?", ";", ":", ")", '"', "'", "…", "。", "-", "_", "/"])
@for_all("token", ["fly.io", "word", "v2.1", "2023-05-08", "a@b.org", "C++", "getUserName", "手机"])
def test_punctuation_after_a_token_changes_nothing(token: str, mark: str) -> None:
    assert ENGLISH.terms(token + mark) == ENGLISH.terms(token)


@pytest.mark.parametrize(
    ("written", "also_written"),
    [("wi-fi", "wifi"), ("user_name", "userName"), ("get-user-id", "getUserId"), ("U.S.", "US"), ("GPT-4", "gpt4")],
)
def test_spellings_of_a_compound_name_share_its_whole_term(written: str, also_written: str) -> None:
    assert ENGLISH.terms(written)[0] == ENGLISH.terms(also_written)[0]


def test_a_query_word_has_its_spelling_and_whether_it_may_be_repaired() -> None:
    assert ENGLISH.query_words("Where did Jane's getUserName run in 2023?") == [
        QueryWord("jane", "jane", WordKind.PLAIN),
        QueryWord("getusername", "getusernam", WordKind.EXACT),
        QueryWord("get", "get", WordKind.PLAIN),
        QueryWord("user", "user", WordKind.PLAIN),
        QueryWord("name", "name", WordKind.PLAIN),
        QueryWord("run", "run", WordKind.PLAIN),
        QueryWord("2023", "2023", WordKind.EXACT),
    ]


def test_a_query_of_stop_words_keeps_them_and_never_repairs_them() -> None:
    words = ENGLISH.query_words("Who is she?")
    assert [word.term for word in words] == ENGLISH.terms("Who is she?") == ["who", "is", "she"]
    assert {word.kind for word in words} == {WordKind.STOP}


def test_a_query_looks_up_an_open_compound_by_its_parts() -> None:
    assert [word.term for word in ENGLISH.query_words("boundary-layer wi-fi")] == [
        "boundari",
        "layer",
        "wifi",
        "wi",
        "fi",
    ]


@pytest.mark.parametrize("name", ["free-will", "boundary-layer-2", "boundary_layer", "Jane-O'Brien"])
def test_a_query_looks_up_other_compounds_as_a_whole_too(name: str) -> None:
    assert [word.term for word in ENGLISH.query_words(name)] == ENGLISH.terms(name)


@pytest.mark.parametrize(
    ("language", "text", "terms"),
    [
        ("german", "Die Häuser größer", ["die", "haus", "gross"]),
        ("french", "Les chevaux mangeaient", ["le", "cheval", "mang"]),
        ("spanish", "canciones Niño", ["cancion", "nin"]),
        ("russian", "красивые дома", ["красив", "дом"]),
        ("hindi", "लड़कियाँ", ["लड़क"]),
        ("porter", "the generalizations", ["gener"]),
    ],
)
def test_other_languages_use_their_own_stemmer(language: str, text: str, terms: list[str]) -> None:
    assert Analyser(language).terms(text) == terms


def test_the_refusal_of_an_unknown_language_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no stemmer for 'klingon'.*english"):
        Analyser("klingon")


@given(texts)
@settings(max_examples=300)
def test_terms_of_any_text_are_short_unspaced_and_deterministic(text: str) -> None:
    terms = ENGLISH.terms(text)
    assert terms == Analyser().terms(text)
    assert all(0 < len(term) <= MAX_TERM_LENGTH and not any(map(str.isspace, term)) for term in terms)


@given(texts)
def test_the_terms_of_a_query_are_terms_of_the_same_text_in_the_same_order(text: str) -> None:
    rest = iter(ENGLISH.terms(text))
    assert all(word.term in rest for word in ENGLISH.query_words(text))


@given(st.text("aeouncåéñüçÅÉ ąłø", max_size=60))
def test_composed_and_decomposed_text_give_the_same_terms(text: str) -> None:
    assert ENGLISH.terms(unicodedata.normalize("NFD", text)) == ENGLISH.terms(unicodedata.normalize("NFC", text))


@given(st.lists(st.text(string.ascii_letters + string.digits, min_size=1, max_size=10), max_size=12))
def test_the_terms_of_a_text_are_those_of_its_words_in_order(words: list[str]) -> None:
    content = [word for word in words if ENGLISH.query_words(word)[0].kind is not WordKind.STOP]
    if content:
        assert ENGLISH.terms(" ".join(words)) == [term for word in content for term in ENGLISH.terms(word)]


@pytest.mark.parametrize("name", BOMBS)
def test_analysis_time_is_linear_in_the_length_of_a_text(name: str) -> None:
    """The time per character must not grow with the length."""
    assert_linear(lambda text: Analyser().terms(text), BOMBS[name])
    assert_linear(lambda text: Analyser().query_words(text), BOMBS[name])


def test_a_long_token_is_cut_and_not_split_at_capitals() -> None:
    assert ENGLISH.terms("aB" * 500) == [("ab" * 500)[:MAX_TERM_LENGTH]]


def test_the_token_cache_is_bounded_and_does_not_change_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("souvenir.index.analyser.CACHED_TOKENS", 5)
    analyser = Analyser()
    for text, terms in TABLE * 2:
        assert analyser.terms(text) == terms


def test_an_analyser_is_thread_safe() -> None:
    analyser = Analyser()
    endings = ("ing", "ed", "ional", "izations")
    sentences = [f"walk{chr(97 + n)}{ending} nation{ending}" for n in range(26) for ending in endings]
    expected = [Analyser().terms(sentence) for sentence in sentences]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: [analyser.terms(sentence) for sentence in sentences], range(8)))
    assert answers == [expected] * 8
