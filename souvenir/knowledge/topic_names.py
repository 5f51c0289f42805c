"""Name topics by nouns and short phrases of their messages, which users rather than answers say.

Common nouns name a subject ("guitar lessons", "knee") that no concept stands for. A part of a name is stored as places
in messages, so that a name contains nothing that is deleted; a person alone is no subject, and a topic has no name, and
is not listed, if users say no phrase again and again that is close to its meaning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import log2, sqrt

from souvenir.core.concept_kinds import NAMED_KINDS
from souvenir.core.types import ConceptKind, MessageRole
from souvenir.index.analyser import Analyser, fold
from souvenir.knowledge.recognition.extraction import noun_phrases, said
from souvenir.knowledge.recognition.gazetteer import GIVEN_NAMES, RELATIVES, ROLES, TIME_WORDS
from souvenir.knowledge.recognition.spelling import singular
from souvenir.knowledge.recognition.vocabulary import AUXILIARIES, EMPTY, FOREIGN, GENERIC, MODALS, WEAK
from souvenir.knowledge.segmentation import OF_OPENING, OF_USER, UNIT, Floats
from souvenir.knowledge.topic_description import closeness
from souvenir.store.graph.topics import READ_CHARS, Excerpt, Form, TopicMessage

PARTS = 3
"""Maximum parts of a name that are stored ..."""

PARTS_SHOWN = 2
"""... and shown; the others take the place of one that is deleted or hidden."""

PLACES = 2
"""Places of a part, in different messages."""

NEXT_PART = 0.4
"""Least value of a further part, relative to the first one ..."""

NEXT_NEAR, NEXT_CLOSENESS = 0.3, 0.1
"""... its least cosine to it, since a topic may contain another subject too, and its least closeness to the topic."""

LEAST_VALUE = 0.6
"""Least value of the first part; without one, a topic has no name ..."""

LEAST_CLOSENESS, LEAST_CLOSENESS_OF_RARE = 0.08, 0.12
"""... and its least closeness to the topic: more for a phrase whose last word users do not say in two segments and in
half of them, or in so many messages of the only one: it is often a detail."""

CANDIDATES = 16
"""Phrases of a topic whose vectors are compared with it."""

OF_ANSWER = 0.2
"""How much an answer that says a phrase counts, next to `OF_USER` and `OF_OPENING`."""

OF_SEVERAL_WORDS, OF_VAGUE = 1.2, 0.5
"""Factors of phrases: several words say a subject better than one; people take part in subjects more often than they
are one, and "corner" alone says little."""

_CACHED_PAIRS = 16_384
_MAX_CHARS = 60
_MIN_CHARS = 3
_VOWELS = frozenset("aeiouyäöü")
_NO_NOUNS = frozenset(word.replace("'", "") for word in AUXILIARIES | MODALS) | FOREIGN
"""Words of other classes, with slips: dont, shes."""
_DAYS_AND_NUMBERS = frozenset(
    "easter ostern pascua pasen xmas pfingsten pinksteren eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand".split()
)
"""They date or count something more often than they are a subject."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase that may be part of a name.

    :param text: The text of its first place. :param weight: How much it is said, times the factors of its words.
    :param least: The closeness to the topic from which it may be the first part. :param is_name: It names a place, an
        organisation or the like, which may be the first part only: next to another, it is more often a detail.
    """

    text: str
    weight: float
    least: float
    is_name: bool
    places: tuple[Excerpt, ...]


@dataclass(frozen=True, slots=True)
class _Heard:
    """The phrases and stems of a message.

    :param segment: The index of its segment. :param weight: How much it counts. :param forms: Its phrases by their
        stems. :param stems: Those of all its words.
    """

    message: TopicMessage
    segment: int
    weight: float
    forms: Mapping[tuple[str, ...], str]
    stems: frozenset[str]


def phrases_of(segments: Iterable[Sequence[TopicMessage]], forms: Mapping[int, Sequence[Form]]) -> list[Phrase]:
    """Return the phrases that a topic's messages say most, best first.

    :param segments: The messages of each. :param forms: The concepts that each message mentions.
    """
    mentioned = [one for of_message in forms.values() for one in of_message]
    people = {word for one in mentioned if _is_person(one) for word in _words(one.text)}
    names = {one.text for one in mentioned if one.kind in NAMED_KINDS}
    unknown = {one.text for one in mentioned if one.kind is ConceptKind.NAME}
    heard = [one for index, segment in enumerate(segments) for one in _heard(index, segment, forms, people)]
    of_users = [one for one in heard if one.message.role is MessageRole.USER]
    of_phrase: defaultdict[tuple[str, ...], list[_Heard]] = defaultdict(list)
    of_stem: defaultdict[str, float] = defaultdict(float)
    for one in heard:
        for stems in one.forms:
            of_phrase[stems].append(one)
        for stem in one.stems:
            of_stem[stem] += one.weight
    found: list[tuple[float, str, str, tuple[Excerpt, ...]]] = []
    for stems, sayers in of_phrase.items():
        places = _places(stems, sayers)
        # A name of nothing known is more often a person than a subject.
        factor = _factor(_words(places[0][1])) if places and places[0][1] not in unknown else 0.0
        if factor:
            # A phrase is said in part where its words are said apart.
            said_whole = sum(one.weight for one in sayers) if len(stems) > 1 else of_stem[stems[0]]
            said_in_part = min(of_stem[stem] for stem in stems)
            weight = factor * log2(1 + (said_whole + said_in_part) / 2 / OF_USER)
            found.append((-weight, places[0][1], stems[-1], tuple(place for place, _ in places)))
    best = sorted(found)[:CANDIDATES]
    return [
        Phrase(text, -weight, _least_closeness(stem, of_users), text in names, places)
        for weight, text, stem, places in best
    ]


def name_of(
    phrases: Sequence[Phrase], vectors: Mapping[str, Floats], means: tuple[Floats, Floats], used: Collection[str] = ()
) -> list[Phrase]:
    """Return the parts of a name, best first; none if no phrase is close enough to the topic.

    :param vectors: Unit vectors of the phrases, of the length `UNIT`; empty if the topic has none.
    :param means: The mean of the topic, and its centred mean.
    :param used: Names of other topics, casefolded: another second part or else another first part is taken instead, if
        one is good enough.
    """
    near = {one: closeness(vectors.get(one.text), means) for one in phrases}
    values = {one: one.weight * sqrt(near[one]) for one in phrases}
    ranked = sorted(phrases, key=lambda one: -values[one])

    def parts_of(some: Iterable[Phrase]) -> list[Phrase]:
        chosen: list[Phrase] = []
        for one in some:
            least = (NEXT_PART * values[chosen[0]], NEXT_CLOSENESS) if chosen else (LEAST_VALUE, one.least)
            if values[one] >= least[0] and near[one] >= least[1] and _goes_with(one, chosen, vectors):
                chosen.append(one)
        return chosen

    for begin in range(len(ranked)):
        chosen = parts_of(ranked[begin:])
        for second in range(1, max(2, len(chosen))):
            name = [*chosen[:1], *chosen[second:], *chosen[1:second]][:PARTS]
            if name and shown_name([one.text for one in name]).casefold() not in used:
                return name
    return parts_of(ranked)[:PARTS]


def _goes_with(one: Phrase, chosen: Sequence[Phrase], vectors: Mapping[str, Floats]) -> bool:
    """Return whether a phrase may be a part of the name that begins with others."""
    if not chosen:
        return True
    if one.is_name or any(_share_word(one.text, other.text) for other in chosen):
        return False
    return not vectors or float(vectors[one.text] @ vectors[chosen[0].text]) >= NEXT_NEAR * UNIT**2


def _least_closeness(stem: str, of_users: Sequence[_Heard]) -> float:
    """Return the closeness from which a phrase that ends with this stem may name its topic.

    It is 1 if the phrase is rare and users say only one message in each segment.
    """
    segments = {one.segment for one in of_users}
    places = [one.segment if len(segments) > 1 else one.message.id for one in of_users]
    said_in = {place for one, place in zip(of_users, places, strict=True) if stem in one.stems}
    if len(said_in) >= max(2, len({*places}) / 2):
        return LEAST_CLOSENESS
    return LEAST_CLOSENESS_OF_RARE if len(of_users) > len(segments) else 1.0


def shown_name(parts: Sequence[str]) -> str:
    """Return the name of these parts, best first, of which several may be forms of one."""
    chosen: list[str] = []
    for part in parts:
        if len(chosen) < PARTS_SHOWN and not any(_share_word(part, other) for other in chosen):
            chosen.append(part)
    return ", ".join(chosen)


@lru_cache(_CACHED_PAIRS)
def _share_word(one: str, other: str) -> bool:
    """Return whether a word of one phrase is a word of the other, or a form or part of one."""
    return any(stem in known or known in stem for stem in _stems(one) for known in _stems(other))


def _heard(
    index: int, segment: Sequence[TopicMessage], forms: Mapping[int, Sequence[Form]], people: Collection[str]
) -> Iterator[_Heard]:
    is_opening = True
    for message in segment:
        if message.role is MessageRole.SYSTEM:
            continue
        weight = OF_ANSWER
        if message.role is MessageRole.USER:
            weight = OF_USER + (OF_OPENING if is_opening else 0)
            is_opening = False
        text = said(message.content[:READ_CHARS], message.role)
        found = [run for words, _ in noun_phrases(text) for run in _runs(words, people)]
        found += [one.text for one in forms.get(message.id, ()) if not _is_name(one.text.split()[-1], people)]
        yield _Heard(message, index, weight, _by_stems(found), frozenset(_stems(text)))


def _runs(words: Sequence[str], people: Collection[str]) -> list[str]:
    """Return a noun phrase, and its last words alone unless they are part of a longer name: not Bank of Harbour Bank.

    The name of a person at its end is left out.
    """
    end = len(words)
    while end and _is_name(words[end - 1], people):
        end -= 1
    begins = [begin for begin in range(end) if not begin or words[begin].islower() or words[begin - 1].islower()]
    return [" ".join(words[begin:end]) for begin in begins if all(map(_is_word, words[begin:end]))]


def _by_stems(forms: Iterable[str]) -> dict[tuple[str, ...], str]:
    found: dict[tuple[str, ...], str] = {}
    for form in forms:
        text = form.removesuffix("'s").removesuffix("'")
        stems = _stems(text)
        if stems and len({*stems}) == len(stems) and len(text) <= _MAX_CHARS:
            found.setdefault(stems, text)
    return found


def _places(stems: tuple[str, ...], sayers: Iterable[_Heard]) -> list[tuple[Excerpt, str]]:
    """Return where a phrase is said, with its form there: in small letters, and by users, first."""
    found = [(one, one.forms[stems], one.message.content.find(one.forms[stems])) for one in sayers]
    best = sorted((one for one in found if one[2] >= 0), key=lambda place: (not place[1].islower(), -place[0].weight))
    return [(Excerpt(one.message.id, start, len(form)), form) for one, form, start in best[:PLACES]]


def _factor(words: Sequence[str]) -> float:
    """Return how well these words, in small letters, say a subject: 0 if not at all."""
    forms = {words[-1], singular(words[-1])}
    if forms & (EMPTY if len(words) > 1 else EMPTY | GENERIC | _DAYS_AND_NUMBERS):
        return 0.0
    factor = OF_SEVERAL_WORDS if len(words) > 1 else OF_VAGUE if forms & WEAK else 1.0
    return factor * (OF_VAGUE if forms & RELATIVES else 1.0)


def _is_word(word: str) -> bool:
    """Return whether a word may be part of a name; slips and abbreviations may not."""
    folded = fold(word.casefold())
    if folded in _NO_NOUNS or folded in TIME_WORDS:
        return False
    return word.isupper() or (len(word) >= _MIN_CHARS and not _VOWELS.isdisjoint(folded))


def _is_person(one: Form) -> bool:
    """Return whether a concept is a person with a name, who is no subject alone: not "mum", "landlord"."""
    last = _words(one.text)[-1]
    return one.kind is ConceptKind.PERSON and last not in RELATIVES and last not in ROLES


def _is_name(word: str, people: Collection[str]) -> bool:
    """Return whether a word names a person of the topic, or is a given name."""
    folded = word.casefold().removesuffix("'s")
    return folded in people or folded in GIVEN_NAMES


def _words(text: str) -> list[str]:
    return text.casefold().split()


def _stems(text: str) -> tuple[str, ...]:
    return tuple(_analyser().terms(text))


@cache
def _analyser() -> Analyser:
    """English, whatever the setting: names are a function of the texts."""
    return Analyser()
