"""Memory blocks: made, listed, read, changed and deleted; an ETag and If-Match keep one change from undoing another."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Header, Request, Response

from souvenir.api.agents import AgentName
from souvenir.api.block_models import (
    BlockHistoryPage,
    BlockVersionRecord,
    CreateBlockRequest,
    DeletedBlock,
    Label,
    MemoryBlock,
    MemoryBlockList,
    UpdateBlockRequest,
)
from souvenir.api.caller import Reader, RunningService, Writer, agent_scope
from souvenir.api.errors import error_responses
from souvenir.api.json_route import router
from souvenir.api.once import MakeOnce
from souvenir.api.pages import COUNTED, Limit, Offset, described_headers, set_total
from souvenir.errors import InvalidRequest
from souvenir.store.blocks import Block

routes = router("blocks")

_TAG = r'(?:W/)?"[\x21\x23-\x7e]*"'
_TAGS = re.compile(rf"{_TAG}(?:[ \t]*,[ \t]*{_TAG})*")
_STRONG_VERSION = re.compile(r'(?<!/)"([1-9][0-9]{0,17})"')

_ETAG = described_headers(("ETag", "The block's version in quotes.", "string"))


async def _expected_versions(
    if_match: Annotated[
        str | None,
        Header(
            alias="If-Match",
            max_length=1000,
            description="ETags, one of which the block must have, or it is not changed (412); `*` stands for any.",
            examples=['"1"'],
        ),
    ] = None,
) -> frozenset[int] | None:
    """The versions that a change may replace; None: any. A weak tag matches none (RFC 9110, section 13.1.1).

    :raises InvalidRequest: If the header cannot be read.
    """
    sent = "*" if if_match is None else if_match.strip()
    if sent == "*":
        return None
    if not _TAGS.fullmatch(sent):
        raise InvalidRequest('If-Match takes the ETag of an answer as it is, with its quotes, such as "1", or *')
    return frozenset(int(version) for version in _STRONG_VERSION.findall(sent))


ExpectedVersions = Annotated[frozenset[int] | None, Depends(_expected_versions)]


def _tagged(block: Block, response: Response) -> MemoryBlock:
    response.headers["ETag"] = f'"{block.version}"'
    return MemoryBlock.of(block)


@routes.post("/memory-blocks", summary="Make a memory block", responses=_ETAG | error_responses(404, 409))
def create_block(
    body: CreateBlockRequest,
    _: Writer,
    service: RunningService,
    request: Request,
    response: Response,
    once: MakeOnce,
) -> MemoryBlock:
    """Make a block of text that is always in the agent's context; an agent that is not there is made too."""
    scope = agent_scope(request, body.agent_name)
    return _tagged(service.blocks.create(scope, body.draft(), once=once), response)


@routes.get("/memory-blocks/{agent_name}", summary="List memory blocks", responses=COUNTED | error_responses(404))
def list_blocks(
    agent_name: AgentName,
    _: Reader,
    service: RunningService,
    request: Request,
    response: Response,
    offset: Offset = 0,
    limit: Limit = 100,
) -> MemoryBlockList:
    """List an agent's blocks in the order in which they were made."""
    found, total = service.blocks.page(agent_scope(request, agent_name), offset=offset, limit=limit)
    set_total(response, total)
    return MemoryBlockList([MemoryBlock.of(block) for block in found])


@routes.get("/memory-blocks/{agent_name}/{label}", summary="Get a block", responses=_ETAG | error_responses(404))
def get_block(
    agent_name: AgentName, label: Label, _: Reader, service: RunningService, request: Request, response: Response
) -> MemoryBlock:
    """Get a block by its label."""
    return _tagged(service.blocks.get(agent_scope(request, agent_name), label), response)


@routes.put(
    "/memory-blocks/{agent_name}/{label}",
    summary="Change a block",
    responses=_ETAG | error_responses(400, 404, 409, 412),
)
def update_block(
    agent_name: AgentName,
    label: Label,
    body: UpdateBlockRequest,
    _: Writer,
    service: RunningService,
    request: Request,
    response: Response,
    expected: ExpectedVersions,
) -> MemoryBlock:
    """Change the fields that are given, if the block is still one of the versions that If-Match names."""
    scope = agent_scope(request, agent_name)
    return _tagged(service.blocks.update(scope, label, body.change(), expected=expected), response)


@routes.delete("/memory-blocks/{agent_name}/{label}", summary="Forget a block", responses=error_responses(404))
def delete_block(
    agent_name: AgentName, label: Label, _: Writer, service: RunningService, request: Request
) -> DeletedBlock:
    """Forget a block and all its versions for good, also a read-only one."""
    gone = service.blocks.delete(agent_scope(request, agent_name), label)
    return DeletedBlock(success=True, deleted_id=gone.uid, label=gone.label)


@routes.get(
    "/memory-blocks/{agent_name}/{label}/history", summary="List versions of a block", responses=error_responses(404)
)
def block_history(
    agent_name: AgentName,
    label: Label,
    _: Reader,
    service: RunningService,
    request: Request,
    offset: Offset = 0,
    limit: Limit = 100,
) -> BlockHistoryPage:
    """List what a block was in every version, newest first."""
    found, total = service.blocks.history(agent_scope(request, agent_name), label, offset=offset, limit=limit)
    versions = [BlockVersionRecord.of(version) for version in found]
    return BlockHistoryPage(versions=versions, total=total, offset=offset, limit=limit)
