"""The route that runs the calls of Claude's memory tool, as the model wrote them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api.parameters import AgentReader
from souvenir.compat.memory_tool.commands import Command, MemoryTool, ToolInput, ToolResult
from souvenir.core.types import Role
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_MEMORY, REMEMBERED, MakeOnce, RunningService, caller_of
from souvenir.server.routing import Routes

routes = Routes("agents")

MAX_INPUT_CHARS = 1_000_000
"""Maximum length of a field. It exceeds that of a file, so that a longer file gets an error that the model can read."""

_Text = Annotated[str | None, Field(default=None, max_length=MAX_INPUT_CHARS)]


class MemoryToolRequest(BaseModel):
    """The `input` of the model's tool call; each command takes some of the fields."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"command": "view", "path": "/memories"},
                {"command": "create", "path": "/memories/notes/todo.md", "file_text": "- Call Alice\n"},
            ]
        }
    )

    command: str = Field(
        max_length=100,
        description="`view`, `create`, `str_replace`, `insert`, `delete` or `rename`.",
        examples=["view"],
    )
    path: _Text = Field(
        default=None,
        description="The path of a file or directory, for all commands but `rename`.",
        examples=["/memories/notes/todo.md"],
    )
    view_range: list[int] | None = Field(
        default=None,
        max_length=100,
        description="For `view` of a file: the first and the last line, counted from 1; -1 for the end of the file.",
        examples=[[1, 20]],
    )
    file_text: _Text = Field(default=None, description="For `create`: the content of the file, which replaces any.")
    old_str: _Text = Field(default=None, description="For `str_replace`: a text that occurs exactly once in the file.")
    new_str: _Text = Field(default=None, description="For `str_replace`: its replacement.")
    insert_line: int | None = Field(
        default=None,
        description="For `insert`: the number of the line after which the text is inserted; 0 for the beginning.",
        examples=[0],
    )
    insert_text: _Text = Field(default=None, description="For `insert`: the lines to insert.")
    old_path: _Text = Field(default=None, description="For `rename`: the path of a file or directory.")
    new_path: _Text = Field(default=None, description="For `rename`: its new path, where nothing may be.")

    def tool_input(self) -> ToolInput:
        return ToolInput(**self.model_dump())


class MemoryToolResponse(BaseModel):
    """The content of the tool result, to be sent to the model."""

    content: Annotated[str, OF_MEMORY] = Field(
        description="The text of the result.", examples=["File created successfully at: /memories/notes/todo.md"]
    )
    is_error: bool = Field(description="True if the command was refused, for the reason in `content`.")

    @classmethod
    def of(cls, result: ToolResult) -> MemoryToolResponse:
        return cls(content=result.content, is_error=result.is_error)


@routes.post(
    "/agents/{agent_name}/memory-tool",
    summary="Run a call of Claude's memory tool",
    cost=CostClass.WRITE,
    access=REMEMBERED,
    sdk="agents.memory_tool",
)
def run_memory_tool(
    body: MemoryToolRequest, scope: AgentReader, service: RunningService, request: Request, once: MakeOnce
) -> MemoryToolResponse:
    """Run a command of Claude's memory tool on an agent's documents; changes of them need a key with write access."""
    if body.command != Command.VIEW:
        scope = caller_of(request).scope(Role.READ_WRITE, scope.namespace)
    return MemoryToolResponse.of(MemoryTool(service.documents, scope, once).run(body.tool_input()))
