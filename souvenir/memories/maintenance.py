"""The maintenance services of one engine, and the handlers of their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from souvenir.core.settings import Settings
from souvenir.jobs.handler import JobHandler
from souvenir.memories.conflicts import Conflicts
from souvenir.memories.consolidation import Consolidation
from souvenir.memories.deduplication import Compaction
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.extraction_profiles import ExtractionProfiles
from souvenir.memories.folders import FolderRenaming
from souvenir.memories.retention import PolicyEnforcement, Pruning
from souvenir.models.llm.provider import LLMProvider


@dataclass(frozen=True, slots=True)
class MaintenanceServices:
    profiles: ExtractionProfiles
    conflicts: Conflicts
    compaction: Compaction
    pruning: Pruning
    policies: PolicyEnforcement
    consolidation: Consolidation
    folders: FolderRenaming

    @classmethod
    def open(cls, engine: MemoryEngine, provider: LLMProvider | None, settings: Settings) -> MaintenanceServices:
        return cls(
            ExtractionProfiles(engine),
            Conflicts(engine),
            Compaction(engine),
            Pruning(engine),
            PolicyEnforcement(engine),
            Consolidation(engine, provider, settings),
            FolderRenaming(engine),
        )

    @property
    def handlers(self) -> Sequence[JobHandler]:
        """The handlers without a queue of their own."""
        return self.compaction, self.pruning, self.policies, self.folders
