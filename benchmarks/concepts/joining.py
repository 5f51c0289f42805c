"""Which names are joined to one concept, on the labelled pairs, with the real model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.concepts.labels import Pair, form_key
from souvenir.core.types import Embedder
from souvenir.knowledge.concept_similarity import is_match, may_match
from souvenir.knowledge.recognition.extraction import mentioned
from souvenir.knowledge.recognition.short_names import is_short_for, longest
from souvenir.knowledge.recognition.spelling import key_of


@dataclass(frozen=True, slots=True)
class Joined:
    pair: Pair
    joined: bool


def join(pairs: Sequence[Pair], embedder: Embedder) -> list[Joined]:
    """Return whether each pair is joined, given the names of its context."""
    return [Joined(pair, _is_joined(pair, embedder)) for pair in pairs]


def _is_joined(pair: Pair, embedder: Embedder) -> bool:
    mentions = mentioned(pair.context)
    by_form = {mention.form: mention.key for mention in mentions}
    one, other = (by_form.get(name, key_of(name)) for name in (pair.one, pair.other))
    if one == other or form_key(pair.one) == form_key(pair.other):
        return True
    if may_match(one, other):
        vectors = embedder.embed_documents([one, other])
        if is_match(float(np.dot(*vectors)), None):
            return True
    known = {one, other, *by_form.values()}
    return any(
        is_short_for(short, long) and longest([name for name in known if is_short_for(short, name)]) is not None
        for short, long in ((one, other), (other, one))
    )
