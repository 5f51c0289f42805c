"""LLMProvider: one verb, which asks a language model and returns a validated, typed answer.

Behind it are Anthropic, OpenAI, every server with OpenAI's API, and Ollama. An answer fits its shape, or there is an
error below `LLMError`; an unreadable answer never becomes an empty one.
"""

from __future__ import annotations

from typing import Protocol

from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments
from souvenir.models.llm.prompts import Generated, Prompt, Shape
from souvenir.models.llm.remote import RemoteLLM
from souvenir.models.providers.endpoints import LLMEndpoint


class LLMProvider(Protocol):
    """Safe to call from many threads. It keeps nothing of what it was asked."""

    @property
    def name(self) -> str:
        """anthropic, openai or ollama."""
        ...

    @property
    def model(self) -> str:
        """The vendor's name of the model that is asked."""
        ...

    def generate(self, prompt: Prompt, shape: type[Shape]) -> Generated[Shape]:
        """Ask at temperature 0, and again where that may help; within EXTRACT_TIMEOUT_S and its caller's deadline.

        :raises LLMUnavailable: If it may be tried later.
        :raises LLMRejected: If the key, the model's name or the address has to be corrected.
        :raises LLMRefused: If the model declined.
        :raises LLMOutputUnusable: If no answer fitted the shape, even after one repair.
        :raises DeadlineExceeded: If the caller's deadline comes before that.
        """
        ...

    def status(self) -> str:
        """`healthy`, or why calls would fail now; sends no request."""
        ...

    def close(self) -> None:
        """Calls under way end soon; later ones raise `ServiceClosing`."""
        ...


def provider_of(settings: Settings, instruments: Instruments | None = None) -> LLMProvider | None:
    """The provider that the settings name, or None. It sends nothing before it is used; the caller closes it.

    :param instruments: Where calls, tokens and times are seen.
    :raises InvalidRequest: If the settings do not suffice for it; the sentence names the one that is missing.
    """
    if settings.extract_provider is None:
        return None
    return RemoteLLM(LLMEndpoint.of(settings, settings.extract_provider), instruments)
