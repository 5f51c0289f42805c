"""The parameters of every operation of the Memories family: types, limits and defaults, as its clients know them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """:param type: `list[...]` of items, or of objects where a request is named.

    :param place: `body`, `query` or `path`.
    :param low, high: The least and the greatest value, or length of a string or list; None: no limit.
    :param default: None for none.
    """

    name: str
    type: str
    place: str = "body"
    required: bool = False
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    default: Any = None


PERIOD = Parameter("period", "string", place="query", choices=("today", "daily", "7d", "30d", "all"), default="7d")
"""`daily` is another spelling of `today`."""

SEARCH = (
    Parameter("auto_intent", "boolean", default=True),
    Parameter("confidence_weight", "number", low=0, high=1, default=0.0),
    Parameter("feedback_weight", "number", low=0, high=1, default=0.1),
    Parameter("graph_weight", "number", low=0, high=1, default=0.1),
    Parameter("hybrid", "boolean", default=True),
    Parameter("include_archived", "boolean", default=False),
    Parameter("k", "integer", low=1, high=100, default=5),
    Parameter("query", "string", required=True, low=1, high=10000),
    Parameter("recency_half_life_days", "number", low=0, high=365, default=30.0),
    Parameter("recency_weight", "number", low=0, high=1, default=0.0),
    Parameter("reference_date", "string", high=50),
    Parameter("since", "string", high=50),
    Parameter("source", "string", high=500, default=""),
    Parameter("source_boundary", "boolean", default=False),
    Parameter("source_prefix", "string", high=500),
    Parameter("source_prefixes", "list[string]"),
    Parameter("threshold", "number", low=0, high=1),
    Parameter("until", "string", high=50),
    Parameter("vector_weight", "number", low=0, high=1, default=0.7),
)

PARAMETERS: dict[str, tuple[Parameter, ...]] = {
    "GET /api/keys": (),
    "POST /api/keys": (
        Parameter("name", "string", required=True, low=1, high=200),
        Parameter("prefixes", "list[string]"),
        Parameter("principal_id", "string", low=1, high=200),
        Parameter("role", "string", required=True, choices=("read-only", "read-write", "admin")),
    ),
    "GET /api/keys/me": (),
    "DELETE /api/keys/{key_id}": (Parameter("key_id", "string", place="path", required=True),),
    "PATCH /api/keys/{key_id}": (
        Parameter("name", "string", low=1, high=200),
        Parameter("prefixes", "list[string]"),
        Parameter("principal_id", "string", low=1, high=200),
        Parameter("role", "string", choices=("read-only", "read-write", "admin")),
        Parameter("key_id", "string", place="path", required=True),
    ),
    "GET /audit": (
        Parameter("action", "string", place="query"),
        Parameter("key_id", "string", place="query"),
        Parameter("resource_id", "string", place="query"),
        Parameter("limit", "integer", place="query", low=1, high=500, default=50),
        Parameter("offset", "integer", place="query", low=0, default=0),
    ),
    "POST /audit/purge": (Parameter("retention_days", "integer", place="query", low=1, high=365, default=90),),
    "POST /backup": (Parameter("prefix", "string", place="query", high=50, default="manual"),),
    "GET /backups": (),
    "GET /events/recent": (Parameter("limit", "integer", place="query", default=50),),
    "GET /events/stream": (Parameter("event_type", "string", place="query"),),
    "GET /export": (
        Parameter("source", "string", place="query", high=500),
        Parameter("since", "string", place="query"),
        Parameter("until", "string", place="query"),
    ),
    "GET /extract/status": (),
    "GET /extraction/profiles": (),
    "DELETE /extraction/profiles/{prefix}": (Parameter("prefix", "string", place="path", required=True),),
    "GET /extraction/profiles/{prefix}": (Parameter("prefix", "string", place="path", required=True),),
    "PUT /extraction/profiles/{prefix}": (Parameter("prefix", "string", place="path", required=True),),
    "GET /folders": (),
    "POST /folders/rename": (
        Parameter("new_name", "string", required=True, low=1, high=500),
        Parameter("old_name", "string", required=True, low=1, high=500),
    ),
    "GET /health": (),
    "GET /health/ready": (),
    "POST /import": (
        Parameter("strategy", "string", place="query", default="add"),
        Parameter("source_remap", "string", place="query", high=200),
        Parameter("no_backup", "boolean", place="query", default=False),
    ),
    "POST /index/build": (Parameter("sources", "list[string]"),),
    "POST /maintenance/compact": (Parameter("threshold", "number", low=0.5, high=1, default=0.85),),
    "POST /maintenance/consolidate": (
        Parameter("dry_run", "boolean", place="query", default=True),
        Parameter("source_prefix", "string", place="query", default=""),
    ),
    "POST /maintenance/embedder/reload": (),
    "POST /maintenance/enforce-policies": (Parameter("dry_run", "boolean", place="query", default=True),),
    "POST /maintenance/prune": (Parameter("dry_run", "boolean", place="query", default=True),),
    "POST /maintenance/reembed": (Parameter("model", "string"),),
    "DELETE /memories": (Parameter("source", "string", place="query", required=True, low=1, high=500),),
    "GET /memories": (
        Parameter("offset", "integer", place="query", low=0, default=0),
        Parameter("limit", "integer", place="query", low=1, high=5000, default=20),
        Parameter("source", "string", place="query", high=500),
        Parameter("source_boundary", "boolean", place="query", default=False),
        Parameter("pinned", "boolean", place="query"),
    ),
    "GET /memories/count": (
        Parameter("source", "string", place="query", high=500),
        Parameter("source_boundary", "boolean", place="query", default=False),
    ),
    "POST /memory/add": (
        Parameter("deduplicate", "boolean", default=False),
        Parameter("metadata", "object"),
        Parameter("on_duplicate", "string", choices=("add", "skip", "supersede")),
        Parameter("source", "string", required=True, low=1, high=500),
        Parameter("text", "string", required=True, low=1, high=50000),
    ),
    "POST /memory/add-batch": (
        Parameter("deduplicate", "boolean", default=False),
        Parameter("memories", "list[AddMemoryRequest]", required=True, low=1, high=500),
    ),
    "POST /memory/archive-batch": (Parameter("ids", "list[integer]", required=True, low=1, high=1000),),
    "GET /memory/conflicts": (
        Parameter("limit", "integer", place="query", default=50),
        Parameter("offset", "integer", place="query", default=0),
    ),
    "POST /memory/conflicts/resolve": (
        Parameter("dry_run", "boolean", default=True),
        Parameter("max", "integer", low=0, high=10000, default=0),
    ),
    "POST /memory/deduplicate": (
        Parameter("dry_run", "boolean", default=True),
        Parameter("threshold", "number", low=0.5, high=1, default=0.9),
    ),
    "POST /memory/delete-batch": (Parameter("ids", "list[integer]", required=True, low=1, high=1000),),
    "POST /memory/delete-by-prefix": (
        Parameter("dry_run", "boolean", default=False),
        Parameter("skip_snapshot", "boolean", default=False),
        Parameter("source_prefix", "string", required=True, low=1, high=500),
    ),
    "POST /memory/delete-by-source": (
        Parameter("dry_run", "boolean", default=False),
        Parameter("skip_snapshot", "boolean", default=False),
        Parameter("source_pattern", "string", required=True, low=1, high=500),
    ),
    "POST /memory/extract": (
        Parameter("context", "string", default="stop"),
        Parameter("debug", "boolean", default=False),
        Parameter("document_at", "string"),
        Parameter("dry_run", "boolean", default=False),
        Parameter("messages", "string", required=True, low=1, high=120000),
        Parameter("source", "string", default=""),
    ),
    "POST /memory/extract/commit": (
        Parameter("actions", "list[object]", required=True),
        Parameter("source", "string", required=True, low=1, high=500),
    ),
    "GET /memory/extract/{job_id}": (Parameter("job_id", "string", place="path", required=True),),
    "POST /memory/get-batch": (Parameter("ids", "list[integer]", required=True, low=1, high=1000),),
    "POST /memory/is-novel": (
        Parameter("text", "string", required=True, low=1, high=50000),
        Parameter("threshold", "number", low=0, high=1, default=0.88),
    ),
    "POST /memory/merge": (
        Parameter("ids", "list[integer]", required=True, low=2),
        Parameter("merged_text", "string", required=True, low=1, high=50000),
        Parameter("source", "string", required=True, low=1, high=500),
    ),
    "POST /memory/missed": (
        Parameter("context", "string", high=10000),
        Parameter("source", "string", required=True, low=1, high=500),
        Parameter("text", "string", required=True, low=1, high=50000),
    ),
    "POST /memory/supersede": (
        Parameter("new_text", "string", required=True),
        Parameter("old_id", "integer", required=True),
        Parameter("source", "string", default=""),
    ),
    "POST /memory/upsert": (
        Parameter("key", "string", required=True, low=1, high=500),
        Parameter("metadata", "object"),
        Parameter("source", "string", required=True, low=1, high=500),
        Parameter("text", "string", required=True, low=1, high=50000),
    ),
    "POST /memory/upsert-batch": (Parameter("memories", "list[UpsertMemoryRequest]", required=True, low=1, high=1000),),
    "DELETE /memory/{memory_id}": (
        Parameter("memory_id", "integer", place="path", required=True),
        Parameter("force", "boolean", place="query", default=False),
    ),
    "GET /memory/{memory_id}": (Parameter("memory_id", "integer", place="path", required=True),),
    "PATCH /memory/{memory_id}": (
        Parameter("archived", "boolean"),
        Parameter("metadata_patch", "object"),
        Parameter("pinned", "boolean"),
        Parameter("source", "string", low=1, high=500),
        Parameter("text", "string", low=1, high=50000),
        Parameter("memory_id", "integer", place="path", required=True),
    ),
    "POST /memory/{memory_id}/link": (
        Parameter("to_id", "integer", required=True),
        Parameter("type", "string", required=True),
        Parameter("memory_id", "integer", place="path", required=True),
    ),
    "DELETE /memory/{memory_id}/link/{target_id}": (
        Parameter("memory_id", "integer", place="path", required=True),
        Parameter("target_id", "integer", place="path", required=True),
        Parameter("type", "string", place="query", default="related_to"),
    ),
    "GET /memory/{memory_id}/links": (
        Parameter("memory_id", "integer", place="path", required=True),
        Parameter("type", "string", place="query"),
        Parameter("include_incoming", "boolean", place="query", default=False),
    ),
    "POST /memory/{memory_id}/supersede": (
        Parameter("metadata", "object"),
        Parameter("source", "string", high=500),
        Parameter("text", "string", required=True, low=1, high=50000),
        Parameter("memory_id", "integer", place="path", required=True),
    ),
    "GET /metrics": (),
    "GET /metrics/extraction-quality": (PERIOD,),
    "GET /metrics/failures": (
        Parameter("type", "string", place="query", choices=("retrieval", "extraction"), default="retrieval"),
        Parameter("limit", "integer", place="query", low=1, high=100, default=10),
    ),
    "GET /metrics/graph-search": (PERIOD,),
    "GET /metrics/problem-queries": (
        Parameter("min_feedback", "integer", place="query", low=1, default=2),
        Parameter("limit", "integer", place="query", low=1, high=100, default=20),
    ),
    "GET /metrics/quality-summary": (PERIOD,),
    "GET /metrics/search-quality": (
        PERIOD,
        Parameter("source_prefix", "string", place="query", high=500),
    ),
    "GET /metrics/stale-memories": (
        Parameter("min_retrievals", "integer", place="query", low=1, default=3),
        Parameter("limit", "integer", place="query", low=1, high=100, default=20),
    ),
    "GET /metrics/temporal-search": (PERIOD,),
    "POST /restore": (Parameter("backup_name", "string", required=True, low=1, high=200),),
    "POST /search": SEARCH,
    "POST /search/batch": (Parameter("queries", "list[SearchRequest]", required=True, low=1, high=200),),
    "POST /search/evidence": SEARCH,
    "POST /search/explain": SEARCH,
    "POST /search/feedback": (
        Parameter("memory_id", "integer", required=True),
        Parameter("query", "string", default=""),
        Parameter("search_id", "string", default=""),
        Parameter("signal", "string", required=True, choices=("useful", "not_useful")),
    ),
    "GET /search/feedback/history": (
        Parameter("memory_id", "integer", place="query", required=True),
        Parameter("limit", "integer", place="query", low=1, high=200, default=50),
    ),
    "DELETE /search/feedback/{feedback_id}": (Parameter("feedback_id", "integer", place="path", required=True),),
    "GET /snapshots": (),
    "POST /snapshots": (),
    "POST /snapshots/{name}/restore": (Parameter("name", "string", place="path", required=True),),
    "GET /stats": (),
    "POST /sync/download": (
        Parameter("backup_name", "string", place="query"),
        Parameter("confirm", "boolean", place="query", default=False),
    ),
    "POST /sync/restore/{backup_name}": (
        Parameter("backup_name", "string", place="path", required=True),
        Parameter("confirm", "boolean", place="query", default=False),
    ),
    "GET /sync/snapshots": (),
    "GET /sync/status": (),
    "POST /sync/upload": (),
    "GET /usage": (
        PERIOD,
        Parameter("session_id", "string", place="query", high=200, default=""),
    ),
    "GET /webhooks": (),
    "POST /webhooks": (
        Parameter("events", "list[string]"),
        Parameter("url", "string", required=True),
    ),
    "DELETE /webhooks/{webhook_id}": (Parameter("webhook_id", "string", place="path", required=True),),
}
