"""Recognise the concepts of a Chinese text: names and nouns by the segmenter's parts of speech, kinds by endings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from souvenir.core.types import ConceptKind, Mentioned
from souvenir.knowledge.recognition.word_lists import kinds_of, read_sections

_HAN = re.compile(r"[\u4e00-\u9fff]{2}")
_KANA = re.compile(r"[\u3040-\u30ff]")
_TITLE = re.compile(r"《([^《》\n]{1,40})》")

_LISTS = read_sections(Path(__file__).with_name("kinds.txt"))
_RELATIVES, _ANIMALS = _LISTS["chinese relatives"], _LISTS["chinese animals"]
_ROLES, _SURNAMES = _LISTS["chinese roles"], _LISTS["chinese surnames"]
_EMPTY = _LISTS["chinese empty nouns"]
_ENDINGS: Mapping[ConceptKind, tuple[str, ...]] = {
    kind: tuple(_LISTS[f"chinese {kind.value} endings"])
    for kind in (ConceptKind.EVENT, ConceptKind.ORGANISATION, ConceptKind.PRODUCT, ConceptKind.PLACE)
}
"""Ends of nouns and names, which tell their kind; the kinds are tried in this order."""
_KNOWN = kinds_of(
    (_LISTS["chinese companies"], ConceptKind.ORGANISATION),
    (_LISTS["chinese products"], ConceptKind.PRODUCT),
    (_LISTS["chinese places"], ConceptKind.PLACE),
)
_WARES = tuple(_LISTS["chinese wares"])
"""Nouns after the name of what they are: 微医 + App, 戴森 + 吹风机."""
_MODEL = re.compile("[A-Za-z]{0,4}[0-9]{1,4}[A-Za-z]{0,5}")
"""The model of a make: 小米 + 14."""
_MAKES = (ConceptKind.ORGANISATION, ConceptKind.PRODUCT)
_COUNTERS = frozenset("台 一台 把 一把 辆 一辆 部 一部 双 一双 款 一款 架 一架".split())
_MAX_KNOWN_WORDS = 3
"""Words of the segmenter in a well-known name: 大众 + 点评."""
_LONG_NAMES = re.compile("|".join(sorted((name for name in _KNOWN if len(name) > 2), key=len, reverse=True)))
"""Well-known names that are found however the segmenter cuts them: 在阿里云上."""
_OWNERS = frozenset("我你他她咱")
_SHORT_RELATIVES = frozenset("妈爸哥姐弟妹爷奶叔姨舅姑婆公")
_SPANS = (
    (_TITLE, ConceptKind.WORK),
    (re.compile(f"([小老阿][{''.join(sorted(_SURNAMES))}])(?=[说来让叫给跟和今昨明问觉]|告诉)"), ConceptKind.PERSON),
    (re.compile("([市省县区]第?[一二三四五六七八九十](?:人民)?(?:医院|中学|小学|幼儿园))"), ConceptKind.ORGANISATION),
)
"""Forms that the segmenter cuts: titles, 小陈 before a verb, and numbered institutions (市二医院)."""
IDIOM_CHARS = 4
_TAGS_OF_NAMES = ("nr", "ns", "nz")
_TAGS_BEFORE_WARES = ("n", "nr", "nz")
_NICKNAMES = frozenset("小阿老")
_KINDS_OF_TAGS = {
    "nr": ConceptKind.PERSON,
    "ns": ConceptKind.PLACE,
    "nt": ConceptKind.ORGANISATION,
    "nz": ConceptKind.NAME,
    "n": ConceptKind.PHRASE,
}
"""By the part of speech: names of people, places, organisations and others, and nouns."""


_SHORT_NAME = 2
_TAGS_OF_UNKNOWN_WORDS = ("v", "a")
_LETTERED_MODEL = re.compile("[A-Z]{1,3}[0-9]{1,4}[A-Za-z]{0,5}")
"""The model of an unknown make: 石头 + G20."""
_NUMBERED = frozenset(
    "航班 高铁 动车 火车 列车 车次 教室 会议室 出口 座位 房间 单元 楼 厅 口 版本 国道 高速 编号 型号".split()
)
"""Nouns before a number that is no model."""
_ENDS_OF_WORDS = frozenset("市区路街")
"""Ends of words of two characters that are no place, though the segmenter may think so: 上市."""
_AVENUE = "大道"
_NOUNS = ("n", "vn")
_MIN_COMPOUND, _MAX_COMPOUND = 3, 6
"""Characters of a compound noun: most words have two."""


class _Word(NamedTuple):
    text: str
    tag: str
    start: int


@lru_cache(1)
def _segmenter() -> Any:
    """Load the dictionary of the segmenter, 35 MB of memory, with the first Chinese text."""
    import rjieba

    return rjieba


def is_chinese(text: str) -> bool:
    """Return True if the text has Chinese words; a Japanese text, which has kana, is not segmented."""
    return _HAN.search(text) is not None and _KANA.search(text) is None


def chinese_mentions(text: str) -> Iterator[tuple[int, Mentioned]]:
    """Yield the offset and the mention of each concept of a Chinese text."""
    spans = [(match.start(1), match.end(1), match[1], kind) for form, kind in _SPANS for match in form.finditer(text)]
    spans += [(match.start(), match.end(), match[0], _KNOWN[match[0]]) for match in _LONG_NAMES.finditer(text)]
    words = _segmented(text)
    spans += _names_in_unknown_words(words)
    for start, _, form, of_form in spans:
        yield start, Mentioned(form.casefold(), form, of_form)
    place = 0
    while place < len(words):
        end, kind = _concept(words, place)
        start = words[place].start
        if kind is not None and not any(first <= start < last for first, last, _, _ in spans):
            form = "".join(word.text for word in words[place:end])
            yield start, Mentioned(form.casefold(), form, kind)
        place = max(end, place + 1)


def _names_in_unknown_words(words: Sequence[_Word]) -> Iterator[tuple[int, int, str, ConceptKind]]:
    """Yield short well-known names that the segmenter joined with a verb: 发飞书, 顺丰要."""
    for word in words:
        if len(word.text) == _SHORT_NAME + 1 and word.tag in _TAGS_OF_UNKNOWN_WORDS:
            for first in (0, 1):
                name = word.text[first : first + _SHORT_NAME]
                if name in _KNOWN:
                    start = word.start + first
                    yield start, start + _SHORT_NAME, name, _KNOWN[name]


def _segmented(text: str) -> list[_Word]:
    words, start = [], 0
    for word, tag in _segmenter().tag(text):
        start = text.find(word, start)
        words.append(_Word(word, tag, start))
        start += len(word)
    return words


def _concept(words: Sequence[_Word], place: int) -> tuple[int, ConceptKind | None]:
    """Return the end of the concept that begins here, and its kind; None if there is none."""
    word, end = words[place], place + 1
    for last in range(min(len(words), place + _MAX_KNOWN_WORDS), place, -1):
        known = _KNOWN.get("".join(one.text for one in words[place:last]))
        if known is not None:
            return _known_name(words, place, last, known)
    ahead = words[end].text if end < len(words) else ""
    if word.tag in _TAGS_BEFORE_WARES and _LETTERED_MODEL.fullmatch(ahead) and word.text not in _NUMBERED:
        return end + 1, ConceptKind.PRODUCT
    if word.tag in _TAGS_BEFORE_WARES and ahead.endswith(_WARES) and not (word.tag == "n" and _HAN.match(ahead)):
        return end, ConceptKind.PRODUCT
    if (word.text in _SURNAMES and ahead in _ROLES) or (word.text in _NICKNAMES and ahead in _SURNAMES):
        # 陈 + 老师, 小 + 陈.
        return end + 1, ConceptKind.PERSON
    if len(word.text) == 2 and word.text[0] in _OWNERS and word.text[1] in _SHORT_RELATIVES:
        return end, ConceptKind.PERSON
    if word.text in _ANIMALS:
        return end, ConceptKind.ANIMAL
    if not _HAN.match(word.text) or word.text in _EMPTY:
        return end, None
    if word.text in _RELATIVES | _ROLES or (word.text[0] in _SURNAMES | _NICKNAMES and word.text[1:] in _ROLES):
        return end, ConceptKind.PERSON
    joined = _joined(words, place)
    if joined is not None:
        return joined
    if word.tag == "nr" and not _is_noun(word.text):
        return end, ConceptKind.PERSON
    return _by_tag(words, place)


def _joined(words: Sequence[_Word], place: int) -> tuple[int, ConceptKind] | None:
    """Return the end and the kind of a name with the noun that says what it is; None if there is no such noun."""
    word, end = words[place], place + 1
    ahead = words[end].text if end < len(words) else ""
    beyond = words[end + 1].text if end + 1 < len(words) and words[end].tag in ("n", "vn") else ""
    if word.tag in _TAGS_OF_NAMES and _by_ending(beyond) is ConceptKind.ORGANISATION:
        # 青禾 + 艺术 + 学校: a name, a noun, and the noun that says what it is.
        return end + 2, ConceptKind.ORGANISATION
    joined = _by_ending(ahead) if len(ahead) > 1 and word.tag in (*_KINDS_OF_TAGS, "vn") else None
    is_named = word.tag not in ("n", "vn") or ahead == _AVENUE
    if joined is not None and (is_named or joined is ConceptKind.ORGANISATION):
        # 杭州 + 马拉松, 世纪 + 大道: a name, and the noun that ends it.
        return end + 1, joined
    return None


def _by_tag(words: Sequence[_Word], place: int) -> tuple[int, ConceptKind | None]:
    """Return the end and the kind of a word by its part of speech and its end."""
    word, end = words[place], place + 1
    # An idiom has four characters, so three with this tag are a word that the dictionary lacks: 春熙路.
    is_unknown = word.tag == "i" and len(word.text) < IDIOM_CHARS
    ending = _by_ending(word.text) if is_unknown or word.tag.startswith(("n", "v", "j")) else None
    kind = ending or (ConceptKind.PHRASE if word.tag == "nr" else _KINDS_OF_TAGS.get(word.tag))
    if len(word.text) == _SHORT_NAME and (word.tag == "nz" or word.text[1] in _ENDS_OF_WORDS):
        # A verb with its object: 换猫, 上市.
        return end, None
    return _specific(words, place) if kind is ConceptKind.PHRASE else (end, kind)


def _is_noun(word: str) -> bool:
    """Return True for a noun that the segmenter takes for a person: 夏令营, 小提琴."""
    kind = _by_ending(word)
    is_nickname = word[0] in _NICKNAMES and len(word) > _SHORT_NAME and word[1] not in _SURNAMES
    return is_nickname or (kind is ConceptKind.EVENT and len(word) > _SHORT_NAME)


def _specific(words: Sequence[_Word], place: int) -> tuple[int, ConceptKind | None]:
    """Return the end of a compound noun, or of a noun that is long enough to be one; other nouns are no concepts."""
    word, end = words[place].text, place + 1
    if len(word) > 1 and word == len(word) * word[0]:
        # 豆豆: a pet name.
        return end, ConceptKind.NAME
    is_followed = end < len(words) and words[end].tag in _NOUNS and words[end].text not in _EMPTY
    if is_followed and len(word + words[end].text) <= _MAX_COMPOUND:
        return end + 1, ConceptKind.PHRASE
    return end, ConceptKind.PHRASE if len(word) >= _MIN_COMPOUND else None


def _known_name(words: Sequence[_Word], place: int, end: int, kind: ConceptKind) -> tuple[int, ConceptKind]:
    """Return the end and the kind of a well-known name, which with a model, a ware or a counter is a product."""
    ahead = words[end].text if end < len(words) else ""
    if kind in _MAKES and _MODEL.fullmatch(ahead) is not None:
        return end + 1, ConceptKind.PRODUCT
    is_one = place > 0 and words[place - 1].text in _COUNTERS
    is_made = kind is ConceptKind.ORGANISATION and (is_one or ahead.endswith(_WARES))
    return end, ConceptKind.PRODUCT if is_made else kind


def _by_ending(word: str) -> ConceptKind | None:
    """Return the kind by the end of a word; one character ends only longer words, or an event: 公路, 春节."""
    for kind, endings in _ENDINGS.items():
        if word.endswith(endings) and (kind is ConceptKind.EVENT or len(word) > _SHORT_NAME or word in endings):
            return kind
    return None
