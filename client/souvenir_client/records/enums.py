"""The closed sets of words that requests and answers use; made by `python -m scripts.build_client`."""

from __future__ import annotations

from typing import Literal

Action = Literal["allow", "flag", "redact", "reject"]
AddAction = Literal["added", "skipped", "superseded"]
Category = Literal["DECISION", "LEARNING", "DETAIL"]
ClaimKind = Literal["name", "description", "alias", "kind", "relation"]
ClaimedBy = Literal["caller", "model"]
EvidenceLevel = Literal["strong", "weak", "none"]
ExtractionMode = Literal["standard", "aggressive"]
FactsBy = Literal["caller", "model", "sentences"]
GraphFileFormat = Literal["json", "graphml"]
JobStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
MessageRole = Literal["user", "assistant", "system"]
NotMerged = Literal["changed", "too_long", "declined", "unusable", "longer", "numbers_differ"]
OnDuplicate = Literal["add", "skip", "supersede"]
OriginClass = Literal["user", "document", "tool", "assistant", "inferred", "recalled"]
PolicyRule = Literal["ttl", "confidence"]
RecordKind = Literal["message", "memory"]
Review = Literal["cross_source", "undated", "pinned_loser", "less_trusted"]
Role = Literal["read-only", "read-write", "admin"]
SearchStrategy = Literal["auto", "semantic", "keyword", "concept", "time"]
SkipReason = Literal["identical", "duplicate", "pinned_blocker"]
TagMatch = Literal["any", "all"]
