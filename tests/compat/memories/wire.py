"""The wire of the Memories family as a table: request models with their limits, operations, and keys of their answers.

In paths and bodies `$a` and `$b` stand for the ids of two new memories, `$job` for an extraction, `$backup` for a
backup, `$key` for an API key.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Field(NamedTuple):
    """:param low, high: The least and the greatest value of a number, or length of a string or list; None: no limit.

    :param item: An item of a list, for a list of a chosen length.
    """

    name: str
    low: float | None = None
    high: float | None = None
    item: Any = None
    choices: tuple[str, ...] = ()


TEXT = Field("text", 1, 50_000, "x")
SOURCE = Field("source", 1, 500, "x")
IDS = Field("ids", 1, 1000, 1)

SEARCH = (
    Field("query", 1, 10_000, "x"),
    Field("k", 1, 100),
    *(
        Field(name, 0, 1)
        for name in (
            "threshold",
            "vector_weight",
            "recency_weight",
            "graph_weight",
            "feedback_weight",
            "confidence_weight",
        )
    ),
    Field("recency_half_life_days", None, 365),
    Field("source_prefix", None, 500, "x"),
    Field("source", None, 500, "x"),
)


class Operation(NamedTuple):
    """One row: a request that is answered with `status`, and the keys that its answer has at least.

    :param fields: Of the body, whose limits are tried.
    """

    method: str
    path: str
    body: Any = None
    keys: str = ""
    fields: tuple[Field, ...] = ()
    status: int = 200


ADD = {"text": "The deploy key was rotated", "source": "notes/ops"}
QUERY = {"query": "Which key was rotated?"}
MAXIMAL_QUERY = {
    **QUERY,
    "k": 100,
    "hybrid": True,
    "threshold": 0.0,
    "vector_weight": 0.7,
    "source_prefix": "notes",
    "source_boundary": True,
    "include_archived": True,
    "since": "2020-01-01",
    "until": "2030-01-01T00:00:00+00:00",
    "recency_weight": 0.1,
    "recency_half_life_days": 365.0,
    "feedback_weight": 0.1,
    "confidence_weight": 0.1,
    "graph_weight": 0.1,
    "auto_intent": True,
    "reference_date": "2026-01-01",
    "source": "",
}
SEARCHED = "query results count"
POLICY = "dry_run actions summary"

OPERATIONS = (
    Operation("GET", "/health", None, "status service version"),
    Operation("GET", "/health/ready", None, "ready status index_count record_count qdrant_count metadata_count"),
    Operation("GET", "/api/keys/me", None, "type role"),
    Operation("GET", "/api/keys", None, "keys count"),
    Operation("PATCH", "/api/keys/$key", {"name": "other", "prefixes": ["notes"], "role": "read-only"}, "success id"),
    Operation("DELETE", "/api/keys/$key", None, "id revoked"),
    Operation(
        "GET", "/stats", None, "total_memories dimension model created_at last_updated index_size_bytes backup_count"
    ),
    Operation("GET", "/usage", None, "enabled"),
    Operation("GET", "/usage?period=7d&session_id=s", None, "enabled"),
    Operation("GET", "/usage?period=daily", None, "enabled"),
    Operation("POST", "/search", QUERY, SEARCHED, SEARCH),
    Operation("POST", "/search", MAXIMAL_QUERY, SEARCHED),
    Operation("POST", "/search", {**QUERY, "source_prefixes": ["notes", "wip"]}, SEARCHED),
    Operation("POST", "/search", {**QUERY, "hybrid": False}, SEARCHED),
    Operation("POST", "/search/explain", MAXIMAL_QUERY, "results explain", SEARCH),
    Operation("POST", "/search/evidence", MAXIMAL_QUERY, f"{SEARCHED} evidence_packet", SEARCH),
    Operation("POST", "/search/batch", {"queries": [QUERY]}, "results count", (Field("queries", 1, 200, QUERY),)),
    Operation(
        "POST",
        "/search/feedback",
        {"memory_id": "$a", "query": "", "signal": "useful", "search_id": ""},
        "status",
        (Field("signal", choices=("useful", "not_useful")),),
    ),
    Operation("GET", "/search/feedback/history?memory_id=$a&limit=200", None, "entries count"),
    Operation("POST", "/memory/add", ADD, "success id message", (TEXT, SOURCE)),
    Operation(
        "POST",
        "/memory/add",
        {**ADD, "metadata": {"document_at": "2026-01-01"}, "deduplicate": True, "on_duplicate": "supersede"},
        "success action",
        (Field("on_duplicate", choices=("add", "skip", "supersede")),),
    ),
    Operation(
        "POST",
        "/memory/add-batch",
        {"memories": [ADD], "deduplicate": False},
        "success ids count message",
        (Field("memories", 1, 500, ADD),),
    ),
    Operation(
        "POST",
        "/memory/upsert",
        {**ADD, "key": "deploy", "metadata": {"a": 1}},
        "success id action",
        (TEXT, SOURCE, Field("key", 1, 500, "x")),
    ),
    Operation(
        "POST", "/memory/upsert-batch", {"memories": [{**ADD, "key": "d"}]}, "success created updated errors results"
    ),
    Operation(
        "PATCH",
        "/memory/$a",
        {"text": "New", "source": "notes", "metadata_patch": {"b": 2}, "pinned": True, "archived": False},
        "id updated_fields",
        (TEXT, SOURCE),
    ),
    Operation("POST", "/memory/$a/supersede", {"text": "New"}, "success old_id new_id previous_text archived_old"),
    Operation(
        "POST",
        "/memory/$a/supersede",
        {"text": "New", "source": "notes", "metadata": {}},
        "success old_id new_id previous_text archived_old",
        (TEXT, Field("source", None, 500, "x")),
    ),
    Operation("POST", "/memory/$a/supersede", {"new_text": "New"}, "success old_id new_id"),
    Operation("POST", "/memory/supersede", {"old_id": "$a", "new_text": "New", "source": ""}, "success old_id new_id"),
    Operation("POST", "/memory/supersede", {"old_id": "$a", "text": "New"}, "success old_id new_id"),
    Operation(
        "POST",
        "/memory/merge",
        {"ids": ["$a", "$b"], "merged_text": "Both", "source": "notes"},
        "id archived",
        (Field("ids", 2), Field("merged_text", 1, 50_000, "x"), SOURCE),
    ),
    Operation("POST", "/memory/archive-batch", {"ids": ["$a", "$b"]}, "archived_count", (IDS,)),
    Operation(
        "POST",
        "/memory/missed",
        {"text": "The key", "source": "notes", "context": "why"},
        "id source missed_count",
        (TEXT, SOURCE, Field("context", None, 10_000, "x")),
    ),
    Operation(
        "POST",
        "/memory/is-novel",
        {"text": "The key", "threshold": 0.88},
        "is_novel threshold most_similar",
        (TEXT, Field("threshold", 0, 1)),
    ),
    Operation("GET", "/memory/$a", None, "id text source created_at updated_at timestamp confidence"),
    Operation("POST", "/memory/get-batch", {"ids": ["$a", 10**9]}, "memories missing_ids count", (IDS,)),
    Operation("GET", "/memories?offset=0&limit=5000&source=notes&source_boundary=true&pinned=false", None, "memories"),
    Operation("GET", "/memories", None, "memories total offset limit"),
    Operation("GET", "/memories/count?source=notes&source_boundary=true", None, "count"),
    Operation("GET", "/folders", None, "folders total"),
    Operation("POST", "/folders/rename", {"old_name": "nowhere", "new_name": "other"}, "detail", (), 404),
    Operation("POST", "/index/build", None, "detail", (), 409),
    Operation("POST", "/maintenance/embedder/reload"),
    Operation("DELETE", "/memory/$a", None, "success deleted_id deleted_text"),
    Operation("DELETE", "/memory/$a?force=true", None, "success deleted_id deleted_text"),
    Operation(
        "POST", "/memory/delete-batch", {"ids": ["$a", 10**9]}, "success deleted_count deleted_ids missing_ids", (IDS,)
    ),
    Operation(
        "POST",
        "/memory/delete-by-source",
        {"source_pattern": "nowhere", "dry_run": True, "skip_snapshot": True},
        "success count would_delete",
        (Field("source_pattern", 1, 500, "y"),),
    ),
    Operation(
        "POST",
        "/memory/delete-by-prefix",
        {"source_prefix": "nowhere", "dry_run": True, "skip_snapshot": True},
        "success count would_delete",
        (Field("source_prefix", 1, 500, "y"),),
    ),
    Operation("POST", "/memory/delete-by-source", {"source_pattern": "nowhere"}, "success deleted_count"),
    Operation("POST", "/memory/delete-by-prefix", {"source_prefix": "nowhere"}, "success deleted_count"),
    Operation("DELETE", "/memories?source=nowhere", None, "count"),
    Operation(
        "POST",
        "/memory/deduplicate",
        {"threshold": 0.9, "dry_run": True},
        "duplicate_pairs would_remove dry_run pairs",
        (Field("threshold", 0.5, 1),),
    ),
    Operation("POST", "/memory/deduplicate", {"dry_run": False}, "duplicate_pairs removed remaining dry_run"),
    Operation("POST", "/memory/$a/link", {"to_id": "$b", "type": "related_to"}, "from_id to_id type created_at"),
    Operation("POST", "/memory/$a/link", {"to_id": "$b", "type": "unknown"}, "detail", status=400),
    Operation("POST", "/memory/$a/link", {"to_id": "$a", "type": "related_to"}, "detail", status=400),
    Operation("GET", "/memory/$a/links?type=related_to&include_incoming=true", None, "memory_id links"),
    Operation("DELETE", "/memory/$a/link/$b?type=related_to", None, "removed"),
    Operation("GET", "/memory/conflicts?limit=100000&offset=0", None, "conflicts count total offset has_more"),
    Operation(
        "POST",
        "/memory/conflicts/resolve",
        {"dry_run": True, "max": 0},
        "success dry_run policy resolved needs_review orphaned resolved_count needs_review_count orphaned_count",
        (Field("max", 0, 10_000),),
    ),
    Operation(
        "POST",
        "/memory/extract",
        {"messages": "User: We decided to use Redis for the cache.", "source": "chat", "context": "stop"},
        "job_id status queue_depth result_url",
        (Field("messages", 1, 120_000, "x"),),
        status=202,
    ),
    Operation("GET", "/memory/extract/$job", None, "job_id status source context message_length created_at"),
    Operation(
        "POST",
        "/memory/extract/commit",
        {"actions": [], "source": "chat"},
        "stored_count updated_count deleted_count conflict_count",
        (Field("source", 1, 500, "x"),),
    ),
    Operation("GET", "/extract/status", None, "enabled"),
    Operation("GET", "/extraction/profiles"),
    Operation("PUT", "/extraction/profiles/chat/", {"mode": "standard", "max_facts": 5}, "source_prefix"),
    Operation("GET", "/extraction/profiles/chat/", None, "source_prefix"),
    Operation("DELETE", "/extraction/profiles/chat/", None, "deleted source_prefix"),
    Operation("POST", "/backup?prefix=manual", None, "success backup_path message"),
    Operation("POST", "/backup", {"prefix": "manual"}, "success backup_path message"),
    Operation("GET", "/backups", None, "backups count"),
    Operation("GET", "/snapshots", None, "snapshots count"),
    Operation("POST", "/snapshots", None, "snapshot"),
    Operation("POST", "/restore", {"backup_name": "missing"}, "detail", (), 404),
    Operation("POST", "/snapshots/missing/restore", None, "detail", (), 404),
    Operation("GET", "/sync/status", None, "enabled message"),
    Operation("POST", "/sync/upload", None, "detail", (), 400),
    Operation("POST", "/sync/download", None, "detail", (), 400),
    Operation("GET", "/sync/snapshots", None, "detail", (), 400),
    Operation("POST", "/sync/restore/x", None, "detail", (), 400),
    Operation("GET", "/export?source=nowhere&since=2020-01-01&until=2030-01-01"),
    Operation("POST", "/import?strategy=unknown", "{}", "detail", (), 400),
    Operation("POST", "/maintenance/compact", {"threshold": 0.85}, "", (Field("threshold", 0.5, 1),)),
    Operation("POST", "/maintenance/consolidate?dry_run=true&source_prefix=notes", None, "detail", (), 503),
    Operation("POST", "/maintenance/prune?dry_run=true", None, "candidates pruned dry_run"),
    Operation("POST", "/maintenance/enforce-policies?dry_run=true", None, POLICY),
    Operation(
        "POST", "/import?no_backup=true", '{"text": "A", "source": "s"}', "imported skipped updated errors backup"
    ),
    Operation("GET", "/audit?limit=500&offset=0"),
    Operation("POST", "/audit/purge?retention_days=365"),
    Operation("GET", "/events/recent?limit=50", None, "events count"),
    Operation("GET", "/webhooks", None, "webhooks"),
    Operation("POST", "/webhooks", {"url": "https://192.0.1.1/hook", "events": ["memory.added"]}, "id url events"),
    Operation("POST", "/maintenance/reembed", {"model": None}, "", (), 200),
    Operation("GET", "/metrics/search-quality?period=today"),
    Operation("GET", "/metrics/extraction-quality?period=30d"),
    Operation("GET", "/metrics/quality-summary?period=all"),
    Operation("GET", "/metrics/failures?type=extraction&limit=100"),
    Operation("GET", "/metrics/problem-queries?min_feedback=1&limit=100"),
    Operation("GET", "/metrics/stale-memories?min_retrievals=1&limit=100"),
    Operation("GET", "/metrics/graph-search?period=7d"),
    Operation("GET", "/metrics/temporal-search?period=7d"),
    Operation("GET", "/metrics", None, "uptime_sec extract memory embedder_reload requests routes promotion"),
    Operation("GET", "/memory/1000000000", None, "detail", (), 404),
    Operation("PATCH", "/memory/$a", {}, "detail", (), 400),
    Operation("DELETE", "/memories", None, "detail", (), 422),
    Operation("GET", "/memories?limit=5001", None, "detail", (), 422),
    Operation("GET", "/memories?limit=0", None, "detail", (), 422),
    Operation("GET", "/metrics/search-quality?period=week", None, "detail", (), 422),
)
