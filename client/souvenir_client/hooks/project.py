"""The agent of a project folder: one for each project, the same in all of its subfolders and worktrees."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from souvenir_client.hooks.events import Event
from souvenir_client.saved import saved

MAX_NAME_CHARS = 200
"""Limit of the service for the name of an agent or a session."""

AGENT_PREFIX = "claude-code-"
SOURCE_PREFIX = "claude-code/"


@dataclass(frozen=True, slots=True)
class Project:
    """The agent and the session of a transcript.

    :param source: Source path of memories that are extracted in the project.
    """

    project: str
    agent: str
    session_id: str
    source: str

    @classmethod
    def of(cls, event: Event, environment: Mapping[str, str]) -> Self:
        """:raises ValueError: If the saved file, which may contain the agent, cannot be read."""
        project = project_of(event.cwd, environment)
        named = environment.get("SOUVENIR_AGENT", "").strip() or saved("souvenir_agent")
        agent = named or plain_name(AGENT_PREFIX + project)
        return cls(project, agent, plain_name(event.session_id), SOURCE_PREFIX + plain_name(project))


def project_of(cwd: str, environment: Mapping[str, str]) -> str:
    """Return the name of the project's folder.

    Claude Code may change its folder while it works; CLAUDE_PROJECT_DIR contains the initial one. The project is the
    git repository around that folder, and the main repository if it is a worktree.
    """
    start = Path(environment.get("CLAUDE_PROJECT_DIR") or cwd or ".").absolute()
    for folder in (start, *start.parents):
        git = folder / ".git"
        if git.is_dir():
            return folder.name or "root"
        if git.is_file():
            return (_home_of_worktree(git) or folder).name or "root"
    return start.name or "root"


def plain_name(text: str) -> str:
    """Return the text as a valid name: printable, without `/`, not `.` or `..`, and within the length limit."""
    composed = unicodedata.normalize("NFC", text)
    name = "".join("-" if sign == "/" or not sign.isprintable() else sign for sign in composed)[:MAX_NAME_CHARS]
    return name.replace(".", "-") if name in (".", "..") else name


def _home_of_worktree(git: Path) -> Path | None:
    """The repository of a `.git` file that points to `<repository>/.git/worktrees/<name>`; None for submodules."""
    try:
        leads_to = git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    except (OSError, UnicodeDecodeError):
        return None
    folder = (git.parent / leads_to).absolute()
    if folder.parent.name == "worktrees" and folder.parent.parent.name == ".git":
        return folder.parent.parent.parent
    return None
