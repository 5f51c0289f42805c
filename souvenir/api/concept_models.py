"""What the routes of concepts take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import MAX_ID, Clean, optional_wire_time
from souvenir.api.message_models import MESSAGE_EXAMPLE, MessageRecord
from souvenir.api.records import MemoryRecord
from souvenir.graph.changing import ConceptPatch
from souvenir.graph.concepts import ConceptDetails
from souvenir.graph.related import MAX_DEPTH, Related
from souvenir.store.concepts import Concept

MAX_NAME_CHARS = 200
MAX_DESCRIPTION_CHARS = 2_000
MAX_KIND_CHARS = 50
MAX_STATED_ALIASES = 20

_AT = "2025-04-02T09:30:00.000000+00:00"
CONCEPT_EXAMPLE: dict[str, Any] = {
    "id": 7,
    "key": "alice",
    "name": "Alice",
    "kind": "name",
    "mentions": 3,
    "aliases": ["Alice Smith"],
    "description": None,
    "first_at": _AT,
    "last_at": _AT,
}
RELATED_EXAMPLE: dict[str, Any] = {
    "concept": {**CONCEPT_EXAMPLE, "id": 9, "key": "lisbon", "name": "Lisbon", "mentions": 2, "aliases": []},
    "strength": 0.41,
    "depth": 1,
    "relationship_type": "co_occurs",
    "outgoing": True,
    "together": 2,
    "path": [],
}

ConceptId = Annotated[int, Field(ge=0, le=MAX_ID, description="The id of a concept.")]
ConceptName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_NAME_CHARS),
    Clean,
    Field(description="A name of a concept, however it is written.", examples=["alice"]),
]
StatedName = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=MAX_NAME_CHARS), Clean, Field(examples=["Alice Smith"])
]
StatedDescription = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_DESCRIPTION_CHARS), Clean]
_Alias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME_CHARS), Clean]


class UpdateConceptRequest(BaseModel):
    """What is left out, or null, stays as it is; an empty text takes away what callers said."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"description": "My sister, a doctor", "aliases": ["Dr. Smith"]}]}
    )

    name: Annotated[StatedName | None, Field(description="What it is called.")] = None
    description: Annotated[StatedDescription | None, Field(description="What it is.")] = None
    kind: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_KIND_CHARS), Clean] | None,
        Field(description="What sort of thing it is, such as `person`."),
    ] = None
    aliases: Annotated[
        list[_Alias] | None,
        Field(
            max_length=MAX_STATED_ALIASES,
            description="All of its other names that are stated. A concept that is called so becomes this one.",
        ),
    ] = None

    def patch(self) -> ConceptPatch:
        aliases = None if self.aliases is None else tuple(self.aliases)
        return ConceptPatch(self.name, self.description, self.kind, aliases)


class ConceptRecord(BaseModel):
    """Something that messages and memories of an agent mention."""

    model_config = ConfigDict(json_schema_extra={"examples": [CONCEPT_EXAMPLE]})

    id: int
    key: str = Field(description="Its normal form, which all of its spellings share.")
    name: str = Field(description="As somebody stated it, else as it is written most often.")
    kind: str = Field(description="`name`, `phrase`, `date`, `quantity`, `hashtag` or `code`, or what somebody stated.")
    mentions: int = Field(description="How many messages and memories mention it.")
    aliases: list[str] = Field(description="Other names, those that were stated first.")
    description: str | None = Field(description="If somebody stated one.")
    first_at: str | None = Field(description="When it was first mentioned.")
    last_at: str | None

    @classmethod
    def of(cls, concept: Concept) -> Self:
        return cls.model_validate(concept_fields(concept))


def concept_fields(concept: Concept) -> dict[str, Any]:
    """A concept on the wire."""
    return {
        "id": concept.id,
        "key": concept.key,
        "name": concept.name,
        "kind": concept.kind,
        "mentions": concept.owners,
        "aliases": list(concept.aliases),
        "description": concept.description,
        "first_at": optional_wire_time(concept.first_at),
        "last_at": optional_wire_time(concept.last_at),
    }


class ConceptPage(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"concepts": [CONCEPT_EXAMPLE], "total": 1, "offset": 0, "limit": 100}]}
    )

    concepts: list[ConceptRecord] = Field(
        description="Those that tell most first: mentioned often, and not in everything."
    )
    total: int = Field(description="How many there are on all pages.")
    offset: int
    limit: int


class ConceptDetailsRecord(ConceptRecord):
    """A concept with where it is mentioned."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    **CONCEPT_EXAMPLE,
                    "description": "My name is Alice.",
                    "described_by": "texts",
                    "rarity": 0.62,
                    "messages": [{**MESSAGE_EXAMPLE, "content": "My name is Alice."}],
                    "memories": [],
                }
            ]
        }
    )

    description: str | None = Field(description="Stated, else the sentence that says most plainly what it is.")
    described_by: str | None = Field(description="`caller`, `model`, or `texts` for such a sentence.")
    rarity: float = Field(description="In what the agent was told, from 0 (in everything) to 1 (once).")
    messages: list[MessageRecord] = Field(description="The latest that mention it, newest first.")
    memories: list[MemoryRecord]

    @classmethod
    def of_details(cls, details: ConceptDetails) -> Self:
        fields = {
            **concept_fields(details.concept),
            "description": details.description,
            "described_by": details.described_by,
            "rarity": round(details.rarity, 6),
            "messages": [MessageRecord.of(one) for one in details.messages],
            "memories": [MemoryRecord.of(one) for one in details.memories],
        }
        return cls.model_validate(fields)


class RelatedConcept(BaseModel):
    """A concept at the end of the strongest path that leads to it."""

    concept: ConceptRecord
    strength: float = Field(description="Of the path: the product of its steps, each in (0, 1].")
    depth: int = Field(description=f"Steps, at most {MAX_DEPTH}.")
    relationship_type: str = Field(description="Of the last step: `co_occurs`, or what somebody stated.")
    outgoing: bool = Field(description="Whether a stated relation leads to this concept; false: from it.")
    together: int = Field(description="How many messages and memories mention both ends of the last step.")
    path: list[str] = Field(description="The names of the concepts between.")

    @classmethod
    def of(cls, found: Related) -> Self:
        return cls(
            concept=ConceptRecord.of(found.concept),
            strength=round(found.strength, 6),
            depth=found.depth,
            relationship_type=found.relationship_type,
            outgoing=found.outgoing,
            together=found.together,
            path=list(found.path),
        )


class RelatedConcepts(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"concept": CONCEPT_EXAMPLE, "related": [RELATED_EXAMPLE], "depth": 2}]}
    )

    concept: ConceptRecord
    related: list[RelatedConcept] = Field(description="Strongest first.")
    depth: int

    @classmethod
    def of(cls, concept: Concept, found: list[RelatedConcept], depth: int) -> Self:
        return cls(concept=ConceptRecord.of(concept), related=found, depth=depth)
