"""LLMProvider: asks a language model and returns a validated, typed answer.

Implementations exist for Anthropic, OpenAI, servers with OpenAI's API, and Ollama. An answer fits its shape, or an
`LLMError` is raised; an unreadable answer never becomes an empty one.
"""

from __future__ import annotations

from typing import Protocol

from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments
from souvenir.models.llm.prompts import Generated, Prompt, Shape
from souvenir.models.llm.remote import RemoteLLM
from souvenir.models.providers.endpoints import LLMEndpoint


class LLMProvider(Protocol):
    """Thread-safe. It stores nothing of the questions."""

    @property
    def name(self) -> str:
        """anthropic, openai or ollama."""
        ...

    @property
    def model(self) -> str:
        """The vendor's name of the model."""
        ...

    def generate(self, prompt: Prompt, shape: type[Shape]) -> Generated[Shape]:
        """Ask at temperature 0, with retries, within EXTRACT_TIMEOUT_S and the caller's deadline.

        :raises LLMUnavailable: If a retry may succeed later.
        :raises LLMRejected: If the key, the model's name or the address must be corrected.
        :raises LLMRefused: If the model declined.
        :raises LLMOutputUnusable: If no answer fitted the shape, even after one repair.
        :raises DeadlineExceeded: If the caller's deadline ends first.
        """
        ...

    def status(self) -> str:
        """Return `healthy`, or why calls would fail now; sends no request."""
        ...

    def close(self) -> None:
        """End calls in progress soon; later ones raise `ServiceClosing`."""
        ...


def provider_of(settings: Settings, instruments: Instruments | None = None) -> LLMProvider | None:
    """Return the provider of the settings, or None. It sends nothing before first use; the caller closes it.

    :param instruments: Receives metrics of calls, tokens and durations.
    :raises InvalidRequest: If a required setting is missing; the message names it.
    """
    if settings.extract_provider is None:
        return None
    return RemoteLLM(LLMEndpoint.of(settings, settings.extract_provider), instruments)
