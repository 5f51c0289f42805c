"""A started service on loopback with keys of two agents, and Mem0's own clients for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from app import create_app
from benchmarks.running import serving, wait_until_ready
from souvenir.core.settings import Settings
from tests.api.conftest import KEY
from tests.fake_embedder import FakeEmbedder, fake_of


@dataclass(frozen=True, slots=True)
class Running:
    """:param made: Numbers, for names that no other test uses."""

    url: str
    keys: dict[str, str]

    def http(self, key: str = KEY, scheme: str = "Token") -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"{scheme} {key}"})

    def new_key(self, **body: Any) -> str:
        with self.http() as client:
            answer = client.post("/api/keys", json={"name": "test", **body})
            assert answer.status_code == 200, answer.text
            return str(answer.json()["key"])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("mem0")
    settings = Settings(
        data_dir=folder, api_key=SecretStr(KEY), auth_rate_limit=10**6, webhook_allowed_hosts=("127.0.0.0/8",)
    )
    with serving(create_app(settings, FakeEmbedder(), fake_of)) as port:
        wait_until_ready(port)
        service = Running(f"http://127.0.0.1:{port}", {"admin": KEY})
        for agent in ("alpha", "beta"):
            service.keys[agent] = service.new_key(role="read-write", namespace=agent)
        service.keys["reader"] = service.new_key(role="read-only", namespace="alpha")
        yield service


@pytest.fixture(scope="session")
def mem0(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The package, which keeps a configuration in the home folder and reports to its maker unless it is told not to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEM0_TELEMETRY", "False")
        patch.setenv("MEM0_DIR", str(tmp_path_factory.mktemp("mem0_home")))
        yield import_module("mem0")


Connect = Callable[..., Any]


@pytest.fixture(scope="module")
def client(mem0: Any, running: Running) -> Iterator[Connect]:
    """The client with the key of an agent, or with another key; it is closed when the tests of the module end."""
    made: dict[str, Any] = {}
    with ExitStack() as open_clients:

        def connect(agent: str = "alpha") -> Any:
            if agent not in made:
                http = open_clients.enter_context(httpx.Client())
                made[agent] = mem0.MemoryClient(running.keys.get(agent, agent), running.url, http)
            return made[agent]

        yield connect
