"""The groups of operations; each is an attribute of the client."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Protocol, TypeVar

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
    events,
    extraction,
    extraction_profiles,
    facts,
    figures,
    folders,
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
    webhooks,
    write,
)
from souvenir_client.errors import TimedOut
from souvenir_client.records import ExtractJob, JobRecord

UNFINISHED = frozenset({"queued", "running"})
POLL_S = 0.2
LONGEST_POLL_S = 2.0

Job = TypeVar("Job", ExtractJob, JobRecord, covariant=True)


class _Jobs(Protocol[Job]):
    async def get(self, job_id: str) -> Job: ...


async def _finished(jobs: _Jobs[Job], job_id: str, timeout_s: float, url: str) -> Job:
    end, pause_s = monotonic() + timeout_s, POLL_S
    while (job := await jobs.get(job_id)).status in UNFINISHED:
        if monotonic() + pause_s > end:
            raise TimedOut(url, timeout_s)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_POLL_S)
    return job


class AsyncAgents(agents.AsyncAgentsOperations, privacy.AsyncAgentsOfPrivacy):
    """Agents, their users, access levels and retention policies."""


class AsyncAudit(audit.AsyncAuditOperations):
    """The audit log."""


class AsyncBackups(backup.AsyncBackupsOfBackup):
    """Backups of the whole database."""


class AsyncSnapshots(backup.AsyncSnapshotsOfBackup):
    """Snapshots: backups that clients create and restore."""


class AsyncCloudSync(backup.AsyncCloudSyncOfBackup):
    """Cloud sync: copies of backups in an S3-compatible bucket."""


class AsyncBlocks(blocks.AsyncBlocksOperations):
    """Labelled texts that are always part of an agent's context."""


class AsyncConcepts(concepts.AsyncConceptsOperations):
    """The concepts that an agent's messages and memories mention."""


class AsyncConflicts(conflicts.AsyncConflictsOperations):
    """Memories that contradict each other."""


class AsyncContext(context.AsyncContextOperations):
    """The context of a prompt, built from an agent's memory."""


class AsyncExtraction(extraction.AsyncExtractionOperations):
    """Extraction of memories from conversations."""

    async def wait(self, job_id: str, *, timeout_s: float = 120.0) -> ExtractJob:
        """Wait until the extraction is completed, failed or cancelled.

        :raises TimedOut: If it is still running then; it continues.
        """
        return await _finished(self, job_id, timeout_s, self._transport.address.url)


class AsyncExtractionProfiles(extraction_profiles.AsyncExtractionProfilesOperations):
    """Extraction settings for the sources below a path prefix."""


class AsyncFacts(facts.AsyncFactsOperations):
    """The facts of memories: one statement each."""


class AsyncFolders(folders.AsyncFoldersOperations):
    """Folders of memories: the first segments of their sources."""


class AsyncFigures(figures.AsyncFiguresOperations):
    """Statistics: contents, usage and metrics."""


class AsyncGraph(graph.AsyncGraphOperations):
    """The knowledge graph: entities with observations, and relations between them."""


class AsyncLocrits(locrits.AsyncLocritsOperations):
    """The routes of Locrits, which address an agent by name."""


class AsyncHealth(health.AsyncHealthOperations):
    """Health of the service."""


class AsyncJobs(jobs.AsyncJobsOperations):
    """Background jobs."""

    async def wait(self, job_id: str, *, timeout_s: float = 120.0) -> JobRecord:
        """Wait until the job is completed, failed or cancelled.

        :raises TimedOut: If it is still running then; it continues.
        """
        return await _finished(self, job_id, timeout_s, self._transport.address.url)


class AsyncKeys(keys.AsyncKeysOperations):
    """API keys."""


class AsyncLinks(links.AsyncLinksOperations):
    """Links between memories."""


class AsyncLongTerm(tiers.AsyncLongTermOfTiers):
    """Key-value memories of a user."""


class AsyncMaintenance(maintenance.AsyncMaintenanceOperations, transfer.AsyncMaintenanceOfTransfer):
    """Maintenance of the store."""


class AsyncMemories(
    write.AsyncMemoriesOfWrite,
    search.AsyncMemoriesOfSearch,
    read.AsyncMemoriesOfRead,
    replace.AsyncMemoriesOfReplace,
    delete.AsyncMemoriesOfDelete,
    duplicates.AsyncMemoriesOfDuplicates,
):
    """Memories: texts that a caller or an extraction stored."""


class AsyncMessages(messages.AsyncMessagesOperations, agents.AsyncMessagesOfAgents):
    """The messages of an agent."""


class AsyncPreferences(tiers.AsyncPreferencesOfTiers):
    """Preferences of users."""


class AsyncPrivacy(privacy.AsyncPrivacyOperations):
    """Redaction and erasure."""


class AsyncSessions(messages.AsyncSessionsOfMessages, agents.AsyncSessionsOfAgents, tiers.AsyncSessionsOfTiers):
    """Sessions, and the working memory of the active one."""


class AsyncTags(tags.AsyncTagsOperations):
    """The tags of memories."""


class AsyncEvents(events.AsyncEventsOperations):
    """The last changes, and a stream of new ones."""


class AsyncTransfer(transfer.AsyncTransferOperations):
    """Export and import of memories."""


class AsyncWebhooks(webhooks.AsyncWebhooksOperations):
    """Addresses that get the events of the feed."""
