"""Tokenise a text, and recognise items with a fixed form in any language: dates, quantities, hashtags, code.

Dates and quantities are no concepts; they are recognised so that their words are not taken for names and phrases.

One pattern splits a text into these items, words, and marks. Every repeat in it is bounded and no two alternatives
share a long prefix, so that matching is linear in the length of any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from souvenir.core.dates import FOREIGN_MONTHS, MONTH_ABBREVIATIONS, MONTH_NAMES
from souvenir.core.types import ConceptKind, Mentioned
from souvenir.knowledge.recognition.gazetteer import COMMON_WORDS, KNOWN
from souvenir.knowledge.recognition.spelling import MAX_KEY_CHARS, key_of
from souvenir.knowledge.recognition.vocabulary import AUXILIARIES


class Sort(Enum):
    """The role of a token for the rules of names and phrases."""

    WORD = "word"
    MARK = "mark"
    QUOTE = "quote"
    END = "end"
    ITEM = "item"
    VOID = "void"


class Token(NamedTuple):
    """A span of a text; a tuple, because there are many.

    :param word: In lower case, without a possessive ending; contractions are kept.
    :param mention: The recognised item, unless it is a date or a quantity.
    """

    text: str
    word: str
    sort: Sort
    start: int
    mention: Mentioned | None


_NAMED_MONTH = (
    "(?:"
    + "|".join(sorted(MONTH_NAMES, key=len, reverse=True))
    + r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
_FOREIGN_MONTH = "|".join(sorted(FOREIGN_MONTHS, key=len, reverse=True))
_SURE_MONTH = "(?:January|February|July|September|October|November|December)"
_BEFORE_TIME = "(?:in|on|since|by|until|till|last|next|this|of|from|during|before|after|around|every|early|late|mid)"
_YEAR = r"(?:19|20)\d\d(?![\w%])(?![.,:/-]\d)"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_NUMBER = r"\d{1,12}(?:,\d{3}){0,4}(?:\.\d{1,9})?"

_UNITS = (
    "km kms kilometer kilometers kilometre kilometres 公里 千米 m meter meters metre metres 米 cm centimeter "
    "centimeters centimetre centimetres 厘米 mm millimeter millimeters millimetre millimetres 毫米 mi mile miles ft "
    "foot feet inch inches kg kgs kilo kilos kilogram kilograms 公斤 千克 g gram grams 克 mg milligram milligrams lb "
    "lbs pound pounds oz ounce ounces l liter liters litre litres 升 ml milliliter milliliters 毫升 ms millisecond "
    "milliseconds s sec secs second seconds 秒 min mins minute minutes 分钟 h hr hrs hour hours 小时 day days 天 week "
    "weeks wk wks 周 星期 month months 个月 yr yrs year years yo 岁 % percent pct °c celsius ℃ °f fahrenheit ℉ kb mb "
    "megabytes megabyte gb gigabytes gigabyte tb terabytes terabyte ghz mhz hz kw kwh mph km/h kmh kph px pixels "
    "pixel calories calorie kcal dollars dollar usd bucks euros euro eur quid gbp 元 块 yuan rmb 万元"
)
_UNIT = "(?:" + "|".join(re.escape(unit) for unit in sorted(_UNITS.split(), key=len, reverse=True)) + ")"
_MONEY_BEFORE = "$€£¥"

_EXTENSIONS = (
    "py|ipynb|js|jsx|ts|tsx|mjs|css|scss|html?|json|jsonl|ya?ml|toml|ini|cfg|conf|env|md|rst|txt|csv|tsv|sql|db|sqlite3?|"
    "sh|bash|zsh|ps1|bat|c|h|cc|cpp|hpp|cs|java|kt|go|rs|rb|php|pl|lua|swift|scala|r|vue|svelte|xml|svg|png|jpe?g|gif|"
    "webp|pdf|docx?|xlsx?|pptx?|zip|tar|gz|log|lock|exe|dll|so|jar|whl|onnx|bin|dockerfile|gitignore"
)
_TOP_DOMAINS = "com|org|net|io|dev|ai|app|edu|gov|co|uk|de|fr|eu|info|me|tv|cloud|sh|xyz|tech|cn|jp"
_LETTER = "A-Za-z\u00c0-\u024f\u0370-\u052f\u1e00-\u1fff"
"""Latin, Greek and Cyrillic: the scripts that have capitals and spaces."""

_START = r"(?<![A-Za-z0-9_])"

_MONTH_AGAIN = r"(?!\w)(?!\.? (?:the )?\d)"
_TITLED_MONTH = "(?:" + "|".join(name.title() for name in MONTH_NAMES) + ")"

_NO_CAPITALISED = "|".join(
    (
        *(f"{name.title()} " for name in _BEFORE_TIME.strip("(?:)").split("|")),
        *(name.title() for name in (*MONTH_NAMES, *MONTH_ABBREVIATIONS)),
    )
)
"""Beginnings of capitalised words that may begin a date."""

_SMALL_WORDS = "(?:of|the|and|a|an|in|to|for|on|with|at|by|is|from|or)"

_BLANK = r"(?!\n[A-Z][a-z]{1,20}:)\s(?=\w)"
"""Whitespace before a word; not the end of a line before a field of a form, such as "Club: "."""

_ALTERNATIVES: tuple[tuple[str, str], ...] = (
    # The most frequent tokens come first, for speed: whitespace, and words without signs that begin no date.
    ("blank", _BLANK),
    ("plain", rf"(?!(?:{_BEFORE_TIME}|{_NAMED_MONTH})[ .])[a-z]{{1,40}}(?=[ ,;!?\n]|$)"),
    ("capitalised", rf"(?!{_NO_CAPITALISED})[A-Z][a-z]{{1,40}}(?=[ ,;!?\n]|$)"),
    ("url", r"https?://(?P<host>[A-Za-z0-9.-]{1,253})[^\s<>\"')\]]{0,2000}"),
    ("email", _START + r"[A-Za-z0-9.+_-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"),
    ("placeholder", r"\[[A-Z][A-Z_ ]{1,40}\d{0,4}\]|<[A-Z][A-Z_ ]{1,40}\d{0,4}>|</?[A-Za-z][^<>\n]{0,80}>"),
    ("titled", rf"[\"“](?P<title>[A-Z][\w'-]{{0,30}}(?: (?:[A-Z][\w'-]{{0,30}}|{_SMALL_WORDS})){{1,6}})[.,!?]?[\"”]"),
    ("command", r"\\[A-Za-z]{1,40}"),
    ("ticked", r"`(?P<code>[A-Za-z_@][\w.@/:-]{1,60})(?:\(\))?`"),
    ("hashtag", r"(?<![\w&/#])#(?P<tag>[^\W\d_]\w{1,49})"),
    ("handle", r"(?<![\w@.])@(?P<account>[A-Za-z]\w{1,30})(?![\w@])"),
    (
        "iso",
        _START + r"\d{4}(?P<joint>[-/])(?:0?[1-9]|1[0-2])(?:(?P=joint)(?:0?[1-9]|[12]\d|3[01]))?"
        r"(?:T[\d:.]{4,15}Z?)?(?![\w/-])",
    ),
    ("han", r"\d{4}年(?:\d\d?月(?:\d\d?[日号])?)?|\d\d?月\d\d?[日号]"),
    (
        "mdy",
        _START + rf"(?i:{_NAMED_MONTH}) (?:the )?{_DAY}(?:st|nd|rd|th)?(?!\w|[.:]\d)(?:,? {_YEAR})?",
    ),
    ("dmy", _START + rf"{_DAY}(?:st|nd|rd|th)? (?:of )?(?i:{_NAMED_MONTH})(?!\w)(?:,? {_YEAR})?"),
    (
        "foreign_day",
        _START + rf"{_DAY}\.? (?:de )?(?i:{_FOREIGN_MONTH})(?!\w)(?:,? (?:de )?{_YEAR})?",
    ),
    ("my", _START + rf"(?i:{_NAMED_MONTH})(?: of|,)? {_YEAR}"),
    ("numeric", _START + r"\d\d?[/.]\d\d?[/.](?:19|20)\d\d(?![\w/-])"),
    ("year", rf"{_START}(?i:{_BEFORE_TIME}) {_YEAR}|^{_YEAR}$"),
    (
        "month",
        rf"{_START}(?i:{_BEFORE_TIME}) {_TITLED_MONTH}{_MONTH_AGAIN}|{_START}{_SURE_MONTH}{_MONTH_AGAIN}",
    ),
    (
        "clock",
        _START + r"\d{1,2}(?::\d\d){1,2} ?(?i:[ap]\.?m\.?)?(?!\w)|" + _START + r"\d{1,2} ?(?i:[ap]\.?m\.?)(?!\w)",
    ),
    ("money", rf"[{_MONEY_BEFORE}] ?{_NUMBER}(?: ?(?i:k|thousand|m|million|billion|bn)(?!\w))?"),
    ("quantity", rf"(?<![A-Za-z0-9_.]){_NUMBER}[ -]?(?i:{_UNIT})(?![A-Za-z0-9_])"),
    (
        "version",
        _START + r"(?P<v>[vV]\d{1,4}(?:\.\d{1,6}){0,3}|\d{1,4}(?:\.\d{1,6}){2,3}(?:-?(?:rc|beta|alpha)\.?\d{0,3})?)"
        r"(?!\.?\w)",
    ),
    (
        "file",
        _START
        + rf"(?:[\w.~-]{{0,40}}/){{0,8}}(?P<base>[\w-]{{0,60}}(?:\.[\w-]{{1,30}}){{0,3}}\.(?:{_EXTENSIONS}))(?!\w)",
    ),
    ("domain", _START + rf"[A-Za-z0-9-]{{2,63}}(?:\.[a-z0-9-]{{1,63}}){{0,3}}\.(?:{_TOP_DOMAINS})(?!\w)"),
    ("call", _START + r"(?P<called>[A-Za-z_]\w{0,60}(?:\.\w{1,60}){0,4})\(\)"),
    ("snake", r"(?<![A-Za-z0-9])_{0,2}[A-Za-z][A-Za-z0-9]{0,40}(?:_{1,2}[A-Za-z0-9]{1,40}){1,8}_{0,2}(?![A-Za-z0-9])"),
    ("camel", _START + r"[a-z]{2,30}[a-z0-9]{0,10}(?:[A-Z][a-z0-9]{0,30}){1,8}(?![A-Za-z0-9_])"),
    ("sharp", _START + r"[A-Za-z](?:\+\+|#)(?!\w)"),
    ("word_initials", _START + r"(?!A\.M|P\.M|[UE]\.)(?:[A-Z]\.){2,3}(?= [A-Z][a-z])"),
    ("initials", _START + r"(?:[A-Za-z]\.){2,6}"),
    ("abbreviation", _START + r"(?:Mr|Mrs|Ms|Dra?|Sra?|Srta|Prof|Rev|Mevr|Dhr|Mme|St|vs|etc|approx|e\.g|i\.e)\.(?= )"),
    ("word", rf"[{_LETTER}][{_LETTER}0-9\u0300-\u036f]{{0,60}}(?:['&-][{_LETTER}0-9\u0300-\u036f]{{1,60}}){{0,6}}"),
    ("numbered", _START + r"\d{1,3}-?[A-Z][a-z]{4,30}(?![A-Za-z0-9_])"),
    ("number", r"[.,+-]?\d(?:[0-9A-Za-z_.,:%/-]{0,60}[0-9A-Za-z_%])?"),
    ("end", r"[.!?;\n\r\u3002\uff01\uff1f\uff1b:]+|\s[-*•–—]\s|…"),
    ("quote", r"[\"“”«»「」『』《》]"),
    ("mark", r"[^\w\s]"),
    ("other", r"\w"),
)
_FOLLOWED_BY_BLANK = ("plain", "capitalised", "word")
"""The most frequent tokens take the blank after them, which else would be a match of its own."""

_TOKENS = re.compile(
    "|".join(
        f"(?P<{name}>{pattern})" + (f"(?:{_BLANK})?" if name in _FOLLOWED_BY_BLANK else "")
        for name, pattern in _ALTERNATIVES
    )
)


def tokens(text: str) -> Iterator[Token]:
    """Split a normalised text into tokens, without whitespace."""
    for match in _TOKENS.finditer(text):
        name = match.lastgroup or "other"
        if name == "blank":
            continue
        text, start = match[name], match.start()
        if name == "plain":
            yield Token(text, text, Sort.WORD, start, None)
            continue
        if name == "capitalised":
            yield Token(text, text.lower(), Sort.WORD, start, None)
            continue
        read = _READ.get(name)
        found = read(match) if read else None
        sort = Sort.ITEM if found else _SORTS.get(name, Sort.VOID)
        yield Token(text, _word(text) if sort is Sort.WORD else "", sort, start, found)


def _word(text: str) -> str:
    word = text.casefold()
    return word if word in AUXILIARIES else word.removesuffix("'s")


_SORTS = {
    "plain": Sort.WORD,
    "word": Sort.WORD,
    "numbered": Sort.WORD,
    "abbreviation": Sort.WORD,
    "word_initials": Sort.WORD,
    "end": Sort.END,
    "quote": Sort.QUOTE,
    "mark": Sort.MARK,
    **dict.fromkeys(("iso", "han", "mdy", "dmy", "my", "numeric", "year", "month", "money", "quantity"), Sort.ITEM),
}

_Found = Mentioned | None


def _mention(key: str, form: str, kind: ConceptKind) -> _Found:
    key = key.casefold().strip()
    return Mentioned(key[:MAX_KEY_CHARS], form[:MAX_KEY_CHARS], kind) if key else None


def _code(group: str) -> Callable[[re.Match[str]], _Found]:
    return lambda match: _mention(match[group].removesuffix("()"), match[group], ConceptKind.CODE)


def _known(match: re.Match[str]) -> _Found:
    """Return a well-known name that looks like code: Node.js, macOS, Booking.com."""
    name = match[0].strip("`").removesuffix("()")
    kind = KNOWN.get(name.casefold()) if name.casefold() not in COMMON_WORDS else None
    return _mention(key_of(name), name, kind) if kind is not None else None


def _known_or(read: Callable[[re.Match[str]], _Found]) -> Callable[[re.Match[str]], _Found]:
    return lambda match: _known(match) or read(match)


def _host(match: re.Match[str]) -> _Found:
    host = match["host"].strip(".-").removeprefix("www.")
    return _mention(host, host, ConceptKind.CODE)


def _domain(match: re.Match[str]) -> _Found:
    return _mention(match["domain"].removeprefix("www."), match["domain"], ConceptKind.CODE)


def _file(match: re.Match[str]) -> _Found:
    """Use the last part of a path as key, so that `src/app.py` and `app.py` are one concept."""
    return _mention(match["base"], match[0], ConceptKind.CODE)


def _title(match: re.Match[str]) -> _Found:
    """Return a title in quotes in which every word is capitalised."""
    return _mention(key_of(match["title"]), match["title"], ConceptKind.WORK)


def _initials(match: re.Match[str]) -> _Found:
    return _mention(match[0].rstrip("."), match[0], ConceptKind.NAME) if match[0].isupper() else None


def _camel(match: re.Match[str]) -> _Found:
    """Return code, or a product whose only capital is the last letter: memoQ."""
    is_brand = match["camel"][:-1].islower() and match["camel"][:-1].isalpha()
    return _mention(match["camel"], match["camel"], ConceptKind.PRODUCT if is_brand else ConceptKind.CODE)


_BRAND = re.compile("([a-z]{3,10})[A-Z][a-z]{2,12}")
_FOR = "for"
_NO_BRANDS = frozenset("forEach forIn forOf".split())
_STARTS_OF_CODE = frozenset("idx req res arr elem env config param params callback async num obj dest prev".split())


def is_brand(form: str) -> bool:
    """Return True for the name of a product that only looks like code: ezyVet, forScore, but not localStorage."""
    match = _BRAND.fullmatch(form)
    if match is None or form in _NO_BRANDS:
        return False
    return match[1] == _FOR or (match[1] not in COMMON_WORDS and match[1] not in _STARTS_OF_CODE)


def _hashtag(match: re.Match[str]) -> _Found:
    """Return None for a colour."""
    tag = match["tag"]
    if len(tag) in (3, 6) and re.fullmatch("[0-9a-fA-F]+", tag):
        return None
    return _mention("#" + tag, match[0], ConceptKind.HASHTAG)


def _handle(match: re.Match[str]) -> _Found:
    return _mention(match["account"], match[0], ConceptKind.NAME)


_READ: dict[str, Callable[[re.Match[str]], _Found]] = {
    "url": _host,
    "ticked": _known_or(_code("code")),
    "hashtag": _hashtag,
    "handle": _handle,
    "version": _code("v"),
    "file": _known_or(_file),
    "domain": _known_or(_domain),
    "call": _code("called"),
    "snake": _code("snake"),
    "camel": _known_or(_camel),
    "sharp": _code("sharp"),
    "initials": _initials,
    "titled": _title,
}
