"""Links between memories: add, list and remove them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import MemoryId, wire_time
from souvenir.core.types import Link, LinkType
from souvenir.memories.links import link_type_named
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, Reader, RunningService, Writer
from souvenir.server.routing import Routes

routes = Routes("links")

_TYPES = ", ".join(f"`{one}`" for one in LinkType)


class AddLinkRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"to_id": 12, "type": "related_to"}]})

    to_id: MemoryId
    type: str = Field(description=f"One of {_TYPES}.")


class AddLinkResponse(BaseModel):
    from_id: int
    to_id: int
    type: str = Field(examples=["related_to"])
    created_at: str


class ListedLink(BaseModel):
    to_id: int
    type: str = Field(examples=["related_to"])
    created_at: str
    from_id: int
    direction: Literal["outgoing", "incoming"] = Field(
        description="`outgoing`, or `incoming` if it points to the requested memory."
    )

    @classmethod
    def of(cls, link: Link, memory_id: int) -> ListedLink:
        return cls(**_said(link), direction="outgoing" if link.from_id == memory_id else "incoming")


class LinksResponse(BaseModel):
    memory_id: int
    links: list[ListedLink] = Field(description="Outgoing links first.")


class RemoveLinkResponse(BaseModel):
    removed: bool = Field(description="True if the link existed.")


@routes.post(
    "/memory/{memory_id}/link",
    summary="Link two memories",
    cost=CostClass.LIGHT,
    sdk="links.add",
    errors=[400, 404],
)
def add_link(memory_id: MemoryId, body: AddLinkRequest, scope: Writer, service: RunningService) -> AddLinkResponse:
    """Add a typed link between two memories; neither memory changes."""
    link = service.links.add(scope, memory_id, body.to_id, link_type_named(body.type))
    return AddLinkResponse(**_said(link))


@routes.get(
    "/memory/{memory_id}/links",
    summary="List links",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="links.list",
    errors=[400, 404],
)
def list_links(
    memory_id: MemoryId,
    scope: Reader,
    service: RunningService,
    type: Annotated[str | None, Query(description=f"Only links of this type: {_TYPES}.")] = None,
    include_incoming: Annotated[bool, Query(description="Include links that point to this memory.")] = False,
) -> LinksResponse:
    """List the links of a memory."""
    wanted = None if type is None else link_type_named(type)
    found = service.links.of(scope, memory_id, link_type=wanted, incoming=include_incoming)
    return LinksResponse(memory_id=memory_id, links=[ListedLink.of(link, memory_id) for link in found])


@routes.delete(
    "/memory/{memory_id}/link/{target_id}",
    summary="Remove a link",
    cost=CostClass.LIGHT,
    sdk="links.remove",
    errors=[400, 404],
)
def remove_link(
    memory_id: MemoryId,
    target_id: Annotated[MemoryId, Path(examples=[2])],
    scope: Writer,
    service: RunningService,
    type: Annotated[str, Query(description=f"The type of the link: {_TYPES}.")] = LinkType.RELATED_TO.value,
) -> RemoveLinkResponse:
    """Remove a link that starts at a memory."""
    return RemoveLinkResponse(removed=service.links.remove(scope, memory_id, target_id, link_type_named(type)))


def _said(link: Link) -> dict[str, Any]:
    return {
        "from_id": link.from_id,
        "to_id": link.to_id,
        "type": link.type,
        "created_at": wire_time(link.created_at),
    }
