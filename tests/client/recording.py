"""The real SDKs with their single patch point replaced: it records each `request`, and the vendor that they call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import openai

from tests.vendors.llm import KEY, LLMVendor

Passed = Callable[[Any, Any], object]
"""Told the options of a call and what the SDK made of the answer."""


def openai_client(vendor: LLMVendor, passed: Passed, **more: Any) -> openai.OpenAI:
    made: openai.OpenAI = _recording(openai.OpenAI, passed, base_url=f"{vendor.url}/v1", **more)
    return made


def async_openai_client(vendor: LLMVendor, passed: Passed, **more: Any) -> openai.AsyncOpenAI:
    made: openai.AsyncOpenAI = _recording(openai.AsyncOpenAI, passed, base_url=f"{vendor.url}/v1", **more)
    return made


def azure_client(vendor: LLMVendor, passed: Passed) -> openai.AzureOpenAI:
    made: openai.AzureOpenAI = _recording(
        openai.AzureOpenAI, passed, azure_endpoint=vendor.url, api_version="2025-01-01"
    )
    return made


def anthropic_client(vendor: LLMVendor, passed: Passed, **more: Any) -> anthropic.Anthropic:
    made: anthropic.Anthropic = _recording(anthropic.Anthropic, passed, base_url=vendor.url, **more)
    return made


def async_anthropic_client(vendor: LLMVendor, passed: Passed, **more: Any) -> anthropic.AsyncAnthropic:
    made: anthropic.AsyncAnthropic = _recording(anthropic.AsyncAnthropic, passed, base_url=vendor.url, **more)
    return made


def _recording(client_class: Any, passed: Passed, **more: Any) -> Any:
    def request(self: Any, cast_to: Any, options: Any, **more: Any) -> Any:
        answer = client_class.request(self, cast_to, options, **more)
        passed(options, answer)
        return answer

    async def async_request(self: Any, cast_to: Any, options: Any, **more: Any) -> Any:
        answer = await client_class.request(self, cast_to, options, **more)
        passed(options, answer)
        return answer

    own = async_request if asyncio.iscoroutinefunction(client_class.request) else request
    return type("Recording", (client_class,), {"request": own})(api_key=KEY, max_retries=0, **more)
