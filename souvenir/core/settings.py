"""The service's settings, read once from the environment, `.env` and a saved file; docs/configuration.md is checked.

They take precedence in this order. The defaults are safe: only this machine may connect, nothing is sent anywhere, and
no other origin may call.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

import Stemmer
from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from souvenir.core.database_settings import DatabaseSettings
from souvenir.core.files import resource
from souvenir.core.load_settings import LoadSettings
from souvenir.core.network_settings import parted
from souvenir.core.quotas import quotas_of_text
from souvenir.core.saved_settings import DEFAULT_PATH, SavedSource, expanded, saved_settings, unknown
from souvenir.core.sync_settings import SyncSettings
from souvenir.core.types import DEFAULT_NAMESPACE, Fusion

DATABASE_NAME = "souvenir.db"
MAX_DIM = 16_384
"""Numbers in the longest vector that is accepted."""

FIRST_KEY_NAME = "initial_admin_key"


class LogFormat(StrEnum):
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class EmbedProvider(StrEnum):
    """Providers of embeddings."""

    ONNX = "onnx"
    OPENAI = "openai"
    OLLAMA = "ollama"


class McpTier(StrEnum):
    """A group of tools that `/mcp` offers."""

    MEMORY = "memory"
    AGENT = "agent"
    GRAPH = "graph"
    CONNECTOR = "connector"


class ExtractProvider(StrEnum):
    """Providers of the language model that extracts."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    OLLAMA = "ollama"


UserPath = Annotated[Path, AfterValidator(expanded)]
"""A path in which `~` is the home folder."""


def _checked_quotas(text: str | None) -> str | None:
    quotas_of_text(text or "")
    return text


class Settings(DatabaseSettings, SyncSettings, LoadSettings):
    """Every setting of the service. The name in the environment is the field's name in capitals, or an alias of it.

    :raises SavedSettingsUnusable: If the saved file cannot be used.
    """

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8", env_ignore_empty=True, extra="ignore", populate_by_name=True
    )

    config_file: UserPath = Field(
        default=DEFAULT_PATH,
        description="Saved settings file: a JSON object with setting names in any case, for settings that neither the "
        "environment nor `.env` sets. A file named here must exist.",
    )
    data_dir: UserPath = Field(
        default=Path("data"),
        description="Folder of the database, the index snapshots and the backups; a folder holds one database. Unset "
        "and with DB_PATH set, it is the folder of DB_PATH.",
    )
    db_path: UserPath | None = Field(
        default=None,
        validation_alias=AliasChoices("db_path", "memory_server_db_path", "sqlite_path"),
        description=f"Path of the database file, if it is not `{DATABASE_NAME}` in DATA_DIR.",
    )
    audit_retention_days: int = Field(
        default=90,
        ge=1,
        description="Days that actions of admins and denied requests are kept in the audit; changes are kept with "
        "their memories.",
    )
    usage_tracking: bool = Field(
        default=True,
        description="Count calls by day, operation, key, source and client for `GET /usage`, and keep them 400 days.",
    )
    otel_exporter_otlp_endpoint: str | None = Field(
        default=None,
        description="Address of an OpenTelemetry collector (OTLP over HTTP, without `/v1/traces`) that receives "
        "traces; they hold no text. Requires the packages of requirements-otel.txt; unset sends nothing.",
    )
    log_level: LogLevel = Field(default=LogLevel.INFO, description="Least severe level that is logged.")
    log_format: LogFormat = Field(
        default=LogFormat.TEXT, description="`json` for one JSON object per line, `text` for people."
    )

    embed_provider: EmbedProvider = Field(
        default=EmbedProvider.ONNX,
        validation_alias=AliasChoices("embed_provider", "memory_embedding_backend"),
        description="Embedding provider: `onnx` (in this process; also called `local`), `openai` (or any server with "
        "its API) or `ollama`. The last two receive every text that is stored or searched.",
    )
    embed_model: str | None = Field(
        default=None,
        validation_alias=AliasChoices("embed_model", "memory_embedding_model"),
        description="Embedding model. `onnx`: a folder with an ONNX file, or a Hugging Face id (downloaded on first "
        "use); otherwise the provider's model name. Unset takes `models/all-MiniLM-L6-v2`, `text-embedding-3-small` "
        "or `all-minilm`.",
    )
    embed_base_url: str | None = Field(
        default=None,
        description="Address of the provider's API, such as `http://gpu:8000/v1`; unset takes `OPENAI_BASE_URL` or "
        "`OLLAMA_BASE_URL`.",
    )
    embed_api_key: SecretStr | None = Field(default=None, description="Key for the embedding provider.")
    openai_base_url: str = Field(
        default="https://api.openai.com/v1",
        description="Address of OpenAI's API, or of a server with the same API that receives `OPENAI_API_KEY`.",
    )
    openai_api_key: SecretStr | None = Field(
        default=None,
        description="Key for OpenAI where `EMBED_API_KEY` or `EXTRACT_API_KEY` is unset; never sent to Ollama.",
    )
    ollama_base_url: str = Field(
        default="http://localhost:11434",
        validation_alias=AliasChoices("ollama_base_url", "ollama_host"),
        description="Address of Ollama, with or without `/v1`; also in the short forms of `OLLAMA_HOST`, such as "
        "`gpu` or `gpu:11434`.",
    )
    embed_dim: int | None = Field(
        default=None,
        ge=1,
        le=MAX_DIM,
        description="Vector dimension, for a provider's model that is not known here; a smaller one shortens the "
        "vectors of `text-embedding-3-*`. Unset, Ollama is asked for it once at the start.",
    )
    embed_timeout_s: float = Field(
        default=30.0, gt=0, description="Maximum seconds for one batch of texts, retries included."
    )
    embed_rest_s: float = Field(
        default=5.0,
        ge=0,
        description="Seconds that the circuit breaker stays open after the provider failed; meanwhile searches use "
        "words only and writes are refused.",
    )
    embed_batch_size: int = Field(
        default=64, ge=1, le=2048, description="Maximum texts in one request to the provider."
    )
    embed_concurrency: int = Field(default=4, ge=1, le=64, description="Maximum concurrent requests to the provider.")
    embed_revision: str | None = Field(
        default=None,
        description="Commit or tag of a Hugging Face model; unset takes the cached one, or else the newest.",
    )
    embed_threads: int = Field(
        default=0,
        ge=0,
        description="Threads for one run of a model in this process, embedding or cross-encoder; 0 uses half of the "
        "cores. The embedding model has two runs at once if there are cores for them.",
    )
    embed_queue_tokens: int = Field(
        default=300_000,
        ge=1,
        description="Tokens that may wait for the embedding model; a large request beyond them is refused (429).",
    )
    query_cache_size: int = Field(default=1024, ge=0, description="Query vectors kept in memory.")

    extract_provider: ExtractProvider | None = Field(
        default=None,
        description="Provider of the language model that learns from conversations: `anthropic`, `openai` (or any "
        "server with its API) or `ollama`. It receives the transcripts, similar memories, memories to split into "
        "facts, messages whose concepts it is asked to describe, and the question and results of a search with "
        "`verify`. Unset, `POST /memory/extract` answers 501.",
    )
    extract_model: str | None = Field(
        default=None,
        description="The provider's name of the language model; unset takes `claude-haiku-4-5`, `gpt-4.1-mini` or "
        "`llama3.1`.",
    )
    extract_base_url: str | None = Field(
        default=None,
        description="Address of the provider's API, such as `http://gpu:8000/v1`; unset takes `ANTHROPIC_BASE_URL`, "
        "`OPENAI_BASE_URL` or `OLLAMA_BASE_URL`.",
    )
    extract_api_key: SecretStr | None = Field(
        default=None,
        description="Key for the provider; unset takes `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, unless "
        "`EXTRACT_BASE_URL` is set.",
    )
    anthropic_base_url: str = Field(
        default="https://api.anthropic.com",
        description="Address of Anthropic's API, or of a server with the same API that receives `ANTHROPIC_API_KEY`.",
    )
    anthropic_api_key: SecretStr | None = Field(
        default=None, description="Key for Anthropic where `EXTRACT_API_KEY` is unset."
    )
    extract_timeout_s: float = Field(
        default=120.0,
        gt=0,
        description="Maximum seconds for one request to the language model, retries and repair included.",
    )
    extract_max_tokens: int = Field(
        default=4096,
        ge=64,
        description="Maximum tokens of one answer; a truncated answer is requested once more with twice as many.",
    )
    extract_max_inflight: int = Field(default=2, ge=1, le=64, description="Maximum concurrent extractions.")
    extract_queue_max: int = Field(default=32, ge=1, description="Maximum waiting extractions; more are refused (429).")
    extract_job_retention_sec: float = Field(
        default=604_800.0, gt=0, description="Seconds that finished extractions are kept, and can be undone."
    )
    extract_max_facts: int = Field(default=30, ge=1, le=200, description="Maximum facts from one part of a transcript.")
    extract_max_fact_chars: int = Field(default=500, ge=50, description="Maximum characters of one fact.")
    extract_similar_text_chars: int = Field(
        default=280, ge=40, description="Maximum characters of each similar memory shown to the model."
    )
    extract_max_deletes: int = Field(
        default=5,
        ge=0,
        description="Memories that one extraction may delete without approval; with more of them it waits for "
        "approval.",
    )
    describe_requests_per_day: int = Field(
        default=0,
        ge=0,
        description="Requests to the language model on a UTC day, for all agents together, that describe the concepts "
        "and topics of idle sessions without being asked. 0: only `POST /agents/{agent}/graph/describe` does.",
    )
    extract_fallback_add: bool = Field(
        default=False, description="Without a language model, store sentences that state something durable."
    )
    extract_fallback_max_facts: int = Field(
        default=5, ge=1, description="Maximum sentences stored in this way from one transcript."
    )
    max_extract_message_chars: int = Field(
        default=120_000, ge=1, description="Maximum characters of one transcript (422 above)."
    )
    facts_timeout_s: float = Field(
        default=10.0,
        ge=0,
        description="Seconds that storing a memory waits for the language model to split it into facts; after that "
        "its sentences are its facts, and the model is asked again in the background. 0 never waits.",
    )
    memory_trim_enabled: bool = Field(
        default=True, description="Return freed memory to the operating system after an extraction or another job."
    )
    memory_trim_cooldown_sec: float = Field(
        default=15.0, ge=0, description="Minimum seconds between two returns of memory."
    )

    search_fusion: Fusion = Field(
        default=Fusion.SUM,
        description="How the vector and word scores are combined: `sum` (measured best) or `rrf` (reciprocal rank "
        "fusion, k = 60).",
    )
    rerank_model: str | None = Field(
        default=None,
        description="Cross-encoder that re-ranks the best results of a search and, without EXTRACT_PROVIDER, is the "
        "reader of a search with `verify`: a folder with an ONNX file, or a Hugging Face id (downloaded at the first "
        "start). Unset, results are not re-ranked.",
    )
    rerank_revision: str | None = Field(
        default=None,
        description="Commit or tag of a Hugging Face cross-encoder; unset takes the cached one, or else the newest.",
    )
    rerank_candidates: int = Field(
        default=20, ge=1, le=100, description="Results that the cross-encoder scores, the best of the first ranking."
    )
    rerank_deadline_ms: float = Field(
        default=500.0,
        gt=0,
        description="Maximum milliseconds of re-ranking for one search; after that the first ranking is the answer, "
        "and is marked as such.",
    )
    analyser_language: str = Field(default="english", description="Snowball language of the stemmer, in lower case.")

    default_search_limit: int = Field(
        default=5,
        ge=1,
        validation_alias=AliasChoices("default_search_limit", "memory_default_search_limit"),
        description="Messages that a search of messages returns by default.",
    )
    max_search_limit: int = Field(
        default=20,
        ge=1,
        le=1000,
        validation_alias=AliasChoices("max_search_limit", "memory_max_search_limit"),
        description="Maximum messages that it returns.",
    )
    max_context_messages: int | None = Field(
        default=None,
        ge=0,
        validation_alias=AliasChoices("max_context_messages", "memory_max_context_messages"),
        description="Maximum messages that are found for a context; unset, 200. The token budget limits the text.",
    )
    max_context_memories: int | None = Field(default=None, ge=0, description="Likewise memories; unset, 100.")
    session_idle_minutes: float = Field(
        default=30.0,
        gt=0,
        description="Minutes after the last message of a conversation until a message without a session starts "
        "another one.",
    )
    privacy_config: UserPath = Field(
        default=Path("config/privacy.yaml"),
        description="File of the privacy rules: patterns for secrets and personal data, sensitive topics.",
    )

    session_max_messages: int = Field(
        default=50,
        ge=1,
        le=1000,
        description="Maximum messages in the context of an active conversation; older ones are left out.",
    )

    mcp_tools: Annotated[tuple[McpTier, ...], NoDecode, BeforeValidator(parted)] = Field(
        default=(McpTier.MEMORY,),
        description="Groups of tools that `/mcp` offers, separated by commas: `memory`, `agent` (context, "
        "conversations, blocks), `graph` (those of the reference memory server), `connector` (`search` and `fetch`, "
        "which ChatGPT asks for).",
    )
    mcp_namespace: str = Field(
        default=DEFAULT_NAMESPACE,
        min_length=1,
        max_length=200,
        pattern="^[^/]+$",
        validation_alias=AliasChoices("mcp_namespace", "user_id"),
        description="Namespace of callers of `/mcp` that name none in the path, in X-Namespace or by their key.",
    )

    max_backups: int = Field(
        default=10,
        ge=1,
        description="Backups kept of those that writers cause, and as many of all others; older ones are deleted.",
    )
    backup_interval_hours: float = Field(
        default=24.0, ge=0, description="Hours between scheduled backups; 0 makes none."
    )
    index_memory_mb: int = Field(
        default=2048,
        ge=1,
        description="Maximum memory of the namespaces' indexes, in MiB; the least recently used are evicted.",
    )
    snapshot_interval_s: float = Field(
        default=300.0, gt=0, description="Seconds between checks whether an index changed enough to be written to disk."
    )
    write_queue_max: int = Field(
        default=1024, ge=1, description="Maximum writes waiting for the database; more are refused (429)."
    )
    write_timeout_s: float = Field(
        default=30.0, gt=0, description="Maximum seconds that one write waits for the database."
    )
    key_quotas: Annotated[str | None, AfterValidator(_checked_quotas)] = Field(
        default=None,
        description="Quotas of keys without the admin role that have none of their own, as `name=number` separated by "
        "commas: `requests_per_minute`, `memories`, `stored_bytes`, `jobs_per_day`, `extractions_per_day`.",
    )
    job_queue_max: int = Field(
        default=100, ge=1, description="Maximum waiting jobs; more are refused (429). A key may have a quarter of them."
    )
    job_retention_days: float = Field(
        default=7.0, gt=0, description="Days that finished jobs are kept; never more than 1,000 of one queue."
    )
    max_body_bytes: int = Field(
        default=32 * 1024 * 1024,
        ge=1024,
        description="Largest request body, in bytes (413 above); most routes take 2 or 8 MiB at most.",
    )
    import_max_bytes: int = Field(
        default=2 * 1024**3,
        ge=1024,
        description="Largest body of an import, in bytes (413 above); it is spooled to disk in DATA_DIR, not held in "
        "memory.",
    )
    workspace_dir: UserPath | None = Field(
        default=None, description="Folder whose Markdown files `POST /index/build` reads; unset, the route answers 409."
    )

    @field_validator("embed_provider", mode="before")
    @classmethod
    def _local_is_onnx(cls, provider: Any) -> Any:
        return EmbedProvider.ONNX if provider == "local" else provider

    @field_validator("analyser_language")
    @classmethod
    def _known_language(cls, language: str) -> str:
        if language not in Stemmer.algorithms():
            raise ValueError(f"there is no stemmer for it; known are {', '.join(Stemmer.algorithms())}")
        return language

    @model_validator(mode="after")
    def _folder_of_database(self) -> Self:
        if self.db_path is not None and "data_dir" not in self.model_fields_set:
            self.data_dir = self.db_path.parent
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in order of precedence."""
        saved = SavedSource(settings_cls)
        if isinstance(dotenv_settings, DotEnvSettingsSource) and not dotenv_settings.env_vars:
            # An empty or missing `.env` would be queried for each setting, which takes a third of the time.
            return init_settings, env_settings, saved
        return init_settings, env_settings, dotenv_settings, saved

    def unknown_saved(self) -> list[str]:
        """Return the names in the saved file that are not settings of this release; the file is read again."""
        known: set[str] = set()
        for name, field in type(self).model_fields.items():
            aliases = field.validation_alias.choices if isinstance(field.validation_alias, AliasChoices) else []
            known |= {name, *map(str, aliases)}
        named = self.config_file if "config_file" in self.model_fields_set else None
        return unknown(saved_settings(named), known)

    @model_validator(mode="after")
    def _syncs_a_file(self) -> Self:
        if self.database_url is not None and self.sync_bucket is not None:
            raise ValueError("SYNC_BUCKET receives backups of a file; unset it, or unset DATABASE_URL")
        return self

    @property
    def database_place(self) -> str:
        """The path of the database, or its URL without user and password."""
        if self.database_url is None:
            return str(self.database_path.absolute())
        return re.sub(r"//[^/]*@", "//", self.database_url.get_secret_value()).partition("?")[0]

    @property
    def first_key_path(self) -> Path:
        return self.data_dir / FIRST_KEY_NAME

    @property
    def database_path(self) -> Path:
        return self.db_path or self.data_dir / DATABASE_NAME

    @property
    def privacy_rules_path(self) -> Path:
        return resource(self.privacy_config)

    @property
    def backup_dir(self) -> Path:
        return self.data_dir / "backups"

    @property
    def import_dir(self) -> Path:
        return self.data_dir / "imports"

    @property
    def index_dir(self) -> Path:
        return self.data_dir / "index"
