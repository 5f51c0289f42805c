"""docs/mcp-clients.md: each copyable entry is valid for its program, and starts an existing command."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest

from souvenir.core.settings import Settings
from souvenir.mcp import memory_tools
from souvenir_client.cli.root import souvenir

PAGE = Path(__file__).resolve().parents[3] / "docs" / "mcp-clients.md"
OF_THE_PROGRAMS = {"SOUVENIR_HOME", "SOUVENIR_URL", "SOUVENIR_API_KEY"}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def entries() -> Iterator[dict[str, Any]]:
    """What each program is told of the server."""
    for block in blocks("json"):
        said = json.loads(block)
        [servers] = [said[name] for name in ("mcpServers", "servers") if name in said]
        yield servers["souvenir"]
    for block in blocks("toml"):
        yield tomllib.loads(block)["mcp_servers"]["souvenir"]
    for line in "".join(blocks("sh")).splitlines():
        if line.startswith("claude mcp add"):
            yield entry_of(shlex.split(line))


def entry_of(words: list[str]) -> dict[str, Any]:
    if "--" in words:
        command, *arguments = words[words.index("--") + 1 :]
        name, _, value = words[words.index("--env") + 1].partition("=")
        return {"command": command, "args": arguments, "env": {name: value}}
    name, _, value = words[words.index("--header") + 1].partition(": ")
    [url] = [word for word in words if word.startswith("http:")]
    return {"url": url, "headers": {name: value}}


STDIO = [entry for entry in entries() if "command" in entry]
HTTP = [entry for entry in entries() if "url" in entry]


def test_each_program_has_an_entry_of_each_supported_kind():
    assert (len(STDIO), len(HTTP)) == (6, 5)
    assert len(STDIO) + len(HTTP) == len(list(entries()))


@pytest.mark.parametrize("entry", STDIO)
def test_a_documented_command_exists(entry):
    assert Path(entry["command"]).name == "souvenir"
    assert set(entry["env"]) <= OF_THE_PROGRAMS
    name, *arguments = entry["args"]
    with click.Context(souvenir) as root:
        command = souvenir.get_command(root, name)
        assert command is not None
        assert command.make_context(name, arguments, root).params["agent"] == "helper"


@pytest.mark.parametrize("entry", HTTP)
def test_a_documented_address_is_the_endpoint(entry):
    url = urlsplit(re.sub(r"\$\{\w+:-(.*?)\}", r"\1", entry["url"]))
    assert (url.port, url.path) == (Settings.model_fields["port"].default, "/mcp/helper")
    assert set(entry.get("headers", {})) <= {"X-API-Key"}
    assert entry.get("bearer_token_env_var", "SOUVENIR_API_KEY") in OF_THE_PROGRAMS


def test_the_prompt_names_only_tools_enabled_by_default():
    [prompt] = re.findall(
        r"<!-- prompt: begin -->\n(.*?)<!-- prompt: end -->", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    named = set(re.findall(r"`(\w+)`", prompt)) - {"souvenir"}
    offered = {tool.name for tool in memory_tools.TOOLS}
    assert named <= offered
    assert {"search_memory", "add_memory", "update_memory", "delete_memory"} <= named
