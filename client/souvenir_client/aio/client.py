"""AsyncSouvenir: the whole HTTP API, a group an attribute, and on top the verbs that memory SDKs share."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx

from souvenir_client.aio import groups
from souvenir_client.aio.shapes import AsyncShapes
from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import Address, trusted


class AsyncSouvenir(AsyncShapes):
    """A client of one service; may be used by many callers at once.

        async with AsyncSouvenir(namespace="team-a") as souvenir:
            await souvenir.memories.add(text="Alice leads billing.", source="team/billing")
            found = await souvenir.memories.search(query="who leads billing?")
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
        self._join(AsyncTransport(httpx.AsyncClient(timeout=timeout_s, verify=trusted(address.url)), address))

    def _join(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self.agents = groups.AsyncAgents(transport)
        self.audit = groups.AsyncAudit(transport)
        self.backups = groups.AsyncBackups(transport)
        self.blocks = groups.AsyncBlocks(transport)
        self.concepts = groups.AsyncConcepts(transport)
        self.conflicts = groups.AsyncConflicts(transport)
        self.context = groups.AsyncContext(transport)
        self.extraction = groups.AsyncExtraction(transport)
        self.extraction_profiles = groups.AsyncExtractionProfiles(transport)
        self.facts = groups.AsyncFacts(transport)
        self.figures = groups.AsyncFigures(transport)
        self.graph = groups.AsyncGraph(transport)
        self.locrits = groups.AsyncLocrits(transport)
        self.health = groups.AsyncHealth(transport)
        self.jobs = groups.AsyncJobs(transport)
        self.keys = groups.AsyncKeys(transport)
        self.links = groups.AsyncLinks(transport)
        self.long_term = groups.AsyncLongTerm(transport)
        self.maintenance = groups.AsyncMaintenance(transport)
        self.memories = groups.AsyncMemories(transport)
        self.messages = groups.AsyncMessages(transport)
        self.preferences = groups.AsyncPreferences(transport)
        self.privacy = groups.AsyncPrivacy(transport)
        self.sessions = groups.AsyncSessions(transport)
        self.snapshots = groups.AsyncSnapshots(transport)
        self.tags = groups.AsyncTags(transport)
        self.transfer = groups.AsyncTransfer(transport)

    @property
    def server_url(self) -> str:
        return self._transport.address.url

    def in_namespace(self, namespace: str | None) -> Self:
        """The same client for another namespace; closing either closes both."""
        other = object.__new__(type(self))
        address = self._transport.address
        other._join(AsyncTransport(self._transport.http, address.in_namespace(namespace)))
        return other

    async def aclose(self) -> None:
        await self._transport.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
