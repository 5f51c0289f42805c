"""Concepts: list, get, rename, merge and delete them, and list related ones."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Annotated, Self

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import MAX_ID, AsOf, Clean, OptionalWireTime, Record, Rounded
from souvenir.api.memories import MemoryRecord
from souvenir.api.messages import MessageRecord
from souvenir.api.parameters import AgentReader, AgentWriter, Limit, Offset
from souvenir.knowledge.claim_types import ConceptPatch
from souvenir.knowledge.concepts import LATEST, ConceptDetails
from souvenir.knowledge.related import MAX_DEPTH
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_BOTH, OF_MEMORY, REMEMBERED, RunningService
from souvenir.server.routing import Routes

routes = Routes("concepts")

MAX_NAME_CHARS = 200
MAX_DESCRIPTION_CHARS = 2_000
MAX_KIND_CHARS = 50
MAX_STATED_ALIASES = 20


ConceptId = Annotated[int, Field(ge=0, le=MAX_ID, description="The id of a concept.", examples=[1])]
ConceptName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_NAME_CHARS),
    Clean,
    Field(description="A name of a concept; case and spelling variants are recognised.", examples=["alice"]),
]
StatedName = Annotated[str, StringConstraints(max_length=MAX_NAME_CHARS), Clean, Field(examples=["Alice Smith"])]
StatedDescription = Annotated[str, StringConstraints(max_length=MAX_DESCRIPTION_CHARS), Clean]
_Alias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME_CHARS), Clean]


class UpdateConceptRequest(BaseModel):
    """Omitted or null fields are kept; an empty text removes the value that callers set."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"description": "My sister, a doctor", "aliases": ["Dr. Smith"]}]}
    )

    name: Annotated[StatedName | None, Field(description="The name.")] = None
    description: Annotated[StatedDescription | None, Field(description="The description.")] = None
    kind: Annotated[
        Annotated[str, StringConstraints(max_length=MAX_KIND_CHARS), Clean] | None,
        Field(description="The kind of the concept, such as `person`; stored in snake_case."),
    ] = None
    aliases: Annotated[
        list[_Alias] | None,
        Field(
            max_length=MAX_STATED_ALIASES,
            description="The other names, replacing all stated ones. A concept with such a name is merged into "
            "this one.",
        ),
    ] = None

    def patch(self) -> ConceptPatch:
        aliases = None if self.aliases is None else tuple(self.aliases)
        return ConceptPatch(self.name, self.description, self.kind, aliases)


class ConceptRecord(Record):
    """A concept that an agent's messages and memories mention."""

    id: int
    key: Annotated[str, OF_MEMORY] = Field(description="Its normal form, which all its spellings share.")
    name: Annotated[str, OF_MEMORY] = Field(
        description="The stated name, or else the most frequent spelling.", examples=["Alice"]
    )
    kind: Annotated[str, OF_MEMORY] = Field(
        description="`person`, `animal`, `place`, `organisation`, `product`, `event`, `work`, `name` (of an unknown "
        "kind), `phrase`, `hashtag` or `code`, or a stated kind.",
        examples=["person"],
    )
    confidence: Annotated[float, AfterValidator(partial(round, ndigits=4))] = Field(
        description="The probability that it is a concept of this kind; 1 if the kind was stated.", examples=[0.95]
    )
    mentions: int = Field(validation_alias="owners", description="The number of messages and memories that mention it.")
    aliases: Annotated[list[str], OF_MEMORY] = Field(
        description="Other names; stated ones first.", examples=[["Alice Smith"]]
    )
    description: Annotated[str | None, OF_BOTH] = Field(
        description="The stated description, or else the sentence of a text that defines the concept best.",
        examples=["Alice is my sister."],
    )
    role: Annotated[str | None, OF_BOTH] = Field(
        description="Its role by that sentence; `you` is the user's own name.", examples=["your sister"]
    )
    first_at: OptionalWireTime = Field(description="The time of the first mention.")
    last_at: OptionalWireTime


class ConceptPage(BaseModel):
    concepts: list[ConceptRecord] = Field(description="Most characteristic first: mentioned often, but not everywhere.")
    total: int = Field(description="The total number of items on all pages.")
    offset: int
    limit: int


class ConceptDetailsRecord(ConceptRecord):
    """A concept with its mentions."""

    described_by: str | None = Field(
        description="`caller`, `model`, or `texts` for a sentence from the texts.", examples=["texts"]
    )
    rarity: Rounded = Field(description="The rarity in the agent's texts, from 0 (in all of them) to 1 (in one).")
    messages: list[MessageRecord] = Field(description="The latest mentions, newest first.")
    memories: list[MemoryRecord]

    @classmethod
    def of_details(cls, details: ConceptDetails, as_of: datetime | None) -> Self:
        fields = {
            **asdict(details.concept),
            "described_by": details.described_by,
            "rarity": details.rarity,
            "messages": [MessageRecord.of(one) for one in details.messages],
            "memories": [MemoryRecord.of(one, as_of) for one in details.memories],
        }
        return cls.model_validate(fields)


class RelatedConcept(Record):
    """A related concept, with the strongest path to it."""

    concept: ConceptRecord
    strength: Rounded = Field(description="The strength of the path: the product of its steps, each in (0, 1].")
    depth: int = Field(description=f"The number of steps, at most {MAX_DEPTH}.")
    relationship_type: str = Field(description="The type of the last step: `co_occurs` or a stated relation type.")
    outgoing: bool = Field(description="True if a stated relation leads to this concept, false if it leads from it.")
    together: int = Field(description="The number of messages and memories that mention both ends of the last step.")
    path: list[str] = Field(description="The names of the intermediate concepts.", examples=[["Lisbon"]])


class RelatedConcepts(BaseModel):
    concept: ConceptRecord
    related: list[RelatedConcept] = Field(description="Strongest first.")
    depth: int


_CONCEPTS = "/agents/{agent_name}/concepts"
_CONCEPT = f"{_CONCEPTS}/{{concept_id}}"

MAX_RELATED = 200
MAX_MENTIONS = 200

Depth = Annotated[int, Query(ge=1, le=MAX_DEPTH, description="Maximum number of steps.")]
RelatedLimit = Annotated[int, Query(ge=1, le=MAX_RELATED, description="Maximum number of concepts.")]
ConceptsThen = Annotated[
    AsOf | None,
    Query(
        description="Read the concepts of the messages and memories that were stored at this time, as these were: "
        "ISO-8601, UTC without an offset; a future time means now. Those deleted since then are not included."
    ),
]


@routes.get(
    _CONCEPTS, summary="List concepts", cost=CostClass.SEARCH, access=REMEMBERED, sdk="concepts.list", errors=[404]
)
def list_concepts(
    scope: AgentReader, service: RunningService, offset: Offset = 0, limit: Limit = 100, as_of: ConceptsThen = None
) -> ConceptPage:
    """List the concepts that an agent's messages and memories mention, most characteristic first."""
    found, total = service.graph.concepts.page(scope, as_of, offset=offset, limit=limit)
    return ConceptPage(concepts=[ConceptRecord.of(one) for one in found], total=total, offset=offset, limit=limit)


@routes.get(_CONCEPT, summary="Get a concept", cost=CostClass.SEARCH, sdk="concepts.get", errors=[404])
def get_concept(
    concept_id: ConceptId,
    scope: AgentReader,
    service: RunningService,
    mentions: Annotated[
        int, Query(ge=1, le=MAX_MENTIONS, description="Maximum number of messages and memories that mention it.")
    ] = LATEST,
    as_of: ConceptsThen = None,
) -> ConceptDetailsRecord:
    """Get a concept with its description and its latest mentions."""
    details = service.graph.concepts.details(scope, concept_id, as_of, latest=mentions)
    return ConceptDetailsRecord.of_details(details, as_of)


@routes.patch(
    _CONCEPT,
    summary="Update a concept",
    cost=CostClass.WRITE,
    access=REMEMBERED,
    sdk="concepts.update",
    errors=[400, 404, 409],
)
def update_concept(
    concept_id: ConceptId, body: UpdateConceptRequest, scope: AgentWriter, service: RunningService
) -> ConceptRecord:
    """Set the name, kind, description and other names of a concept, replacing what callers set before."""
    changed = service.graph.claims.update(scope, concept_id, body.patch())
    return ConceptRecord.of(changed)


@routes.delete(_CONCEPT, summary="Delete a concept", cost=CostClass.LONG, sdk="concepts.delete", errors=[404])
def delete_concept(concept_id: ConceptId, scope: AgentWriter, service: RunningService) -> ConceptRecord:
    """Delete a concept under all its names; texts that mention it are kept, and it is not recognised there again."""
    return ConceptRecord.of(service.graph.concepts.hide(scope, concept_id))


@routes.delete(
    f"{_CONCEPT}/aliases",
    summary="Separate a name from a concept",
    cost=CostClass.WRITE,
    access=REMEMBERED,
    sdk="concepts.separate",
    errors=[404, 409],
)
def separate_alias(
    concept_id: ConceptId, name: Annotated[ConceptName, Query()], scope: AgentWriter, service: RunningService
) -> ConceptRecord:
    """Make a name of a concept a concept of its own, and keep the two apart from then on."""
    return ConceptRecord.of(service.graph.claims.separate(scope, concept_id, name))


@routes.get(
    f"{_CONCEPT}/related",
    summary="List related concepts",
    cost=CostClass.SEARCH,
    access=REMEMBERED,
    sdk="concepts.related",
    errors=[404],
)
def related_concepts(
    concept_id: ConceptId,
    scope: AgentReader,
    service: RunningService,
    depth: Depth = 2,
    limit: RelatedLimit = 50,
    as_of: ConceptsThen = None,
) -> RelatedConcepts:
    """List the concepts with the strongest paths from a concept."""
    concept, found = service.graph.concepts.related(scope, concept_id, as_of, depth=depth, limit=limit)
    related = [RelatedConcept.of(one) for one in found]
    return RelatedConcepts(concept=ConceptRecord.of(concept), related=related, depth=depth)


@routes.get(
    "/agents/{agent_name}/concept",
    summary="Find a concept by name",
    cost=CostClass.SEARCH,
    sdk="concepts.find",
    errors=[404],
)
def find_concept(
    name: Annotated[ConceptName, Query()], scope: AgentReader, service: RunningService, as_of: ConceptsThen = None
) -> ConceptDetailsRecord:
    """Get a concept by its name, regardless of case and spelling variants."""
    return ConceptDetailsRecord.of_details(service.graph.concepts.details(scope, name, as_of), as_of)
