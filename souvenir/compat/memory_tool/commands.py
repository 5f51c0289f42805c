"""The commands of the memory tool, each a function of its input that returns the text of the result.

What the model can correct is a result with `is_error`. Errors that are not about its input, such as those of a quota or
of the database, are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from souvenir.compat.memory_tool.texts import contents, excerpt, listing
from souvenir.conversations.document_paths import DocumentPath
from souvenir.conversations.documents import Documents, Edit, missing
from souvenir.core.errors import Conflict, IdempotencyKeyReused, InvalidRequest, NotFound
from souvenir.core.types import Scope
from souvenir.store.idempotency import Once

TO_THE_END = -1
"""The end of a range of lines that goes to the end of the file."""

REDACTED = "The privacy policy redacted parts of the text; view the file to see what is stored."


class Command(StrEnum):
    VIEW = "view"
    CREATE = "create"
    STR_REPLACE = "str_replace"
    INSERT = "insert"
    DELETE = "delete"
    RENAME = "rename"


@dataclass(frozen=True, slots=True)
class ToolInput:
    """The input of a tool call; fields that the model omitted are None."""

    command: str
    path: str | None = None
    view_range: list[int] | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    insert_text: str | None = None
    old_path: str | None = None
    new_path: str | None = None

    def text(self, name: str) -> str:
        """:raises InvalidRequest: If the model left it out."""
        value: str | None = getattr(self, name)
        if value is None:
            raise InvalidRequest(f"The command {self.command} takes `{name}`; send it")
        return value


@dataclass(frozen=True, slots=True)
class ToolResult:
    content: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class MemoryTool:
    """:param once: The Idempotency-Key of the request, if it has one."""

    documents: Documents
    scope: Scope
    once: Once | None = None

    def run(self, sent: ToolInput) -> ToolResult:
        """Run a command; a refusal that the model can act on is its result.

        :raises IdempotencyKeyReused: If the key was used for another request.
        """
        try:
            return ToolResult(_command(sent)(self, sent))
        except IdempotencyKeyReused:
            raise
        except (InvalidRequest, NotFound, Conflict) as refusal:
            return ToolResult(refusal.message, is_error=True)

    def _view(self, sent: ToolInput) -> str:
        path = DocumentPath.of(sent.text("path"))
        file = self.documents.find(self.scope, path) if path.names else None
        if file is not None:
            return contents(path, file.text, *_lines_of(sent.view_range, file.text.count("\n") + 1))
        below = self.documents.below(self.scope, path)
        if path.names and not below:
            raise missing(path)
        return listing(path, below)

    def _create(self, sent: ToolInput) -> str:
        path = DocumentPath.of_file(sent.text("path"))
        made = self.documents.create(self.scope, path, sent.text("file_text"), once=self.once)
        return _with_note(f"File created successfully at: {path}", made)

    def _str_replace(self, sent: ToolInput) -> str:
        path, old, new = DocumentPath.of_file(sent.text("path")), sent.text("old_str"), sent.text("new_str")
        made = self.documents.edit(self.scope, path, lambda text: _replaced(path, text, old, new), once=self.once)
        done = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return _with_note(f"{done}\n{excerpt(made.text, made.line)}", made)

    def _insert(self, sent: ToolInput) -> str:
        path, added, line = DocumentPath.of_file(sent.text("path")), sent.text("insert_text"), sent.insert_line
        if line is None:
            raise InvalidRequest("The command insert takes `insert_line`; send 0 for the beginning of the file")
        made = self.documents.edit(self.scope, path, lambda text: _inserted(text, line, added), once=self.once)
        return _with_note(f"The file {path} has been edited.", made)

    def _delete(self, sent: ToolInput) -> str:
        path = DocumentPath.of(sent.text("path"))
        self.documents.delete(self.scope, path, once=self.once)
        return f"Successfully deleted {path}"

    def _rename(self, sent: ToolInput) -> str:
        old, new = DocumentPath.of(sent.text("old_path")), DocumentPath.of(sent.text("new_path"))
        self.documents.rename(self.scope, old, new, once=self.once)
        return f"Successfully renamed {old} to {new}"


_COMMANDS: Mapping[Command, Callable[[MemoryTool, ToolInput], str]] = MappingProxyType(
    {
        Command.VIEW: MemoryTool._view,
        Command.CREATE: MemoryTool._create,
        Command.STR_REPLACE: MemoryTool._str_replace,
        Command.INSERT: MemoryTool._insert,
        Command.DELETE: MemoryTool._delete,
        Command.RENAME: MemoryTool._rename,
    }
)


def _command(sent: ToolInput) -> Callable[[MemoryTool, ToolInput], str]:
    try:
        return _COMMANDS[Command(sent.command)]
    except ValueError as error:
        raise InvalidRequest(f"There is no such command; send one of {', '.join(Command)}") from error


def _lines_of(view_range: list[int] | None, count: int) -> tuple[int, int]:
    """Return the first and the last line of a range; one that begins before the file begins at its first line."""
    if view_range is None:
        return 1, count
    if len(view_range) != 2:
        raise InvalidRequest("`view_range` takes two line numbers, such as [1, 20], or [1, -1] for the whole file")
    first, last = max(view_range[0], 1), view_range[1]
    last = count if last == TO_THE_END else min(last, count)
    if first > last:
        raise InvalidRequest(f"Invalid `view_range`: the file has the lines 1 to {count}; send a range of these")
    return first, last


def _replaced(path: DocumentPath, text: str, old: str, new: str) -> Edit:
    """:raises InvalidRequest: If the text does not occur exactly once."""
    if not old:
        raise InvalidRequest("No replacement was performed, `old_str` is empty; send the text to replace")
    before, found, after = text.partition(old)
    if not found:
        raise InvalidRequest(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if old in after:
        lines = ", ".join(map(str, _lines_with(text, old)))
        raise InvalidRequest(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
            "Please ensure it is unique"
        )
    return Edit(before + new + after, before.count("\n") + 1)


def _lines_with(text: str, part: str) -> list[int]:
    """Return the numbers of the lines in which an occurrence begins, once each."""
    found: dict[int, None] = {}
    line, done = 1, 0
    while (at := text.find(part, done)) >= 0:
        line += text.count("\n", done, at)
        found[line] = None
        line += part.count("\n")
        done = at + len(part)
    return list(found)


def _inserted(text: str, line: int, added: str) -> Edit:
    """Insert lines after the line of that number; the text ends with a line feed afterwards.

    :raises InvalidRequest: If there is no such line.
    """
    lines = text.removesuffix("\n").split("\n")
    if not 0 <= line <= len(lines):
        raise InvalidRequest(
            f"Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: "
            f"[0, {len(lines)}]"
        )
    lines.insert(line, added.rstrip("\n"))
    joined = "\n".join(lines)
    return Edit(joined if joined.endswith("\n") else f"{joined}\n", line + 1)


def _with_note(result: str, made: Edit) -> str:
    return f"{result}\n{REDACTED}" if made.redacted else result
