"""LLMProvider: one verb, which asks a language model and returns a validated, typed answer.

Behind it are Anthropic, OpenAI, every server with OpenAI's API, and Ollama. An answer fits its shape, or there is an
error of the tree below `LLMError`; it is never an empty one in the place of one that could not be read.
"""

from __future__ import annotations

from typing import Protocol

from souvenir.llm.endpoint import Endpoint
from souvenir.llm.remote import RemoteLLM
from souvenir.llm.types import Generated, Prompt, Shape
from souvenir.observation.instruments import Instruments
from souvenir.settings import Settings


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
        :raises LLMOutputUnusable: If no answer fitted the shape, also after the model was told why.
        :raises DeadlineExceeded: If the caller's deadline comes before that.
        """
        ...

    def status(self) -> str:
        """`healthy`, or why calls would fail now; nobody is asked."""
        ...

    def close(self) -> None:
        """Calls under way end soon; later ones raise `ServiceClosing`."""
        ...


def provider_of(settings: Settings, instruments: Instruments | None = None) -> LLMProvider | None:
    """The provider that the settings name, or None; nobody is asked before it is used. The caller closes it.

    :param instruments: Where calls, tokens and times are seen.
    :raises InvalidRequest: If the settings do not suffice for it; the sentence names the one that is missing.
    """
    if settings.extract_provider is None:
        return None
    return RemoteLLM(Endpoint.of(settings, settings.extract_provider), instruments)
