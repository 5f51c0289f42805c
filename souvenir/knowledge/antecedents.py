"""Antecedents of the pronouns in a quoted sentence, so that it is understood without its conversation.

Only by the names and roles before it: gender is not compared, and what a thing is called is not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set

from souvenir.core.types import ConceptKind
from souvenir.core.types.statements import StatementKind
from souvenir.index.analyser import fold
from souvenir.knowledge.recognition.gazetteer import GIVEN_NAMES, RELATIVES, ROLES, TITLES
from souvenir.knowledge.recognition.statements import content_terms
from souvenir.store.graph import statements
from souvenir.store.graph.statements import MessageMention, Stated
from souvenir.store.messages import messages
from souvenir.store.messages.messages import Message
from souvenir.store.sql import Connection

MESSAGES_BEFORE = 2
"""Number of messages before one in which antecedents of its pronouns are sought: the last answer and question."""

MIN_TERMS = 2
"""Minimum number of content terms of a sentence in which "it" or "that" may be something that the sentence names."""

_OF_PERSON = re.compile(
    r"\b(?:he(?! \w+(?:[ai]do|cho|sto|rto)\b)|she|him|ihm|ihr(?= (?:versprochen|zugesagt|gesagt)\b)"
    r"|le(?= \w+o\b)(?!.* al? )"
    r"|(?<=help )her|(?<=let )her|her(?= (?:an?|the|that|to|by|on|in|at|back|my|our|know|again"
    r"|up|about|with|for|before|until|some|i|i['’]\w+|we|it|when|if|and|or|this|next|tomorrow|today|down|off|out|how"
    r"|what|whether|into|from|over)\b|[,.;:!?]|\s*$))(?:['’](?:d|s|ll))?(?![\w’'])",
    re.IGNORECASE,
)
"""Pronouns of a person; a possessive "her" is followed by a noun, and "he dejado" is Spanish."""

_OF_THING = re.compile(
    r"\b(?:it|that(?! (?:i|we|he|she|they|it|the)\b)|dat(?! (?:ik|we|wij|hij|ze|het|de)\b)|das(?! (?-i:[A-ZÄÖÜ]))"
    r"|this(?! \w+day| week| month| morning| evening| afternoon| year)"
    r"|them|they|those|ihn|hem|se l[oa]s?)\b",
    re.IGNORECASE,
)
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


def clarified(
    connection: Connection, namespace_id: int, said: Sequence[Stated], hidden: Set[int]
) -> tuple[list[Stated], set[int]]:
    """Return statements with names after their pronouns, and the ids of those that nobody understands alone.

    :param hidden: The ids of messages that are not read.
    """
    asking = {one.id: one.message_id for one in said if _needs_antecedent(one)}
    if not asking:
        return list(said), set()
    ids = set(asking.values())
    around = messages.around(connection, namespace_id, ids, before=MESSAGES_BEFORE, after=0)
    seen = [one for one in around if one.id not in hidden]
    mentioned = statements.mentions_of(connection, [one.id for one in seen])
    named = {one.id: _named(one, seen, mentioned) for one in said if one.id in asking}
    unclear = {id_ for id_, sentence in named.items() if sentence is None}
    return [one._replace(sentence=named.get(one.id) or one.sentence) for one in said], unclear


def _named(one: Stated, seen: Sequence[Message], mentioned: Mapping[int, Sequence[MessageMention]]) -> str | None:
    own = next((message for message in seen if message.id == one.message_id), None)
    if own is None:
        return None
    people = {
        message.id: [mention.form for mention in mentioned[message.id] if mention.kind is ConceptKind.PERSON]
        for message in seen
    }
    text = " ".join(own.content.split())
    before = [(text[: max(0, text.find(one.sentence))], people[own.id])]
    before += [
        (message.content, people[message.id])
        for message in reversed(seen)
        if message.session_row == own.session_row and 0 < own.position - message.position <= MESSAGES_BEFORE
    ]
    named = [mention.form for mention in mentioned[own.id] if mention.form[0].isupper()]
    return with_antecedent(one.sentence, [*named, *people[own.id]], before)


def _needs_antecedent(one: Stated) -> bool:
    """Return whether a reader of only this sentence would ask who its pronoun means, or what it is about.

    In a change, which names what changed, only a pronoun with which it begins is asked for.
    """
    pronoun = _open_pronoun(one.sentence)
    if one.kind is StatementKind.CHANGE:
        is_first = pronoun is not None and len(one.sentence[: pronoun.start()].split()) <= 1
        return is_first or (_OF_THING.match(one.sentence) is not None and _is_about_nothing(one.sentence))
    return pronoun is not None or _is_about_nothing(one.sentence)


def with_antecedent(sentence: str, named: Sequence[str], before: Iterable[tuple[str, Sequence[str]]]) -> str | None:
    """Return a sentence with the name after its pronoun; None if not exactly one person can be meant.

    :param named: The names that it may contain.
    :param before: The texts before it, the nearest first, each with the names that it may contain.
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


def _open_pronoun(sentence: str) -> re.Match[str] | None:
    """Return the first pronoun of a person, if nobody is named before it."""
    pronoun = _OF_PERSON.search(sentence)
    return None if pronoun is None or _names_someone(sentence[: pronoun.start()]) else pronoun


def _is_about_nothing(sentence: str) -> bool:
    return _OF_THING.search(sentence) is not None and len(content_terms(sentence)) < MIN_TERMS


def _names_someone(text: str) -> bool:
    return _ADDRESSED.search(text) is not None or any(
        fold(match[0]).casefold() in _PEOPLE for match in _WORD.finditer(text)
    )
