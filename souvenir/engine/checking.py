"""Whether the database agrees with itself, and every loaded index with the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import apsw

from souvenir.index.namespace import NamespaceIndex
from souvenir.index.registry import IndexKey
from souvenir.passages import Chunks, Passage
from souvenir.store import check, reads


def disagreements(
    connection: apsw.Connection,
    model_id: str,
    indexes: Mapping[IndexKey, NamespaceIndex],
    analyse: Callable[[Passage], Chunks],
) -> Sequence[str]:
    """One sentence each. Nothing may be written meanwhile.

    :param indexes: The loaded indexes, of the vectors of this model.
    """
    found = check.problems(connection)
    for (namespace_id, kind), index in indexes.items():
        truth = reads.NamespaceView(connection, namespace_id, kind, model_id)
        problems = index.problems(truth.passages(None), analyse)
        found += [f"{kind} index of namespace {namespace_id}: {problem}" for problem in problems]
        if index.change_seq != truth.change_seq:
            found.append(f"{kind} index of namespace {namespace_id} stands at another write than the database")
    return found
