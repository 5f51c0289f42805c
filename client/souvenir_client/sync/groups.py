"""The operations of the HTTP API by what they are about; each group is an attribute of the client."""

from __future__ import annotations

import time
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from souvenir_client.errors import TimedOut
from souvenir_client.records import ExtractJob, JobRecord
from souvenir_client.sync.api import (
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

UNFINISHED = frozenset({"queued", "running"})
POLL_S = 0.2
LONGEST_POLL_S = 2.0

Job = TypeVar("Job", ExtractJob, JobRecord)


def _finished(get: Callable[[str], Job], job_id: str, timeout_s: float, url: str) -> Job:
    end, pause_s = monotonic() + timeout_s, POLL_S
    while (job := get(job_id)).status in UNFINISHED:
        if monotonic() + pause_s > end:
            raise TimedOut(url, timeout_s)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_POLL_S)
    return job


class Agents(agents.Agents, privacy.AgentsOfPrivacy):
    """Agents, their users and what they may keep."""


class Audit(audit.Audit):
    """Who did what."""


class Backups(backup.BackupsOfBackup):
    """Copies of the whole database."""


class Snapshots(backup.SnapshotsOfBackup):
    """Backups that clients make and go back to."""


class Blocks(blocks.Blocks):
    """Labelled texts that are always in an agent's context."""


class Concepts(concepts.Concepts):
    """What an agent talks about, and what is said of it."""


class Conflicts(conflicts.Conflicts):
    """Memories that contradict each other."""


class Context(context.Context):
    """What a prompt needs of an agent's memory."""


class Extraction(extraction.Extraction):
    """Learning from conversations."""

    def wait(self, job_id: str, *, timeout_s: float = 120.0) -> ExtractJob:
        """The extraction when it is finished, failed or cancelled.

        :raises TimedOut: If it is not by then; it goes on.
        """
        return _finished(self.get, job_id, timeout_s, self._transport.address.url)


class ExtractionProfiles(extraction_profiles.ExtractionProfiles):
    """How sources below a prefix are learned from."""


class Facts(facts.Facts):
    """What memories say, one statement each."""


class Figures(figures.Figures):
    """What is stored and what is done."""


class Graph(graph.Graph):
    """The knowledge graph: entities with observations, and relations between them."""


class Locrits(locrits.Locrits):
    """Agents by the name and on the routes of Locrits."""


class Health(health.Health):
    """Whether the service answers."""


class Jobs(jobs.Jobs):
    """Work that takes longer than a request."""

    def wait(self, job_id: str, *, timeout_s: float = 120.0) -> JobRecord:
        """The job when it is completed, failed or cancelled.

        :raises TimedOut: If it is not by then; it goes on.
        """
        return _finished(self.get, job_id, timeout_s, self._transport.address.url)


class Keys(keys.Keys):
    """Who may do what."""


class Links(links.Links):
    """Links between memories."""


class LongTerm(tiers.LongTermOfTiers):
    """What is remembered of a user under a key."""


class Maintenance(maintenance.Maintenance, transfer.MaintenanceOfTransfer):
    """Tending the store."""


class Memories(
    write.MemoriesOfWrite,
    search.MemoriesOfSearch,
    read.MemoriesOfRead,
    replace.MemoriesOfReplace,
    delete.MemoriesOfDelete,
    duplicates.MemoriesOfDuplicates,
):
    """Texts that somebody stored or an extraction decided."""


class Messages(messages.Messages, agents.MessagesOfAgents):
    """What was said with an agent."""


class Preferences(tiers.PreferencesOfTiers):
    """What users prefer."""


class Privacy(privacy.Privacy):
    """Redaction and erasure."""


class Sessions(messages.SessionsOfMessages, agents.SessionsOfAgents, tiers.SessionsOfTiers):
    """Conversations, and the window of the running one."""


class Tags(tags.Tags):
    """The tags of memories."""


class Transfer(transfer.Transfer):
    """Memories out of the service and into it."""
