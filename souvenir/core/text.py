"""Sentence boundaries, and the fence: two lines around recalled text that set it apart from what is said.

    <recalled_memory id="9f2c41d07be8a365">
    - 2025-03-30: Alice leads the billing team.
    </recalled_memory id="9f2c41d07be8a365">

The token in both lines differs from answer to answer, so that no stored text can know it. Fences of earlier versions
have none, and are read in the same way.

Invariants: text inside of the fence neither opens nor closes it, and keeps its length: each character that would begin
such a tag becomes "(", which is never turned back. One place decides what counts as a tag, for writing and reading, and
widely: in any case, with blanks, invisible characters, separators, look-alike or full-width letters and slashes in it,
as an HTML or JSON escape, with or without attributes and an end. The marks that chat templates put between turns are
defused in recalled text in the same way, and the colon of a role that begins a line becomes a full-width one: in any
case and width, after Markdown or invisible characters, and after every line break of `str.splitlines`. Pure functions,
linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from souvenir.core.dates import GERMAN_MONTH_NAMES

_END = re.compile(r"(?<=[.!?])[\"'”’)\]]{0,3}+\s++|(?<=[。！？])|\n++")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dra?|prof|rev|sra?|srta|mevr|mw|dhr|fr|mme|st|no|nr|bzw|ca|approx)"
    r"|\b[A-Za-z])\.\s*$",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"(?<!\d)\d{1,2}\.\s*$")
_GERMAN_ORDINAL = re.compile(
    r"\b(?:am|ab|bis|vom|zum|der|dem|den|die|das|seit|nach|vor|und) \d{1,2}\.\s*$", re.IGNORECASE
)
_SMALL_WORD = re.compile(r"[a-zäöü]")
_MONTH_FORMS = {form for name in GERMAN_MONTH_NAMES for form in (name, name[:3])} | {"jänner", "sept"}
_MONTH = re.compile(rf"(?:{'|'.join(sorted(form.capitalize() for form in _MONTH_FORMS))})\b")
"""Months of German after an ordinal number, as in "am 3. Dezember"."""


def _ends_with_ordinal(text: str, end: re.Match[str]) -> bool:
    """Return whether the period is that of an ordinal, as in "am 3. Dezember" and "am 27. unterschrieben"."""
    before = max(0, end.start() - 9), end.start()
    if _MONTH.match(text, end.end()):
        return _ORDINAL.search(text, *before) is not None
    return _SMALL_WORD.match(text, end.end()) is not None and _GERMAN_ORDINAL.search(text, *before) is not None


def sentences(text: str) -> list[tuple[int, int]]:
    """Return consecutive spans that cover the whole text; white space belongs to the preceding sentence."""
    cuts = [
        end.end()
        for end in _END.finditer(text)
        if not _ABBREVIATION.search(text, max(0, end.start() - 12), end.start()) and not _ends_with_ordinal(text, end)
    ]
    return [(start, end) for start, end in pairwise(sorted({0, *cuts, len(text)}))]


RECALLED = "recalled_memory"

_BEGINNINGS = "<＜﹤‹〈⟨〈❬❮˂ᐸ≺⋖"
_BEGINNING = re.compile(rf"[{_BEGINNINGS}]|&(?:lt|#0{{0,6}}60|#x0{{0,6}}3c);?|(?:\\u00|%)3c", re.IGNORECASE)
_SLASHES = "/\\⁄∕╱⧸⟋⧵∖"
_LOOK_ALIKES: Mapping[str, frozenset[str]] = {
    letter: frozenset(signs)
    for letter, signs in {
        "a": "аαɑᴀ@4",
        "c": "сϲᴄ",
        "d": "ԁᴅ",
        "e": "еεɛᴇ3",
        "i": "іιɩ1l|",
        "l": "ӏⅼʟ1i|",
        "m": "мᴍ",
        "n": "пᴎ",
        "o": "оοσᴏ0",
        "p": "рρᴘ",
        "r": "гʀᴦ",
        "s": "ѕꜱ5$",
        "t": "тτᴛ",
        "y": "уγʏ",
    }.items()
}
"""Signs that look like a letter, after folding of case and width."""
_SEPARATORS = "_-"
_MAX_TAG_CHARS = 200
"""Maximum length of a tag's attributes; a tag without an end within it ends with its name."""


@dataclass(frozen=True, slots=True)
class FenceTag:
    """A tag of the fence, from `start` to `end` in a text."""

    start: int
    end: int
    closing: bool


_UNSEEN = "[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*"
_TEMPLATE_MARK = re.compile(
    rf"[{_BEGINNINGS}]{_UNSEEN}[|｜]"
    rf"|<(?=<{_UNSEEN}[/\\]?{_UNSEEN}SYS{_UNSEEN}>)"
    rf"|\[(?={_UNSEEN}[/\\]?{_UNSEEN}(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS){_UNSEEN}\])"
    rf"|[{_BEGINNINGS}](?={_UNSEEN}[/\\]?{_UNSEEN}(?:s|bos|eos|start_of_turn|end_of_turn|system|system-reminder"
    rf"|tool_calls?|tool_responses?|function_calls?|function_results?){_UNSEEN}>)",
    re.IGNORECASE,
)
"""Beginnings of the marks by which chat templates separate turns and agents recognise what their harness says."""
_ROLES = frozenset(("human", "assistant", "system", "user", "tool", "developer"))
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that are shown as blanks: fillers of Hangul, and the empty Braille pattern."""
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
"""The line breaks of `str.splitlines`."""
_BLANK = rf"[^\S{_BREAKS}]|[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]"
_LABEL = re.compile(rf"(?P<before>(?:\A|[{_BREAKS}])(?:{_BLANK}|[\\*_#>`])*+(?P<name>[^\s:：*]++)(?:{_BLANK})*+):")
"""A word with a colon at the beginning of a line."""


def recalled(text: str, token: str = "") -> str:
    """Recalled text in its fence.

    :param token: Of hexadecimal digits, for this answer; empty for none.
    """
    marked = _TEMPLATE_MARK.sub(lambda mark: "(" + mark[0][1:], text)
    return fenced(_LABEL.sub(_without_role, marked), attributes=f' id="{token}"' if token else "")


def _without_role(label: re.Match[str]) -> str:
    """Return the label with a full-width colon if its name is a role."""
    letters = "".join(sign for sign in label["name"] if not is_unseen(sign))
    role = unicodedata.normalize("NFKC", letters).casefold() in _ROLES
    return f"{label['before']}：" if role else label[0]


def fenced(text: str, *, name: str = RECALLED, attributes: str = "") -> str:
    """The text between an opening and a closing line; tags of that name in it are defused.

    :param name: Words of ASCII letters, joined by underscores.
    """
    defused = defuse(text, name=name)
    end = "" if defused.endswith("\n") or not defused else "\n"
    return f"<{name}{attributes}>\n{defused}{end}</{name}{attributes}>\n"


def defuse(text: str, *, name: str = RECALLED) -> str:
    """Return the text without tags of that name, with the same length."""
    parts, done = [], 0
    for tag in fence_tags(text, name=name):
        parts += [text[done : tag.start], "("]
        done = tag.start + 1
    return "".join([*parts, text[done:]])


def fence_tags(text: str, *, name: str = RECALLED) -> Iterator[FenceTag]:
    """Yield the tags of that name in a text, in order."""
    letters = name.replace("_", "")
    for beginning in _BEGINNING.finditer(text):
        found = _tag(text, beginning.span(), letters)
        if found is not None:
            yield found


def _tag(text: str, beginning: tuple[int, int], letters: str) -> FenceTag | None:
    """Never reads past the next beginning of a tag, since that sign stands in no name."""
    read, closing, (start, at) = 0, False, beginning
    while at < len(text) and read < len(letters):
        signs = unicodedata.normalize("NFKC", text[at]).casefold()
        if signs in _SLASHES and not read:
            closing = True
        elif (count := _letters_read(signs, letters, read)) > 0:
            read += count
        elif signs not in _SEPARATORS and not is_unseen(text[at]):
            return None
        at += 1
    if read != len(letters):
        return None
    return FenceTag(start, _end(text, at), closing)


def _letters_read(signs: str, letters: str, read: int) -> int:
    """How many letters, after those that are read, one character of a text stands for; some are ligatures."""
    wanted = letters[read : read + len(signs)]
    matches = len(wanted) == len(signs) and all(
        sign == letter or sign in _LOOK_ALIKES.get(letter, ()) for sign, letter in zip(signs, wanted, strict=True)
    )
    return len(signs) if matches else 0


def _end(text: str, at: int) -> int:
    """Return the position after the tag's `>` if it follows soon, in the same line, before another tag; else `at`."""
    for end in range(at, min(at + _MAX_TAG_CHARS, len(text))):
        sign = text[end]
        if sign in ">＞﹥":
            return end + 1
        if sign in _BEGINNINGS or sign in "\r\n":
            break
    return at


FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that are drawn as blanks."""

_UNPRINTED = frozenset(("Cc", "Cf"))

_BLANK_CATEGORIES = frozenset(("Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Mn", "Me", "Mc"))


def is_blank(text: str) -> bool:
    """Return whether the text has no visible character: only spaces, control and format characters, or lone marks."""
    return all(sign in FILLERS or unicodedata.category(sign) in _BLANK_CATEGORIES for sign in text)


def is_unseen(sign: str) -> bool:
    """Return whether a character is a blank, a control or format character, or a combining mark."""
    return unicodedata.category(sign)[0] in "ZCM" or sign in _BLANK_LETTERS


_JOINERS = "\u200c\u200d"


def clean_name(text: str) -> str:
    """Return a name without control and format characters such as U+200B, and with single blanks between its words.

    The joiners U+200C and U+200D stay between two visible characters beyond ASCII, where scripts and emoji need them.
    """
    words = " ".join(text.split())
    kept = (
        sign
        for before, sign, after in zip(f" {words}", words, f"{words[1:]} ", strict=False)
        if unicodedata.category(sign) not in _UNPRINTED or (sign in _JOINERS and _is_joined(before, after))
    )
    return " ".join("".join(kept).split())


def _is_joined(*neighbours: str) -> bool:
    return not any(sign.isascii() or unicodedata.category(sign) in _UNPRINTED for sign in neighbours)
