"""Claims about concepts by callers and language models, before they are stored: patches, statements, proposals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from souvenir.core.errors import InvalidRequest
from souvenir.core.text import clean_name, is_blank
from souvenir.core.types import ClaimKind
from souvenir.privacy.screening import AppliedPolicy
from souvenir.store.graph.claims import Claim
from souvenir.store.graph.concepts import Concept

MAX_TYPE_CHARS = 40

CO_OCCURS = "co_occurs"
"""The type of a relation that is counted in the texts, so nobody can state it."""

_BETWEEN_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class ConceptPatch:
    """A change of a caller's claims about a concept; `None` keeps a field, an empty text removes it.

    :param aliases: The complete list of stated aliases.
    :param confidence: The caller's confidence in all of it, in [0, 1].
    """

    name: str | None = None
    description: str | None = None
    kind: str | None = None
    aliases: tuple[str, ...] | None = None
    confidence: float = 1.0

    @property
    def texts(self) -> dict[ClaimKind, str]:
        """The fields with a single value per concept."""
        given = {ClaimKind.NAME: self.name, ClaimKind.DESCRIPTION: self.description, ClaimKind.KIND: self.kind}
        return {kind: text for kind, text in given.items() if text is not None}

    def screened(self, policy: AppliedPolicy) -> Self:
        """Redact what the policy says; names are cleaned first (`clean_name`).

        :raises InvalidRequest: If a text is blank but not empty, an alias is blank, or the kind has no letters.
        """
        for kind, text in self.texts.items():
            if text:
                require_visible(text, kind.value)
        for alias in self.aliases or ():
            require_visible(alias, "alias")
        safe = {kind: policy.text(text.strip()) for kind, text in self.texts.items()}
        return replace(
            self,
            name=None if self.name is None else policy.text(clean_name(self.name)),
            description=safe.get(ClaimKind.DESCRIPTION),
            kind=safe.get(ClaimKind.KIND) and _type(safe[ClaimKind.KIND], "kind", "person"),
            aliases=None if self.aliases is None else tuple(policy.text(clean_name(one)) for one in self.aliases),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptStatement(ConceptPatch):
    """:param key: The key of a concept, or one of its names. It is looked up and not stored."""

    key: str


@dataclass(frozen=True, slots=True)
class RelationStatement:
    """A relation between two concepts, each given by its key or a name.

    :param strength: In [0, 1].
    """

    from_key: str
    to_key: str
    relationship_type: str
    strength: float = 1.0

    def screened(self, policy: AppliedPolicy) -> RelationStatement:
        """:raises InvalidRequest: If the type has no letters, or too many."""
        return replace(self, relationship_type=relation_type(policy.text(self.relationship_type)))


@dataclass(frozen=True, slots=True)
class StatementResult:
    """:param stated: Number of stored claims; `unchanged` counts those that existed already.

    :param unknown: The given keys that match no concept.
    :param unread: Number of messages and memories that wait to be indexed.
    """

    stated: int
    unchanged: int
    unknown: Sequence[str]
    unread: int


@dataclass(frozen=True, slots=True)
class ProposedClaim:
    """A claim of a language model that passed the checks of `model_answers`.

    :param concept: The key of a concept, like `other`.
    """

    kind: ClaimKind
    concept: str
    other: str | None
    text: str
    confidence: float
    message_id: int


@dataclass(frozen=True, slots=True)
class TypedRelation:
    """:param claim: The claim with its author and, for a model, the message that supports it.

    :param concept: The root concept of the claim's start; `other` that of its end.
    """

    claim: Claim
    concept: Concept
    other: Concept


def require_visible(text: str, of: str) -> None:
    """:raises InvalidRequest: If it is blank: empty, or of spaces and characters such as U+200B only.

    :param of: The name of the field.
    """
    if is_blank(text):
        raise InvalidRequest(f"The {of} is blank; give at least one visible character")


def type_name(text: str) -> str | None:
    """Return the type of a relation or a concept in snake_case; None if the text cannot be one."""
    name = _BETWEEN_WORDS.sub("_", text.casefold()).strip("_")
    return name if 1 <= len(name) <= MAX_TYPE_CHARS and not name[0].isdigit() else None


def relation_type(text: str) -> str:
    """Return the type in snake_case.

    :raises InvalidRequest: If it has no letters, or too many, or is `CO_OCCURS`.
    """
    name = _type(text, "relation type", "works_for")
    if name == CO_OCCURS:
        raise InvalidRequest(f"{CO_OCCURS} is counted in the texts; state another type, such as works_for")
    return name


def _type(text: str, of: str, example: str) -> str:
    name = type_name(text)
    if name is None:
        raise InvalidRequest(f"A {of} has 1 to {MAX_TYPE_CHARS} letters, such as {example}")
    return name
