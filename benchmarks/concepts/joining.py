"""Which names are joined to one concept, on the labelled pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.concepts.labels import Pair, form_key
from souvenir.knowledge.concept_similarity import may_match
from souvenir.knowledge.recognition.extraction import mentioned
from souvenir.knowledge.recognition.short_names import is_short_for, longest
from souvenir.knowledge.recognition.spelling import key_of


@dataclass(frozen=True, slots=True)
class Joined:
    pair: Pair
    joined: bool


def join(pairs: Sequence[Pair]) -> list[Joined]:
    """Return whether each pair is joined, given the names of its context."""
    return [Joined(pair, _is_joined(pair)) for pair in pairs]


def _is_joined(pair: Pair) -> bool:
    mentions = mentioned(pair.context)
    by_form = {mention.form: mention.key for mention in mentions}
    one, other = (by_form.get(name, key_of(name)) for name in (pair.one, pair.other))
    if one == other or form_key(pair.one) == form_key(pair.other) or may_match(one, other):
        return True
    known = {one, other, *by_form.values()}
    return any(
        is_short_for(short, long) and longest([name for name in known if is_short_for(short, name)]) is not None
        for short, long in ((one, other), (other, one))
    )
