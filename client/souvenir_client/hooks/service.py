"""The groups of the SDK that hooks use; others are not imported, to save start-up time.

Invariants: no call waits longer than the remaining budget of the hook, and none is retried within a hook.
"""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import Self

import httpx

from souvenir_client.calls import Address, trusted
from souvenir_client.hooks.budget import Budget
from souvenir_client.sync.api.context import ContextOperations
from souvenir_client.sync.api.extraction import ExtractionOperations
from souvenir_client.sync.api.messages import MessagesOperations
from souvenir_client.sync.transport import Transport

LEAST_TIMEOUT_S = 0.01

UNKNOWN_AGENT = "agent_not_found"
"""Error code for a project without stored data."""


class Service:
    """The groups for an agent.

    :param url: None for the address in the environment, or the default.
    :raises ValueError: If the address is invalid.
    """

    def __init__(self, url: str | None, api_key: str | None, agent: str, budget: Budget) -> None:
        self._address = Address.of(url, api_key, None, max(LEAST_TIMEOUT_S, budget.wait_s), max_retries=0)
        self._agent, self._budget = agent, budget
        self._http = httpx.Client(verify=trusted(self._address.url))

    @property
    def context(self) -> ContextOperations:
        return ContextOperations(self._transport())

    @property
    def messages(self) -> MessagesOperations:
        return MessagesOperations(self._transport())

    @property
    def extraction(self) -> ExtractionOperations:
        return ExtractionOperations(self._transport(self._agent))

    def _transport(self, namespace: str | None = None) -> Transport:
        left_s = max(LEAST_TIMEOUT_S, round(self._budget.wait_s, 2))
        return Transport(self._http, replace(self._address, namespace=namespace, timeout_s=left_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()
