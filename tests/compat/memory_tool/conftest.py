"""One service for the tests of a file: each test has an agent of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from tests.api.conftest import BASE_URL, KEY, loaded
from tests.fake_embedder import FakeEmbedder, fake_of

_NUMBERS = count(1)


@dataclass(frozen=True)
class Tool:
    """The memory tool of one agent, as a program calls it that passes on what the model wrote."""

    client: TestClient
    agent: str
    headers: dict[str, str] = field(default_factory=lambda: {"X-API-Key": KEY})

    def send(self, command: str, **sent: Any) -> Any:
        """The whole answer."""
        body = {"command": command, **sent}
        return self.client.post(f"/agents/{self.agent}/memory-tool", json=body, headers=self.headers)

    def done(self, command: str, **sent: Any) -> str:
        return self._content(self.send(command, **sent), is_error=False)

    def refused(self, command: str, **sent: Any) -> str:
        return self._content(self.send(command, **sent), is_error=True)

    def get(self, path: str) -> Any:
        return self._asked(self.client.get(path, headers={**self.headers, "X-Namespace": self.agent}))

    def post(self, path: str, **body: Any) -> Any:
        return self._asked(self.client.post(path, json=body, headers={**self.headers, "X-Namespace": self.agent}))

    def memories(self) -> list[Any]:
        found: list[Any] = self.get("/memories")["memories"]
        return found

    def texts(self) -> dict[str, str]:
        """The text of every memory by its source."""
        return {memory["source"]: memory["text"] for memory in self.memories()}

    def _asked(self, answer: Any) -> Any:
        assert answer.status_code == 200, answer.text
        return answer.json()

    def _content(self, answer: Any, *, is_error: bool) -> str:
        found = self._asked(answer)
        assert found["is_error"] is is_error, found
        content: str = found["content"]
        return content


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("documents"), api_key=SecretStr(KEY), auth_rate_limit=10**6)
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
        yield loaded(client)


@pytest.fixture
def tool(running: TestClient) -> Tool:
    return Tool(running, f"agent-{next(_NUMBERS)}")
