"""A running service in front of a scripted vendor, and the real SDKs with their addresses pointing to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import anthropic
import httpx
import openai
import pytest

from souvenir.compat.proxy import storing
from souvenir_client.errors import NotFound
from tests.client.models import MODEL, Memory
from tests.client.running import RunningService
from tests.vendors.llm import KEY, LLMVendor

_NUMBERS = count(1)
INDEXED_S = 20.0


@dataclass(frozen=True)
class Proxied:
    """:param agent: One that no other test uses."""

    service: RunningService
    vendor: LLMVendor
    memory: Memory
    agent: str

    def openai(self, **more: Any) -> Any:
        return openai.OpenAI(**self._access(f"{self.service.url}/v1", more))

    def async_openai(self, **more: Any) -> Any:
        return openai.AsyncOpenAI(**self._access(f"{self.service.url}/v1", more))

    def anthropic(self, **more: Any) -> Any:
        return anthropic.Anthropic(**self._access(self.service.url, more))

    def async_anthropic(self, **more: Any) -> Any:
        return anthropic.AsyncAnthropic(**self._access(self.service.url, more))

    def ask(self, *messages: Any, **headers: str) -> httpx.Response:
        """Send a chat completion; texts are what the user says."""
        given = [{"role": "user", "content": one} if isinstance(one, str) else one for one in messages]
        return self.post("/v1/chat/completions", {"model": MODEL, "messages": given}, **headers)

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        named = {"x-souvenir-agent": self.agent, **{name.replace("_", "-"): value for name, value in headers.items()}}
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        return httpx.post(f"{self.service.url}{path}", headers=named, timeout=30, **sent)

    def said(self, session_id: str | None = None) -> list[tuple[str, str]]:
        """Role and content of the messages, the oldest first; none of an agent or a session that does not exist."""
        try:
            return self.memory.said(self.agent, session_id)
        except NotFound:
            return []

    def indexed(self) -> None:
        wait_until_indexed(self.service)

    def agents(self) -> list[str]:
        return [agent.name for agent in self.memory.client.agents.list().agents]

    def _access(self, base_url: str, more: dict[str, Any]) -> dict[str, Any]:
        headers = {"X-Souvenir-Agent": self.agent, **more.pop("default_headers", {})}
        return {"base_url": base_url, "api_key": KEY, "max_retries": 0, "default_headers": headers, **more}


def wait_until_indexed(service: RunningService) -> None:
    """Wait until searches find all that was said."""
    end = time.monotonic() + INDEXED_S
    while not service.app.state.proxy.storing.is_idle:
        if time.monotonic() > end:
            raise TimeoutError("messages are still being stored")
        time.sleep(0.01)


@contextmanager
def indexed_at_once() -> Iterator[None]:
    """Let services of this process index what was said without waiting for the other side of the call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storing, "INDEX_DELAY_S", 0.0)
        yield


def settings_for(vendor: LLMVendor) -> dict[str, Any]:
    return {"openai_base_url": f"{vendor.url}/v1", "anthropic_base_url": vendor.url}


@pytest.fixture(scope="module")
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.fixture(scope="module")
def running(vendor: LLMVendor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    service = RunningService(tmp_path_factory.mktemp("proxy") / "data", **settings_for(vendor))
    with indexed_at_once():
        service.start()
        yield service
        service.stop()


@pytest.fixture
def proxied(running: RunningService, vendor: LLMVendor) -> Iterator[Proxied]:
    vendor.requests.clear()
    vendor.replies.clear()
    vendor.go_on.clear()
    vendor.script(lambda _: "Noted.")
    memory = Memory(running)
    yield Proxied(running, vendor, memory, f"agent-{next(_NUMBERS)}")
    vendor.go_on.set()
    memory.close()
