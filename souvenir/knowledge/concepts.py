"""Find, read and hide the concepts of an agent, which is the scope's namespace; `claims` changes their descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from souvenir.core.errors import AgentNotFound, ConceptNotFound
from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.timestamps import utc_now
from souvenir.core.types import ClaimKind, Memory, RecordKind, Scope
from souvenir.knowledge.concept_ranking import rarity, top, worth_reading
from souvenir.knowledge.past_concepts import graph_at, hidden_at
from souvenir.knowledge.recognition.extraction import keys_in_question, mentioned
from souvenir.knowledge.recognition.spelling import key_of
from souvenir.knowledge.related import ReachedConcept, related
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import claims, concept_similarity, mention_queue, mentions
from souvenir.store.graph import concepts as rows
from souvenir.store.graph.concepts import Concept
from souvenir.store.graph.mentions import Spelling, known_keys
from souvenir.store.memories import history, reads
from souvenir.store.messages import agents, messages
from souvenir.store.messages.messages import Message
from souvenir.store.namespaces import Namespace
from souvenir.store.privacy import NOTHING_HIDDEN, Hidden, HiddenTexts, HiddenTopics, hidden_texts
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

LATEST = 10
"""Number of messages and memories that are returned with a concept."""

_NAMES = (ClaimKind.NAME, ClaimKind.ALIAS)


@dataclass(frozen=True, slots=True)
class ConceptDetails:
    """A concept and the texts that mention it.

    :param rarity: Its rarity in the texts of the agent, in [0, 1].
    :param described_by: The source of its description: `caller`, `model`, or `texts` for a defining sentence.
    :param confidence: Confidence of the claims about it, in [0, 1]; without claims, that of its kind.
    :param messages: The latest messages that mention it, newest first; likewise `memories`.
    """

    concept: Concept
    rarity: float
    described_by: str | None
    confidence: float
    messages: Sequence[Message]
    memories: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class NamedConcepts:
    """The concepts that a question names, in its order.

    :param names: The name of each by the id of its root. :param spellings: All of their spellings, each weighted by
        the rarity of its root, in [0, 1].
    """

    names: Mapping[int, str]
    spellings: tuple[Spelling, ...]


@dataclass(frozen=True, slots=True)
class ConceptCounts:
    """The number of concepts, and of messages and memories that wait to be indexed."""

    concepts: int
    waiting: int


class Concepts:
    """Thread-safe. Texts that wait to be indexed have no concepts yet.

    :raises AgentNotFound: By every method, if the namespace is no agent.
    """

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    # --- reading -----------------------------------------------------------------------------------------------

    def counts(self, scope: Scope) -> ConceptCounts:
        with self._engine.namespace(scope) as (connection, _):
            namespace_id = agents.require_agent(connection, scope).namespace_id
            return ConceptCounts(rows.count(connection, namespace_id), mention_queue.count(connection, namespace_id))

    def page(
        self, scope: Scope, as_of: datetime | None = None, *, offset: int = 0, limit: int = 100
    ) -> tuple[Sequence[Concept], int]:
        """Return the most significant concepts first, and their total number.

        :param as_of: As they were then; None for now.
        """
        with self._reading(scope, as_of) as (graph, _, namespace, hidden):
            found = top(graph, namespace.id, hidden, limit=limit, offset=offset)
            return found, rows.count(graph, namespace.id)

    def leading(self, scope: Scope, *, limit: int) -> Sequence[Concept]:
        """Return the concepts that introduce the agent."""
        with self._reading(scope, None) as (graph, _, namespace, hidden):
            return worth_reading(graph, namespace.id, hidden, limit=limit)

    def details(
        self, scope: Scope, name_or_id: str | int, as_of: datetime | None = None, *, latest: int = LATEST
    ) -> ConceptDetails:
        """Return a concept with its description and latest mentions, without those that the agent's policy hides.

        :param name_or_id: Its id, the id of one of its spellings, or a name in any spelling.
        :param as_of: As it was then, with the texts of then; None for now.
        :param latest: Maximum number of mentions.
        :raises ConceptNotFound: If there is none.
        """
        with self._reading(scope, as_of) as (graph, store, namespace, hidden):
            concept = require_concept(graph, namespace.id, name_or_id, hidden)
            members = rows.members(graph, concept.id)
            mentioning = rows.mentions_of(graph, members, hidden, limit=latest)
            said = messages.by_id(store, namespace.id, mentioning[RecordKind.MESSAGE], as_of)
            kept = (
                reads.memories(store, namespace, mentioning[RecordKind.MEMORY])
                if as_of is None
                else history.memories_at(store, namespace, as_of, mentioning[RecordKind.MEMORY])
            )
            shown = _without_hidden_links(kept, store, namespace, hidden)
            stated = claims.of_concepts(graph, members, hidden)
            described_by = (one.made_by.value for one in stated if one.kind is ClaimKind.DESCRIPTION)
            return ConceptDetails(
                concept,
                rarity(concept.owners, rows.owners_read(graph, namespace.id)),
                # Of `caller` and `model`, the first one is shown.
                min(described_by, default="texts" if concept.description else None),
                min((one.confidence for one in stated if one.other_id is None), default=concept.confidence),
                [said[id_] for id_ in mentioning[RecordKind.MESSAGE] if id_ in said],
                [shown[id_] for id_ in mentioning[RecordKind.MEMORY] if id_ in shown],
            )

    def related(
        self,
        scope: Scope,
        name_or_id: str | int,
        as_of: datetime | None = None,
        *,
        depth: int = 2,
        limit: int = 50,
    ) -> tuple[Concept, Sequence[ReachedConcept]]:
        """Return a concept, and the concepts related to it within `depth` steps, strongest first.

        :param as_of: As they were then; None for now.
        :raises ConceptNotFound: If there is none.
        """
        with self._reading(scope, as_of) as (graph, _, namespace, hidden):
            concept = require_concept(graph, namespace.id, name_or_id, hidden)
            now = as_of or utc_now()
            return concept, related(graph, namespace.id, concept.id, hidden, depth=depth, limit=limit, now=now)

    @contextmanager
    def _reading(
        self, scope: Scope, as_of: datetime | None
    ) -> Iterator[tuple[Connection, Connection, Namespace, HiddenTopics | HiddenTexts]]:
        """Open the graph, now or as it was, and the store; with the namespace, and the texts that its policy hides."""
        with self._engine.namespace(scope) as (store, namespace):
            if namespace is None:
                raise AgentNotFound(scope.namespace)
            agent, screening = agents.require_agent(store, scope), self._engine.screening
            if as_of is None:
                yield store, store, namespace, screening.hidden_topics(agent)
                return
            hidden = hidden_at(store, namespace, screening.hidden_topics(agent), as_of)
            with graph_at(store, namespace, as_of) as graph:
                yield graph, store, namespace, hidden

    # --- writing -----------------------------------------------------------------------------------------------

    @traced(MemoryOperation.DELETE)
    def hide(self, scope: Scope, concept_id: int) -> Concept:
        """Delete a concept under all of its spellings and stated names; they are never indexed again.

        :raises ConceptNotFound: If there is none.
        """

        def work(tx: Transaction) -> Concept:
            hidden = self._engine.screening.hidden_topics(agents.require_agent(tx.connection, scope))
            concept = require_concept(tx.connection, tx.namespace_id, concept_id, hidden)
            members, names = all_names(tx.connection, tx.namespace_id, concept.id)
            for key in names:
                mentions.hide_key(tx.connection, tx.namespace_id, key)
            for id_, key in concept_similarity.keys(tx.connection, members).items():
                mentions.hide(tx.connection, tx.namespace_id, id_, key)
            return concept

        require_concepts(self._engine, scope, concept_id)
        return self._engine.write(scope, work)


# --- lookups, in a transaction: under all spellings and stated names -------------------------------------------------


def require_concept(
    connection: Connection, namespace_id: int, name_or_id: str | int, hidden: Hidden = NOTHING_HIDDEN
) -> Concept:
    """Return the root concept of an id, or of a name in any spelling.

    :param hidden: As in `by_ids`; needed by callers that show more than its name.
    :raises ConceptNotFound: If there is none.
    """
    id_ = find_by_name(connection, namespace_id, name_or_id) if isinstance(name_or_id, str) else name_or_id
    found = {} if id_ is None else rows.by_ids(connection, namespace_id, [id_], hidden)
    if id_ is None or id_ not in found:
        raise ConceptNotFound(name_or_id)
    return found[id_]


def require_concepts(engine: MemoryEngine, scope: Scope, *concept_ids: int) -> None:
    """Check before a write that the concepts exist, since every write creates the namespace of its scope.

    :raises AgentNotFound: If the namespace is no agent. :raises ConceptNotFound: If one does not exist.
    """
    with engine.namespace(scope) as (connection, _):
        namespace_id = agents.require_agent(connection, scope).namespace_id
        for id_ in concept_ids:
            require_concept(connection, namespace_id, id_)


def _without_hidden_links(
    found: Mapping[int, Memory], store: Connection, namespace: Namespace, hidden: HiddenTopics | HiddenTexts
) -> Mapping[int, Memory]:
    if not found:
        return found
    texts = hidden if isinstance(hidden, HiddenTexts) else hidden_texts(store, namespace.id, hidden)
    return {id_: memory.without_links_to(texts.memories) for id_, memory in found.items()}


def keys_of_name(name: str) -> list[str]:
    """Return the possible keys of a concept with this name, most likely first."""
    read = mentioned(name)
    return [key_of(name), *(one.key for one in read if len(read) == 1)]


def keys_of_whole_name(name: str) -> list[str]:
    """Return the possible keys of a concept with this name: not those of a part of it, as `keys_of_name` does."""
    whole = key_of(name)
    return [whole, *(one.key for one in mentioned(name) if key_of(one.form) == whole)]


def find_by_name(connection: Connection, namespace_id: int, name: str) -> int | None:
    """Return the id of the root concept of a name in any spelling; stated names precede those found in texts."""
    wanted = key_of(name)
    if not wanted:
        return None
    for text, concept_id in rows.stated_names(connection, namespace_id):
        if key_of(text) == wanted:
            return rows.roots(connection, [concept_id])[concept_id]
    keys = keys_of_name(name)
    ids = known_keys(connection, namespace_id, keys)
    found = next((ids[key] for key in keys if key in ids), None)
    return None if found is None else rows.roots(connection, [found])[found]


def all_names(connection: Connection, namespace_id: int, root_id: int) -> tuple[list[int], list[str]]:
    """Return the ids of all spellings of a concept, stated ones included, and its stated keys that no concept has."""
    members = rows.members(connection, root_id)
    stated_spellings = claims.aliases_of(connection, members)
    members = list(dict.fromkeys([*members, *(one.concept_id for one in stated_spellings)]))
    names = [one.text for one in claims.of_concepts(connection, members) if one.kind in _NAMES]
    keys = {key for name in names for key in keys_of_name(name)}
    return members, sorted(keys - known_keys(connection, namespace_id, keys).keys())


def named_in(connection: Connection, namespace_id: int, text: str) -> NamedConcepts:
    """Return the concepts of an agent that a question names."""
    keys = keys_in_question(text)
    wanted, stated = set(keys), dict[str, int]()
    for name, concept_id in rows.stated_names(connection, namespace_id):
        if (key := key_of(name)) in wanted:
            stated.setdefault(key, concept_id)
    ids = known_keys(connection, namespace_id, keys) | stated
    if not ids:
        return NamedConcepts({}, ())
    roots = rows.roots(connection, ids.values())
    named = dict.fromkeys(roots[ids[key]] for key in keys if key in ids and ids[key] in roots)
    shown = rows.by_ids(connection, namespace_id, named, NOTHING_HIDDEN)
    read = rows.owners_read(connection, namespace_id)
    weights = {root: rarity(shown[root].owners, read) for root in named if root in shown}
    spellings = tuple(
        Spelling(concept_id, root, weights[root]) for concept_id, root in rows.spellings(connection, weights).items()
    )
    return NamedConcepts({root: shown[root].name for root in weights}, spellings)
