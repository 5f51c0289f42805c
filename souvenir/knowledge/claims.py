"""The claims about an agent's concepts: names, descriptions, kinds, aliases and typed relations.

`Claims` is the only service that writes the table `claims`. Callers and language models make claims about concepts that
an indexed text mentions; those of callers precede those of entities (`entity_concepts`), and both precede those of
models. If a key matches no concept, the result contains the number of texts that still wait to be indexed, and the
caller can repeat the statement later. A relation connects root concepts, whichever spelling its ends are given in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from souvenir.core.errors import Conflict, NotFound, NothingToDo
from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.types import ClaimedBy, ClaimKind, Scope
from souvenir.knowledge.claim_types import (
    ConceptPatch,
    ConceptStatement,
    ProposedClaim,
    RelationStatement,
    StatementResult,
    TypedRelation,
    relation_type,
    type_name,
)
from souvenir.knowledge.concept_similarity import assign_root, root_of
from souvenir.knowledge.concepts import (
    all_names,
    find_by_name,
    keys_of_name,
    keys_of_whole_name,
    require_concept,
    require_concepts,
)
from souvenir.knowledge.entity_concepts import content_of, relations_behind, stated_claims
from souvenir.knowledge.knowledge_graph import remove_relations
from souvenir.knowledge.recognition.spelling import key_of
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import claims as rows
from souvenir.store.graph import concept_similarity, concepts, mention_queue, mentions
from souvenir.store.graph.claims import Claim, ClaimDraft
from souvenir.store.graph.concepts import Concept
from souvenir.store.graph.relations import named_memories
from souvenir.store.messages import agents
from souvenir.store.privacy import NOTHING_HIDDEN, Hidden
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

_MANY = (ClaimKind.ALIAS, ClaimKind.RELATION)
"""Kinds with several valid claims per concept; of the other kinds only the newest claim is valid."""


class Claims:
    """Thread-safe. The scope's namespace is the agent."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    def relations(self, scope: Scope, concept_id: int) -> Sequence[TypedRelation]:
        """Return the relations from or to a concept: of callers, then of entities, then of models, newest first.

        :raises ConceptNotFound: If there is no such concept.
        """
        with self._engine.namespace(scope) as (connection, _):
            agent = agents.require_agent(connection, scope)
            concept = require_concept(connection, agent.namespace_id, concept_id)
            hidden = self._engine.screening.hidden_topics(agent)
            return _relations(connection, agent.namespace_id, concept, hidden)

    # --- callers -----------------------------------------------------------------------------------------------

    @traced(MemoryOperation.UPDATE)
    def update(self, scope: Scope, concept_id: int, patch: ConceptPatch) -> Concept:
        """Replace a caller's claims about a concept. A concept stated as its alias is merged into it asynchronously.

        :raises NothingToDo: If the patch changes nothing.
        :raises ConceptNotFound: If there is no such concept.
        :raises Conflict: If another concept has the new name, or if a caller merged this one into another one, whose
            aliases would be replaced.
        """
        if not patch.texts and patch.aliases is None:
            raise NothingToDo("Nothing to change; give name, description, kind or aliases")
        require_concepts(self._engine, scope, concept_id)
        patch = patch.screened(self._engine.screening.applied(scope))

        def work(tx: Transaction) -> Concept:
            if assign_root(tx.connection, concept_id):
                # A merge or its undoing that is not indexed yet.
                mentions.queue_matching(tx.connection, [concept_id])
            root_id = require_concept(tx.connection, tx.namespace_id, concept_id).id
            if patch.aliases is not None:
                _require_unmerged(tx, concept_id)
            keys = {alias: keys_of_whole_name(alias) for alias in patch.aliases or ()}
            drafts = list(_concept_drafts(tx, [(root_id, patch)], keys))
            _write(tx, drafts, replaced=_replaced_claims(tx, root_id, patch))
            return self._shown(tx, scope, root_id)

        return self._engine.write(scope, work)

    @traced(MemoryOperation.UPDATE)
    def separate(self, scope: Scope, concept_id: int, name: str) -> Concept:
        """State that one of a concept's names is another concept.

        :return: The concept of that name. :raises ConceptNotFound: If there is no such concept.
        :raises NotFound: If it has no such name, or if no text mentions it. :raises Conflict: If it is its first name.
        """
        require_concepts(self._engine, scope, concept_id)

        def work(tx: Transaction) -> Concept:
            root_id = require_concept(tx.connection, tx.namespace_id, concept_id).id
            known = mentions.known_keys(tx.connection, tx.namespace_id, keys_of_name(name)).values()
            chosen = next((one for one in known if one in concepts.members(tx.connection, root_id)), None)
            if chosen is None:
                raise NotFound(f"Concept {root_id} has no name {name!r} that a text mentions; read its aliases")
            if chosen == root_id:
                raise Conflict(
                    f"{name!r} is the concept's first name in the texts; only its other names can be separated"
                )
            joined = [*rows.of_concepts(tx.connection, [chosen]), *rows.aliases_of(tx.connection, [chosen])]
            replaced = {one.id for one in joined if one.kind is ClaimKind.ALIAS and one.other_id and one.is_direct}
            own = ClaimDraft(ClaimKind.ALIAS, chosen, name, ClaimedBy.CALLER, other_id=chosen)
            _write(tx, [own], replaced=replaced)
            concept_similarity.set_same(tx.connection, chosen, None)
            return self._shown(tx, scope, chosen)

        return self._engine.write(scope, work)

    def _shown(self, tx: Transaction, scope: Scope, root_id: int) -> Concept:
        hidden = self._engine.screening.hidden_topics(agents.require_agent(tx.connection, scope))
        return concepts.by_ids(tx.connection, tx.namespace_id, [root_id], hidden)[root_id]

    def state(
        self, scope: Scope, of_concepts: Sequence[ConceptStatement], relations: Sequence[RelationStatement]
    ) -> StatementResult:
        """Insert the claims that no caller has made yet, in one transaction.

        :raises AgentNotFound: If the namespace is no agent.
        :raises InvalidRequest: If a relation type has no letters, or too many.
        :raises Conflict: If another concept has a new name.
        """
        policy = self._engine.screening.applied(scope)
        of_concepts = [one.screened(policy) for one in of_concepts]
        relations = [one.screened(policy) for one in relations]
        keys = [one.key for one in of_concepts] + [end for one in relations for end in (one.from_key, one.to_key)]
        keys_of_aliases = {alias: keys_of_whole_name(alias) for one in of_concepts for alias in one.aliases or ()}

        def work(tx: Transaction) -> StatementResult:
            agents.require_agent(tx.connection, scope)
            ids = _ids_of(tx, keys)
            patches = [(ids[one.key], one) for one in of_concepts if one.key in ids]
            drafts = [*_concept_drafts(tx, patches, keys_of_aliases), *_relation_drafts(relations, ids)]
            new = _unclaimed(tx, drafts)
            _write(tx, new)
            unknown = [key for key in dict.fromkeys(keys) if key not in ids]
            unread = mention_queue.count(tx.connection, tx.namespace_id)
            return StatementResult(len(new), len(drafts) - len(new), unknown, unread)

        return self._engine.write(scope, work)

    @traced(MemoryOperation.DELETE)
    def unrelate(self, scope: Scope, concept_id: int, to: int, relation: str) -> Sequence[TypedRelation]:
        """Delete a relation, whether callers, entities or models stated it; returns the deleted claims.

        The relation of entities is deleted in the knowledge graph.

        :raises NotFound: If there is no such relation. :raises ConceptNotFound: If there is no such concept.
        """
        named = relation_type(self._engine.screening.text(scope, relation))
        require_concepts(self._engine, scope, concept_id, to)

        def work(tx: Transaction) -> Sequence[TypedRelation]:
            concept, other = (require_concept(tx.connection, tx.namespace_id, id_) for id_ in (concept_id, to))
            stated = _relations(tx.connection, tx.namespace_id, concept, NOTHING_HIDDEN)
            wanted = (concept.id, other.id, named)
            found = [one for one in stated if (one.concept.id, one.other.id, type_name(one.claim.text)) == wanted]
            if not found:
                raise NotFound(f"Concept {concept_id} has no relation {named!r} to {to}; list its relations")
            behind = relations_behind(tx.connection, tx.namespace_id, (one.claim for one in found))
            for source, of_source in behind.items():
                remove_relations(tx, source, of_source)
            _write(tx, (), replaced={one.claim.id for one in found})
            return found

        return self._engine.write(scope, work)

    # --- entities, within a transaction of the graph indexer ----------------------------------------------------

    @staticmethod
    def update_entities(tx: Transaction, memory_ids: Collection[int]) -> None:
        """Replace the claims that are derived from these memories by those that they state now."""
        named = named_memories(tx.connection, tx.namespace_id, memory_ids)
        stated = {content_of(one): one for one in stated_claims(tx.connection, tx.namespace_id, named.values())}
        present = {content_of(one): one.id for one in rows.of_memories(tx.connection, memory_ids)}
        new = [draft for content, draft in stated.items() if content not in present]
        _write(tx, new, replaced=[id_ for content, id_ in present.items() if content not in stated])

    # --- language models, each within the transaction of a job ----------------------------------------------------

    @staticmethod
    def apply(tx: Transaction, job_id: str, proposed: Sequence[ProposedClaim]) -> Counter[str]:
        """Insert the claims of a job about concepts that still exist; returns their number by kind."""
        keys = {key for one in proposed for key in (one.concept, one.other) if key is not None}
        ids = mentions.known_keys(tx.connection, tx.namespace_id, keys)
        drafts = [
            ClaimDraft(
                one.kind,
                ids[one.concept],
                one.text,
                ClaimedBy.MODEL,
                None if one.other is None else ids[one.other],
                one.confidence,
                message_id=one.message_id,
                job_id=job_id,
            )
            for one in proposed
            if {one.concept, one.other} <= {*ids, None}
        ]
        _write(tx, drafts)
        return Counter(one.kind.value for one in drafts)

    @staticmethod
    def undo(tx: Transaction, job_id: str) -> int:
        """Delete the claims of a job; returns their number."""
        found = {one.id for one in rows.of_job(tx.connection, tx.namespace_id, job_id, NOTHING_HIDDEN)}
        _write(tx, (), replaced=found)
        return len(found)


def _write(tx: Transaction, drafts: Iterable[ClaimDraft], *, replaced: Collection[int] = ()) -> None:
    """Delete claims and insert others: the only place that changes the table."""
    if replaced:
        rows.delete(tx.connection, replaced)
    for draft in drafts:
        rows.insert(tx.connection, tx.namespace_id, draft, tx.now)


# --- update -----------------------------------------------------------------------------------------------------


def _replaced_claims(tx: Transaction, root_id: int, patch: ConceptPatch) -> set[int]:
    """Return the ids of the callers' claims that a patch replaces, under every spelling of the concept."""
    members = concepts.members(tx.connection, root_id)
    replaced = {*patch.texts, *([ClaimKind.ALIAS] if patch.aliases is not None else [])}
    before = [*rows.of_concepts(tx.connection, members), *rows.aliases_of(tx.connection, members)]
    return {
        one.id
        for one in before
        # An alias of itself is the statement that it is a concept of its own.
        if one.is_direct and one.kind in replaced and one.other_id != one.concept_id
    }


def _require_unmerged(tx: Transaction, concept_id: int) -> None:
    """:raises Conflict: If a caller stated that the concept is an alias, even if it is not merged yet."""
    root_id = root_of(tx.connection, concept_id)
    stated = (one for one in rows.of_concepts(tx.connection, [concept_id]) if one.kind is ClaimKind.ALIAS)
    if root_id is not None and any(one.is_direct and one.other_id not in (None, concept_id) for one in stated):
        name = require_concept(tx.connection, tx.namespace_id, root_id).name
        raise Conflict(f"Concept {concept_id} is merged into {name!r}; change the aliases of concept {root_id} instead")


def _require_free_name(tx: Transaction, root_id: int, name: str, stated: Mapping[str, int]) -> None:
    """:param stated: The concepts of stated names, by their keys. :raises Conflict: If another concept has the name."""
    members, _ = all_names(tx.connection, tx.namespace_id, root_id)
    known = mentions.known_keys(tx.connection, tx.namespace_id, keys_of_name(name)).values()
    others = {*known, stated.get(key_of(name), root_id)} - {*members}
    if others:
        raise Conflict(_taken(tx, name, min(others)))


def _taken(tx: Transaction, name: str, other_id: int) -> str:
    other = require_concept(tx.connection, tx.namespace_id, other_id).name
    return f"Another concept has the name {name!r}; to merge the two, give its name {other!r} in aliases"


# --- statements in bulk -----------------------------------------------------------------------------------------


def _ids_of(tx: Transaction, names: Iterable[str]) -> Mapping[str, int]:
    """Return the ids of existing concepts by the given key or name."""
    names = list(dict.fromkeys(names))
    known = mentions.known_keys(tx.connection, tx.namespace_id, names)
    found = {name: known.get(name) or find_by_name(tx.connection, tx.namespace_id, name) for name in names}
    return {name: id_ for name, id_ in found.items() if id_ is not None}


def _unclaimed(tx: Transaction, drafts: Sequence[ClaimDraft]) -> list[ClaimDraft]:
    """Return the drafts that no valid direct claim of a caller equals."""
    claimed = rows.of_concepts(tx.connection, {one.concept_id for one in drafts})
    valid = dict[tuple[ClaimKind, int, int], Claim]()
    for one in claimed:
        if one.is_direct:
            valid[one.kind, one.concept_id, one.id if one.kind in _MANY else 0] = one
    known = {(one.kind, one.concept_id, one.other_id, one.text, one.confidence) for one in valid.values()}
    return [one for one in drafts if (one.kind, one.concept_id, one.other_id, one.text, one.confidence) not in known]


def _concept_drafts(
    tx: Transaction, patches: Sequence[tuple[int, ConceptPatch]], keys: Mapping[str, Sequence[str]]
) -> Iterator[ClaimDraft]:
    """Yield the claims of callers. An alias that names another concept makes that concept a spelling of this one.

    :param patches: Each with the id of its concept. :param keys: The possible keys of the aliases.

    :raises Conflict: If another concept has a new name, or has a new alias that is not its name.
    """
    known = mentions.known_keys(tx.connection, tx.namespace_id, {key for found in keys.values() for key in found})
    stated: dict[str, int] = {}
    if any(patch.name or patch.aliases for _, patch in patches):
        for name, concept_id in concepts.stated_names(tx.connection, tx.namespace_id):
            stated.setdefault(key_of(name), concept_id)
    for concept_id, patch in patches:
        root_id = require_concept(tx.connection, tx.namespace_id, concept_id).id
        if patch.name:
            _require_free_name(tx, root_id, patch.name, stated)
            stated[key_of(patch.name)] = root_id
        for kind, text in patch.texts.items():
            if text:
                yield ClaimDraft(kind, concept_id, text, ClaimedBy.CALLER, confidence=patch.confidence)
        for alias in dict.fromkeys(patch.aliases or ()):
            other_id = next((known[key] for key in keys[alias] if key in known), None)
            if other_id is None:
                other_id = _named_by_caller(tx, root_id, alias, stated)
                stated[key_of(alias)] = root_id
            named, same_as = (concept_id, None) if other_id is None else (other_id, concept_id)
            if other_id != concept_id:
                yield ClaimDraft(ClaimKind.ALIAS, named, alias, ClaimedBy.CALLER, same_as, patch.confidence)


def _named_by_caller(tx: Transaction, root_id: int, alias: str, stated: Mapping[str, int]) -> int | None:
    """Return the other concept that has this name by a statement only.

    :param stated: The concepts of stated names, by their keys. :raises Conflict: If it has it as an alias.
    """
    owner = stated.get(key_of(alias), root_id)
    other = None if owner == root_id else require_concept(tx.connection, tx.namespace_id, owner)
    if other is None or other.id == root_id:
        return None
    if key_of(other.name) != key_of(alias):
        raise Conflict(_taken(tx, alias, other.id))
    return other.id


def _relation_drafts(statements: Iterable[RelationStatement], ids: Mapping[str, int]) -> Iterator[ClaimDraft]:
    for one in statements:
        start, end = ids.get(one.from_key), ids.get(one.to_key)
        if start is not None and end is not None and start != end:
            yield ClaimDraft(ClaimKind.RELATION, start, one.relationship_type, ClaimedBy.CALLER, end, one.strength)


# --- relations --------------------------------------------------------------------------------------------------


def _relations(connection: Connection, namespace_id: int, concept: Concept, hidden: Hidden) -> list[TypedRelation]:
    found = rows.relations(connection, concepts.members(connection, concept.id), hidden)
    shown = concepts.by_ids(connection, namespace_id, {id_ for one in found for id_ in one.ends}, hidden)
    known = [one for one in found if all(id_ in shown for id_ in one.ends)]
    return [TypedRelation(one, *(shown[id_] for id_ in one.ends)) for one in known]
