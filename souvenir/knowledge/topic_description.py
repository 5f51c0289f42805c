"""Describe topics: the concepts that characterise them, and the sentences that summarise them.

Both are chosen from the texts without a language model, and are stored as references to concepts and messages, so that
nothing deleted remains in a description. `souvenir.knowledge.topic_names` names them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import log2, sqrt

import numpy as np

from souvenir.core.text import sentences
from souvenir.core.types import MessageRole
from souvenir.knowledge.clustering import Clusters
from souvenir.knowledge.recognition.extraction import said
from souvenir.knowledge.recognition.spelling import singular
from souvenir.knowledge.segmentation import OF_USER, UNIT, Floats, unit_vectors
from souvenir.store.graph import concept_similarity
from souvenir.store.graph.topics import Excerpt, Form, TopicMessage
from souvenir.store.sql import Connection

TERMS_OF_TOPIC = 12

LEAST_CLOSENESS = 0.05
"""Cosine of a phrase that is not close to its topic, or has no vector."""

SENTENCES = 3

_LONG = 4
"""Minimum length of a word by which a sentence says a name of several words."""

_LETTER = "[a-zß-ÿ]"
"""Not of Chinese, whose words have no blanks between them."""

SENTENCE_CHARS = range(20, 241)
"""Lengths of sentences that are chosen."""

OF_ASSISTANT, IS_QUESTION = 0.3, 0.4
"""Factors of sentences that do not come from the user, and of questions."""

WITHOUT_NEWS = 0.1
"""Value of a sentence that mentions no concept but those of the sentences chosen before, next to theirs."""


def terms_of(connection: Connection, clusters: Clusters) -> list[dict[int, float]]:
    """Return the best concepts of each topic with their weights: 1 for the best one.

    A concept is weighted by how much the topic mentions it and by how few topics do. Keys break ties, since ids depend
    on the order of discovery and would differ after a rebuild.
    """
    topics, keys = len(clusters.mentions) + 1, concept_similarity.keys(connection, clusters.topics_of)
    found: list[dict[int, float]] = []
    for mentions in clusters.mentions:
        weights = {
            id_: log2(1 + count / OF_USER) * sqrt(log2(topics / clusters.topics_of[id_]))
            for id_, count in mentions.items()
        }
        best = sorted(weights, key=lambda id_: (-weights[id_], keys[id_]))[:TERMS_OF_TOPIC]
        found.append({id_: round(weights[id_] / weights[best[0]], 2) for id_ in best})
    return found


def unit(stored: bytes) -> Floats:
    """Return a stored vector with integer components, of the length `UNIT`."""
    [vector] = unit_vectors(np.frombuffer(stored, np.float32).astype(np.float64)[None])
    return np.asarray(vector)


def closeness(vector: Floats | None, means: tuple[Floats, Floats]) -> float:
    """Return the product of the cosines to the mean of the topic and to its centred mean; 1 if it has none."""
    if not any(mean.any() for mean in means):
        return 1.0
    if vector is None:
        return LEAST_CLOSENESS**2
    one, other = (max(float(vector @ mean) / UNIT**2, LEAST_CLOSENESS) for mean in means)
    return one * other


@dataclass(frozen=True, slots=True)
class _Candidate:
    """:param value: Of a sentence whose concepts are all new and weigh 1. :param folded: Its text, casefolded.

    :param says_name: A user says a part of the topic's name in it.
    """

    sentence: Excerpt
    folded: str
    value: float
    says_name: bool
    concepts: frozenset[int]


def sentences_of(
    segments: Iterable[Sequence[TopicMessage]],
    forms: Mapping[int, Sequence[Form]],
    terms: Mapping[int, float],
    centred: Floats,
    name: Collection[str],
) -> list[Excerpt]:
    """Return the sentences that cover the topic's concepts best, in order: at most one of a message, and none twice.

    They are those in which users say a part of the name, if any: the others may be about another matter.

    :param segments: The messages of each. :param forms: The concepts that each message mentions.
    :param terms: The weights of the topic's concepts. :param centred: Its centred mean. :param name: The parts of its
        name.
    """
    spoken = _pattern_of(name)
    left = [
        candidate
        for one in chain.from_iterable(segments)
        for candidate in _quotable(
            one, [form for form in forms.get(one.id, ()) if form.concept_id in terms], centred, spoken
        )
    ]
    left = [one for one in left if one.says_name] or left
    chosen: list[Excerpt] = []
    covered: frozenset[int] = frozenset()

    def gain(one: _Candidate) -> float:
        return one.value * (WITHOUT_NEWS + sum(terms[id_] for id_ in one.concepts - covered))

    while left and len(chosen) < SENTENCES:
        best = max(left, key=gain)
        chosen.append(best.sentence)
        covered |= best.concepts
        left = [
            one for one in left if one.sentence.message_id != best.sentence.message_id and one.folded != best.folded
        ]
    return sorted(chosen)


def _pattern_of(name: Collection[str]) -> re.Pattern[str] | None:
    """Return a pattern of the parts of a name, and of their long words in the singular and the plural."""
    parts = [part.casefold() for part in name]
    words = {singular(word) for part in parts for word in part.split() if len(word) >= _LONG}
    forms = [*parts, *sorted(words)]
    said_forms = "|".join(map(re.escape, forms))
    return re.compile(f"(?<!{_LETTER})(?:{said_forms})(?:s|es)?(?!{_LETTER})") if forms else None


def _quotable(
    message: TopicMessage, forms: Sequence[Form], centred: Floats, name: re.Pattern[str] | None
) -> list[_Candidate]:
    """Return the sentences of a message, without what `said` removes.

    :param name: A pattern of the topic's name.
    """
    if message.role is MessageRole.SYSTEM:
        return []
    vector = None if message.vector is None else unit(message.vector)
    value = closeness(vector, (centred, centred)) * (1.0 if message.role is MessageRole.USER else OF_ASSISTANT)
    text, found = said(message.content, message.role), []
    for begin, end in sentences(text):
        sentence = text[begin:end].strip()
        start = message.content.find(sentence)
        if start >= 0 and len(sentence) in SENTENCE_CHARS:
            folded = sentence.casefold()
            concepts = frozenset(form.concept_id for form in forms if form.text.casefold() in folded)
            worth = value * (IS_QUESTION if sentence.endswith("?") else 1.0)
            says_name = message.role is MessageRole.USER and name is not None and name.search(folded) is not None
            found.append(_Candidate(Excerpt(message.id, start, len(sentence)), folded, worth, says_name, concepts))
    return found
