"""What one running process holds: settings, embedder, engine, jobs, counters, and the thread that gets them ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from threading import Event, Thread

import structlog

from llm_extract import Extraction
from llm_provider import LLMProvider, provider_of
from memory_engine import MemoryEngine
from souvenir.access.attempts import FailedAttempts
from souvenir.access.audit import AuditLog
from souvenir.access.door import Door
from souvenir.access.keys import ApiKeys
from souvenir.api import VERSION
from souvenir.api.admission import Admission
from souvenir.api.bodies import BodyMemory
from souvenir.api.counters import RequestCounters
from souvenir.api.exposition import AdmissionCollector, RequestCollector, StoreCollector, add_collectors
from souvenir.api.long_work import LongWork
from souvenir.api.transfer_lines import ReadAs
from souvenir.conversation.agent_search import AgentSearch
from souvenir.conversation.agents import Agents
from souvenir.conversation.blocks import Blocks
from souvenir.conversation.context import Contexts
from souvenir.conversation.messages import Conversations
from souvenir.conversation.pending import index_all_pending
from souvenir.conversation.rescan import Rescan
from souvenir.conversation.sessions import Sessions
from souvenir.conversation.tiers import Tiers
from souvenir.embedding.factory import embedder_of
from souvenir.embedding.specs import ModelSpec
from souvenir.erasure.erasing import Erasing
from souvenir.erasure.removals import Removals
from souvenir.facts.facts import Facts
from souvenir.facts.tags import Tags
from souvenir.graph.model_claims import Describing
from souvenir.graph.parts import GraphParts
from souvenir.jobs.deduplication import Deduplication
from souvenir.jobs.running import JobHandler
from souvenir.jobs.worker import Jobs
from souvenir.links import Links
from souvenir.observation.instruments import Instruments
from souvenir.observation.tracing import Tracing
from souvenir.past.reading import Past
from souvenir.process_memory import MemoryTrim
from souvenir.reembedding.choice import MakeEmbedder, chosen_model
from souvenir.reembedding.job import Reembedding
from souvenir.reembedding.owner import ModelOwner
from souvenir.reranking.onnx_reranker import reranker_of
from souvenir.settings import Settings
from souvenir.store.rows import to_json
from souvenir.tending.parts import TendingParts
from souvenir.transfer.parts import TransferParts
from souvenir.types import Embedder, LoadableEmbedder, Reranker

LOADING_TIMEOUT_S = 30.0
"""That closing waits for a model that is still being loaded."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Service:
    """Open with `Service.open`. It answers at once; the model and the first index are loaded meanwhile."""

    settings: Settings
    engine: MemoryEngine
    counters: RequestCounters
    instruments: Instruments
    deduplication: Deduplication
    transfer: TransferParts
    jobs: Jobs
    memory: MemoryTrim
    keys: ApiKeys
    door: Door
    audit: AuditLog
    admission: Admission
    bodies: BodyMemory
    model: ModelOwner
    reranker: Reranker | None
    reembedding: Reembedding
    agents: Agents
    agent_search: AgentSearch
    blocks: Blocks
    links: Links
    graph: GraphParts
    past: Past
    conversations: Conversations
    contexts: Contexts
    sessions: Sessions
    tiers: Tiers
    removals: Removals
    erasing: Erasing
    tending: TendingParts
    facts: Facts
    tags: Tags
    provider: LLMProvider | None
    extraction: Extraction
    describing: Describing
    long_work: LongWork = field(init=False)
    extraction_work: LongWork = field(init=False)
    consolidation_work: LongWork = field(init=False)
    splitting_work: LongWork = field(init=False)
    describing_work: LongWork = field(init=False)
    loading: Thread | None = None
    closing: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.long_work = LongWork(self.jobs)
        self.extraction_work = LongWork(self.extraction.jobs)
        self.consolidation_work = LongWork(self.tending.consolidation.jobs)
        self.splitting_work = LongWork(self.facts.later.jobs)
        self.describing_work = LongWork(self.describing.jobs)

    @classmethod
    def open(
        cls,
        settings: Settings,
        counters: RequestCounters,
        embedder: Embedder | None = None,
        make_embedder: MakeEmbedder | None = None,
    ) -> Service:
        """:param embedder: One that the caller loads and closes; without it, the store's or else the settings' model.

        :param make_embedder: Makes the embedder of a spec; without it, the factory does.
        :raises StoreUnusable: If the data folder must not be opened.
        :raises RerankingUnavailable: If the settings name a cross-encoder that cannot be used.
        :raises InvalidRequest: If the settings name a language model that cannot be asked.
        """
        instruments = Instruments(Tracing.to(settings.otel_exporter_otlp_endpoint, VERSION))
        make = make_embedder or partial(embedder_of, settings, instruments=instruments)
        serving, own, spec = _embedder_for(settings, make, embedder)
        reranker, provider = reranker_of(settings, instruments), provider_of(settings, instruments)
        engine = MemoryEngine.open(settings, serving, instruments, model_spec=spec, reranker=reranker)
        model = ModelOwner(engine, make, ModelSpec.of(settings), own)
        deduplication = Deduplication(engine)
        reembedding = Reembedding(engine, make, model.adopt)
        transfer = TransferParts.open(engine, settings, ReadAs())
        tending = TendingParts.open(engine, provider, settings)
        facts = Facts(engine, provider, settings)
        erasing = Erasing(engine, on_jobs_gone=lambda: _tell_gone(jobs, *own_lanes))
        memory = MemoryTrim(cooldown_s=settings.memory_trim_cooldown_sec, enabled=settings.memory_trim_enabled)
        handlers: list[JobHandler] = [deduplication, reembedding, Rescan(engine), erasing]
        handlers += [*transfer.handlers, *tending.handlers]
        jobs = _common_jobs(engine, settings, handlers, lambda: _after_jobs(transfer, memory))
        extraction = _watched(instruments, jobs, Extraction(engine, provider, settings, on_end=memory.ask))
        describing = Describing(engine, provider, settings)
        own_lanes = extraction.jobs, tending.consolidation.jobs, facts.later.jobs, describing.jobs
        admission, bodies = Admission(settings), BodyMemory(settings.body_memory_mb * 1024 * 1024)
        of_requests, of_store = RequestCollector(counters), StoreCollector(engine)
        add_collectors(instruments, (of_requests, of_store, AdmissionCollector(admission, bodies)))
        keys, door = _keys_and_door(engine, settings)
        conversations = Conversations(engine, idle=timedelta(minutes=settings.session_idle_minutes))
        service = cls(
            settings=settings,
            engine=engine,
            counters=counters,
            instruments=instruments,
            deduplication=deduplication,
            transfer=transfer,
            jobs=jobs,
            memory=memory,
            keys=keys,
            door=door,
            audit=AuditLog(engine, retention_days=settings.audit_retention_days),
            admission=admission,
            bodies=bodies,
            model=model,
            reranker=reranker,
            reembedding=reembedding,
            agents=Agents(engine),
            agent_search=AgentSearch(engine, conversations),
            blocks=Blocks(engine),
            links=Links(engine),
            graph=GraphParts.open(engine),
            past=Past(engine),
            conversations=conversations,
            contexts=Contexts(engine, conversations, max_messages=settings.max_context_messages),
            sessions=Sessions(engine),
            tiers=Tiers(engine, conversations=conversations, max_messages=settings.session_max_messages),
            removals=Removals(engine, on_jobs_gone=lambda: _tell_gone(jobs, *own_lanes)),
            erasing=erasing,
            tending=tending,
            facts=facts,
            tags=Tags(engine),
            provider=provider,
            extraction=extraction,
            describing=describing,
        )
        service.removals.start()
        service.loading = Thread(target=service._load, name="souvenir-loading", daemon=True)
        service.loading.start()
        return service

    def refuse_what_waits(self) -> None:
        """The service was told to stop: what is at work goes on, the rest is refused. On the event loop only."""
        self.admission.close()
        self.bodies.close()

    def close(self) -> None:
        """Finish what was acknowledged. Nothing may be asked of the engine any more."""
        self.closing.set()
        self.removals.close()
        if self.provider is not None:
            # So that no call to a model is waited for; what it was for goes on at the next start.
            self.provider.close()
        self.extraction.close()
        self.tending.consolidation.jobs.close()
        self.facts.close()
        self.describing.close()
        self.graph.close()
        self.jobs.close()
        self.memory.close()
        if self.loading is not None:
            self.loading.join(LOADING_TIMEOUT_S)
        self.keys.close()
        self.audit.close()
        self.engine.close()
        self.model.close()
        if self.reranker is not None:
            self.reranker.close()
        self.instruments.tracing.close()

    def _load(self) -> None:
        try:
            self.model.load()
        except Exception:  # the boundary of a thread; /health/ready tells it
            log.exception("loading_failed")
        try:
            self.reembedding.clear_up()
        except Exception:  # the boundary of a thread; tried again at the next start
            log.exception("old_vectors_not_removed")
        # Also without a model: not every job needs the one that cannot be loaded.
        self.jobs.start()
        self.extraction.start()
        self.tending.consolidation.jobs.start()
        self.facts.start()
        self.describing.start()
        self.graph.start()
        try:
            index_all_pending(self.engine, stop=self.closing.is_set)
        except Exception:  # the boundary of a thread; tried again at the next start, of the service or of a session
            log.exception("messages_not_indexed")


def _embedder_for(
    settings: Settings, make: MakeEmbedder, given: Embedder | None
) -> tuple[Embedder, LoadableEmbedder | None, str | None]:
    """What is given, or what the store or else the settings name: that is the service's own, with its spec."""
    if given is not None:
        return given, None, None
    own, chosen = chosen_model(settings, make)
    return own, own, to_json(chosen.to_json())


def _keys_and_door(engine: MemoryEngine, settings: Settings) -> tuple[ApiKeys, Door]:
    env_key = "" if settings.api_key is None else settings.api_key.get_secret_value()
    keys = ApiKeys(engine, has_env_key=bool(env_key))
    return keys, Door(env_key, keys, FailedAttempts(limit=settings.auth_rate_limit))


def _common_jobs(
    engine: MemoryEngine, settings: Settings, handlers: Sequence[JobHandler], on_end: Callable[[], None]
) -> Jobs:
    queue_max, retention_days = settings.job_queue_max, settings.job_retention_days
    return Jobs(engine, handlers, queue_max=queue_max, retention_days=retention_days, on_end=on_end)


def _watched(instruments: Instruments, jobs: Jobs, extraction: Extraction) -> Extraction:
    """The extraction, whose queue can be seen like that of the other jobs."""
    instruments.watch_queue("jobs", lambda: jobs.waiting, capacity=jobs.figures.waiting_max)
    instruments.watch_queue("extract", lambda: extraction.jobs.waiting, capacity=extraction.jobs.figures.waiting_max)
    return extraction


def _tell_gone(*lanes: Jobs) -> None:
    for jobs in lanes:
        jobs.tell_gone()


def _after_jobs(transfer: TransferParts, memory: MemoryTrim) -> None:
    memory.ask()
    transfer.spools.sweep()
