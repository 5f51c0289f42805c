"""Tags: which are used, and renaming, merging and deleting them over all memories."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.caller import Reader, RunningService, Writer
from souvenir.api.errors import error_responses
from souvenir.api.fields import Tag, wire_time
from souvenir.api.json_route import router
from souvenir.api.pages import Limit, Offset
from souvenir.store.tag_counts import TagCount

routes = router("tags")

_TagOfPath = Annotated[Tag, Path(description="The tag, in any case.")]
_TAG: dict[str, Any] = {
    "tag": "billing",
    "count": 7,
    "first_used_at": "2025-04-02T09:30:00.000000+00:00",
    "last_used_at": "2025-05-11T16:02:10.000000+00:00",
}


class UsedTag(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_TAG]})

    tag: str = Field(description="As it was spelled first.")
    count: int = Field(description="Living memories that have it, in whatever case.")
    first_used_at: str = Field(description="When one of them got it first.")
    last_used_at: str = Field(description="When one of them got it last.")

    @classmethod
    def of(cls, used: TagCount) -> UsedTag:
        times = {"first_used_at": wire_time(used.first_used_at), "last_used_at": wire_time(used.last_used_at)}
        return cls(tag=used.tag, count=used.count, **times)


class TagsResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"tags": [_TAG], "total": 1, "offset": 0, "limit": 100}]})

    tags: list[UsedTag] = Field(description="The most used first.")
    total: int = Field(description="How many there are on all pages.")
    offset: int
    limit: int


class RenameTagRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"old": "biling", "new": "billing"}]})

    old: Tag = Field(description="In any case.")
    new: Tag = Field(description="As it shall be spelled; memories that have it already keep it once.")


class MergeTagsRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"tags": ["invoice", "Invoices"], "into": "billing"}]})

    tags: list[Tag] = Field(min_length=1, max_length=100, description="In any case.")
    into: Tag = Field(description="The tag in their place, as it shall be spelled.")


class ChangedTagResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"changed": 7}]})

    changed: int = Field(description="Memories that had it, archived ones among them.")


@routes.get("/tags", summary="List tags", responses=error_responses())
def list_tags(
    scope: Reader,
    service: RunningService,
    regex: Annotated[
        str | None, Query(min_length=1, max_length=500, description="In the syntax of RE2; matches in any case.")
    ] = None,
    offset: Offset = 0,
    limit: Limit = 100,
) -> TagsResponse:
    """List the tags of living memories, with how often and since when they are used."""
    page = service.tags.list(scope, regex=regex, offset=offset, limit=limit)
    return TagsResponse(tags=[UsedTag.of(one) for one in page.tags], total=page.total, offset=offset, limit=limit)


@routes.post("/tags/rename", summary="Rename a tag", responses=error_responses(404))
def rename_tag(body: RenameTagRequest, scope: Writer, service: RunningService) -> ChangedTagResponse:
    """Give every memory that has one tag another in its place."""
    return ChangedTagResponse(changed=service.tags.rename(scope, body.old, body.new))


@routes.post("/tags/merge", summary="Merge tags", responses=error_responses(404))
def merge_tags(body: MergeTagsRequest, scope: Writer, service: RunningService) -> ChangedTagResponse:
    """Give every memory that has any of the tags one in their place."""
    return ChangedTagResponse(changed=service.tags.merge(scope, body.tags, body.into))


@routes.delete("/tags/{tag:path}", summary="Delete a tag", responses=error_responses(404))
def delete_tag(tag: _TagOfPath, scope: Writer, service: RunningService) -> ChangedTagResponse:
    """Take a tag away from every memory that has it; the memories stay."""
    return ChangedTagResponse(changed=service.tags.delete(scope, tag))
