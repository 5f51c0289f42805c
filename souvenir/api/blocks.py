"""Memory blocks: create, list, get, update and delete them; an ETag and If-Match prevent lost updates."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Query, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, StringConstraints

from souvenir.api.fields import AsOf, Clean, wire_time
from souvenir.api.parameters import (
    COUNTED,
    AgentName,
    AgentReader,
    AgentWriter,
    ExpectedTags,
    Limit,
    Offset,
    described_headers,
    set_total,
)
from souvenir.conversations.blocks import DEFAULT_MAX_CHARS, MOST_MAX_CHARS, BlockChange
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import DOTS, OF_MEMORY, REMEMBERED, MakeOnce, RunningService, Writer, agent_scope
from souvenir.server.routing import Routes
from souvenir.store.messages.blocks import Block, BlockDraft, BlockVersion

routes = Routes("blocks")

MAX_LABEL_CHARS = 100
MAX_DESCRIPTION_CHARS = 2_000


def label_name(text: str) -> str:
    """:raises ValueError: If no block can be called so."""
    name = text.strip()
    if not name or "/" in name or name in DOTS or not name.isprintable():
        raise ValueError(f"a label takes 1 to {MAX_LABEL_CHARS} printable characters without /, and is not . or ..")
    return name


Label = Annotated[
    str,
    AfterValidator(label_name),
    Field(
        min_length=1,
        max_length=MAX_LABEL_CHARS,
        description="The block's label: printable characters without `/`.",
        examples=["human"],
    ),
]

_Value = Annotated[str, StringConstraints(max_length=MOST_MAX_CHARS), Clean]
_Description = Annotated[str, StringConstraints(max_length=MAX_DESCRIPTION_CHARS), Clean]
_AsOf = Annotated[
    AsOf | None,
    Query(
        description="Read the blocks as they were at this time: ISO-8601, UTC without an offset; a future time means "
        "now. Blocks deleted since then are not included."
    ),
]
_MaxChars = Annotated[int, Field(ge=1, le=MOST_MAX_CHARS)]


class CreateBlockRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"agent_name": "my_agent", "label": "human", "value": "Name: Alice\nLocation: Boston"}]
        }
    )

    agent_name: AgentName
    label: Label
    value: _Value = Field(description="The text of the block, which is always part of the agent's context.")
    description: _Description | None = Field(
        default=None, description="The purpose of the block; not part of the context."
    )
    limit: _MaxChars = Field(default=DEFAULT_MAX_CHARS, description="Maximum number of characters of the value.")
    read_only: bool = Field(default=False, description="Reject updates until one sets `read_only` to false.")

    def draft(self) -> BlockDraft:
        return BlockDraft(self.label, self.value, self.description, self.limit, self.read_only)


class UpdateBlockRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "Name: Alice\nLocation: New York"}]})

    value: _Value | None = Field(default=None, description="The new text.")
    description: _Description | None = Field(default=None, description="The new description; null removes it.")
    limit: _MaxChars | None = Field(default=None, description="The new limit, in characters.")
    read_only: bool | None = Field(
        default=None, description="False makes a read-only block writable, including this update."
    )

    def change(self) -> BlockChange:
        remove = "description" in self.model_fields_set and self.description is None
        return BlockChange(self.value, self.description, remove, self.limit, self.read_only)


class MemoryBlock(BaseModel):
    id: str = Field(description="A UUID.", examples=["2f0c5a1e-7d43-4a53-8f0e-5f3f1d9b6a10"])
    agent_id: str = Field(description="The UUID of the agent.")
    label: str = Field(examples=["human"])
    value: Annotated[str, OF_MEMORY]
    description: Annotated[str | None, OF_MEMORY] = Field(examples=["What is known of the person."])
    limit: int = Field(description="Maximum number of characters of the value.")
    read_only: bool
    version: int = Field(description="The version number, counted from 1.")
    created_at: str = Field(description="ISO-8601 in UTC with microseconds.")
    updated_at: str

    @classmethod
    def of(cls, block: Block) -> MemoryBlock:
        return cls(
            id=block.uid,
            agent_id=block.agent_uid,
            label=block.label,
            value=block.value,
            description=block.description,
            limit=block.max_chars,
            read_only=block.read_only,
            version=block.version,
            created_at=wire_time(block.created_at),
            updated_at=wire_time(block.updated_at),
        )


class MemoryBlockList(RootModel[list[MemoryBlock]]):
    """In order of creation, as in the context."""


class BlockVersionRecord(BaseModel):
    """A version of a block."""

    version: int
    value: str
    description: str | None = Field(examples=["What is known of the person."])
    limit: int
    read_only: bool
    actor: str = Field(description="The actor that made this version.", examples=["anonymous"])
    at: str = Field(description="ISO-8601 in UTC with microseconds.", examples=["2025-04-02T09:30:00.000000+00:00"])

    @classmethod
    def of(cls, version: BlockVersion) -> BlockVersionRecord:
        return cls(
            version=version.version,
            value=version.value,
            description=version.description,
            limit=version.max_chars,
            read_only=version.read_only,
            actor=version.actor,
            at=wire_time(version.at),
        )


class BlockHistoryPage(BaseModel):
    versions: list[BlockVersionRecord] = Field(description="Newest first, including the current version.")
    total: int = Field(description="The total number of items on all pages.")
    offset: int
    limit: int


class DeletedBlock(BaseModel):
    success: bool
    deleted_id: str = Field(
        description="The UUID of the deleted block.", examples=["2f0c5a1e-7d43-4a53-8f0e-5f3f1d9b6a10"]
    )
    label: str = Field(examples=["human"])


_ETAG = described_headers(("ETag", "The version of the block in quotes.", "string"))


_VERSION = re.compile(r"[1-9][0-9]{0,17}")


async def _expected_versions(tags: ExpectedTags) -> frozenset[int] | None:
    """The versions that a change may replace; None: any."""
    return None if tags is None else frozenset(int(tag) for tag in tags if _VERSION.fullmatch(tag))


ExpectedVersions = Annotated[frozenset[int] | None, Depends(_expected_versions)]


def _tagged(block: Block, response: Response) -> MemoryBlock:
    response.headers["ETag"] = f'"{block.version}"'
    return MemoryBlock.of(block)


@routes.post(
    "/memory-blocks",
    summary="Create a memory block",
    cost=CostClass.LIGHT,
    sdk="blocks.create",
    errors=[404, 409],
    responses=_ETAG,
)
def create_block(
    body: CreateBlockRequest,
    _: Writer,
    service: RunningService,
    request: Request,
    response: Response,
    once: MakeOnce,
) -> MemoryBlock:
    """Create a block of text that is always part of the agent's context; the agent is created if it does not exist."""
    scope = agent_scope(request, body.agent_name)
    return _tagged(service.blocks.create(scope, body.draft(), once=once), response)


@routes.get(
    "/memory-blocks/{agent_name}",
    summary="List memory blocks",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="blocks.list",
    errors=[404],
    responses=COUNTED,
)
def list_blocks(
    scope: AgentReader,
    service: RunningService,
    response: Response,
    offset: Offset = 0,
    limit: Limit = 100,
    as_of: _AsOf = None,
) -> MemoryBlockList:
    """List an agent's blocks in order of creation, as they are now or as they were at a point in time."""
    found, total = service.blocks.page(scope, as_of, offset=offset, limit=limit)
    set_total(response, total)
    return MemoryBlockList([MemoryBlock.of(block) for block in found])


@routes.get(
    "/memory-blocks/{agent_name}/{label}",
    summary="Get a memory block",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="blocks.get",
    errors=[404],
    responses=_ETAG,
)
def get_block(
    label: Label, scope: AgentReader, service: RunningService, response: Response, as_of: _AsOf = None
) -> MemoryBlock:
    """Get a block by its label, as it is now or as it was at a point in time."""
    return _tagged(service.blocks.get(scope, label, as_of), response)


@routes.put(
    "/memory-blocks/{agent_name}/{label}",
    summary="Update a memory block",
    cost=CostClass.LIGHT,
    sdk="blocks.update",
    idempotent=False,
    errors=[400, 404, 409, 412],
    responses=_ETAG,
)
def update_block(
    label: Label,
    body: UpdateBlockRequest,
    scope: AgentWriter,
    service: RunningService,
    response: Response,
    expected: ExpectedVersions,
) -> MemoryBlock:
    """Update the given fields of a block if its version matches If-Match."""
    return _tagged(service.blocks.update(scope, label, body.change(), expected=expected), response)


@routes.delete(
    "/memory-blocks/{agent_name}/{label}",
    summary="Delete a memory block",
    cost=CostClass.LIGHT,
    sdk="blocks.delete",
    errors=[404],
)
def delete_block(label: Label, scope: AgentWriter, service: RunningService) -> DeletedBlock:
    """Delete a block and all its versions permanently, even if it is read-only."""
    return DeletedBlock(success=True, deleted_id=service.blocks.delete(scope, label), label=label)


@routes.get(
    "/memory-blocks/{agent_name}/{label}/history",
    summary="List the versions of a memory block",
    cost=CostClass.LIGHT,
    access=REMEMBERED,
    sdk="blocks.history",
    errors=[404],
)
def block_history(
    label: Label, scope: AgentReader, service: RunningService, offset: Offset = 0, limit: Limit = 100
) -> BlockHistoryPage:
    """List all versions of a block, newest first."""
    found, total = service.blocks.history(scope, label, offset=offset, limit=limit)
    versions = [BlockVersionRecord.of(version) for version in found]
    return BlockHistoryPage(versions=versions, total=total, offset=offset, limit=limit)
