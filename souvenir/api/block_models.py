"""What the routes of memory blocks take and answer."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, StringConstraints

from souvenir.api.agents import AgentName
from souvenir.api.caller import DOTS
from souvenir.api.fields import Clean, wire_time
from souvenir.conversation.blocks import DEFAULT_MAX_CHARS, MOST_MAX_CHARS, BlockChange
from souvenir.store.blocks import Block, BlockDraft, BlockVersion

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
_MaxChars = Annotated[int, Field(ge=1, le=MOST_MAX_CHARS)]

_VERSION_EXAMPLE: dict[str, Any] = {
    "version": 1,
    "value": "Name: Alice\nLocation: Boston",
    "description": "What is known of the person.",
    "limit": DEFAULT_MAX_CHARS,
    "read_only": False,
    "actor": "anonymous",
    "at": "2025-04-02T09:30:00.000000+00:00",
}

BLOCK_EXAMPLE: dict[str, Any] = {
    "id": "2f0c5a1e-7d43-4a53-8f0e-5f3f1d9b6a10",
    "agent_id": "6f1c2b1e-8d5e-4c7e-9a4f-0f3f6f3f2b7a",
    "label": "human",
    "value": "Name: Alice\nLocation: Boston",
    "description": "What is known of the person.",
    "limit": DEFAULT_MAX_CHARS,
    "read_only": False,
    "version": 1,
    "created_at": "2025-04-02T09:30:00.000000+00:00",
    "updated_at": "2025-04-02T09:30:00.000000+00:00",
}


class CreateBlockRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"agent_name": "my_agent", "label": "human", "value": "Name: Alice\nLocation: Boston"}]
        }
    )

    agent_name: AgentName
    label: Label
    value: _Value = Field(description="The text that is always in the agent's context.")
    description: _Description | None = Field(
        default=None, description="What the block is for; it does not stand in the context."
    )
    limit: _MaxChars = Field(default=DEFAULT_MAX_CHARS, description="Characters that the value may have.")
    read_only: bool = Field(default=False, description="Refuse changes until one sends `read_only` false.")

    def draft(self) -> BlockDraft:
        return BlockDraft(self.label, self.value, self.description, self.limit, self.read_only)


class UpdateBlockRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "Name: Alice\nLocation: New York"}]})

    value: _Value | None = Field(default=None, description="The new text.")
    description: _Description | None = Field(default=None, description="The new description; null removes it.")
    limit: _MaxChars | None = Field(default=None, description="The new limit, in characters.")
    read_only: bool | None = Field(default=None, description="False lets a read-only block be changed, also by this.")

    def change(self) -> BlockChange:
        remove = "description" in self.model_fields_set and self.description is None
        return BlockChange(self.value, self.description, remove, self.limit, self.read_only)


class MemoryBlock(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [BLOCK_EXAMPLE]})

    id: str = Field(description="A UUID.")
    agent_id: str = Field(description="The agent's UUID.")
    label: str
    value: str
    description: str | None
    limit: int = Field(description="Characters that the value may have.")
    read_only: bool
    version: int = Field(description="Counts the changes from 1.")
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
    """In the order in which they were made, which is that of the context."""

    model_config = ConfigDict(json_schema_extra={"examples": [[BLOCK_EXAMPLE]]})


class BlockVersionRecord(BaseModel):
    """What a block was from one change to the next."""

    model_config = ConfigDict(json_schema_extra={"examples": [_VERSION_EXAMPLE]})

    version: int
    value: str
    description: str | None
    limit: int
    read_only: bool
    actor: str = Field(description="Who made it so.")
    at: str = Field(description="When, ISO-8601 in UTC with microseconds.")

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
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"versions": [_VERSION_EXAMPLE], "total": 1, "offset": 0, "limit": 100}]}
    )

    versions: list[BlockVersionRecord] = Field(description="Newest first, the present one included.")
    total: int = Field(description="How many there are on all pages.")
    offset: int
    limit: int


class DeletedBlock(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"success": True, "deleted_id": BLOCK_EXAMPLE["id"], "label": "human"}]}
    )

    success: bool
    deleted_id: str = Field(description="The UUID that the block had.")
    label: str
