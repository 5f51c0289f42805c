"""Claude's memory tool `memory_20250818` over the documents of an agent."""

from __future__ import annotations

from typing import Any

from anthropic.lib.tools import BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818Command,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from souvenir_client.aio.client import AsyncSouvenir
from souvenir_client.calls import NOT_SENT
from souvenir_client.errors import SouvenirError

INPUTS = (
    "command",
    "path",
    "view_range",
    "file_text",
    "old_str",
    "new_str",
    "insert_line",
    "insert_text",
    "old_path",
    "new_path",
)
"""The fields of all commands."""


class AsyncSouvenirMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool of an agent, for the `tools` of a tool runner.

    A failure is a result with `is_error` and one sentence for the model: a refused command, and a service that refuses
    the key or does not answer.

    :param souvenir: The client; it is not closed.
    :param agent: The agent whose documents the model reads and writes.
    """

    def __init__(
        self, souvenir: AsyncSouvenir, *, agent: str, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._souvenir = souvenir
        self._agent = agent

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await self._run(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await self._run(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await self._run(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await self._run(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await self._run(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await self._run(command)

    async def _run(self, command: BetaMemoryTool20250818Command) -> str:
        # What the model left out is missing in the object, and what it added is not sent.
        sent: dict[str, Any] = {name: getattr(command, name, NOT_SENT) for name in INPUTS}
        try:
            result = await self._souvenir.agents.memory_tool(self._agent, **sent)
        except SouvenirError as error:
            raise ToolError(str(error)) from error
        if result.is_error:
            raise ToolError(result.content)
        return result.content
