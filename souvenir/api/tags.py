"""Tags: list, rename, merge and delete them on all memories."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.fields import Tag, wire_time
from souvenir.api.parameters import Limit, Offset
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, Reader, RunningService, Writer
from souvenir.server.routing import Routes
from souvenir.store.memories.tags import TagCount

routes = Routes("tags")

_TagOfPath = Annotated[Tag, Path(description="The tag (case-insensitive).", examples=["proj/billing"])]


class UsedTag(BaseModel):
    tag: str = Field(description="The tag as it was first spelled.", examples=["billing"])
    count: int = Field(description="The number of active memories that have it (case-insensitive).")
    first_used_at: str = Field(description="The time of its first use.")
    last_used_at: str = Field(description="The time of its latest use.")

    @classmethod
    def of(cls, used: TagCount) -> UsedTag:
        times = {"first_used_at": wire_time(used.first_used_at), "last_used_at": wire_time(used.last_used_at)}
        return cls(tag=used.tag, count=used.count, **times)


class TagsResponse(BaseModel):
    tags: list[UsedTag] = Field(description="Most used first.")
    total: int = Field(description="The total number of items on all pages.")
    offset: int
    limit: int


class RenameTagRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"old": "biling", "new": "billing"}]})

    old: Tag = Field(description="The tag to replace (case-insensitive).")
    new: Tag = Field(description="The new spelling; memories that already have it keep it once.")


class MergeTagsRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"tags": ["invoice", "Invoices"], "into": "billing"}]})

    tags: list[Tag] = Field(min_length=1, max_length=100, description="The tags to replace (case-insensitive).")
    into: Tag = Field(description="The tag that replaces them, as it is to be spelled.")


class ChangedTagResponse(BaseModel):
    changed: int = Field(description="The number of memories that had it, including archived ones.")


@routes.get(
    "/tags",
    summary="List tags",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="tags.list",
)
def list_tags(
    scope: Reader,
    service: RunningService,
    regex: Annotated[
        str | None,
        Query(min_length=1, max_length=500, description="A regular expression in RE2 syntax (case-insensitive)."),
    ] = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> TagsResponse:
    """List the tags of active memories, with their number of uses and their first use."""
    page = service.tags.list(scope, regex=regex, offset=offset, limit=limit)
    return TagsResponse(tags=[UsedTag.of(one) for one in page.tags], total=page.total, offset=offset, limit=limit)


@routes.post("/tags/rename", summary="Rename a tag", cost=CostClass.LONG, sdk="tags.rename", errors=[404])
def rename_tag(body: RenameTagRequest, scope: Writer, service: RunningService) -> ChangedTagResponse:
    """Replace a tag with another tag on every memory that has it."""
    return ChangedTagResponse(changed=service.tags.rename(scope, body.old, body.new))


@routes.post("/tags/merge", summary="Merge tags", cost=CostClass.LONG, sdk="tags.merge", errors=[404])
def merge_tags(body: MergeTagsRequest, scope: Writer, service: RunningService) -> ChangedTagResponse:
    """Replace several tags with one tag on every memory that has any of them."""
    return ChangedTagResponse(changed=service.tags.merge(scope, body.tags, body.into))


@routes.delete("/tags/{tag:path}", summary="Delete a tag", cost=CostClass.LONG, sdk="tags.delete", errors=[404])
def delete_tag(tag: _TagOfPath, scope: Writer, service: RunningService) -> ChangedTagResponse:
    """Remove a tag from every memory that has it; the memories are kept."""
    return ChangedTagResponse(changed=service.tags.delete(scope, tag))
