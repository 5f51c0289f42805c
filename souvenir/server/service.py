"""The wiring of a running service: engine, models, jobs, access and metrics, and the thread that loads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from threading import Event, Thread

import structlog

from souvenir import VERSION
from souvenir.access.audit import AuditLog
from souvenir.access.authenticator import Authenticator, FailedAttempts
from souvenir.access.first_key import require_first_key
from souvenir.access.keys import ApiKeys
from souvenir.conversations.agent_search import AgentSearch
from souvenir.conversations.agents import Agents
from souvenir.conversations.blocks import Blocks
from souvenir.conversations.context import Contexts
from souvenir.conversations.documents import Documents
from souvenir.conversations.messages import Conversations
from souvenir.conversations.pending_index import index_all_pending
from souvenir.conversations.privacy_rescan import PrivacyRescan
from souvenir.conversations.sessions import Sessions
from souvenir.conversations.tiers import Tiers
from souvenir.conversations.verification import Verification
from souvenir.core.errors import Forbidden
from souvenir.core.process_memory import MemoryTrim
from souvenir.core.quotas import quotas_of_text
from souvenir.core.settings import Settings
from souvenir.core.stored_json import to_json
from souvenir.core.telemetry import Instruments, Tracing
from souvenir.core.types import UNLIMITED, Embedder, LoadableEmbedder, Reranker, Role, Scope
from souvenir.events.feed import EventFeed, FeedRetention, filter_of
from souvenir.events.streams import EventStreams
from souvenir.events.webhook_addresses import AddressPolicy
from souvenir.events.webhooks import Webhooks
from souvenir.jobs.handler import JobHandler
from souvenir.jobs.worker import Jobs
from souvenir.knowledge.model_claims import ModelClaims
from souvenir.knowledge.services import KnowledgeServices
from souvenir.learning.extraction import Extraction
from souvenir.memories.deduplication import Deduplication
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.erasure import Erasure
from souvenir.memories.feedback import Feedback
from souvenir.memories.links import Links
from souvenir.memories.maintenance import MaintenanceServices
from souvenir.memories.model_follower import ModelFollower
from souvenir.memories.model_owner import ModelOwner
from souvenir.memories.reembedding import ACTOR, MakeEmbedder, Reembedding, chosen_model
from souvenir.memories.removals import Removals
from souvenir.memories.tags import Tags
from souvenir.models.embedding.factory import embedder_of
from souvenir.models.embedding.specs import ModelSpec
from souvenir.models.llm.provider import LLMProvider, provider_of
from souvenir.models.reranking.onnx_reranker import reranker_of
from souvenir.server.admission import Admission
from souvenir.server.job_responses import LongWork
from souvenir.server.load_shedding import BodyMemory, WorkerThreads
from souvenir.server.metrics import AdmissionCollector, Metrics, StoreCollector, add_collectors
from souvenir.server.search_statistics import SearchStatistics
from souvenir.server.usage import Usage
from souvenir.store.admin.events import EventFilter
from souvenir.store.admin.jobs import lane_of
from souvenir.sync.cloud_sync import CloudSync
from souvenir.transfer.lines import ImportFormat
from souvenir.transfer.services import TransferServices

LOADING_TIMEOUT_S = 30.0
"""How long closing waits for a model that is still loading."""

FIRST_RETRY_S, MAX_RETRY_S = 1.0, 60.0
"""The pauses before loading is tried again: the first, and the longest after each has been twice the one before."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Service:
    """Open with `Service.open`, which returns at once; the model and the first index are loaded in the background."""

    settings: Settings
    engine: MemoryEngine
    metrics: Metrics
    usage: Usage
    instruments: Instruments
    deduplication: Deduplication
    transfer: TransferServices
    jobs: Jobs
    erasure_jobs: Jobs
    reembedding_jobs: Jobs
    memory: MemoryTrim
    keys: ApiKeys
    authenticator: Authenticator
    audit: AuditLog
    admission: Admission
    bodies: BodyMemory
    threads: WorkerThreads
    model: ModelOwner
    reranker: Reranker | None
    reembedding: Reembedding
    agents: Agents
    agent_search: AgentSearch
    blocks: Blocks
    links: Links
    graph: KnowledgeServices
    conversations: Conversations
    contexts: Contexts
    sessions: Sessions
    tiers: Tiers
    removals: Removals
    erasure: Erasure
    maintenance: MaintenanceServices
    tags: Tags
    provider: LLMProvider | None
    extraction: Extraction
    model_claims: ModelClaims
    follower: ModelFollower = field(init=False)
    sync: CloudSync = field(init=False)
    feedback: Feedback = field(init=False)
    documents: Documents = field(init=False)
    searches: SearchStatistics = field(init=False)
    verification: Verification = field(init=False)
    events: EventFeed = field(init=False)
    streams: EventStreams = field(init=False)
    event_retention: FeedRetention = field(init=False)
    webhooks: Webhooks = field(init=False)
    long_work: LongWork = field(init=False)
    erasure_work: LongWork = field(init=False)
    reembedding_work: LongWork = field(init=False)
    extraction_work: LongWork = field(init=False)
    consolidation_work: LongWork = field(init=False)
    splitting_work: LongWork = field(init=False)
    model_claims_work: LongWork = field(init=False)
    sync_work: LongWork = field(init=False)
    loading: Thread | None = None
    closing: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.follower = ModelFollower(self.engine, self.model.make, self.model.adopt)
        self.webhooks = _webhooks(self.engine, self.settings, self.authenticator, self.instruments)
        self.feedback = Feedback(self.engine)
        self.documents = Documents(self.engine)
        self.searches = SearchStatistics(self.engine, self.usage)
        candidates = self.settings.rerank_candidates
        self.verification = Verification(self.engine, self.provider, self.reranker, candidates=candidates)
        self.events = EventFeed(self.engine)
        self.streams = EventStreams(
            self.events,
            most=self.settings.max_event_streams,
            max_s=self.settings.event_stream_max_s,
            keys_revision=lambda: self.keys.generation,
        )
        self.event_retention = FeedRetention(self.engine, retention_days=self.settings.events_retention_days)
        self.long_work = LongWork(self.jobs)
        self.erasure_work = LongWork(self.erasure_jobs)
        self.reembedding_work = LongWork(self.reembedding_jobs)
        self.extraction_work = LongWork(self.extraction.jobs)
        self.consolidation_work = LongWork(self.maintenance.consolidation.jobs)
        self.splitting_work = LongWork(self.engine.facts.queue.jobs)
        self.model_claims_work = LongWork(self.model_claims.jobs)
        self.sync = CloudSync(self.engine, self.settings)
        self.sync_work = LongWork(self.sync.jobs)

    @classmethod
    def open(
        cls,
        settings: Settings,
        import_format: ImportFormat,
        embedder: Embedder | None = None,
        make_embedder: MakeEmbedder | None = None,
    ) -> Service:
        """Open the store and wire the services.

        :param embedder: An embedder that the caller loads and closes; without it, the model of the store or settings.
        :param make_embedder: Makes the embedder of a spec; without it, the factory does.
        :raises StoreUnusable: If the data folder must not be opened.
        :raises RerankingUnavailable: If the configured cross-encoder cannot be used.
        :raises InvalidRequest: If the configured language model cannot be used.
        """
        instruments = Instruments(Tracing.to(settings.otel_exporter_otlp_endpoint, VERSION))
        make = make_embedder or partial(embedder_of, settings, instruments=instruments)
        serving, own, spec = _embedder_for(settings, make, embedder)
        reranker, provider = reranker_of(settings, instruments), provider_of(settings, instruments)
        engine = MemoryEngine.open(
            settings, serving, instruments, model_spec=spec, reranker=reranker, provider=provider
        )
        keys, authenticator = _keys_and_authenticator(engine, settings)
        model = ModelOwner(engine, make, ModelSpec.of(settings), own)
        deduplication, reembedding = Deduplication(engine), Reembedding(engine, make, model.adopt)
        transfer = TransferServices.open(engine, settings, import_format, provider)
        maintenance = MaintenanceServices.open(engine, provider, settings)
        erasure = Erasure(engine, on_jobs_gone=lambda: _notify_removed(jobs, *own_lanes))
        memory = MemoryTrim(cooldown_s=settings.memory_trim_cooldown_sec, enabled=settings.memory_trim_enabled)
        common: list[JobHandler] = [deduplication, PrivacyRescan(engine), *transfer.handlers, *maintenance.handlers]
        lane = partial(_lane, engine, settings, lambda: _after_jobs(transfer, memory))
        jobs, erasure_jobs, reembedding_jobs = lane(*common), lane(erasure), lane(reembedding)
        usage = Usage(engine, enabled=settings.usage_tracking)
        extraction = Extraction(engine, provider, settings, on_end=memory.ask, on_calls=usage.count_model_calls)
        _watch_queues(instruments, jobs=jobs, extract=extraction.jobs)
        model_claims = ModelClaims(engine, provider, settings)
        own_lanes = extraction.jobs, maintenance.consolidation.jobs, engine.facts.queue.jobs, model_claims.jobs
        admission, bodies = Admission(settings), BodyMemory(settings.body_memory_mb * 1024 * 1024)
        add_collectors(instruments.registry, (StoreCollector(engine), AdmissionCollector(admission, bodies)))
        conversations = Conversations(engine, idle=timedelta(minutes=settings.session_idle_minutes))
        service = cls(
            settings=settings,
            engine=engine,
            metrics=Metrics(instruments.registry),
            usage=usage,
            instruments=instruments,
            deduplication=deduplication,
            transfer=transfer,
            jobs=jobs,
            erasure_jobs=erasure_jobs,
            reembedding_jobs=reembedding_jobs,
            memory=memory,
            keys=keys,
            authenticator=authenticator,
            audit=AuditLog(engine, retention_days=settings.audit_retention_days),
            admission=admission,
            bodies=bodies,
            threads=WorkerThreads(admission.threads),
            model=model,
            reranker=reranker,
            reembedding=reembedding,
            agents=Agents(engine),
            agent_search=AgentSearch(engine, conversations),
            blocks=Blocks(engine),
            links=Links(engine),
            graph=KnowledgeServices.open(engine),
            conversations=conversations,
            contexts=Contexts.of(engine, conversations, settings),
            sessions=Sessions(engine),
            tiers=Tiers(engine, conversations=conversations, max_messages=settings.session_max_messages),
            removals=Removals(engine, on_jobs_gone=lambda: _notify_removed(jobs, *own_lanes)),
            erasure=erasure,
            maintenance=maintenance,
            tags=Tags(engine),
            provider=provider,
            extraction=extraction,
            model_claims=model_claims,
        )
        service._start()
        return service

    def stop_admitting(self) -> None:
        """Refuse waiting and new requests and end event streams; others continue. On the event loop only."""
        self.admission.close()
        self.streams.end_all()
        self.bodies.close()

    def close(self) -> None:
        """Finish acknowledged writes and close everything. The engine must not be used afterwards."""
        self.closing.set()
        self.streams.close()
        self.event_retention.close()
        self.removals.close()
        if self.provider is not None:
            # Calls to the model are not awaited; their jobs resume at the next start.
            self.provider.close()
        self.extraction.close()
        self.maintenance.consolidation.jobs.close()
        self.engine.facts.close()
        self.model_claims.close()
        self.sync.close()
        self.graph.close()
        self.webhooks.close()
        self.jobs.close()
        self.erasure_jobs.close()
        self.reembedding_jobs.close()
        self.memory.close()
        self.follower.close()
        if self.loading is not None:
            self.loading.join(LOADING_TIMEOUT_S)
        self.keys.close()
        self.audit.close()
        self.searches.close()
        self.usage.close()
        self.engine.close()
        self.model.close()
        if self.reranker is not None:
            self.reranker.close()
        self.threads.close()
        self.instruments.tracing.close()

    def _start(self) -> None:
        self.removals.start()
        self.event_retention.start()
        if self.engine.is_shared:
            self.follower.start()
        self.loading = Thread(target=self._load, name="souvenir-loading", daemon=True)
        self.loading.start()

    def _load(self) -> None:
        loaded = self._load_model(FIRST_RETRY_S)
        try:
            self.reembedding.clear_up()
            self.complete_vectors()
        except Exception:  # the boundary of a thread; retried at the next start
            log.exception("vectors_not_cleared_up")
        # Also without a model, since not every job needs one.
        self.jobs.start()
        self.erasure_jobs.start()
        self.reembedding_jobs.start()
        self.extraction.start()
        self.maintenance.consolidation.jobs.start()
        self.engine.facts.start()
        self.model_claims.start()
        self.sync.start()
        self.graph.start()
        self.webhooks.start()
        pause_s = FIRST_RETRY_S
        while not loaded and not self.closing.wait(pause_s):
            pause_s = min(2 * pause_s, MAX_RETRY_S)
            loaded = self._load_model(pause_s)
        try:
            index_all_pending(self.engine, stop=self.closing.is_set)
        except Exception:  # the boundary of a thread; retried at the next start of the service or of a session
            log.exception("messages_not_indexed")

    def _load_model(self, retry_s: float) -> bool:
        """Load the model and the first index; return False, with a log line, if that must be tried again."""
        try:
            self.model.load()
        except Exception:  # the boundary of a thread; /health/ready reports it
            log.exception("loading_failed", action=f"tried again in {retry_s:g} s")
            return False
        return True

    def complete_vectors(self) -> None:
        """Have missing token vectors made by a job, as those of an older release or in a restored backup."""
        self.reembedding.complete(self._submit_reembedding)

    def _submit_reembedding(self, spec: ModelSpec) -> None:
        self.reembedding_jobs.submit(Reembedding.kind, Scope(actor=ACTOR), {"spec": spec.to_json()})


def _embedder_for(
    settings: Settings, make: MakeEmbedder, given: Embedder | None
) -> tuple[Embedder, LoadableEmbedder | None, str | None]:
    """Return the given embedder, or one of the service with the spec of the store or of the settings."""
    if given is not None:
        return given, None, None
    own, chosen = chosen_model(settings, make)
    return own, own, to_json(chosen.to_json())


def _keys_and_authenticator(engine: MemoryEngine, settings: Settings) -> tuple[ApiKeys, Authenticator]:
    """:raises StoreUnusable: If the first key must be created and cannot be stored."""
    env_key = "" if settings.api_key is None else settings.api_key.get_secret_value()
    default_quotas = quotas_of_text(settings.key_quotas or "")
    keys = ApiKeys(engine, has_env_key=bool(env_key), default_quotas=default_quotas)
    if settings.serves_network and not (env_key or settings.allow_open):
        try:
            require_first_key(keys, settings.first_key_path)
        except BaseException:
            keys.close()
            engine.close()
            raise
    return keys, Authenticator(env_key, keys, FailedAttempts(limit=settings.auth_rate_limit))


def _webhooks(
    engine: MemoryEngine, settings: Settings, authenticator: Authenticator, instruments: Instruments
) -> Webhooks:
    """The webhooks, each with the present rights of its key."""
    agents = Agents(engine)

    def filter_for(actor: str, namespace: str) -> EventFilter | None:
        caller = authenticator.acting(actor)
        try:
            scope = None if caller is None else caller.scope(Role.READ_WRITE, namespace)
        except Forbidden:
            return None
        if caller is None or scope is None:
            return None
        admin = caller.role is Role.ADMIN
        return filter_of(scope, UNLIMITED if admin else agents.access(scope), all_actors=admin)

    return Webhooks(
        engine, AddressPolicy(settings.webhook_allowed_hosts), filter_for, instruments.count_webhook_attempt
    )


def _lane(engine: MemoryEngine, settings: Settings, on_end: Callable[[], None], *handlers: JobHandler) -> Jobs:
    """A job queue with the given handlers."""
    queue_max, retention_days, lane = settings.job_queue_max, settings.job_retention_days, lane_of(handlers[0].kind)
    return Jobs(engine, handlers, queue_max=queue_max, retention_days=retention_days, on_end=on_end, lane=lane)


def _watch_queues(instruments: Instruments, **queues: Jobs) -> None:
    """Register the queues in the metrics, under these names."""
    for name, jobs in queues.items():
        instruments.watch_queue(name, partial(getattr, jobs, "waiting"), capacity=jobs.figures.waiting_max)


def _notify_removed(*lanes: Jobs) -> None:
    for jobs in lanes:
        jobs.notify_removed()


def _after_jobs(transfer: TransferServices, memory: MemoryTrim) -> None:
    memory.ask()
    transfer.spools.sweep()
