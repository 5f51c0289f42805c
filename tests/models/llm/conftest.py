"""A vendor on loopback, and providers that call it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from pydantic import BaseModel, Field

from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments
from souvenir.models.llm.prompts import Prompt
from souvenir.models.llm.provider import LLMProvider, provider_of
from souvenir.models.providers import retry
from tests.vendors.llm import LLMVendor

WIRES = ("anthropic", "openai", "ollama")

SECRET_TEXT = "Margarethe hides the spare key under the blue flowerpot"

PROMPT = Prompt("facts", "1", "You find facts.", f"user: {SECRET_TEXT}")


class Fact(BaseModel):
    text: str = Field(min_length=1)
    certain: bool = True


class FactList(BaseModel):
    facts: list[Fact]


class Lenient(BaseModel):
    """A shape that any object fits, so that lost values would go unnoticed."""

    facts: list[str] = []


GOOD = {"facts": [{"text": "The key lies outside", "certain": True}]}

Provide = Callable[..., LLMProvider]


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry soon, unless the vendor says when; tests/models/test_retry.py holds how long the delays are."""
    monkeypatch.setattr(retry, "FIRST_DELAY_S", 0.02)


@pytest.fixture
def llm_vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.fixture
def provide(llm_vendor: LLMVendor) -> Iterator[Provide]:
    """Create a provider of the given name; further arguments are settings."""
    with ExitStack() as stack:

        def make(provider: str = "openai", *, instruments: Instruments | None = None, **more: Any) -> LLMProvider:
            made = provider_of(Settings(**llm_vendor.settings(provider, **more)), instruments)
            assert made is not None
            return stack.enter_context(closing(made))

        yield make
