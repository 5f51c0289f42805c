"""Timed reads of a graph, and the same queries in plain SQL as one would first write them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import cycle

from souvenir.api.agent_summary import RECENT, TOP_CONCEPTS
from souvenir.conversations.agents import Agents
from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.knowledge.concepts import Concepts
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages import agents
from souvenir.store.messages.sessions import SessionFilter

SCOPE = Scope("ann")
ASKED_ABOUT = 40
"""Concepts that are asked about in turns: some of the most used, and some that are rare."""

_TOP = (
    "SELECT c.id, c.key, count(*) AS n FROM mentions m JOIN concepts c ON c.id = m.concept_id "
    "WHERE c.namespace_id = ? GROUP BY c.id ORDER BY n DESC LIMIT 20"
)
_RELATED = (
    "WITH RECURSIVE near(id, depth) AS (SELECT ?1, 0 UNION SELECT n.other_id, near.depth + 1 FROM near "
    "JOIN neighbours n ON n.concept_id = near.id WHERE near.depth < ?2) "
    "SELECT c.key, min(depth) FROM near JOIN concepts c USING (id) GROUP BY c.id ORDER BY 2 LIMIT 50"
)
_DETAILS = (
    "SELECT m.kind, m.owner_id, m.form, s.content FROM mentions m JOIN messages s ON s.id = m.owner_id "
    "WHERE m.kind = 'message' AND m.concept_id = ? ORDER BY m.at DESC LIMIT 10"
)
PEER_ROUNDS = 5
"""Of the slow peer: it follows every neighbour."""


class Reads:
    """The verbs by name; each call asks about the next concept."""

    def __init__(self, engine: MemoryEngine, graph: KnowledgeServices) -> None:
        self._engine = engine
        concepts = Concepts(engine)
        with engine.namespace(SCOPE) as (connection, namespace):
            assert namespace is not None
            self._namespace_id = namespace.id
            self._at = agents.last_message_at(connection, namespace.id, utc_now())
            query = "SELECT id FROM concepts WHERE namespace_id = ? ORDER BY owners {} LIMIT ?"
            found = [
                int(id_)
                for order in ("DESC", "ASC")
                for (id_,) in connection.execute(query.format(order), (namespace.id, ASKED_ABOUT // 2))
                if isinstance(id_, int)
            ]
        self._ids = cycle(found)
        self.verbs: Mapping[str, Callable[[], object]] = {
            "top 20 concepts": lambda: concepts.page(SCOPE, limit=20),
            "insights": lambda: graph.insights.of_agent(SCOPE, self._at),
            "summary": lambda: self._summary(graph),
            "a concept": lambda: concepts.details(SCOPE, next(self._ids)),
            "related, depth 1": lambda: concepts.related(SCOPE, next(self._ids), depth=1),
            "related, depth 3": lambda: concepts.related(SCOPE, next(self._ids), depth=3),
        }
        self.peers: Mapping[str, Callable[[], object]] = {
            "top 20 concepts": lambda: self._asked(_TOP, self._namespace_id),
            "a concept": lambda: self._asked(_DETAILS, next(self._ids)),
            "related, depth 1": lambda: self._asked(_RELATED, next(self._ids), 1),
            "related, depth 3": lambda: self._asked(_RELATED, next(self._ids), 3),
        }

    def _summary(self, graph: KnowledgeServices) -> object:
        """Read what `GET /agents/NAME/summary` answers."""
        return (
            Agents(self._engine).stats(SCOPE),
            graph.concepts.counts(SCOPE),
            Conversations(self._engine).newest(SCOPE, limit=RECENT),
            Sessions(self._engine).page(SCOPE, SessionFilter(), limit=RECENT),
            graph.concepts.leading(SCOPE, limit=TOP_CONCEPTS),
            graph.insights.of_agent(SCOPE, self._at),
        )

    def timed(self, name: str) -> float:
        return _timed(self.verbs[name])

    def _asked(self, query: str, *parameters: int) -> object:
        with self._engine.namespace(SCOPE) as (connection, _):
            return connection.execute(query, parameters).fetchall()


def measure(reads: Reads, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """Return the seconds of all verbs and of their peers, in turns, so that what else the machine does hits both."""
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in reads.verbs}
    for number in range(rounds):
        for name, (ours, peer) in found.items():
            ours.append(reads.timed(name))
            if name in reads.peers and number < PEER_ROUNDS:
                peer.append(_timed(reads.peers[name]))
    return found


def _timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
