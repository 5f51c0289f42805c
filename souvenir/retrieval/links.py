"""Links of users in the ranking: a hit passes a share of its score to the memories that a user linked with it.

    support(n) = weight * min(max_h p_h, sum_h p_h / links(h))     h: the hits that are linked with n
    p'(n)      = 1 - (1 - p(n)) * (1 - support(n))

p is the probability of a result, and `weight` the chance that a memory answers because one that it is linked with does.
That is one step of personalised PageRank (Haveliwala 2002) from the hits, in which a hit shares what it passes equally
among its links, so the links of a hit add at most weight * p_h to the list. A memory that the search did not return is
at most as likely as the last hit by itself, and 0 if it is no candidate; with its support it is at most as likely as
the best of its hits.

Results are in the order of p', and among equal ones as before: hits without links keep their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from souvenir.core.types import LinkSupport, LinkUse, SearchQuery
from souvenir.retrieval.probability import DECIMALS
from souvenir.retrieval.ranking import Ranked
from souvenir.retrieval.relevance import Found

LINKS = "links"

MAX_LINKS = 256
"""Maximum number of links followed."""

Pairs = Sequence[tuple[int, int]]
"""Ids of a hit and of a memory that a user linked with it."""

FindAmong = Callable[[SearchQuery, Sequence[int]], Found]
"""Searches the memories of these ids."""


def with_links(found: Found, pairs: Pairs, query: SearchQuery, find_among: FindAmong) -> Found:
    """Return the results with those that links support, best first, at most `query.top_k`.

    :param find_among: Applies the same filters as the search that found the hits.
    """
    supported = supports(found.ranked, pairs, query.link_weight)
    seeds = tuple(found.owner_ids)
    direct = [_supported(one, one.probability, supported.get(one.owner_id)) for one in found.ranked]
    likely = {id_: _own(found, id_) for id_ in supported.keys() - {*seeds}}
    reached = [id_ for id_ in likely if query.explain or _may_rank(_raised(likely[id_], supported[id_]), direct, query)]
    if not reached:
        return replace(found, ranked=_best(direct, query), links=LinkUse(seeds, len(likely)) if query.explain else None)
    linked = find_among(replace(query, top_k=len(reached), min_score=None), sorted(reached))
    others = [
        _supported(one, likely[one.owner_id], replace(supported[one.owner_id], direct=False)) for one in linked.ranked
    ]
    likeliest = {
        id_: max(one.probability for one in found.ranked if one.owner_id in support.via)
        for id_, support in supported.items()
    }
    others = [one._replace(probability=min(one.probability, likeliest[one.owner_id])) for one in others]
    others = [one for one in others if one.probability >= (query.min_score or 0.0)]
    ranked = _best([*direct, *others], query)
    use = None
    if query.explain:
        added = len({one.owner_id for one in ranked} - {*seeds})
        use = LinkUse(seeds, len(likely), filtered=len(likely) - len(others), added=added)
    return replace(found, ranked=ranked, linked=linked, links=use)


def supports(ranked: Sequence[Ranked], pairs: Pairs, weight: float) -> Mapping[int, LinkSupport]:
    """Return the support of each linked memory, as if it were a direct hit."""
    links = Counter(hit for hit, _ in pairs)
    linked = set(pairs)
    found: dict[int, LinkSupport] = {}
    for id_ in {other for _, other in pairs}:
        hits = [one for one in ranked if (one.owner_id, id_) in linked]
        shared = sum(one.probability / links[one.owner_id] for one in hits)
        share = weight * min(max(one.probability for one in hits), shared)
        found[id_] = LinkSupport(round(share, DECIMALS), tuple(one.owner_id for one in hits), direct=True)
    return found


def _own(found: Found, owner_id: int) -> float:
    """Return the probability of a memory that is no hit."""
    at = np.flatnonzero(found.candidates.owner_ids == owner_id)[:1]
    if found.probabilities is None or not len(at):
        return 0.0
    return min(float(found.probabilities.owners[at[0]]), found.ranked[-1].probability)


def _raised(likely: float, support: LinkSupport) -> float:
    return round(1.0 - (1.0 - likely) * (1.0 - support.share), DECIMALS)


def _supported(one: Ranked, likely: float, support: LinkSupport | None) -> Ranked:
    return one if support is None else one._replace(probability=_raised(likely, support), support=support)


def _may_rank(likely: float, direct: Sequence[Ranked], query: SearchQuery) -> bool:
    """Return whether a memory of this probability is a result, if the filters allow it."""
    is_free = len(direct) < query.top_k or likely > min(one.probability for one in direct)
    return is_free and likely >= (query.min_score or 0.0)


def _best(ranked: Sequence[Ranked], query: SearchQuery) -> list[Ranked]:
    return sorted(ranked, key=lambda one: -one.probability)[: query.top_k]
