"""The client: every operation of the HTTP API in groups, and the methods that memory SDKs have in common."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx

from souvenir_client.aio import groups
from souvenir_client.aio.memory_methods import AsyncMemoryMethods
from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import Address, trusted


class AsyncSouvenir(AsyncMemoryMethods):
    """A client of one service. It is safe to share between concurrent callers.

    Each attribute is a group of operations. An argument that is not given takes the service's default; None is sent as
    null. Calls that create something send an Idempotency-Key where the service supports one, so that a retry after a
    lost response does not create it twice.

    :param server_url: Address of the service. Default: SOUVENIR_URL or MEMORY_SERVER_URL of the environment, then the
        saved address, then http://127.0.0.1:8900.
    :param api_key: Default: SOUVENIR_API_KEY, then the saved key.
    :param namespace: Namespace of the calls that name no agent. Default: the namespace of the key, then `default`.
    :param timeout_s: Limit for connecting, and for each wait for the next part of a response.
    :param max_retries: How often a call is repeated after a transient failure, if it is safe to repeat.
    :raises ValueError: If `server_url` is not an HTTP address.
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
        self.cloud_sync = groups.AsyncCloudSync(transport)
        self.concepts = groups.AsyncConcepts(transport)
        self.conflicts = groups.AsyncConflicts(transport)
        self.context = groups.AsyncContext(transport)
        self.extraction = groups.AsyncExtraction(transport)
        self.extraction_profiles = groups.AsyncExtractionProfiles(transport)
        self.facts = groups.AsyncFacts(transport)
        self.figures = groups.AsyncFigures(transport)
        self.folders = groups.AsyncFolders(transport)
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
        self.events = groups.AsyncEvents(transport)
        self.transfer = groups.AsyncTransfer(transport)
        self.webhooks = groups.AsyncWebhooks(transport)

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
