"""The kind of a concept by the kinds of its mentions, and how probable it is."""

from __future__ import annotations

from collections.abc import Mapping

from souvenir.core.types import ConceptKind

CONFIDENCE: Mapping[ConceptKind, float] = {
    ConceptKind.PERSON: 0.96,
    ConceptKind.ANIMAL: 0.92,
    ConceptKind.PLACE: 0.88,
    ConceptKind.ORGANISATION: 0.90,
    ConceptKind.PRODUCT: 0.89,
    ConceptKind.EVENT: 0.96,
    ConceptKind.WORK: 0.79,
    ConceptKind.NAME: 0.61,
    ConceptKind.PHRASE: 0.78,
}
"""The probability that a mention of a kind is a concept of that kind; 1 for the other kinds, which have a fixed form.
It is their share in the labels of benchmarks/labels/concepts, as `python -m benchmarks.concepts` prints it."""

NAMED_KINDS = frozenset(CONFIDENCE) - {ConceptKind.PHRASE}
"""Kinds of names, and of phrases that stand for someone or something particular."""

UNTYPED = frozenset((ConceptKind.NAME, ConceptKind.PHRASE))
"""Kinds of mentions without evidence for a more particular kind."""


EVIDENCE: Mapping[ConceptKind, int] = {ConceptKind.ANIMAL: 5}
"""How many mentions of other kinds one of this kind outweighs. A text must say that a name is an animal's ("Newton is
our tortoise"), whereas lists of names and places give the other kinds to any mention."""


def kind_of(mentions: Mapping[ConceptKind, int], defined: ConceptKind | None = None) -> tuple[ConceptKind, float]:
    """Return the kind of a concept, and the probability that it is a concept of that kind.

    :param mentions: The number of its mentions by kind. Those without evidence count only if there are no others.
    :param defined: The kind of the mention that defines it, which precedes the others if there is evidence for it.
    """
    telling = {kind: count for kind, count in mentions.items() if kind not in UNTYPED} or mentions
    weighed = {kind: count * EVIDENCE.get(kind, 1) for kind, count in telling.items()}
    most = min(weighed, key=lambda one: (-weighed[one], -CONFIDENCE.get(one, 1.0), one), default=ConceptKind.PHRASE)
    kind = most if defined is None or defined in UNTYPED else defined
    share = weighed.get(kind, 0) / max(1, sum(weighed.values()))
    return kind, share * CONFIDENCE.get(kind, 1.0)
