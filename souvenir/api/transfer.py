"""Moving data: exports, imports, and memories from Markdown files."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from souvenir.api.caller import Admin, Reader, RunningService, Writer, sent_key
from souvenir.api.errors import error_responses
from souvenir.api.fields import EndMoment, Moment, OptionalSource
from souvenir.api.json_route import router
from souvenir.api.long_work import ACCEPTED, DEFAULT_WAIT_S, WaitS
from souvenir.api.search_models import source_filter
from souvenir.api.service import Service
from souvenir.api.transfer_lines import LINE_EXAMPLE, ReadAs, WrittenAs
from souvenir.api.transfer_models import (
    NDJSON,
    BuildRequest,
    BuildResponse,
    ImportResponse,
    remap_of,
    strategy_named,
)
from souvenir.transfer.building import BuildHandler
from souvenir.transfer.importing import ImportHandler, ImportOrder
from souvenir.transfer.spool import Spool, first_line
from souvenir.types import Filters, Role, Scope

routes = router("transfer")

IMPORT_PATH = "/import"
"""Its body goes to disk as it comes, so that it may be larger than others."""

_Remap = Annotated[
    OptionalSource | None, Query(description="`old=new`: what lies in the source path `old` goes to `new`.")
]
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "One memory a line; a header line as exports have may come first. At most IMPORT_MAX_BYTES.",
        "content": {NDJSON: {"schema": {"type": "string"}, "example": LINE_EXAMPLE}},
    }
}


@routes.get(
    "/export",
    summary="Export memories",
    response_class=StreamingResponse,
    responses={
        **error_responses(),
        200: {
            "description": "A header line, then one line a memory.",
            "content": {NDJSON: {"schema": {"type": "string"}, "example": LINE_EXAMPLE}},
        },
    },
)
def export_memories(
    scope: Reader,
    service: RunningService,
    source: Annotated[OptionalSource | None, Query(description="Sources that begin with this.")] = None,
    source_boundary: Annotated[
        bool, Query(description="Take `source` as a path: itself and what lies below it.")
    ] = False,
    since: Annotated[Moment | None, Query(description="Earliest `document_at`, else `created_at`.")] = None,
    until: Annotated[EndMoment | None, Query(description="Latest; a date alone includes that whole day.")] = None,
    history: Annotated[bool, Query(description="Add every change of each memory.")] = False,
) -> StreamingResponse:
    """Stream one state of the memories that the key may see, archived ones included, a line of JSON each."""
    service.audit.act(scope, "export")
    sources = (source_filter(source, boundary=source_boundary),) if source else ()
    lines = WrittenAs(source or None, since, until)
    filters = Filters(sources=sources, since=since, until=until, include_archived=True)
    return StreamingResponse(service.transfer.exports.stream(scope, filters, lines, history=history), media_type=NDJSON)


@routes.post(
    IMPORT_PATH,
    summary="Import memories",
    response_model=ImportResponse,
    responses={**error_responses(400, 409), **ACCEPTED},
    openapi_extra=_BODY,
)
async def import_memories(
    request: Request,
    scope: Writer,
    service: RunningService,
    strategy: Annotated[
        str, Query(max_length=50, description="`add`, or `smart`: skip what is there already.")
    ] = "add",
    source_remap: _Remap = None,
    no_backup: Annotated[bool, Query(description="Make no backup first.")] = False,
    wait_s: WaitS = DEFAULT_WAIT_S,
) -> ImportResponse | JSONResponse:
    """Store the memories of a file with their times, keys and links; lines that cannot be stored are reported."""
    order = ImportOrder(strategy_named(strategy), remap_of(source_remap), back_up=not no_backup)
    spool = await service.transfer.spools.receive(request.stream())
    return await run_in_threadpool(_import, service, scope, await sent_key(request), spool, order, wait_s)


def _import(service: Service, scope: Scope, sent: bytes | None, spool: Spool, order: ImportOrder, wait_s: float) -> Any:
    with service.transfer.spools.until_submitted(spool.job_id):
        # The body may have taken long, and keys are revoked at once.
        scope = service.door.look_again(sent).scope(Role.READ_WRITE, scope.namespace)
        ReadAs().check_header(first_line(spool.path))
        parameters = order.parameters(spool)
        return service.long_work.run(ImportHandler.kind, scope, parameters, wait_s=wait_s, job_id=spool.job_id)


@routes.post(
    "/index/build",
    summary="Build memories from Markdown files",
    response_model=BuildResponse,
    responses={**error_responses(403, 409), **ACCEPTED},
)
def build_index(
    scope: Admin, service: RunningService, body: BuildRequest | None = None, wait_s: WaitS = DEFAULT_WAIT_S
) -> BuildResponse | JSONResponse:
    """Add and update a memory for each section of the files below WORKSPACE_DIR; nothing is removed."""
    parameters = BuildHandler.parameters(service.transfer.workspace.files(body.sources if body else None))
    result = service.long_work.run(BuildHandler.kind, scope, parameters, wait_s=wait_s)
    return result if isinstance(result, JSONResponse) else BuildResponse.of(result)
