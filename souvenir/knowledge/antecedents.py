"""The people whom the pronouns of a quoted sentence mean, so that it is understood without its conversation.

Only by the names and roles before it: gender is not compared, and what a thing is called is not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from souvenir.index.analyser import fold
from souvenir.knowledge.recognition.gazetteer import GIVEN_NAMES, RELATIVES, ROLES, TITLES
from souvenir.knowledge.recognition.statements import content_terms

MIN_TERMS = 2
"""Minimum number of content terms of a sentence in which "it" or "that" may be something that the sentence names."""

_OF_PERSON = re.compile(
    r"\b(?:he(?! \w+(?:[ai]do|cho|sto|rto)\b)|she|him|ihm|(?<=help )her|(?<=let )her|her(?= (?:an?|the|that|to|by|on|in|at|back|my|our|know|again"
    r"|up|about|with|for|before|until|some|i|i['’]\w+|we|it|when|if|and|or|this|next|tomorrow|today|down|off|out|how"
    r"|what|whether|into|from|over)\b|[,.;:!?]|\s*$))(?:['’](?:d|s|ll))?(?![\w’'])",
    re.IGNORECASE,
)
"""Pronouns of a person; a possessive "her" is followed by a noun, and "he dejado" is Spanish."""

_OF_THING = re.compile(r"\b(?:it|that|this|them|they|those|das|es|ihn|ihr|dat|hem|se l[oa]s?|les?)\b", re.IGNORECASE)
_ADDRESSED = re.compile(
    r"\b(?:told|tell|promised?|asked?|owe|gave|give) (?!(?:h[ei][rm]|them|you|us|my|the|an?|it|i|to)\b)[^\W\d_]{2,}",
    re.IGNORECASE,
)
"""A verb before a name in small letters: "told ray"."""

_PEOPLE = (
    GIVEN_NAMES
    | RELATIVES
    | ROLES
    | TITLES
    | frozenset(
        "someone somebody nobody man woman guy lad girl boy lady bloke chap person gentleman client customer patient "
        "student pupil guest".split()
    )
)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def needs_antecedent(sentence: str, *, at_start: bool = False) -> bool:
    """Return whether a reader of only this sentence would ask whom its pronoun means, or what it is about.

    :param at_start: Only by a pronoun with which it begins.
    """
    return _open_pronoun(sentence, at_start=at_start) is not None or _is_about_nothing(sentence)


def with_antecedent(sentence: str, named: Sequence[str], before: Iterable[tuple[str, Sequence[str]]]) -> str | None:
    """Return a sentence with the name after its pronoun; None if not exactly one person can be meant.

    :param named: The names that it may contain.
    :param before: The texts before it, the nearest first, each with the people whom it may name.
    """
    pronoun = _open_pronoun(sentence)
    if _is_about_nothing(sentence):
        return None
    if pronoun is None or any(name in sentence[: pronoun.start()] for name in named):
        return sentence
    for text, people in before:
        found = [name for name in people if name in text]
        if found:
            names = {name for name in found if name[0].isupper()} or set(found)
            return (
                f"{sentence[: pronoun.end()]} [{names.pop()}]{sentence[pronoun.end() :]}" if len(names) == 1 else None
            )
    return None


def _open_pronoun(sentence: str, *, at_start: bool = False) -> re.Match[str] | None:
    """Return the first pronoun of a person, if nobody is named before it."""
    pronoun = _OF_PERSON.search(sentence)
    if pronoun is None or (at_start and len(sentence[: pronoun.start()].split()) > 1):
        return None
    return None if _names_someone(sentence[: pronoun.start()]) else pronoun


def _is_about_nothing(sentence: str) -> bool:
    return _OF_THING.search(sentence) is not None and len(content_terms(sentence)) < MIN_TERMS


def _names_someone(text: str) -> bool:
    return _ADDRESSED.search(text) is not None or any(
        fold(match[0]).casefold() in _PEOPLE for match in _WORD.finditer(text)
    )
