"""What a caller says of a concept in the place of what callers said of it before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from souvenir.engine.screening import AppliedPolicy
from souvenir.errors import Conflict
from souvenir.graph.reading import possible_keys
from souvenir.store import claims, mentions
from souvenir.store import concepts as rows
from souvenir.store.claims import ClaimDraft
from souvenir.store.transaction import Transaction
from souvenir.types import ClaimedBy, ClaimKind

_NAMES = (ClaimKind.NAME, ClaimKind.ALIAS)


@dataclass(frozen=True, slots=True)
class ConceptPatch:
    """A change of what callers say of a concept; `None` leaves a field as it is, an empty text takes it away.

    :param aliases: All of its other names that callers state.
    :param confidence: How sure the caller is of all of this, in [0, 1].
    """

    name: str | None = None
    description: str | None = None
    kind: str | None = None
    aliases: tuple[str, ...] | None = None
    confidence: float = 1.0

    @property
    def changes_nothing(self) -> bool:
        return not self.texts and self.aliases is None

    @property
    def texts(self) -> dict[ClaimKind, str]:
        """What replaces the one thing that is said so far of that kind."""
        given = {ClaimKind.NAME: self.name, ClaimKind.DESCRIPTION: self.description, ClaimKind.KIND: self.kind}
        return {kind: text for kind, text in given.items() if text is not None}

    def screened(self, applied: AppliedPolicy) -> ConceptPatch:
        """As the agent's policy lets it in."""
        safe = {kind: applied.text(text) for kind, text in self.texts.items()}
        aliases = None if self.aliases is None else tuple(applied.text(alias) for alias in self.aliases)
        return replace(
            self,
            name=safe.get(ClaimKind.NAME),
            description=safe.get(ClaimKind.DESCRIPTION),
            kind=safe.get(ClaimKind.KIND),
            aliases=aliases,
        )


def everything_called(tx: Transaction, root_id: int) -> tuple[list[int], list[str]]:
    """The concepts that are one with this, also those that are only said to be; keys of stated names of no other."""
    members = rows.members(tx.connection, root_id)
    said = claims.aliases_of(tx.connection, members)
    members = list(dict.fromkeys([*members, *(one.concept_id for one in said)]))
    stated = [one.text for one in claims.of_concepts(tx.connection, members) if one.kind in _NAMES]
    keys = {key for text in stated for key in possible_keys(text)}
    return members, sorted(keys - mentions.known_keys(tx.connection, tx.namespace_id, keys).keys())


def change(tx: Transaction, root_id: int, patch: ConceptPatch) -> None:
    """Let these be what callers say of a concept and its other spellings.

    :raises Conflict: If another concept is called as this one shall be.
    """
    members = rows.members(tx.connection, root_id)
    if patch.name:
        _require_own_name(tx, everything_called(tx, root_id)[0], patch.name)
    replaced = {*patch.texts, *([ClaimKind.ALIAS] if patch.aliases is not None else [])}
    before = [*claims.of_concepts(tx.connection, members), *claims.aliases_of(tx.connection, members)]
    gone = {one.id for one in before if one.made_by is ClaimedBy.CALLER and one.kind in replaced}
    claims.delete(tx.connection, gone)
    drafts = [ClaimDraft(kind, root_id, text, ClaimedBy.CALLER) for kind, text in patch.texts.items() if text]
    drafts += _aliases(tx, root_id, patch.aliases or ())
    for draft in drafts:
        claims.insert(tx.connection, tx.namespace_id, replace(draft, confidence=patch.confidence), tx.now)


def _require_own_name(tx: Transaction, members: Iterable[int], name: str) -> None:
    keys = possible_keys(name)
    if not {*mentions.known_keys(tx.connection, tx.namespace_id, keys).values()} <= {*members}:
        raise Conflict(f"Another concept is called {name!r}; give that name in aliases to make the two one")


def _aliases(tx: Transaction, root_id: int, aliases: Iterable[str]) -> list[ClaimDraft]:
    """That the concept is called so, or that the concept which is called so is this one."""
    found = []
    for alias in dict.fromkeys(alias.strip() for alias in aliases):
        keys = possible_keys(alias)
        known = mentions.known_keys(tx.connection, tx.namespace_id, keys)
        other_id = next((known[key] for key in keys if key in known), None)
        if other_id is None:
            found.append(ClaimDraft(ClaimKind.ALIAS, root_id, alias, ClaimedBy.CALLER))
        elif other_id != root_id:
            found.append(ClaimDraft(ClaimKind.ALIAS, other_id, alias, ClaimedBy.CALLER, other_id=root_id))
    return found
