"""Folders of memories: the first segments of their sources, and as a tree, those below a path."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field

from souvenir.api.fields import OptionalSource, SourcePath
from souvenir.api.memories import source_filter
from souvenir.api.parameters import Limit, Offset
from souvenir.jobs.handler import AtOnce
from souvenir.server.job_responses import ACCEPTED, DEFAULT_WAIT_S, JOB_ABOVE_MEMORIES, WaitS
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_MEMORY, REMEMBERED, Admin, Reader, RunningService
from souvenir.server.routing import Routes
from souvenir.store.memories.folders import Folder, SourceNode

routes = Routes("folders")

UNGROUPED = "(ungrouped)"


class FolderRecord(BaseModel):
    name: Annotated[str, OF_MEMORY] = Field(
        description=f"The first segment of the sources; `{UNGROUPED}`, which cannot be renamed, for sources that begin "
        "with a slash. With `below`, the next segment, which is empty between two slashes.",
        examples=["claude-code"],
    )
    count: int = Field(description="The number of memories in it.")
    path: Annotated[str | None, OF_MEMORY] = Field(
        default=None,
        description="With `below`: the path from the first segment, as `source` takes it with `source_boundary`. "
        "Null if no filter takes it: an empty segment or `*` at its end is not read as part of a path.",
        examples=["claude-code"],
    )
    below: Annotated[str | None, OF_MEMORY] = Field(
        default=None,
        description="With `below`: the value of `below` that lists the next level.",
        examples=["claude-code"],
    )
    own: int | None = Field(
        default=None,
        description="With `below`: the number of memories whose source ends with it; the others are further below.",
    )

    @classmethod
    def of(cls, folder: Folder) -> FolderRecord:
        return cls(name=folder.name or UNGROUPED, count=folder.count)

    @classmethod
    def of_node(cls, prefix: str, node: SourceNode) -> FolderRecord:
        """The path is None if `source` would read it as another one, of other memories."""
        path = prefix + (node.name or "/")
        is_filter = path == "/" or source_filter(path, boundary=True).pattern == path
        return cls(name=node.name, count=node.count, path=path if is_filter else None, below=path, own=node.own)


class FoldersResponse(BaseModel):
    folders: list[FolderRecord] = Field(description="In the order of their names.")
    total: int = Field(description="The number of folders, with `below` on all pages.")


def _reachable(path: str) -> str:
    """:raises ValueError: If keys limited to some sources could not reach the path."""
    if not path.strip() or ".." in path.split("/"):
        raise ValueError("a folder needs a name other than blanks and `..`; send another one")
    return path


class RenameFolderRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"old_name": "biling", "new_name": "billing"}]})

    old_name: SourcePath = Field(
        validation_alias=AliasChoices("old_name", "old_prefix"),
        description="The folder, or a path such as `claude-code/biling`; `old_prefix` is accepted too.",
    )
    new_name: Annotated[SourcePath, AfterValidator(_reachable)] = Field(
        validation_alias=AliasChoices("new_name", "new_prefix"),
        description="The new name or path; if it exists, the two are merged. `new_prefix` is accepted too.",
    )


class RenameFolderResponse(BaseModel):
    success: bool
    updated: int = Field(description="The number of memories that were moved, including archived ones.")
    errors: int = Field(
        description="The number of memories that stayed: another one has their key in the new folder, their source "
        "would be too long, or they cannot be read."
    )
    old_name: str = Field(examples=["biling"])
    new_name: str = Field(examples=["billing"])


_Below = Annotated[
    OptionalSource | None,
    Query(
        description="List the level below this path instead, page by page: empty for the first level, `/` for sources "
        "that begin with a slash.",
        examples=["claude-code"],
    ),
]


@routes.get("/folders", summary="List folders", cost=CostClass.LIGHT, access=REMEMBERED, sdk="folders.list")
def list_folders(
    scope: Reader,
    service: RunningService,
    include_archived: Annotated[bool, Query(description="Also count archived memories.")] = False,
    below: _Below = None,
    offset: Offset = 0,
    limit: Limit = 1000,
) -> FoldersResponse:
    """List the folders of memories, which are the first segments of their sources, or the folders below a path."""
    folders = service.maintenance.folders
    if below is None:
        found = folders.list(scope, include_archived=include_archived)
        return FoldersResponse(folders=[FolderRecord.of(one) for one in found], total=len(found))
    prefix = below if below.endswith("/") or not below else f"{below}/"
    nodes, total = folders.below(scope, prefix, include_archived=include_archived, offset=offset, limit=limit)
    return FoldersResponse(folders=[FolderRecord.of_node(prefix, one) for one in nodes], total=total)


@routes.post(
    "/folders/rename",
    summary="Rename a folder",
    cost=CostClass.LONG,
    sdk="folders.rename",
    response_model=RenameFolderResponse,
    errors=[404, 409],
    responses=ACCEPTED,
)
def rename_folder(
    body: RenameFolderRequest, scope: Admin, service: RunningService, wait_s: WaitS = DEFAULT_WAIT_S
) -> RenameFolderResponse | JSONResponse:
    """Move all memories of a folder to another one; keys and extraction profiles keep the old paths."""
    folders, old, new = service.maintenance.folders, body.old_name, body.new_name
    if folders.size(scope, old, new) > JOB_ABOVE_MEMORIES:
        result = service.long_work.run(folders.kind, scope, {"old": old, "new": new}, wait_s=wait_s)
    else:
        result = folders.rename(scope, old, new, progress=AtOnce({}), at_once=JOB_ABOVE_MEMORIES)
    if isinstance(result, JSONResponse):
        return result
    return RenameFolderResponse(success=True, **result, old_name=old, new_name=new)
