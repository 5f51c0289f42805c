"""Souvenir: the whole HTTP API, a group an attribute, and on top the verbs that memory SDKs share."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx

from souvenir_client.calls import Address, trusted
from souvenir_client.sync import groups
from souvenir_client.sync.shapes import Shapes
from souvenir_client.sync.transport import Transport


class Souvenir(Shapes):
    """A client of one service; may be used by many callers at once.

        with Souvenir(namespace="team-a") as souvenir:
            souvenir.memories.add(text="Alice leads billing.", source="team/billing")
            found = souvenir.memories.search(query="who leads billing?")
            print(found.results[0].text)

    Each attribute is a group of operations; arguments that are not given are left to the service's defaults, and None
    is null. What makes something carries an Idempotency-Key where the service takes one, so that it can be sent again
    after a lost answer without being done twice.

    :param server_url: SOUVENIR_URL or MEMORY_SERVER_URL of the environment unless given, else the saved address,
        else http://127.0.0.1:8900.
    :param api_key: SOUVENIR_API_KEY unless given, else the saved key.
    :param namespace: Which one the calls are about; that of the key, else `default`. Calls that name an agent are about
        the agent's.
    :param timeout_s: For each attempt of a call: to be connected, and from one piece of the answer to the next.
    :param max_retries: How often a call is sent again that failed in passing and may be sent again.
    :raises ValueError: If the address is none.
    """

    def __init__(
        self,
        server_url: str | None = None,
        *,
        api_key: str | None = None,
        namespace: str | None = None,
        timeout_s: float = 30.0,
        max_retries: int = 2,
    ) -> None:
        address = Address.of(server_url, api_key, namespace, timeout_s, max_retries)
        self._join(Transport(httpx.Client(timeout=timeout_s, verify=trusted(address.url)), address))

    def _join(self, transport: Transport) -> None:
        self._transport = transport
        self.agents = groups.Agents(transport)
        self.audit = groups.Audit(transport)
        self.backups = groups.Backups(transport)
        self.blocks = groups.Blocks(transport)
        self.concepts = groups.Concepts(transport)
        self.conflicts = groups.Conflicts(transport)
        self.context = groups.Context(transport)
        self.extraction = groups.Extraction(transport)
        self.extraction_profiles = groups.ExtractionProfiles(transport)
        self.facts = groups.Facts(transport)
        self.figures = groups.Figures(transport)
        self.graph = groups.Graph(transport)
        self.locrits = groups.Locrits(transport)
        self.health = groups.Health(transport)
        self.jobs = groups.Jobs(transport)
        self.keys = groups.Keys(transport)
        self.links = groups.Links(transport)
        self.long_term = groups.LongTerm(transport)
        self.maintenance = groups.Maintenance(transport)
        self.memories = groups.Memories(transport)
        self.messages = groups.Messages(transport)
        self.preferences = groups.Preferences(transport)
        self.privacy = groups.Privacy(transport)
        self.sessions = groups.Sessions(transport)
        self.snapshots = groups.Snapshots(transport)
        self.tags = groups.Tags(transport)
        self.transfer = groups.Transfer(transport)

    @property
    def server_url(self) -> str:
        return self._transport.address.url

    def in_namespace(self, namespace: str | None) -> Self:
        """The same client for another namespace; closing either closes both."""
        other = object.__new__(type(self))
        address = self._transport.address
        other._join(Transport(self._transport.http, address.in_namespace(namespace)))
        return other

    def close(self) -> None:
        self._transport.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
