"""Antecedents of the pronouns in a quoted sentence, so that it is understood without its conversation.

Only by the names before it in the same message, else in the user's message before it: what a thing is called is not
looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache

from souvenir.core.types import ConceptKind, MessageRole
from souvenir.core.types.statements import StatementKind
from souvenir.index.analyser import fold
from souvenir.knowledge.recognition.gazetteer import GIVEN_NAMES, RELATIVES, ROLES, TITLES
from souvenir.knowledge.recognition.sentence_terms import content_terms
from souvenir.store.graph import statements
from souvenir.store.graph.statements import MessageMention, Stated
from souvenir.store.messages import messages
from souvenir.store.messages.messages import Message
from souvenir.store.sql import Connection

MESSAGES_BEFORE = 2
"""Number of messages before one among which that of the user is sought: the last answer and question."""

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

_GENDERED = re.compile(r"(?:s?he|him|her|ih[mr])\b", re.IGNORECASE)
_MALE = re.compile(r"(?:he|him|ihm)\b", re.IGNORECASE)
_HIS = re.compile(r"\b(?:he|him|his|er|ihm|sein\w*)\b", re.IGNORECASE)
_HER = re.compile(r"\b(?:she|her|hers|sie|ihr\w*)\b", re.IGNORECASE)
_MALE_WORDS = frozenset(
    "mr sir herr senor sr don meneer dad daddy father papa brother son husband fiance boyfriend grandfather grandpa "
    "uncle nephew vater bruder sohn mann freund opa onkel neffe enkel schwager padre hermano hijo marido novio abuelo "
    "tio vader broer zoon vriend oom neef adam andrew anthony ben brian charles christian christopher daniel "
    "david edward eric fabian felix frank fred george gary greg hans harry henry ian jack jakob james jason john "
    "jonas jonathan jorge joseph juan karl kevin lars leon louis luca luis lukas martin matthew michael miguel mike "
    "nick noah oliver omar oskar patrick paul peter philip pieter ray richard robert ryan samuel sebastian simon "
    "stefan steffen stephen steven thomas tim tom uwe walter will william "
    "joshua nikita mustafa sascha ezra elia musa".split()
)
_FEMALE_WORDS = frozenset(
    "mrs ms miss madam lady frau senora sra dona mevrouw mum mom mummy mother mama sister daughter wife fiancee "
    "girlfriend grandmother grandma gran granny nan aunt auntie niece mutter schwester tochter freundin oma tante "
    "nichte enkelin madre hermana hija esposa novia abuela tia moeder zus dochter vriendin alice anke ann anne "
    "astrid beatrice beatriz birgit carmen caroline catherine charlotte chloe claire elizabeth ellen emily erin "
    "esther grace hannah heather heidi helen imogen ingrid ines iris isabel jane janet jennifer joan judith "
    "karen kate kathleen katrin kirsten leah lilian lucy margaret maren marion mary megan molly nicole pilar "
    "rachel rebecca renee rosalie rosario ruth sarah sharon sigrid silke susan susanne sylvie tracy ute "
    "vivian zoe".split()
)
"""Titles, relatives and frequent given names of one gender."""

_STRANGERS = "client customer patient student pupil guest woman man girl boy lady guy lad bloke"
_RELATIVE = re.compile(
    rf"\b(?:{'|'.join(sorted(RELATIVES & (_MALE_WORDS | _FEMALE_WORDS)))}|an? (?:{_STRANGERS.replace(' ', '|')}))\b"
    r"(?!['’]s|,? (?:(?:is |who is )?(?:called|named) )?(?-i:[A-ZÀ-Ý]))",
    re.IGNORECASE,
)
"""A relative or a stranger without a name, whom a pronoun may mean too."""

_PEOPLE = (
    GIVEN_NAMES
    | RELATIVES
    | ROLES
    | TITLES
    | frozenset(f"someone somebody nobody chap person gentleman {_STRANGERS}".split())
)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def clarified(
    connection: Connection, namespace_id: int, said: Sequence[Stated], hidden: Set[int]
) -> tuple[list[Stated], set[int]]:
    """Return statements with names after their pronouns, and the ids of those that nobody understands alone.

    :param hidden: The ids of messages that are not read.
    """
    asking = {one.id: one.message_id for one in said if _needs_antecedent(one.sentence, one.kind)}
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
    named = [mention.form for mention in mentioned[own.id] if mention.form[0].isupper() or _is_person(mention)]
    previous = next(
        (
            message
            for message in reversed(seen)
            if message.session_row == own.session_row
            and 0 < own.position - message.position <= MESSAGES_BEFORE
            and message.role is MessageRole.USER
        ),
        None,
    )
    text, _, after = " ".join(own.content.split()).partition(one.sentence)
    before = [(text, mentioned[own.id])]
    if previous is not None:
        before.append((f"{previous.content} {after}", [*mentioned[previous.id], *mentioned[own.id]]))
    return with_antecedent(one.sentence, named, before)


@lru_cache(maxsize=2_048)
def _needs_antecedent(sentence: str, kind: StatementKind) -> bool:
    """Return whether a reader of only this sentence would ask who its pronoun means, or what it is about.

    In a change, which names what changed, only a pronoun with which it begins is asked for.
    """
    pronoun = _open_pronoun(sentence)
    if kind is StatementKind.CHANGE:
        is_first = pronoun is not None and len(sentence[: pronoun.start()].split()) <= 1
        return is_first or (_OF_THING.match(sentence) is not None and _is_about_nothing(sentence))
    return pronoun is not None or _is_about_nothing(sentence)


def with_antecedent(
    sentence: str, named: Sequence[str], before: Iterable[tuple[str, Sequence[MessageMention]]]
) -> str | None:
    """Return a sentence with the name after its pronoun; None if not exactly one person can be meant.

    :param named: The names that it may contain.
    :param before: The texts around it, the nearest first, each with what it may mention.
    """
    pronoun = _open_pronoun(sentence)
    if _is_about_nothing(sentence):
        return None
    if pronoun is None or any(name in sentence[: pronoun.start()] for name in named):
        return sentence
    is_male = _MALE.match(pronoun[0]) is not None if _GENDERED.match(pronoun[0]) else None
    for text, mentions in before:
        people = _people_in(text, mentions, is_male)
        if people:
            name = next(iter(people))
            is_meant = len(people) == 1 and name != "" and people[name]
            return f"{sentence[: pronoun.end()]} [{name}]{sentence[pronoun.end() :]}" if is_meant else None
    return None


def _people_in(text: str, mentions: Sequence[MessageMention], is_male: bool | None) -> dict[str, bool]:
    """Return whom a text names and a pronoun of a gender can mean, each with whether that is certainly a person.

    A relative without a name is an empty name. A name in small letters counts if there is no other.
    """
    found: dict[str, bool] = {}
    own = _HIS if is_male else _HER
    for mention in mentions:
        place = text.find(mention.form)
        if place >= 0 and (_is_person(mention) or mention.kind is ConceptKind.NAME):
            of_name = _is_male(text[:place].split()[-1:] + mention.form.split()[:1])
            if is_male is None or of_name is None or of_name == is_male:
                found[mention.form] = _is_person(mention) or own.search(text, place) is not None
    found = {name: sure for name, sure in found.items() if name[0].isupper()} or found
    relatives = [_is_male([match[0]]) for match in _RELATIVE.finditer(text)]
    if any(None in (is_male, one) or is_male is one for one in relatives):
        found[""] = False
    return found


def _is_person(mention: MessageMention) -> bool:
    return mention.kind is ConceptKind.PERSON


def _is_male(words: Sequence[str]) -> bool | None:
    """Return the gender that a relative or a title, or the given name after it, tells."""
    for word in (fold(word).casefold().strip(".,;:") for word in words):
        if word in _MALE_WORDS or word in _FEMALE_WORDS:
            return word in _MALE_WORDS
    return False if words and words[-1][0].isupper() and words[-1].endswith("a") else None


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
