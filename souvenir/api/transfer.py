"""Export and import of memories as NDJSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Self

from fastapi import Query, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from souvenir.api.fields import EndMoment, Moment, OptionalSource, Source, without_trailing_slash
from souvenir.api.memories import source_filter
from souvenir.api.transfer_lines import LINE_EXAMPLE, ReadAs, WrittenAs
from souvenir.core.errors import ExtractionNotConfigured, InvalidRequest, UnknownStrategy, UnsupportedMediaType
from souvenir.core.types import Filters, JsonObject, Role, Scope
from souvenir.server.job_responses import ACCEPTED, DEFAULT_WAIT_S, WaitS
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, Admin, Reader, RunningService, Writer, sent_key
from souvenir.server.routing import Routes
from souvenir.server.service import Service
from souvenir.transfer.import_job import ImportHandler, ImportOrder, Strategy
from souvenir.transfer.index_build import BuildHandler
from souvenir.transfer.lines import SourceRemap
from souvenir.transfer.spool import Spool, first_line

routes = Routes("transfer")

NDJSON = "application/x-ndjson"


class LineError(BaseModel):
    line: int = Field(description="The line number, counted from 1 including the header.")
    error: str = Field(examples=["text: Field required"])


class ChangedId(BaseModel):
    old: int = Field(description="The id in the file.", examples=[12])
    new: int = Field(description="The id in this store.", examples=[2048])


class ImportResponse(BaseModel):
    """The result of an import."""

    imported: int = Field(description="The number of new memories.")
    skipped: int = Field(description="The number of memories that `smart` skipped because they already exist.")
    updated: int = Field(description="The number of memories that `smart` updated.")
    errors: list[LineError] = Field(description="The first 1000 lines that could not be stored.")
    error_count: int = Field(description="The total number.")
    links: int = Field(description="The number of links created between imported memories.")
    links_dropped: int = Field(
        description="The number of links that are not in the store, because one of their ends is not in the file or "
        "was not imported, because their memory existed already, or because only an admin can import their type."
    )
    changed_id_count: int = Field(description="The number of ids of the file whose memories have other ids here.")
    changed_ids: list[ChangedId] = Field(
        description="The first 1000 of them: the id in the file, and the id here of the memory that was added, "
        "skipped or updated for it."
    )
    backup: str | None = Field(
        description="The backup made before the import; `POST /restore` restores it.",
        examples=["pre_import_20250402_093000"],
    )


class BuildRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"sources": ["MEMORY.md", "memory/*.md"]}]})

    sources: Annotated[list[Source], Field(min_length=1, max_length=1000)] | None = Field(
        default=None,
        description="Files or globs below WORKSPACE_DIR; `MEMORY.md`, `about-dk/*.md` and `memory/*.md` by default.",
    )


class FileError(BaseModel):
    file: str = Field(description="Path relative to WORKSPACE_DIR.", examples=["memory/2025-04.md"])
    error: str = Field(examples=["not valid UTF-8"])


class BuildResponse(BaseModel):
    """The result of indexing the files."""

    success: bool = Field(description="True if every file could be read.")
    files_processed: int
    memories_added: int
    memories_updated: int
    memories_unchanged: int = Field(description="Sections that are already stored unchanged.")
    backup_location: str | None = Field(
        description="Path relative to DATA_DIR; made before the first change, if there was any.",
        examples=["backups/pre_build_20250402_093000"],
    )
    errors: list[FileError] = Field(description="The first 1000 files with errors.")
    error_count: int = Field(description="The total number.")
    message: str = Field(examples=["2 files: 14 memories added, 1 updated, 30 unchanged"])

    @classmethod
    def of(cls, result: JsonObject) -> Self:
        unchanged = result["sections"] - result["added"] - result["updated"]
        files = f"{result['processed']} file{'' if result['processed'] == 1 else 's'}"
        message = f"{files}: {result['added']} memories added, {result['updated']} updated, {unchanged} unchanged"
        if result["gone"]:
            message += f"; {result['gone']} of sections that are no longer there were left as they are"
        if result["error_count"]:
            message += f"; {result['error_count']} files could not be used"
        return cls(
            success=not result["error_count"],
            files_processed=result["processed"],
            memories_added=result["added"],
            memories_updated=result["updated"],
            memories_unchanged=unchanged,
            backup_location=None if result["backup"] is None else f"backups/{result['backup']}",
            errors=result["errors"],
            error_count=result["error_count"],
            message=message,
        )


def strategy_named(name: str, *, with_model: bool) -> Strategy:
    """Return a strategy; a `+` in a URL may arrive as a space.

    :raises UnknownStrategy: If there is none of that name.
    :raises ExtractionNotConfigured: If it needs a language model, and none is configured.
    """
    name = name.replace(" ", "+")
    if name not in set(Strategy):
        raise UnknownStrategy(name, "there is none of that name")
    if name == Strategy.SMART_EXTRACT and not with_model:
        raise ExtractionNotConfigured
    return Strategy(name)


def remap_of(text: str | None) -> SourceRemap | None:
    """`old=new` as paths; the first `=` parts them.

    :raises InvalidRequest: If one of the two is missing.
    """
    if text is None:
        return None
    old, _, new = text.partition("=")
    old, new = without_trailing_slash(old), without_trailing_slash(new)
    if not old or not new:
        raise InvalidRequest("source_remap takes two source paths as old=new")
    return SourceRemap(old, new)


IMPORT_PATH = "/import"
"""Its body goes to disk as it comes, so that it may be larger than others."""

_Remap = Annotated[
    OptionalSource | None, Query(description="`old=new`: memories below the source path `old` are stored below `new`.")
]
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "One memory per line, optionally after a header line as in exports. At most IMPORT_MAX_BYTES.",
        "content": {NDJSON: {"schema": {"type": "string"}, "example": LINE_EXAMPLE}},
    }
}


@routes.get(
    "/export",
    summary="Export memories",
    cost=CostClass.LONG,
    access=REMEMBERED,
    sdk="transfer.export_memories",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "A header line, then one line per memory.",
            "content": {NDJSON: {"schema": {"type": "string"}, "example": LINE_EXAMPLE}},
        },
    },
)
def export_memories(
    scope: Reader,
    service: RunningService,
    source: Annotated[OptionalSource | None, Query(description="Only sources that start with this prefix.")] = None,
    source_boundary: Annotated[
        bool, Query(description="Treat `source` as a path: match it and everything below it.")
    ] = False,
    since: Annotated[
        Moment | None, Query(description="Earliest `document_at`, or `created_at` if there is none.")
    ] = None,
    until: Annotated[EndMoment | None, Query(description="Latest time; a date alone includes that whole day.")] = None,
    history: Annotated[bool, Query(description="Include the history of each memory.")] = False,
) -> StreamingResponse:
    """Stream a consistent snapshot of the memories that the key can access, one JSON object per line."""
    service.audit.act(scope, "export")
    sources = (source_filter(source, boundary=source_boundary),) if source else ()
    lines = WrittenAs(source or None, since, until)
    filters = Filters(sources=sources, since=since, until=until, include_archived=True)
    return StreamingResponse(service.transfer.exports.stream(scope, filters, lines, history=history), media_type=NDJSON)


@routes.post(
    IMPORT_PATH,
    summary="Import memories",
    cost=CostClass.LONG,
    sdk="transfer.import_memories",
    response_model=ImportResponse,
    errors=[400, 409, 415, 501],
    responses=ACCEPTED,
    openapi_extra=_BODY,
)
async def import_memories(
    request: Request,
    scope: Writer,
    service: RunningService,
    strategy: Annotated[
        str,
        Query(
            max_length=50,
            description="`add`; `smart`, which skips memories that already exist and updates similar older ones; or "
            "`smart+extract`, where a language model decides about the similar ones.",
        ),
    ] = "add",
    source_remap: _Remap = None,
    no_backup: Annotated[bool, Query(description="Skip the backup before the import.")] = False,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> ImportResponse | JSONResponse:
    """Store the memories of a file with their times, keys and links, for an admin also with their ids and histories."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != NDJSON:
        # A page of another site can send any type that a form can, without asking first.
        raise UnsupportedMediaType(NDJSON)
    order = ImportOrder(
        strategy_named(strategy, with_model=service.provider is not None), remap_of(source_remap), back_up=not no_backup
    )
    await run_in_threadpool(service.jobs.require_quota, ImportHandler.kind, scope)
    spool = await service.transfer.spools.receive(request.stream(), scope.actor)
    return await run_in_threadpool(_import, service, scope, sent_key(request.state.headers), spool, order, wait_s)


def _import(service: Service, scope: Scope, sent: bytes | None, spool: Spool, order: ImportOrder, wait_s: float) -> Any:
    with service.transfer.spools.until_submitted(spool.job_id):
        # Receiving the body may have taken long, and revoking a key takes effect at once.
        caller = service.authenticator.reauthenticate(sent)
        scope = caller.scope(Role.READ_WRITE, scope.namespace)
        ReadAs().check_header(first_line(spool.path))
        parameters = replace(order, by_admin=caller.role is Role.ADMIN).parameters(spool)
        # Where other replicas could run the next import, those that compare with stored texts wait for each other.
        compares = service.engine.is_shared and order.strategy is not Strategy.ADD
        return service.long_work.run(
            ImportHandler.kind,
            scope,
            parameters,
            wait_s=wait_s,
            job_id=spool.job_id,
            serial_key=scope.namespace if compares else None,
            is_local=True,
        )


@routes.post(
    "/index/build",
    summary="Index Markdown files",
    cost=CostClass.LONG,
    sdk="maintenance.build_index",
    response_model=BuildResponse,
    errors=[403, 409],
    responses=ACCEPTED,
)
def build_index(
    scope: Admin, service: RunningService, body: BuildRequest | None = None, wait_s: WaitS = DEFAULT_WAIT_S
) -> BuildResponse | JSONResponse:
    """Add or update a memory for each section of the Markdown files below WORKSPACE_DIR; nothing is removed."""
    parameters = BuildHandler.parameters(service.transfer.workspace.files(body.sources if body else None))
    result = service.long_work.run(BuildHandler.kind, scope, parameters, wait_s=wait_s)
    return result if isinstance(result, JSONResponse) else BuildResponse.of(result)
