"""The checks of the service itself, as the key at hand sees it: from whether it is one to what it has stored.

Nothing is changed but by `round_trip`, which takes its memory away again. No check fails with an error: what it meets
is its finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from time import perf_counter
from uuid import uuid4

from souvenir_client import Souvenir, __version__
from souvenir_client.cli.findings import Finding, Status
from souvenir_client.cli.keys import described
from souvenir_client.cli.output import counted
from souvenir_client.cli.reaching import is_loopback
from souvenir_client.errors import ApiError, NotFound, ServerFailed, SouvenirError, Unauthorized
from souvenir_client.records import HealthResponse, OwnKeyResponse

FAMILY = "memories"
"""What `/health` says of the service."""

TOLERATED_BACKUP_LAG_S = 2 * 24 * 3600.0
"""The service backs up every 24 hours what was changed."""

NOTHING_LEARNED = "Nothing is learned from conversations:"
WITHOUT_A_MODEL = "Conversations are learned from without a model; for one,"
PROVIDER_SETTING = "EXTRACT_PROVIDER of the service to anthropic, openai or ollama"
PROBE_SOURCE = "souvenir-doctor"

Check = Callable[[Souvenir], Finding]


def examined(client: Souvenir, *, sends_key: bool, write: bool) -> Iterator[Finding]:
    """Every check of a service that answers; those that would only repeat a failure are left out."""
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
    """Whether it is this service, and of which version."""
    try:
        health = client.health.check()
    except ApiError as error:
        other = f"What listens there is no Souvenir ({error.detail}): name another address with --server."
        # An error without a name is not the service's own.
        return Finding("service", Status.FAILED, error.detail if error.code else other), None
    except SouvenirError as error:
        return Finding("service", Status.FAILED, str(error)), None
    if health.service != FAMILY:
        message = f"This is no memory service but {health.service!r}: name another address with --server."
        return Finding("service", Status.FAILED, message), None
    if health.version.partition(".")[0] != __version__.partition(".")[0]:
        message = f"The service is {health.version} and this client {__version__}: bring the older one up to date."
        return Finding("service", Status.WARNING, message), health
    return Finding("service", Status.OK, f"It is Souvenir {health.version}."), health


def readiness(client: Souvenir) -> Finding:
    """Whether searches see all that is stored."""
    try:
        ready = client.health.ready()
    except ServerFailed:
        message = "It is not ready: model and index are being loaded or could not be, and its log says which."
        return Finding("ready", Status.FAILED, message)
    if ready.index_count != ready.record_count:
        message = f"The index holds {ready.index_count} of {ready.record_count} memories: ask again, then restart it."
        return Finding("ready", Status.WARNING, message)
    return Finding("ready", Status.OK, "Model and index are loaded.")


def reach_of_key(client: Souvenir, *, sends_key: bool) -> tuple[Finding, OwnKeyResponse | None]:
    """What the key may do, or whether one is missing."""
    try:
        own = client.keys.me()
    except Unauthorized as error:
        missing = "A key is needed: give it with SOUVENIR_API_KEY or --api-key."
        message = f"The key is not accepted: {error.detail}" if sends_key else missing
        return Finding("key", Status.FAILED, message), None
    except SouvenirError as error:
        return Finding("key", Status.FAILED, str(error)), None
    if own.type == "none" and not is_loopback(client.server_url):
        message = "Everyone who can connect is admin: set API_KEY of the service, or make keys (souvenir keys create)."
        return Finding("key", Status.WARNING, message), own
    return Finding("key", Status.OK, described(own)), own


def searching(client: Souvenir) -> Finding:
    """Whether both arms of a search run."""
    begin = perf_counter()
    found = client.memories.search(query="souvenir doctor", k=1)
    elapsed_ms = (perf_counter() - begin) * 1000
    if found.degraded:
        arms = ", ".join(found.degraded)
        message = f"Searches run without {arms}: see in its log why the model for it does not answer."
        return Finding("search", Status.WARNING, message)
    return Finding("search", Status.OK, f"A search by meaning and by words took {elapsed_ms:.0f} ms.")


def extraction(client: Souvenir) -> Finding:
    """Whether transcripts are learned from."""
    status = client.extraction.status()
    if not status.enabled:
        message = WITHOUT_A_MODEL if status.fallback_add_enabled else NOTHING_LEARNED
        return Finding("extraction", Status.OK, f"{message} set {PROVIDER_SETTING}.")
    if status.status != "healthy":
        message = f"{status.provider} with {status.model} is {status.status}: look whether that model answers."
        return Finding("extraction", Status.WARNING, message)
    if status.queue_remaining == 0:
        message = f"{status.queue_depth} extractions wait and no more are taken: give it more workers or fewer tasks."
        return Finding("extraction", Status.WARNING, message)
    return Finding(
        "extraction", Status.OK, f"{status.provider} with {status.model} answers; {status.queue_depth} wait."
    )


def storage(client: Souvenir) -> Finding:
    """What is stored, and by which model."""
    stats = client.figures.stats()
    size = (
        f"{counted(stats.total_memories, 'memory', 'memories')}, an index of {stats.index_size_bytes / 2**20:.1f} MiB"
    )
    return Finding("storage", Status.OK, f"{size}, vectors of {stats.model} ({stats.dimension} dimensions).")


def backups(client: Souvenir) -> Finding:
    """Whether the newest backup holds what was changed before yesterday."""
    stats, kept = client.figures.stats(), client.backups.list().backups
    if stats.last_updated is None:
        return Finding("backups", Status.OK, f"{_backups(len(kept))}; nothing is stored in this namespace.")
    if not kept:
        message = "There is no backup: make one (souvenir backup), and see that BACKUP_INTERVAL_HOURS is not 0."
        return Finding("backups", Status.WARNING, message)
    newest = max(kept, key=lambda one: one.created)
    lag_s = datetime.fromisoformat(stats.last_updated).timestamp() - newest.created
    if lag_s > TOLERATED_BACKUP_LAG_S:
        message = (
            f"{newest.name} is {lag_s / 86_400:.0f} days older than the newest change: make one (souvenir backup)."
        )
        return Finding("backups", Status.WARNING, message)
    return Finding("backups", Status.OK, f"{_backups(len(kept))}, the newest {newest.name}.")


def _backups(count: int) -> str:
    return counted(count, "backup", "backups")


def round_trip(client: Souvenir, own: OwnKeyResponse) -> Finding:
    """Store a memory, read it, find it, and forget it."""
    if own.role == "read-only":
        return Finding("write", Status.WARNING, "Nothing was written, since the key is read-only.")
    source = "/".join([*(own.prefixes or [])[:1], PROBE_SOURCE])
    text = f"A probe of souvenir doctor, {uuid4().hex}."
    begin = perf_counter()
    stored = client.memories.add(text=text, source=source).id
    if stored is None:
        return Finding("write", Status.FAILED, "The probe was not stored, and the service did not say why.")
    try:
        read = client.memories.get(stored).text == text
        found = client.memories.search(query=text, k=1, source_prefix=source, source_boundary=True).results
    finally:
        client.memories.delete(stored)
    elapsed_ms = (perf_counter() - begin) * 1000
    if not read or [hit.id for hit in found] != [stored]:
        message = "What was stored could not be found at once: see its log, and restart it."
        return Finding("write", Status.FAILED, message)
    if _is_there(client, stored):
        return Finding("write", Status.FAILED, f"Memory {stored} was forgotten and is still there: see its log.")
    return Finding("write", Status.OK, f"A memory was stored, found and forgotten in {elapsed_ms:.0f} ms.")


def _is_there(client: Souvenir, memory_id: int) -> bool:
    try:
        client.memories.get(memory_id)
    except NotFound:
        return False
    return True
