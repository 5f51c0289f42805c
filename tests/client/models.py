"""A scripted vendor, clients of the four real SDKs for it, and the memories that the service stored about them."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai

from souvenir_client import Souvenir
from tests.client.running import RunningService
from tests.vendors.llm import KEY, LLMVendor

MODEL = "scripted-1"

ACCESS: dict[str, Any] = {"api_key": KEY, "max_retries": 0}


def openai_client(vendor: LLMVendor, **more: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{vendor.url}/v1", **{**ACCESS, **more})


def async_openai_client(vendor: LLMVendor, **more: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{vendor.url}/v1", **{**ACCESS, **more})


def anthropic_client(vendor: LLMVendor, **more: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=vendor.url, **{**ACCESS, **more})


def async_anthropic_client(vendor: LLMVendor, **more: Any) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=vendor.url, **{**ACCESS, **more})


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def ask(client: openai.OpenAI, *messages: Any, **more: Any) -> Any:
    """A chat completion; texts are what the user says."""
    given: list[Any] = [user(message) if isinstance(message, str) else message for message in messages]
    return client.chat.completions.create(model=MODEL, messages=given, **more)


async def ask_async(client: openai.AsyncOpenAI, *messages: Any, **more: Any) -> Any:
    given: list[Any] = [user(message) if isinstance(message, str) else message for message in messages]
    return await client.chat.completions.create(model=MODEL, messages=given, **more)


class Memory:
    """What the service has of agents."""

    def __init__(self, service: RunningService) -> None:
        self.client = Souvenir(service.url)

    def said(self, agent: str, session_id: str | None = None) -> list[tuple[str, str]]:
        """Role and content of an agent's messages, the oldest first."""
        return [(str(message.role), message.content) for message in self.messages(agent, session_id)]

    def messages(self, agent: str, session_id: str | None = None) -> list[Any]:
        """As the service took them, which is the order in a session."""
        sessions = [session_id] if session_id else [one.session_id for one in self.sessions(agent)]
        return [message for one in sessions for message in self.client.sessions.messages(agent, one, limit=1000)]

    def sessions(self, agent: str) -> list[Any]:
        """The oldest first."""
        return self.client.sessions.list(agent).sessions[::-1]

    def close(self) -> None:
        self.client.close()

    def teach(self, agent: str, *contents: str) -> None:
        """What the agent was told in a session before."""
        messages = [{"role": "user", "content": content} for content in contents]
        self.client.messages.add_batch(agent_name=agent, session_id="before", messages=messages)


def shown(body: Any) -> str:
    """All that a model was shown, as text."""
    return json.dumps(body, ensure_ascii=False)
