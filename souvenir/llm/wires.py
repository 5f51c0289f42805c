"""The one place that makes a wire of an endpoint; it loads the vendor's SDK, which takes a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from souvenir.llm.endpoint import Endpoint
from souvenir.llm.wire import Wire
from souvenir.settings import ExtractProvider

if TYPE_CHECKING:
    import httpx2

    from souvenir.llm.connections import Connections


def connect(endpoint: Endpoint) -> tuple[Wire, Connections]:
    """Ready to ask; nobody is asked yet."""
    from souvenir.llm.connections import Connections

    connections = Connections(endpoint.base_url)
    return _wire_of(endpoint, connections.client), connections


def _wire_of(endpoint: Endpoint, client: httpx2.Client) -> Wire:
    match endpoint.provider:
        case ExtractProvider.ANTHROPIC:
            from souvenir.llm.anthropic_wire import AnthropicWire

            return AnthropicWire(endpoint, client)
        case ExtractProvider.OPENAI:
            from souvenir.llm.openai_wire import OpenAIWire

            return OpenAIWire(endpoint, client)
        case ExtractProvider.OLLAMA:
            from souvenir.llm.ollama_wire import OllamaWire

            return OllamaWire(endpoint, client)
