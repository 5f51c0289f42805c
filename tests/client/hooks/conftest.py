"""A user's machine with a project, an editor that writes transcripts, and hooks that run in this process."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from souvenir_client import Souvenir
from souvenir_client.hooks.budget import Budget
from souvenir_client.hooks.events import Hook
from souvenir_client.hooks.runner import Running
from tests.client.hooks.losing import LosingServer
from tests.client.running import RunningService


@dataclass
class Editor:
    """One session of Claude Code in the folder of a project.

    :param url: Of the service.
    """

    folder: Path
    url: str
    project: str = field(default_factory=lambda: f"project-{uuid4().hex[:8]}")
    session_id: str = field(default_factory=lambda: str(uuid4()))
    errors: str = ""

    def __post_init__(self) -> None:
        self.cwd.mkdir(parents=True, exist_ok=True)
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        self.transcript.touch()

    @property
    def cwd(self) -> Path:
        return self.folder / self.project

    @property
    def transcript(self) -> Path:
        return self.folder / "transcripts" / f"{self.session_id}.jsonl"

    @property
    def agent(self) -> str:
        return f"claude-code-{self.project}"

    @property
    def environment(self) -> dict[str, str]:
        return {"SOUVENIR_URL": self.url, "XDG_STATE_HOME": str(self.folder / "state")}

    def event(self, **fields: Any) -> dict[str, Any]:
        common = {"session_id": self.session_id, "transcript_path": str(self.transcript), "cwd": str(self.cwd)}
        return {**common, **fields}

    def line(self, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
        """A line of a transcript."""
        return {
            "type": kind,
            "uuid": str(uuid4()),
            "sessionId": self.session_id,
            "timestamp": "2026-11-22T10:00:00.000Z",
            "isSidechain": False,
            "message": {"role": kind, "content": content},
            **fields,
        }

    def says(self, *lines: tuple[str, Any]) -> None:
        """What is said is in the transcript."""
        self.writes(*(self.line(kind, content) for kind, content in lines))

    def writes(self, *entries: dict[str, Any]) -> None:
        with self.transcript.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)

    def hook(self, hook: Hook, *, url: str | None = None, budget_s: float = 20.0, **fields: Any) -> str:
        """The context that the hook gives; `errors` holds what it said of its troubles.

        :param url: Of another service than the editor's.
        """
        errors = io.StringIO()
        environment = {**self.environment, **({"SOUVENIR_URL": url} if url else {})}
        output = Running(hook, environment, Budget(budget_s), errors).run(json.dumps(self.event(**fields)).encode())
        self.errors = errors.getvalue()
        if not output:
            return ""
        specific = json.loads(output)["hookSpecificOutput"]
        assert specific["hookEventName"] == hook.event_name
        context: str = specific["additionalContext"]
        return context


@pytest.fixture
def editor_at(tmp_path: Path) -> Callable[..., Editor]:
    return lambda url, **fields: Editor(tmp_path, url, **fields)


@pytest.fixture
def editor(tmp_path: Path, service: RunningService) -> Editor:
    return Editor(tmp_path, service.url)


@pytest.fixture
def stored(service: RunningService) -> Callable[[Editor], list[str]]:
    """The contents of the session's messages, oldest first."""

    def contents(editor: Editor) -> list[str]:
        with Souvenir(service.url) as client:
            found = client.messages.list(editor.agent, session_id=editor.session_id, limit=1000)
        return [message.content for message in reversed(found)]

    return contents


@pytest.fixture
def losing(service: RunningService) -> Iterator[LosingServer]:
    server = LosingServer(service.url)
    server.start()
    yield server
    server.stop()
