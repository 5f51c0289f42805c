"""Links between memories: making, listing and removing them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.caller import Reader, RunningService, Writer
from souvenir.api.errors import error_responses
from souvenir.api.fields import MemoryId, wire_time
from souvenir.api.json_route import router
from souvenir.links import link_type_named
from souvenir.types import Link, LinkType

routes = router("links")

_TYPES = ", ".join(f"`{one}`" for one in LinkType)
_LINK_EXAMPLE: dict[str, Any] = {
    "from_id": 14,
    "to_id": 12,
    "type": "related_to",
    "created_at": "2025-04-02T09:30:00.000000+00:00",
}


class AddLinkRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"to_id": 12, "type": "related_to"}]})

    to_id: MemoryId
    type: str = Field(description=f"One of {_TYPES}.")


class AddLinkResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_LINK_EXAMPLE]})

    from_id: int
    to_id: int
    type: str
    created_at: str


class ListedLink(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{**_LINK_EXAMPLE, "direction": "outgoing"}]})

    to_id: int
    type: str
    created_at: str
    from_id: int
    direction: Literal["outgoing", "incoming"] = Field(description="`incoming`: it ends at the memory asked for.")

    @classmethod
    def of(cls, link: Link, memory_id: int) -> ListedLink:
        return cls(**_said(link), direction="outgoing" if link.from_id == memory_id else "incoming")


class LinksResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"memory_id": 14, "links": [{**_LINK_EXAMPLE, "direction": "outgoing"}]}]}
    )

    memory_id: int
    links: list[ListedLink] = Field(description="Outgoing ones first.")


class RemoveLinkResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"removed": True}]})

    removed: bool = Field(description="Whether there was such a link.")


@routes.post("/memory/{memory_id}/link", summary="Link two memories", responses=error_responses(400, 404))
def add_link(memory_id: MemoryId, body: AddLinkRequest, scope: Writer, service: RunningService) -> AddLinkResponse:
    """Say what a memory is to another one; neither of them changes."""
    link = service.links.add(scope, memory_id, body.to_id, link_type_named(body.type))
    return AddLinkResponse(**_said(link))


@routes.get("/memory/{memory_id}/links", summary="List links", responses=error_responses(400, 404))
def list_links(
    memory_id: MemoryId,
    scope: Reader,
    service: RunningService,
    type: Annotated[str | None, Query(description=f"Only links of this type: {_TYPES}.")] = None,
    include_incoming: Annotated[bool, Query(description="Also links that end at this memory.")] = False,
) -> LinksResponse:
    """List the links of a memory."""
    wanted = None if type is None else link_type_named(type)
    found = service.links.of(scope, memory_id, link_type=wanted, incoming=include_incoming)
    return LinksResponse(memory_id=memory_id, links=[ListedLink.of(link, memory_id) for link in found])


@routes.delete("/memory/{memory_id}/link/{target_id}", summary="Remove a link", responses=error_responses(400, 404))
def remove_link(
    memory_id: MemoryId,
    target_id: MemoryId,
    scope: Writer,
    service: RunningService,
    type: Annotated[str, Query(description=f"Of the link: {_TYPES}.")] = LinkType.RELATED_TO.value,
) -> RemoveLinkResponse:
    """Remove a link that begins at a memory."""
    return RemoveLinkResponse(removed=service.links.remove(scope, memory_id, target_id, link_type_named(type)))


def _said(link: Link) -> dict[str, Any]:
    return {
        "from_id": link.from_id,
        "to_id": link.to_id,
        "type": link.type,
        "created_at": wire_time(link.created_at),
    }
