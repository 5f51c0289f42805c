"""Name topics by nouns and short phrases of their messages, which users rather than answers say.

Common nouns name a subject ("guitar lessons", "knee") that no concept stands for. A part of a name is stored as places
in messages, so that a name contains nothing that is deleted; a person alone is no subject, and a topic has no name, and
is not listed, if users say no phrase that is close to its meaning.
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
from souvenir.knowledge.recognition.foreign import ENGLISH, OF, VAGUE
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

NEXT_NEAR, NEXT_CLOSENESS = 0.4, 0.08
"""Least cosine of a further part to the first one, with which users say it in a message, and its least closeness to the
topic."""

NEXT_WEIGHT = 0.5
"""Least weight of a further part, relative to the first one."""

CLOSENESS_ABROAD, LEAST_ABROAD = 0.1, 1.8
"""Closeness of a phrase in another language than English, whose vector says little, and its least weight."""

LEAST_VALUE = 0.7
"""Least value of the first part, without which a topic has no name: those of less are more often a detail ..."""

LEAST_CLOSENESS = 0.08
"""... and its least closeness to the topic."""

LEAST_MESSAGES = 2
"""Least number of messages of users: one alone is more often a passing question."""

CANDIDATES = 16
"""Phrases of a topic whose vectors are compared with it."""

OF_ANSWER = 0.2
"""How much an answer that says a phrase counts, next to `OF_USER` and `OF_OPENING`."""

LATE = 0.6
"""How much less a phrase counts at the end of a message than at its beginning."""

OF_SEVERAL_WORDS, OF_VAGUE = 1.2, 0.5
"""Factors of phrases: several words say a subject better than one; people take part in subjects more often than they
are one, and "corner" alone says little."""

_CACHED_PAIRS = 16_384
_MAX_CHARS = 60
_MIN_CHARS = 3
_VOWELS = frozenset("aeiouyäöü")
_NO_NOUNS = frozenset(word.replace("'", "") for word in AUXILIARIES | MODALS) | FOREIGN
"""Words of other classes, with slips: dont, shes."""
_NUMBERS = frozenset(
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty "
    "seventy eighty ninety hundred thousand".split()
)
"""Numbers, with which a noun is a detail: sixteen pages, verse seventeen."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase that may be part of a name.

    :param text: The text of its first place. :param weight: How much it is said, times the factors of its words.
    :param is_name: It names a place, an organisation or the like, which may be the first part only: next to another, it
        is more often a detail. :param is_english: A message in English says it.
    :param said_in: The messages in which users say its last word.
    """

    text: str
    weight: float
    is_name: bool
    is_english: bool
    places: tuple[Excerpt, ...]
    said_in: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Heard:
    """The phrases and stems of a message.

    :param is_english: It has no nouns of another language. :param forms: Its phrases by their stems.
    :param weights: How much the stems of all its words count.
    """

    message: TopicMessage
    is_english: bool
    forms: Mapping[tuple[str, ...], str]
    weights: Mapping[str, float]

    @property
    def is_by_user(self) -> bool:
        return self.message.role is MessageRole.USER


def phrases_of(segments: Sequence[Sequence[TopicMessage]], forms: Mapping[int, Sequence[Form]]) -> list[Phrase]:
    """Return the phrases that a topic's messages say most, best first; none if users say less than `LEAST_MESSAGES`.

    :param segments: The messages of each. :param forms: The concepts that each message mentions.
    """
    of_users = [one.id for segment in segments for one in segment if one.role is MessageRole.USER]
    if len(of_users) < LEAST_MESSAGES:
        return []
    mentioned = [one for of_message in forms.values() for one in of_message]
    people = {word for one in mentioned if _is_person(one) for word in _words(one.text)}
    names = {one.text for one in mentioned if one.kind in NAMED_KINDS}
    unknown = {one.text for one in mentioned if one.kind is ConceptKind.NAME}
    heard = [one for segment in segments for one in _heard(segment, forms, people)]
    of_phrase: defaultdict[tuple[str, ...], list[_Heard]] = defaultdict(list)
    of_stem: defaultdict[str, float] = defaultdict(float)
    for one in heard:
        for stems in one.forms:
            of_phrase[stems].append(one)
        for stem, weight in one.weights.items():
            of_stem[stem] += weight
    found: list[tuple[float, str, tuple[Excerpt, ...], str, bool]] = []
    for stems, sayers in of_phrase.items():
        places, is_english = _places(stems, sayers), any(one.is_english for one in sayers)
        text = places[0][1] if places else ""
        # A name of nothing known is more often a person than a subject.
        factor = _factor(_words(text), is_english=is_english) if text and text not in unknown else 0.0
        if factor:
            # A phrase is said in part where its words are said apart.
            said_whole = sum(_least(one.weights, stems) for one in sayers) if len(stems) > 1 else of_stem[stems[0]]
            said_in_part = _least(of_stem, stems)
            weight = factor * log2(1 + (said_whole + said_in_part) / 2 / OF_USER)
            found.append((-weight, text, tuple(place for place, _ in places), stems[-1], is_english))
    best = sorted(found)[:CANDIDATES]
    return [
        Phrase(
            text,
            -weight,
            text in names,
            is_english,
            places,
            frozenset(one.message.id for one in heard if one.is_by_user and stem in one.weights),
        )
        for weight, text, places, stem, is_english in best
    ]


class UsedPhrases:
    """Phrases of names. Another phrase says the same if it has all words of one, in any form, or only words of it."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_stem: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
        for one in phrases:
            self.add(one)

    def add(self, phrase: str) -> None:
        stems = frozenset(_stems(phrase))
        for stem in stems:
            self._by_stem[stem].add(stems)

    def __contains__(self, phrase: str) -> bool:
        stems = frozenset(_stems(phrase))
        return any(one <= stems or stems <= one for stem in stems for one in self._by_stem.get(stem, ()))


def name_of(
    phrases: Sequence[Phrase], vectors: Mapping[str, Floats], means: tuple[Floats, Floats], used: UsedPhrases
) -> list[Phrase]:
    """Return the parts of a name, best first; none if no phrase is close enough to the topic, or if the best is used.

    :param vectors: Unit vectors of the phrases, of the length `UNIT`; empty if the topic has none.
    :param means: The mean of the topic, and its centred mean.
    :param used: Those of other topics, which are no parts.
    """
    near = {one: closeness(vectors.get(one.text), means) if one.is_english else CLOSENESS_ABROAD for one in phrases}

    def value(one: Phrase) -> float:
        return one.weight * sqrt(near[one])

    first = max((one for one in phrases if _may_be_first(one, near[one])), key=value, default=None)
    if first is None or first.text in used:
        return []
    chosen = [first]
    for one in sorted(phrases, key=value, reverse=True):
        is_apart = not any(_share_word(one.text, other.text) for other in chosen)
        if is_apart and _goes_with(one, first, near[one], vectors) and one.text not in used:
            chosen.append(one)
    return chosen[:PARTS]


def _may_be_first(one: Phrase, near: float) -> bool:
    """Return whether a phrase with this closeness may be the first part of a name."""
    if not one.is_english:
        return one.weight >= LEAST_ABROAD
    return near >= LEAST_CLOSENESS and one.weight * sqrt(near) >= LEAST_VALUE


def _goes_with(one: Phrase, first: Phrase, near: float, vectors: Mapping[str, Floats]) -> bool:
    """Return whether a phrase with this closeness may be a further part of a name."""
    if one.is_name or one.weight < NEXT_WEIGHT * first.weight or not (one.is_english or _may_be_first(one, near)):
        return False
    if near < NEXT_CLOSENESS or one.said_in.isdisjoint(first.said_in):
        return False
    return not vectors or float(vectors[one.text] @ vectors[first.text]) >= NEXT_NEAR * UNIT**2


def shown_parts(parts: Iterable[str]) -> list[str]:
    """Return the parts that are shown, best first, without other forms of one."""
    chosen: list[str] = []
    for part in parts:
        if len(chosen) < PARTS_SHOWN and not any(_share_word(part, other) for other in chosen):
            chosen.append(part)
    return chosen


def shown_name(parts: Iterable[str]) -> str:
    """Return the name of these parts, best first."""
    return ", ".join(shown_parts(parts))


def parts_of(name: str) -> list[str]:
    """Return the parts of a shown name."""
    return name.split(", ") if name else []


@lru_cache(_CACHED_PAIRS)
def _share_word(one: str, other: str) -> bool:
    """Return whether a word of one phrase is a word of the other, or a form or part of one."""
    return any(stem in known or known in stem for stem in _stems(one) for known in _stems(other))


def _heard(
    segment: Sequence[TopicMessage], forms: Mapping[int, Sequence[Form]], people: Collection[str]
) -> Iterator[_Heard]:
    is_opening = True
    for message in segment:
        if message.role is MessageRole.SYSTEM:
            continue
        text = said(message.content[:READ_CHARS], message.role)
        if message.role is MessageRole.USER:
            weights = _weights(_stems(text), OF_USER + (OF_OPENING if is_opening else 0))
            is_opening = False
        else:
            weights = _weights(_stems(text), OF_ANSWER)
        phrases = list(noun_phrases(text))
        is_english = all(language == ENGLISH for _, language in phrases)
        found = [run for words, _ in phrases for run in _runs(words, people)]
        found += [one.text for one in forms.get(message.id, ()) if not _is_name(one.text.split()[-1], people)]
        yield _Heard(message, is_english, _by_stems(found), weights)


def _weights(stems: Sequence[str], weight: float) -> dict[str, float]:
    """Return how much each stem of a message counts: less where it comes later, since details follow the subject."""
    found: dict[str, float] = {}
    for place, stem in enumerate(stems):
        found.setdefault(stem, weight * (1 - LATE * place / len(stems)))
    return found


def _least(weights: Mapping[str, float], stems: Iterable[str]) -> float:
    return min(weights.get(stem, 0.0) for stem in stems)


def _runs(words: Sequence[str], people: Collection[str]) -> list[str]:
    """Return a noun phrase, and its last words alone unless they are part of a longer name: not Bank of Harbour Bank.

    It ends before the name of a person, after which a verb is more likely than another noun: my roommate Devraj cooks.
    """
    end = next((place for place, word in enumerate(words) if _is_name(word, people)), len(words))
    while end and words[end - 1] == OF:
        end -= 1
    begins = [begin for begin in range(end) if not begin or words[begin].islower() or words[begin - 1].islower()]
    return [
        " ".join(words[begin:end])
        for begin in begins
        if words[begin] != OF and all(word == OF or _is_word(word) for word in words[begin:end])
    ]


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
    best = sorted(
        (one for one in found if one[2] >= 0), key=lambda place: (not place[1].islower(), not place[0].is_by_user)
    )
    return [(Excerpt(one.message.id, start, len(form)), form) for one, form, start in best[:PLACES]]


def _factor(words: Sequence[str], *, is_english: bool) -> float:
    """Return how well these words, in small letters, say a subject: 0 if not at all."""
    forms = {words[-1], singular(words[-1])}
    if not is_english and fold(words[-1]) in VAGUE:
        return 0.0
    if not _NUMBERS.isdisjoint(words) or forms & (EMPTY if len(words) > 1 else EMPTY | GENERIC):
        return 0.0
    factor = OF_SEVERAL_WORDS if len(words) > 1 else OF_VAGUE if forms & WEAK else 1.0
    return factor * (OF_VAGUE if forms & (RELATIVES | ROLES) else 1.0)


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
