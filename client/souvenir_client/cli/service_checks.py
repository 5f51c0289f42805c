"""The checks of `souvenir doctor` for the service itself, with the permissions of the key.

Only `round_trip` changes something, and deletes its memory afterwards. A check does not raise: an error is its finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from time import perf_counter
from uuid import uuid4

from souvenir_client import Souvenir, __version__
from souvenir_client.cli.connection_checks import Finding, Status, is_loopback
from souvenir_client.cli.keys import described
from souvenir_client.cli.output import counted
from souvenir_client.errors import ApiError, NotFound, ServerFailed, SouvenirError, Unauthorized
from souvenir_client.records import HealthResponse, OwnKeyResponse

FAMILY = "memories"
"""The name of the service in `/health`."""

TOLERATED_BACKUP_LAG_S = 2 * 24 * 3600.0
"""The service makes a backup every 24 hours if there are changes."""

NOTHING_LEARNED = "Nothing is extracted from conversations:"
WITHOUT_A_MODEL = "Memories are extracted from conversations without a language model; to use one,"
PROVIDER_SETTING = "EXTRACT_PROVIDER of the service to anthropic, openai or ollama"
PROBE_SOURCE = "souvenir-doctor"

Check = Callable[[Souvenir], Finding]


def examined(client: Souvenir, *, sends_key: bool, write: bool) -> Iterator[Finding]:
    """All checks of a service that answers, without those that would only repeat a failure."""
    identity, health = identified(client)
    yield identity
    if health is None:
        return
    yield _finding(client, "ready", readiness)
    reach, own = reach_of_key(client, sends_key=sends_key)
    yield reach
    if own is None:
        return
    yield _finding(client, "search", searching)
    yield _finding(client, "extraction", extraction)
    if own.role == "admin":
        yield _finding(client, "storage", storage)
        yield _finding(client, "backups", backups)
    if write:
        yield _finding(client, "write", lambda client: round_trip(client, own))


def _finding(client: Souvenir, name: str, check: Check) -> Finding:
    try:
        return check(client)
    except SouvenirError as error:
        return Finding(name, Status.FAILED, str(error))


def identified(client: Souvenir) -> tuple[Finding, HealthResponse | None]:
    """Identity and version of the service."""
    try:
        health = client.health.check()
    except ApiError as error:
        other = f"The program at this address is not Souvenir ({error.detail}): set another address with --server."
        # An error without a code is not the service's own.
        return Finding("service", Status.FAILED, error.detail if error.code else other), None
    except SouvenirError as error:
        return Finding("service", Status.FAILED, str(error)), None
    if health.service != FAMILY:
        message = f"The service is {health.service!r}, not Souvenir: set another address with --server."
        return Finding("service", Status.FAILED, message), None
    if health.version.partition(".")[0] != __version__.partition(".")[0]:
        message = f"The service is {health.version} and this client {__version__}: update the older one."
        return Finding("service", Status.WARNING, message), health
    return Finding("service", Status.OK, f"Souvenir {health.version}."), health


def readiness(client: Souvenir) -> Finding:
    """Check that the index contains all memories."""
    try:
        ready = client.health.ready()
    except ServerFailed:
        message = "The service is not ready: model and index are still loading, or loading failed; see its log."
        return Finding("ready", Status.FAILED, message)
    if ready.index_count != ready.record_count:
        message = (
            f"The index holds {ready.index_count} of {ready.record_count} memories: retry, then restart the service."
        )
        return Finding("ready", Status.WARNING, message)
    return Finding("ready", Status.OK, "Model and index are loaded.")


def reach_of_key(client: Souvenir, *, sends_key: bool) -> tuple[Finding, OwnKeyResponse | None]:
    """The permissions of the key, or that one is missing."""
    try:
        own = client.keys.me()
    except Unauthorized as error:
        missing = "A key is required: set SOUVENIR_API_KEY or --api-key."
        message = f"The key was refused: {error.detail}" if sends_key else missing
        return Finding("key", Status.FAILED, message), None
    except SouvenirError as error:
        return Finding("key", Status.FAILED, str(error)), None
    if own.type == "none" and not is_loopback(client.server_url):
        message = "Every caller is admin: set API_KEY of the service, or create keys (souvenir keys create)."
        return Finding("key", Status.WARNING, message), own
    return Finding("key", Status.OK, described(own)), own


def searching(client: Souvenir) -> Finding:
    """Check that searches run by meaning and by words."""
    begin = perf_counter()
    found = client.memories.search(query="souvenir doctor", k=1)
    elapsed_ms = (perf_counter() - begin) * 1000
    if found.degraded:
        arms = ", ".join(found.degraded)
        message = f"Searches run without {arms}: see the log of the service for the reason."
        return Finding("search", Status.WARNING, message)
    return Finding("search", Status.OK, f"A search by meaning and by words took {elapsed_ms:.0f} ms.")


def extraction(client: Souvenir) -> Finding:
    """Check that memories are extracted from transcripts."""
    status = client.extraction.status()
    if not status.enabled:
        message = WITHOUT_A_MODEL if status.fallback_add_enabled else NOTHING_LEARNED
        return Finding("extraction", Status.OK, f"{message} set {PROVIDER_SETTING}.")
    if status.status != "healthy":
        message = f"{status.provider} with {status.model} is {status.status}: check the model."
        return Finding("extraction", Status.WARNING, message)
    if status.queue_remaining == 0:
        message = f"The queue is full with {status.queue_depth} extractions: add workers, or start fewer extractions."
        return Finding("extraction", Status.WARNING, message)
    return Finding(
        "extraction", Status.OK, f"{status.provider} with {status.model} answers; {status.queue_depth} in the queue."
    )


def storage(client: Souvenir) -> Finding:
    """Size and model of the store."""
    stats = client.figures.stats()
    size = (
        f"{counted(stats.total_memories, 'memory', 'memories')}, an index of {stats.index_size_bytes / 2**20:.1f} MiB"
    )
    return Finding("storage", Status.OK, f"{size}, vectors of {stats.model} ({stats.dimension} dimensions).")


def backups(client: Souvenir) -> Finding:
    """Check that the newest backup is recent enough."""
    stats, kept = client.figures.stats(), client.backups.list().backups
    if stats.last_updated is None:
        return Finding("backups", Status.OK, f"{_backups(len(kept))}; this namespace is empty.")
    if not kept:
        message = "There is no backup: create one (souvenir backup), and check that BACKUP_INTERVAL_HOURS is not 0."
        return Finding("backups", Status.WARNING, message)
    newest = max(kept, key=lambda one: one.created)
    lag_s = datetime.fromisoformat(stats.last_updated).timestamp() - newest.created
    if lag_s > TOLERATED_BACKUP_LAG_S:
        days = f"{lag_s / 86_400:.0f} days"
        message = f"{newest.name} is {days} older than the newest change: create a backup (souvenir backup)."
        return Finding("backups", Status.WARNING, message)
    return Finding("backups", Status.OK, f"{_backups(len(kept))}, the newest {newest.name}.")


def _backups(count: int) -> str:
    return counted(count, "backup", "backups")


def round_trip(client: Souvenir, own: OwnKeyResponse) -> Finding:
    """Store, read, search and delete a memory."""
    if own.role == "read-only":
        return Finding("write", Status.WARNING, "Nothing was written: the key is read-only.")
    source = "/".join([*(own.prefixes or [])[:1], PROBE_SOURCE])
    text = f"A probe of souvenir doctor, {uuid4().hex}."
    begin = perf_counter()
    stored = client.memories.add(text=text, source=source).id
    if stored is None:
        return Finding("write", Status.FAILED, "The probe was not stored, and the service gave no reason.")
    try:
        read = client.memories.get(stored).text == text
        found = client.memories.search(query=text, k=1, source_prefix=source, source_boundary=True).results
    finally:
        client.memories.delete(stored)
    elapsed_ms = (perf_counter() - begin) * 1000
    if not read or [hit.id for hit in found] != [stored]:
        message = "What was stored could not be found at once: see the log of the service, and restart it."
        return Finding("write", Status.FAILED, message)
    if _is_there(client, stored):
        return Finding(
            "write", Status.FAILED, f"Memory {stored} was deleted and still exists: see the log of the service."
        )
    return Finding("write", Status.OK, f"A memory was stored, found and deleted in {elapsed_ms:.0f} ms.")


def _is_there(client: Souvenir, memory_id: int) -> bool:
    try:
        client.memories.get(memory_id)
    except NotFound:
        return False
    return True
