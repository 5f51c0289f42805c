"""What a turn's text shows of itself, what a question asks for, and whom it names: word lists and walks over words."""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase

_WORD = re.compile(r"\w+")
_MONTHS = "january february march april may june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"

TIME_WORDS = frozenset(
    f"{_MONTHS} {_DAYS} yesterday today tonight tomorrow last next ago week weekend month year years since recently "
    "morning soon summer just".split()
)
NUMBER_WORDS = frozenset(
    "one two three four five six seven eight nine ten twice once couple few dozen hundred several half".split()
)


def without_note(text: str) -> str:
    """What was said, without a note in brackets at its end."""
    said, bracket, note = text.rpartition("[")
    return said if bracket and "]" in note and note.rstrip().find("]") == len(note.rstrip()) - 1 else text


def ends_in_question(text: str) -> bool:
    return without_note(text).rstrip().endswith(("?", "？"))


def has_time_word(text: str) -> bool:
    words = _WORD.findall(without_note(text).lower())
    return any(word in TIME_WORDS or (word.isdecimal() and len(word) == 4) for word in words)


def has_number(text: str) -> bool:
    words = _WORD.findall(without_note(text).lower())
    return any(word in NUMBER_WORDS or word.isdecimal() for word in words)


def has_name(text: str) -> bool:
    """A word with a capital, after a word in small letters or a comma. The letters are those of English."""
    said = without_note(text)
    fours = zip(said, said[1:], said[2:], said[3:], strict=False)
    return any(
        (before in ascii_lowercase or before == ",")
        and blank == " "
        and first in ascii_uppercase
        and second in ascii_lowercase
        for before, blank, first, second in fours
    )


def asks_when(question: str) -> bool:
    asked = _opening(question)
    return asked.startswith("when") or any(
        f" {word} {unit}" in f" {asked}" for word in ("what", "which") for unit in ("date", "year", "month")
    )


def asks_how_many(question: str) -> bool:
    return any(f" how {word}" in f" {_opening(question)}" for word in ("many", "long", "much", "often", "old"))


def asks_for_a_name(question: str) -> bool:
    return _opening(question).startswith(("who", "where", "what", "which"))


def _opening(question: str) -> str:
    return question.lower().lstrip()
