"""What the service answers, as frozen records; made by `python -m scripts.build_client`.

A module is imported when one of its records is first used: making classes is most of what it costs to load the client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from souvenir_client.records.agents import (
        AccessRecord,
        AgentPage,
        AgentRecord,
        AgentSearchItem,
        AgentSearchResponse,
        AgentStatsResponse,
        ChangedNeighbours,
        ConceptHistory,
        ConceptMonth,
        ConceptPair,
        ConnectedConcept,
        GraphDocument,
        GraphNode,
        GraphRelation,
        InsightsRecord,
        NamedConcept,
        NeighbourRecord,
        NeighbourShift,
        NetworkRecord,
        RemovedResponse,
        SaidInTime,
        SessionLengths,
        SpreadRecord,
        StateConceptsResponse,
        TopicDetailsRecord,
        TopicMessage,
        TopicPage,
        TopicRecord,
        TopicSession,
        TopicTerm,
        UsageRecord,
        UserPage,
        UserRecord,
    )
    from souvenir_client.records.audit import AuditRecord, AuditResponse, PurgeResponse
    from souvenir_client.records.backup import (
        BackupRecord,
        BackupResponse,
        BackupsResponse,
        RestoreResponse,
        SnapshotRecord,
        SnapshotResponse,
        SnapshotRestoreResponse,
        SnapshotsResponse,
    )
    from souvenir_client.records.blocks import BlockHistoryPage, BlockVersionRecord, DeletedBlock
    from souvenir_client.records.common import (
        CountResponse,
        Explanation,
        FoundMessage,
        JobAccepted,
        LinkRecord,
        MemoryBlock,
        MemoryRecord,
        MessageRecord,
        RemovedCounts,
        SearchHit,
        SessionRecord,
        Term,
        TimePeriod,
        TimeReading,
    )
    from souvenir_client.records.concepts import (
        ConceptDetailsRecord,
        ConceptPage,
        ConceptRecord,
        ConceptRelation,
        ConceptRelations,
        DescribeJob,
        DescribeResponse,
        DroppedClaims,
        ModelClaim,
        RelatedConcept,
        RelatedConcepts,
        SummaryResponse,
        SummaryStatistics,
        UndoDescribeResponse,
    )
    from souvenir_client.records.conflicts import (
        ConflictList,
        ConflictRecord,
        FlagRecord,
        ResolveConflictsResponse,
        ReviewRecord,
        SettledRecord,
    )
    from souvenir_client.records.context import ContextResponse, DroppedCounts
    from souvenir_client.records.delete import DeleteBatchResponse, DeleteManyResponse, DeleteResponse
    from souvenir_client.records.duplicates import (
        DeduplicateResponse,
        DuplicatePairRecord,
        IsNovelResponse,
        SimilarMemory,
    )
    from souvenir_client.records.extraction import (
        DiffResponse,
        ExtractAccepted,
        ExtractJob,
        ExtractResult,
        ExtractStatus,
        FactPair,
        StoredTurns,
        UndoResponse,
    )
    from souvenir_client.records.extraction_profiles import ProfileDeleted, ProfileRecord, RulesRecord
    from souvenir_client.records.facts import FactRecord, FactsResponse, ListedFact, SetFactsResponse, SplitResponse
    from souvenir_client.records.figures import (
        ExtractFigures,
        MemoryMetrics,
        MemoryTrend,
        MetricsResponse,
        ProcessMemory,
        RequestMetrics,
        RouteMetrics,
        StatsResponse,
        TotalSample,
        UsageResponse,
    )
    from souvenir_client.records.graph import EntityRecord, GraphResponse, RelationRecord, StoreGraphResponse
    from souvenir_client.records.health import HealthResponse, ReadyResponse
    from souvenir_client.records.jobs import JobRecord, JobsResponse
    from souvenir_client.records.keys import (
        KeyRecord,
        KeysResponse,
        NewKeyResponse,
        OwnKeyResponse,
        RevokeKeyResponse,
        UpdateKeyResponse,
    )
    from souvenir_client.records.links import AddLinkResponse, LinksResponse, ListedLink, RemoveLinkResponse
    from souvenir_client.records.locrits import (
        ConversationStored,
        LocritAiResult,
        LocritAiSearchResponse,
        LocritConcept,
        LocritConceptDetails,
        LocritConcepts,
        LocritContext,
        LocritDone,
        LocritHistory,
        LocritMemories,
        LocritMemory,
        LocritMemoryAdded,
        LocritMessage,
        LocritMessageAnswer,
        LocritRelated,
        LocritRelatedConcepts,
        LocritResult,
        LocritSearchResponse,
        LocritSession,
        LocritSessionAnswer,
        LocritSessions,
        LocritStatistics,
        LocritStats,
        LocritSummary,
        StoredDetails,
    )
    from souvenir_client.records.maintenance import (
        ClusterRecord,
        CompactResponse,
        ConsolidateResponse,
        MergedRecord,
        NearMemory,
        PolicyAction,
        PolicyCounts,
        PolicyResponse,
        PolicySummary,
        PruneResponse,
        ReembedResponse,
        ReloadResponse,
        SkippedRecord,
    )
    from souvenir_client.records.messages import ExplainedMessage, ExplainMessagesResponse, MessageBatch, SessionPage
    from souvenir_client.records.privacy import EraseResponse, PolicyRecord, RescanResponse
    from souvenir_client.records.read import GetBatchResponse, HistoryResponse, MemoryChange, MemoryPage
    from souvenir_client.records.replace import ArchiveBatchResponse, MergeResponse, SupersedeResponse
    from souvenir_client.records.search import (
        Candidate,
        ExplainedHit,
        ExplainResponse,
        GraphUse,
        ScoringWeights,
        SearchBatchResponse,
        SearchExplanation,
        SearchResponse,
    )
    from souvenir_client.records.tags import ChangedTagResponse, TagsResponse, UsedTag
    from souvenir_client.records.tiers import (
        ClearedResponse,
        ForgetResponse,
        LongTermHit,
        PreferencePage,
        PreferenceRecord,
        RecallResponse,
        RecallSearchResponse,
        RememberResponse,
        SessionContextResponse,
        WindowRecord,
        WindowResponse,
    )
    from souvenir_client.records.transfer import BuildResponse, FileError, ImportResponse, LineError
    from souvenir_client.records.write import (
        AddBatchResponse,
        AddMemoryResponse,
        PatchMemoryResponse,
        UpsertBatchResponse,
        UpsertResponse,
    )

__all__ = [
    "AccessRecord", "AddBatchResponse", "AddLinkResponse", "AddMemoryResponse", "AgentPage", "AgentRecord",
    "AgentSearchItem", "AgentSearchResponse", "AgentStatsResponse", "ArchiveBatchResponse", "AuditRecord",
    "AuditResponse", "BackupRecord", "BackupResponse", "BackupsResponse", "BlockHistoryPage",
    "BlockVersionRecord", "BuildResponse", "Candidate", "ChangedNeighbours", "ChangedTagResponse",
    "ClearedResponse", "ClusterRecord", "CompactResponse", "ConceptDetailsRecord", "ConceptHistory",
    "ConceptMonth", "ConceptPage", "ConceptPair", "ConceptRecord", "ConceptRelation", "ConceptRelations",
    "ConflictList", "ConflictRecord", "ConnectedConcept", "ConsolidateResponse", "ContextResponse",
    "ConversationStored", "CountResponse", "DeduplicateResponse", "DeleteBatchResponse", "DeleteManyResponse",
    "DeleteResponse", "DeletedBlock", "DescribeJob", "DescribeResponse", "DiffResponse", "DroppedClaims",
    "DroppedCounts", "DuplicatePairRecord", "EntityRecord", "EraseResponse", "ExplainMessagesResponse",
    "ExplainResponse", "ExplainedHit", "ExplainedMessage", "Explanation", "ExtractAccepted", "ExtractFigures",
    "ExtractJob", "ExtractResult", "ExtractStatus", "FactPair", "FactRecord", "FactsResponse", "FileError",
    "FlagRecord", "ForgetResponse", "FoundMessage", "GetBatchResponse", "GraphDocument", "GraphNode",
    "GraphRelation", "GraphResponse", "GraphUse", "HealthResponse", "HistoryResponse", "ImportResponse",
    "InsightsRecord", "IsNovelResponse", "JobAccepted", "JobRecord", "JobsResponse", "KeyRecord", "KeysResponse",
    "LineError", "LinkRecord", "LinksResponse", "ListedFact", "ListedLink", "LocritAiResult",
    "LocritAiSearchResponse", "LocritConcept", "LocritConceptDetails", "LocritConcepts", "LocritContext",
    "LocritDone", "LocritHistory", "LocritMemories", "LocritMemory", "LocritMemoryAdded", "LocritMessage",
    "LocritMessageAnswer", "LocritRelated", "LocritRelatedConcepts", "LocritResult", "LocritSearchResponse",
    "LocritSession", "LocritSessionAnswer", "LocritSessions", "LocritStatistics", "LocritStats", "LocritSummary",
    "LongTermHit", "MemoryBlock", "MemoryChange", "MemoryMetrics", "MemoryPage", "MemoryRecord", "MemoryTrend",
    "MergeResponse", "MergedRecord", "MessageBatch", "MessageRecord", "MetricsResponse", "ModelClaim",
    "NamedConcept", "NearMemory", "NeighbourRecord", "NeighbourShift", "NetworkRecord", "NewKeyResponse",
    "OwnKeyResponse", "PatchMemoryResponse", "PolicyAction", "PolicyCounts", "PolicyRecord", "PolicyResponse",
    "PolicySummary", "PreferencePage", "PreferenceRecord", "ProcessMemory", "ProfileDeleted", "ProfileRecord",
    "PruneResponse", "PurgeResponse", "ReadyResponse", "RecallResponse", "RecallSearchResponse",
    "ReembedResponse", "RelatedConcept", "RelatedConcepts", "RelationRecord", "ReloadResponse",
    "RememberResponse", "RemoveLinkResponse", "RemovedCounts", "RemovedResponse", "RequestMetrics",
    "RescanResponse", "ResolveConflictsResponse", "RestoreResponse", "ReviewRecord", "RevokeKeyResponse",
    "RouteMetrics", "RulesRecord", "SaidInTime", "ScoringWeights", "SearchBatchResponse", "SearchExplanation",
    "SearchHit", "SearchResponse", "SessionContextResponse", "SessionLengths", "SessionPage", "SessionRecord",
    "SetFactsResponse", "SettledRecord", "SimilarMemory", "SkippedRecord", "SnapshotRecord", "SnapshotResponse",
    "SnapshotRestoreResponse", "SnapshotsResponse", "SplitResponse", "SpreadRecord", "StateConceptsResponse",
    "StatsResponse", "StoreGraphResponse", "StoredDetails", "StoredTurns", "SummaryResponse", "SummaryStatistics",
    "SupersedeResponse", "TagsResponse", "Term", "TimePeriod", "TimeReading", "TopicDetailsRecord",
    "TopicMessage", "TopicPage", "TopicRecord", "TopicSession", "TopicTerm", "TotalSample",
    "UndoDescribeResponse", "UndoResponse", "UpdateKeyResponse", "UpsertBatchResponse", "UpsertResponse",
    "UsageRecord", "UsageResponse", "UsedTag", "UserPage", "UserRecord", "WindowRecord", "WindowResponse",
]  # fmt: skip

_RECORDS = {
    "agents": (
        "AccessRecord AgentPage AgentRecord AgentSearchItem AgentSearchResponse AgentStatsResponse "
        "ChangedNeighbours ConceptHistory ConceptMonth ConceptPair ConnectedConcept GraphDocument GraphNode "
        "GraphRelation InsightsRecord NamedConcept NeighbourRecord NeighbourShift NetworkRecord "
        "RemovedResponse SaidInTime SessionLengths SpreadRecord StateConceptsResponse TopicDetailsRecord "
        "TopicMessage TopicPage TopicRecord TopicSession TopicTerm UsageRecord UserPage UserRecord"
    ),
    "audit": ("AuditRecord AuditResponse PurgeResponse"),
    "backup": (
        "BackupRecord BackupResponse BackupsResponse RestoreResponse SnapshotRecord SnapshotResponse "
        "SnapshotRestoreResponse SnapshotsResponse"
    ),
    "blocks": ("BlockHistoryPage BlockVersionRecord DeletedBlock"),
    "common": (
        "CountResponse Explanation FoundMessage JobAccepted LinkRecord MemoryBlock MemoryRecord MessageRecord "
        "RemovedCounts SearchHit SessionRecord Term TimePeriod TimeReading"
    ),
    "concepts": (
        "ConceptDetailsRecord ConceptPage ConceptRecord ConceptRelation ConceptRelations DescribeJob "
        "DescribeResponse DroppedClaims ModelClaim RelatedConcept RelatedConcepts SummaryResponse "
        "SummaryStatistics UndoDescribeResponse"
    ),
    "conflicts": ("ConflictList ConflictRecord FlagRecord ResolveConflictsResponse ReviewRecord SettledRecord"),
    "context": ("ContextResponse DroppedCounts"),
    "delete": ("DeleteBatchResponse DeleteManyResponse DeleteResponse"),
    "duplicates": ("DeduplicateResponse DuplicatePairRecord IsNovelResponse SimilarMemory"),
    "extraction": (
        "DiffResponse ExtractAccepted ExtractJob ExtractResult ExtractStatus FactPair StoredTurns UndoResponse"
    ),
    "extraction_profiles": ("ProfileDeleted ProfileRecord RulesRecord"),
    "facts": ("FactRecord FactsResponse ListedFact SetFactsResponse SplitResponse"),
    "figures": (
        "ExtractFigures MemoryMetrics MemoryTrend MetricsResponse ProcessMemory RequestMetrics RouteMetrics "
        "StatsResponse TotalSample UsageResponse"
    ),
    "graph": ("EntityRecord GraphResponse RelationRecord StoreGraphResponse"),
    "health": ("HealthResponse ReadyResponse"),
    "jobs": ("JobRecord JobsResponse"),
    "keys": ("KeyRecord KeysResponse NewKeyResponse OwnKeyResponse RevokeKeyResponse UpdateKeyResponse"),
    "links": ("AddLinkResponse LinksResponse ListedLink RemoveLinkResponse"),
    "locrits": (
        "ConversationStored LocritAiResult LocritAiSearchResponse LocritConcept LocritConceptDetails "
        "LocritConcepts LocritContext LocritDone LocritHistory LocritMemories LocritMemory LocritMemoryAdded "
        "LocritMessage LocritMessageAnswer LocritRelated LocritRelatedConcepts LocritResult "
        "LocritSearchResponse LocritSession LocritSessionAnswer LocritSessions LocritStatistics LocritStats "
        "LocritSummary StoredDetails"
    ),
    "maintenance": (
        "ClusterRecord CompactResponse ConsolidateResponse MergedRecord NearMemory PolicyAction PolicyCounts "
        "PolicyResponse PolicySummary PruneResponse ReembedResponse ReloadResponse SkippedRecord"
    ),
    "messages": ("ExplainMessagesResponse ExplainedMessage MessageBatch SessionPage"),
    "privacy": ("EraseResponse PolicyRecord RescanResponse"),
    "read": ("GetBatchResponse HistoryResponse MemoryChange MemoryPage"),
    "replace": ("ArchiveBatchResponse MergeResponse SupersedeResponse"),
    "search": (
        "Candidate ExplainResponse ExplainedHit GraphUse ScoringWeights SearchBatchResponse SearchExplanation "
        "SearchResponse"
    ),
    "tags": ("ChangedTagResponse TagsResponse UsedTag"),
    "tiers": (
        "ClearedResponse ForgetResponse LongTermHit PreferencePage PreferenceRecord RecallResponse "
        "RecallSearchResponse RememberResponse SessionContextResponse WindowRecord WindowResponse"
    ),
    "transfer": ("BuildResponse FileError ImportResponse LineError"),
    "write": ("AddBatchResponse AddMemoryResponse PatchMemoryResponse UpsertBatchResponse UpsertResponse"),
}
"""The records of each module."""

_PLACES = {name: module for module, names in _RECORDS.items() for name in names.split()}


if not TYPE_CHECKING:  # a checker that saw it would let every name pass

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
