"""The wire formats of model calls, and how each is recognised.

    wire = wire_of(options.url, options.json_data)
    if wire is not None:
        body = settled(options.json_data)            # once, before it is read; send this or the result of `placed`
        turns = wire.turns(body)
        body = wire.placed(body, stable, tail)

Both SDKs merge `options.extra_json` over the body when they send it: merge it before placing context into a body.
Nothing here imports an SDK, sends anything, changes its arguments or raises on unreadable values.

A message reads the same in its answer and in the later requests that contain it, except for `model` and `incomplete`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from souvenir_client.interception.wires.anthropic_messages import AnthropicMessages
from souvenir_client.interception.wires.openai_chat import OpenAIChat
from souvenir_client.interception.wires.openai_responses import OpenAIResponses
from souvenir_client.interception.wires.shapes import is_listable, settled
from souvenir_client.interception.wires.turns import Turn

__all__ = ["Turn", "Wire", "settled", "wire_of"]


class Wire(Protocol):
    @property
    def name(self) -> str:
        """`openai.chat`, `openai.responses` or `anthropic.messages`."""

    def turns(self, body: Mapping[str, Any]) -> list[Turn]:
        """Return all turns of a settled request, in order, without system messages."""

    def placed(self, body: Mapping[str, Any], stable: str, tail: str) -> dict[str, Any]:
        """Return a new body with the context in it; "" omits a part.

        Equal parts are placed identically, byte for byte.
        """

    def answer(self, payload: object) -> list[Turn]:
        """Return the turns of an unstreamed answer: its JSON, or the object that the SDK created from it."""

    def streamed(self, events: Iterable[Mapping[str, Any]]) -> list[Turn]:
        """Return the turns of a streamed answer; those of an interrupted stream are `incomplete`."""


_CHAT, _RESPONSES, _MESSAGES = OpenAIChat(), OpenAIResponses(), AnthropicMessages()


def wire_of(url: str, body: object) -> Wire | None:
    """Return the wire of a call; None if it is no conversation with a model, or of unknown shape.

    :param url: The argument of the SDKs' `request`: a path with or without a query, or a whole address.
    """
    if not isinstance(body, Mapping):
        return None
    path = url.partition("?")[0].rstrip("/")
    if path.endswith("/chat/completions"):
        return _CHAT if is_listable(body.get("messages")) else None
    if path.endswith("/v1/messages"):
        return _MESSAGES if is_listable(body.get("messages")) else None
    if path.endswith("/responses"):
        given = body.get("input")
        return _RESPONSES if given is None or isinstance(given, str) or is_listable(given) else None
    return None
