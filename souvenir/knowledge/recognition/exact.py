"""Tokenise a text, and recognise items with a fixed form in any language: dates, quantities, hashtags, code.

One pattern splits a text into these items, words, and marks. Every repeat in it is bounded and no two alternatives
share a long prefix, so that matching is linear in the length of any text.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from souvenir.core.dates import FOREIGN_MONTHS, MONTH_NAMES, MONTHS, is_day_first
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
    MENTION = "mention"
    VOID = "void"


class Token(NamedTuple):
    """A span of a text; a tuple, because there are many.

    :param word: In lower case, without a possessive ending; contractions are kept.
    :param mention: The recognised item, for `Sort.MENTION` only.
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

_UNIT_NAMES = {
    "km": "km kms kilometer kilometers kilometre kilometres 公里 千米",
    "m": "m meter meters metre metres 米",
    "cm": "cm centimeter centimeters centimetre centimetres 厘米",
    "mm": "mm millimeter millimeters millimetre millimetres 毫米",
    "miles": "mi mile miles",
    "feet": "ft foot feet",
    "inches": "inch inches",
    "kg": "kg kgs kilo kilos kilogram kilograms 公斤 千克",
    "g": "g gram grams 克",
    "mg": "mg milligram milligrams",
    "lbs": "lb lbs pound pounds",
    "oz": "oz ounce ounces",
    "l": "l liter liters litre litres 升",
    "ml": "ml milliliter milliliters 毫升",
    "ms": "ms millisecond milliseconds",
    "seconds": "s sec secs second seconds 秒",
    "minutes": "min mins minute minutes 分钟",
    "hours": "h hr hrs hour hours 小时",
    "days": "day days 天",
    "weeks": "week weeks wk wks 周 星期",
    "months": "month months 个月",
    "years": "yr yrs year years yo 岁",
    "%": "% percent pct",
    "°c": "°c celsius ℃",
    "°f": "°f fahrenheit ℉",
    "kb": "kb",
    "mb": "mb megabytes megabyte",
    "gb": "gb gigabytes gigabyte",
    "tb": "tb terabytes terabyte",
    "ghz": "ghz",
    "mhz": "mhz",
    "hz": "hz",
    "kw": "kw",
    "kwh": "kwh",
    "mph": "mph",
    "km/h": "km/h kmh kph",
    "px": "px pixels pixel",
    "calories": "calories calorie kcal",
    "$": "dollars dollar usd bucks",
    "€": "euros euro eur",
    "£": "quid gbp",
    "元": "元 块 yuan rmb",
    "万元": "万元",
}
_UNITS = {spelling: unit for unit, spellings in _UNIT_NAMES.items() for spelling in spellings.split()}
_UNIT = "(?:" + "|".join(re.escape(spelling) for spelling in sorted(_UNITS, key=len, reverse=True)) + ")"
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

_SMALL_WORDS = "(?:of|the|and|a|an|in|to|for|on|with|at|by|is|from|or)"

_ALTERNATIVES: tuple[tuple[str, str], ...] = (
    # The most frequent tokens come first, for speed: whitespace, and lower-case words that begin no date.
    ("blank", r"\s(?=\w)"),
    ("plain", rf"(?!(?:{_BEFORE_TIME}|{_NAMED_MONTH})[ .])[a-z]{{1,40}}(?=[ ,;!?\n]|$)"),
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
        _START + r"(?P<y1>\d{4})(?P<joint>[-/])(?P<m1>0?[1-9]|1[0-2])(?:(?P=joint)(?P<d1>0?[1-9]|[12]\d|3[01]))?"
        r"(?:T[\d:.]{4,15}Z?)?(?![\w/-])",
    ),
    ("han", r"(?P<y2>\d{4})年(?:(?P<m2>\d\d?)月(?:(?P<d2>\d\d?)[日号])?)?|(?P<m3>\d\d?)月(?P<d3>\d\d?)[日号]"),
    (
        "mdy",
        _START + rf"(?P<m4>(?i:{_NAMED_MONTH})) (?:the )?(?P<d4>{_DAY})(?:st|nd|rd|th)?(?!\w|[.:]\d)"
        rf"(?:,? (?P<y4>{_YEAR}))?",
    ),
    (
        "dmy",
        _START + rf"(?P<d5>{_DAY})(?:st|nd|rd|th)? (?:of )?(?P<m5>(?i:{_NAMED_MONTH}))(?!\w)(?:,? (?P<y5>{_YEAR}))?",
    ),
    (
        "foreign_day",
        _START + rf"(?P<d10>{_DAY})\.? (?:de )?(?P<m11>(?i:{_FOREIGN_MONTH}))(?!\w)"
        rf"(?:,? (?:de )?(?P<y10>{_YEAR}))?",
    ),
    ("my", _START + rf"(?P<m6>(?i:{_NAMED_MONTH}))(?: of|,)? (?P<y6>{_YEAR})"),
    ("numeric", _START + r"(?P<a7>\d\d?)[/.](?P<b7>\d\d?)[/.](?P<y7>(?:19|20)\d\d)(?![\w/-])"),
    ("year", rf"{_START}(?i:{_BEFORE_TIME}) (?P<y8>{_YEAR})|^(?P<y9>{_YEAR})$"),
    (
        "month",
        rf"{_START}(?i:{_BEFORE_TIME}) (?P<m9>{_TITLED_MONTH}){_MONTH_AGAIN}"
        rf"|{_START}(?P<m10>{_SURE_MONTH}){_MONTH_AGAIN}",
    ),
    (
        "clock",
        _START + r"\d{1,2}(?::\d\d){1,2} ?(?i:[ap]\.?m\.?)?(?!\w)|" + _START + r"\d{1,2} ?(?i:[ap]\.?m\.?)(?!\w)",
    ),
    (
        "money",
        rf"(?P<sign>[{_MONEY_BEFORE}]) ?(?P<sum>{_NUMBER})(?: ?(?P<scale>(?i:k|thousand|m|million|billion|bn))(?!\w))?",
    ),
    ("quantity", rf"(?<![A-Za-z0-9_.])(?P<count>{_NUMBER})[ -]?(?P<unit>(?i:{_UNIT}))(?![A-Za-z0-9_])"),
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
    ("initials", _START + r"(?:[A-Za-z]\.){2,6}"),
    ("abbreviation", _START + r"(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|approx|e\.g|i\.e)\.(?= )"),
    ("word", rf"[{_LETTER}][{_LETTER}0-9\u0300-\u036f]{{0,60}}(?:['&-][{_LETTER}0-9\u0300-\u036f]{{1,60}}){{0,6}}"),
    ("numbered", _START + r"\d{1,3}-?[A-Z][a-z]{4,30}(?![A-Za-z0-9_])"),
    ("number", r"[.,+-]?\d(?:[0-9A-Za-z_.,:%/-]{0,60}[0-9A-Za-z_%])?"),
    ("end", r"[.!?;\n\r\u3002\uff01\uff1f\uff1b:]+|\s[-*•–—]\s|…"),
    ("quote", r"[\"“”«»「」『』《》]"),
    ("mark", r"[^\w\s]"),
    ("other", r"\w"),
)
_TOKENS = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _ALTERNATIVES))


def tokens(text: str) -> Iterator[Token]:
    """Split a normalised text into tokens, without whitespace."""
    for match in _TOKENS.finditer(text):
        name = match.lastgroup or "other"
        if name == "blank":
            continue
        text, start = match[0], match.start()
        if name == "plain":
            yield Token(text, text, Sort.WORD, start, None)
            continue
        read = _READ.get(name)
        found = read(match) if read else None
        sort = Sort.MENTION if found else _SORTS.get(name, Sort.VOID)
        yield Token(text, _word(text) if sort is Sort.WORD else "", sort, start, found)


def _word(text: str) -> str:
    word = text.casefold()
    return word if word in AUXILIARIES else word.removesuffix("'s")


_SORTS = {
    "plain": Sort.WORD,
    "word": Sort.WORD,
    "numbered": Sort.WORD,
    "abbreviation": Sort.WORD,
    "end": Sort.END,
    "quote": Sort.QUOTE,
    "mark": Sort.MARK,
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
    """Return a name if it begins with a capital: Booking.com."""
    if match["domain"][0].isupper():
        return _mention(match["domain"], match["domain"], ConceptKind.NAME)
    return _mention(match["domain"].removeprefix("www."), match["domain"], ConceptKind.CODE)


def _file(match: re.Match[str]) -> _Found:
    """Use the last part of a path as key, so that `src/app.py` and `app.py` are one concept."""
    return _mention(match["base"], match[0], ConceptKind.CODE)


def _title(match: re.Match[str]) -> _Found:
    """Return a title in quotes in which every word is capitalised."""
    return _mention(key_of(match["title"]), match["title"], ConceptKind.WORK)


def _initials(match: re.Match[str]) -> _Found:
    return _mention(match[0].rstrip("."), match[0], ConceptKind.NAME) if match[0].isupper() else None


def _hashtag(match: re.Match[str]) -> _Found:
    """Return None for a colour."""
    tag = match["tag"]
    if len(tag) in (3, 6) and re.fullmatch("[0-9a-fA-F]+", tag):
        return None
    return _mention("#" + tag, match[0], ConceptKind.HASHTAG)


def _handle(match: re.Match[str]) -> _Found:
    return _mention(match["account"], match[0], ConceptKind.NAME)


def _date(form: str, year: str | None, month: int | None = None, day: str | None = None) -> _Found:
    """Return `2023-05-08`, `2023-05`, `2023`, or without a year `may 8` and `may`; None for an invalid day."""
    if month is not None and not 1 <= month <= 12:
        return None
    if day is not None and month is not None:
        year_number = int(year) if year else 2000
        if not 1 <= year_number <= 9999 or not 1 <= int(day) <= calendar.monthrange(year_number, month)[1]:
            return None
    if year is None and month is not None:
        name = MONTH_NAMES[month - 1]
        return _mention(f"{name} {int(day)}" if day else name, form, ConceptKind.DATE)
    parts = [year or ""] + ([f"{month:02d}"] if month else []) + ([f"{int(day):02d}"] if day else [])
    return _mention("-".join(parts), form, ConceptKind.DATE)


def _iso(match: re.Match[str]) -> _Found:
    if not match["d1"] and (match["joint"] == "/" or len(match["m1"]) < 2):
        return None
    if not "1000" <= match["y1"] <= "2999":
        return None
    return _date(match[0], match["y1"], int(match["m1"]), match["d1"])


def _han(match: re.Match[str]) -> _Found:
    if match["y2"]:
        return _date(match[0], match["y2"], int(match["m2"]) if match["m2"] else None, match["d2"])
    return _date(match[0], None, int(match["m3"]), match["d3"])


_ALL_MONTHS = {**MONTHS, **FOREIGN_MONTHS}


def _named(year: str, month: str, day: str | None) -> Callable[[re.Match[str]], _Found]:
    return lambda match: _date(
        match[0], match[year], _ALL_MONTHS[match[month].casefold().rstrip(".")], match[day] if day else None
    )


def _numeric(match: re.Match[str]) -> _Found:
    """Return a date only if it is unambiguous: 5/8/2023 may be a day in May or in August."""
    first, second = int(match["a7"]), int(match["b7"])
    day_first = True if "." in match[0] else is_day_first(first, second)
    if day_first is not None:
        month, day = (second, match["a7"]) if day_first else (first, match["b7"])
        return _date(match[0], match["y7"], month, day)
    if not first or not second:
        return None
    return _mention(f"{first}/{second}/{match['y7']}", match[0], ConceptKind.DATE)


def _year(match: re.Match[str]) -> _Found:
    year = match["y8"] or match["y9"]
    return _date(year, year)


def _month(match: re.Match[str]) -> _Found:
    name = match["m9"] or match["m10"]
    return _date(name, None, MONTHS[name.casefold()])


def _count(number: str) -> str:
    return number.replace(",", "")


_SCALES = {"k": " thousand", "thousand": " thousand", "m": " million", "million": " million"}


def _money(match: re.Match[str]) -> _Found:
    scale = (match["scale"] or "").casefold()
    words = _SCALES.get(scale, " billion") if scale else ""
    return _mention(f"{match['sign']}{_count(match['sum'])}{words}", match[0], ConceptKind.QUANTITY)


def _quantity(match: re.Match[str]) -> _Found:
    """Return `15 km` for `15km` and `15 kilometres`; currency signs precede the sum."""
    count, unit = _count(match["count"]), _UNITS[match["unit"].casefold()]
    if unit in _MONEY_BEFORE:
        key = unit + count
    elif unit == "%":
        key = count + unit
    else:
        key = f"{count} {unit}"
    return _mention(key, match[0], ConceptKind.QUANTITY)


_READ: dict[str, Callable[[re.Match[str]], _Found]] = {
    "url": _host,
    "ticked": _known_or(_code("code")),
    "hashtag": _hashtag,
    "handle": _handle,
    "iso": _iso,
    "han": _han,
    "mdy": _named("y4", "m4", "d4"),
    "dmy": _named("y5", "m5", "d5"),
    "foreign_day": _named("y10", "m11", "d10"),
    "my": _named("y6", "m6", None),
    "numeric": _numeric,
    "year": _year,
    "month": _month,
    "money": _money,
    "quantity": _quantity,
    "version": _code("v"),
    "file": _known_or(_file),
    "domain": _known_or(_domain),
    "call": _code("called"),
    "snake": _code("snake"),
    "camel": _known_or(_code("camel")),
    "sharp": _code("sharp"),
    "initials": _initials,
    "titled": _title,
}
