"""Random commands leave the same files, and give the same results, as the vendor's own tool over a local folder.

Differences are stated in docs/memory-tool.md: `create` replaces a file, no file is blank, and an empty directory does
not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.compat.memory_tool.conftest import Tool
from tests.thoroughness import sampled

PATHS = [f"/memories/{path}" for path in ("a", "b", "d", "d/a", "d/b", "d/e/a", "d/e/f/a", "a/b")]
TEXTS = ["tea", "tea\n", "red tea\nblue\n", "blue\n\n\nred", "\nblue tea\n\n", "red\r\nblue", " red\ttea ", "ä – 茶\n"]
PARTS = ["tea", "red", "blue\n", "\n", "e", "ä", ""]

_NUMBERS = count(1)

path, text, part = st.sampled_from(PATHS), st.sampled_from(TEXTS), st.sampled_from(PARTS)


def sent(command: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"command": st.just(command), **fields})


created = sent("create", path=path, file_text=text)
commands = st.one_of(
    created,
    sent("view", path=path | st.just("/memories")),
    sent("view", path=path, view_range=st.tuples(st.integers(0, 3), st.integers(-1, 5)).map(list)),
    sent("str_replace", path=path, old_str=part, new_str=part),
    sent("insert", path=path, insert_line=st.integers(-1, 4), insert_text=text | part),
    sent("delete", path=path | st.just("/memories")),
    sent("rename", old_path=path, new_path=path),
)


@dataclass(frozen=True)
class LocalTool:
    """The vendor's tool over a folder, with what is stated to be different."""

    folder: Path
    tool: BetaLocalFilesystemMemoryTool

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[LocalTool]:
        with TemporaryDirectory() as folder:
            yield cls(Path(folder), BetaLocalFilesystemMemoryTool(folder))

    def run(self, command: Mapping[str, Any]) -> str | None:
        """The result; None if the command is refused."""
        before = self.files()
        if command["command"] == "create" and command["path"][1:] in before:
            (self.folder / command["path"][1:]).unlink()
        try:
            result = str(self.tool.call(dict(command)))
        except (ToolError, OSError):
            result = None
        if any(not one.strip() for one in self.files().values()):
            (self.folder / command["path"][1:]).write_text(before[command["path"][1:]], newline="")
            result = None
        for directory in sorted(self.folder.glob("memories/**/"), reverse=True):
            if directory.name != "memories" and not any(directory.iterdir()):
                directory.rmdir()
        return result

    def files(self) -> dict[str, str]:
        found = [one for one in self.folder.rglob("*") if one.is_file()]
        return {str(one.relative_to(self.folder)): one.read_bytes().decode() for one in found}


def without_sizes_of_directories(result: str) -> list[str]:
    """A directory of the file system has a size of its own; ours is that of its files."""
    header, root, *lines = result.splitlines()
    shown = [line.partition("\t")[2] if line.endswith("/") else line for line in lines]
    return [header, root.partition("\t")[2], *shown]


@settings(max_examples=sampled(25, 400))
@given(sequence=st.tuples(created, st.lists(commands, max_size=12)).map(lambda both: [both[0], *both[1]]))
def test_random_commands_do_what_they_do_in_a_folder(running: TestClient, sequence: list[dict[str, Any]]):
    tool = Tool(running, f"random-{next(_NUMBERS)}")
    with LocalTool.opened() as local:
        for command in sequence:
            answer, expected = tool.send(**command).json(), local.run(command)
            result = None if answer["is_error"] else answer["content"]
            if expected is not None and expected.startswith("Here're"):
                assert result is not None, answer
                assert without_sizes_of_directories(result) == without_sizes_of_directories(expected)
            elif result is not None or "view_range" not in command:
                assert result == expected, (command, answer)
        assert tool.texts() == local.files()
