"""The input and the result of a search in one index: a prepared query, and the candidate passages with their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from souvenir.core.passages import FieldScores, PassageColumns
from souvenir.core.types import Filters, FloatVector, TermMatch
from souvenir.index.analyser import QueryWord
from souvenir.index.attributes import Contents
from souvenir.index.late_interaction import LateQuery
from souvenir.index.lexical import Corpus
from souvenir.index.passage_words import WordQuery
from souvenir.index.speakers import Speakers

if TYPE_CHECKING:
    from souvenir.index.namespace import NamespaceIndex


@dataclass(frozen=True, slots=True)
class Probe:
    """A query as prepared for the arms; an arm whose input is None does not run.

    :param vector: Unit vector (dim,).
    :param unframed: The vector (dim,) of the query without its framing, for chats; None if it has no framing.
    :param centred: Whether the vector arm compares directions from the namespace's mean.
    :param late: The query's tokens, if the best candidates may be scored again by late interaction.
    :param fields: Computes the field scores of every passage, which are added to those of the arms; None: no fields.
    :param names: The terms of names in the query, for `Candidates.lacking`.
    """

    vector: FloatVector | None
    words: Sequence[QueryWord] | None
    filters: Filters
    owner_ids: NDArray[np.int64] | None
    centred: bool
    candidate_count: int
    explain: bool = False
    unframed: FloatVector | None = None
    fields: Callable[[PassageColumns], FieldScores] | None = None
    past: PastState | None = None
    names: frozenset[str] = frozenset()
    late: LateQuery | None = None


@dataclass(frozen=True, slots=True)
class PastState:
    """The state of a namespace at a past time, which is searched as if one index held exactly that state.

    The spread between related passages stays within each of the two parts.

    :param owner_ids: Owners whose passages have not changed since, apart from those in `former`.
    :param former: An index, private to this search, of the other owners' passages as of then, and of those that share
        words with one of them.
    """

    owner_ids: NDArray[np.int64]
    former: NamespaceIndex


@dataclass(frozen=True, slots=True)
class PastStatistics:
    """A past state in an index: the rows that stood, (n,), and statistics of them and of all of `PastState.former`.

    :param speakers: Those who had spoken, with this index's codes. :param codes_of_former: Their codes by those there.
    """

    stood: NDArray[np.bool_]
    corpus: Corpus
    of_former: Corpus
    speakers: Speakers
    codes_of_former: NDArray[np.int32]
    contents: Contents

    def named_in_former(self, named: int | None) -> int | None:
        """Return the code there of a speaker; -1 if there is none."""
        if named is None:
            return None
        return next(iter(np.flatnonzero(self.codes_of_former == named).tolist()), -1)


@dataclass(frozen=True, slots=True)
class ResolvedQuery:
    """:param talk: Mask of the turns of talks, (n,). :param named: Code of the only speaker that the query names."""

    words: WordQuery
    repairs: Mapping[str, str]
    talk: NDArray[np.bool_]
    named: int | None


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The rows visible to a search, (n,), or None for all, with their statistics.

    :param times: When the search arrived, and when it had the lock, by `perf_counter`.
    """

    rows: NDArray[np.bool_] | None
    corpus: Corpus
    mean: FloatVector
    resolved: ResolvedQuery
    contents: Contents
    times: tuple[float, float]


class ArmSeconds(NamedTuple):
    """Seconds that a search of an index waited for writes, and that its two arms took."""

    waited: float
    words: float
    vectors: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """The union of the results of both arms, scored exactly; arrays of shape (n,) unless noted.

    :param fact_ids: Fact ids; 0 for the owner's own text.
    :param fields: The field scores, which are added to those of the arms.
    :param speakers: Codes of the speakers; 0 means none.
    :param named: The code of the only speaker that the query names; None if it names none, or several.
    :param known: The share of the query's terms, weighted by rarity, that occur in some passage; None if there are only
        names.
    :param rarest: The idf of a term in no passage, which grows with their number.
    :param count: The number of visible passages, or of their chunks where they have several.
    :param lacking: The share of the query's names that many visible passages contain, and this one does not.
    :param greatest_lexical: The greatest `lexical` of all allowed passages.
    :param terms: The query's terms in each candidate, if the probe asked to explain; else empty.
    :param complete: Whether every allowed passage is a candidate.
    :param excluded: The number of visible passages that the filters excluded.
    :param seconds: How long the search waited for the index, and how long its parts took.
    """

    rows: NDArray[np.int64]
    passage_ids: NDArray[np.int64]
    owner_ids: NDArray[np.int64]
    lexical: NDArray[np.float64]
    dense: NDArray[np.float64]
    similarity: NDArray[np.float64]
    profiles: NDArray[np.int64]
    occurred_us: NDArray[np.int64]
    fact_ids: NDArray[np.int64]
    fields: FieldScores
    speakers: NDArray[np.int32]
    named: int | None
    known: float | None
    rarest: float
    count: int
    lacking: NDArray[np.float64]
    greatest_lexical: float
    terms: tuple[tuple[TermMatch, ...], ...]
    repairs: Mapping[str, str]
    complete: bool
    excluded: int
    seconds: ArmSeconds

    def joined(self, other: Candidates, rows_before: int) -> Candidates:
        """Append the candidates of another index, whose rows are numbered from `rows_before`."""

        def both(one: NDArray[Any], two: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([one, two])

        def field_of(found: Candidates, name: str) -> NDArray[np.float32]:
            return found.fields.get(name, np.zeros(len(found.rows), dtype=np.float32))

        return replace(
            self,
            rows=both(self.rows, other.rows + rows_before),
            passage_ids=both(self.passage_ids, other.passage_ids),
            owner_ids=both(self.owner_ids, other.owner_ids),
            lexical=both(self.lexical, other.lexical),
            dense=both(self.dense, other.dense),
            similarity=both(self.similarity, other.similarity),
            profiles=both(self.profiles, other.profiles),
            occurred_us=both(self.occurred_us, other.occurred_us),
            fact_ids=both(self.fact_ids, other.fact_ids),
            speakers=both(self.speakers, other.speakers),
            lacking=both(self.lacking, other.lacking),
            fields={
                name: both(field_of(self, name), field_of(other, name))
                for name in dict.fromkeys([*self.fields, *other.fields])
            },
            greatest_lexical=max(self.greatest_lexical, other.greatest_lexical),
            terms=(*self.terms, *other.terms),
            complete=self.complete and other.complete,
            excluded=self.excluded + other.excluded,
            seconds=ArmSeconds(*map(sum, zip(self.seconds, other.seconds, strict=True))),
        )
