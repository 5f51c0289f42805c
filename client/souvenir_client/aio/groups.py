"""The operations of the HTTP API by what they are about; each group is an attribute of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from souvenir_client.aio.api import (
    agents,
    audit,
    backup,
    blocks,
    concepts,
    conflicts,
    context,
    delete,
    duplicates,
    extraction,
    extraction_profiles,
    facts,
    figures,
    graph,
    health,
    jobs,
    keys,
    links,
    locrits,
    maintenance,
    messages,
    privacy,
    read,
    replace,
    search,
    tags,
    tiers,
    transfer,
    write,
)
from souvenir_client.errors import TimedOut
from souvenir_client.records import ExtractJob, JobRecord

UNFINISHED = frozenset({"queued", "running"})
POLL_S = 0.2
LONGEST_POLL_S = 2.0

Job = TypeVar("Job", ExtractJob, JobRecord)


async def _finished(get: Callable[[str], Awaitable[Job]], job_id: str, timeout_s: float, url: str) -> Job:
    end, pause_s = monotonic() + timeout_s, POLL_S
    while (job := await get(job_id)).status in UNFINISHED:
        if monotonic() + pause_s > end:
            raise TimedOut(url, timeout_s)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_POLL_S)
    return job


class AsyncAgents(agents.AsyncAgents, privacy.AsyncAgentsOfPrivacy):
    """Agents, their users and what they may keep."""


class AsyncAudit(audit.AsyncAudit):
    """Who did what."""


class AsyncBackups(backup.AsyncBackupsOfBackup):
    """Copies of the whole database."""


class AsyncSnapshots(backup.AsyncSnapshotsOfBackup):
    """Backups that clients make and go back to."""


class AsyncBlocks(blocks.AsyncBlocks):
    """Labelled texts that are always in an agent's context."""


class AsyncConcepts(concepts.AsyncConcepts):
    """What an agent talks about, and what is said of it."""


class AsyncConflicts(conflicts.AsyncConflicts):
    """Memories that contradict each other."""


class AsyncContext(context.AsyncContext):
    """What a prompt needs of an agent's memory."""


class AsyncExtraction(extraction.AsyncExtraction):
    """Learning from conversations."""

    async def wait(self, job_id: str, *, timeout_s: float = 120.0) -> ExtractJob:
        """The extraction when it is finished, failed or cancelled.

        :raises TimedOut: If it is not by then; it goes on.
        """
        return await _finished(self.get, job_id, timeout_s, self._transport.address.url)


class AsyncExtractionProfiles(extraction_profiles.AsyncExtractionProfiles):
    """How sources below a prefix are learned from."""


class AsyncFacts(facts.AsyncFacts):
    """What memories say, one statement each."""


class AsyncFigures(figures.AsyncFigures):
    """What is stored and what is done."""


class AsyncGraph(graph.AsyncGraph):
    """The knowledge graph: entities with observations, and relations between them."""


class AsyncLocrits(locrits.AsyncLocrits):
    """Agents by the name and on the routes of Locrits."""


class AsyncHealth(health.AsyncHealth):
    """Whether the service answers."""


class AsyncJobs(jobs.AsyncJobs):
    """Work that takes longer than a request."""

    async def wait(self, job_id: str, *, timeout_s: float = 120.0) -> JobRecord:
        """The job when it is completed, failed or cancelled.

        :raises TimedOut: If it is not by then; it goes on.
        """
        return await _finished(self.get, job_id, timeout_s, self._transport.address.url)


class AsyncKeys(keys.AsyncKeys):
    """Who may do what."""


class AsyncLinks(links.AsyncLinks):
    """Links between memories."""


class AsyncLongTerm(tiers.AsyncLongTermOfTiers):
    """What is remembered of a user under a key."""


class AsyncMaintenance(maintenance.AsyncMaintenance, transfer.AsyncMaintenanceOfTransfer):
    """Tending the store."""


class AsyncMemories(
    write.AsyncMemoriesOfWrite,
    search.AsyncMemoriesOfSearch,
    read.AsyncMemoriesOfRead,
    replace.AsyncMemoriesOfReplace,
    delete.AsyncMemoriesOfDelete,
    duplicates.AsyncMemoriesOfDuplicates,
):
    """Texts that somebody stored or an extraction decided."""


class AsyncMessages(messages.AsyncMessages, agents.AsyncMessagesOfAgents):
    """What was said with an agent."""


class AsyncPreferences(tiers.AsyncPreferencesOfTiers):
    """What users prefer."""


class AsyncPrivacy(privacy.AsyncPrivacy):
    """Redaction and erasure."""


class AsyncSessions(messages.AsyncSessionsOfMessages, agents.AsyncSessionsOfAgents, tiers.AsyncSessionsOfTiers):
    """Conversations, and the window of the running one."""


class AsyncTags(tags.AsyncTags):
    """The tags of memories."""


class AsyncTransfer(transfer.AsyncTransfer):
    """Memories out of the service and into it."""
