"""What keeps the store of one engine in order, and the handlers of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llm_provider import LLMProvider
from memory_engine import MemoryEngine
from souvenir.jobs.running import JobHandler
from souvenir.settings import Settings
from souvenir.tending.compaction import Compaction
from souvenir.tending.conflicts import Conflicts
from souvenir.tending.consolidation import Consolidation
from souvenir.tending.policies import PolicyEnforcement
from souvenir.tending.profiles import ExtractionProfiles
from souvenir.tending.pruning import Pruning


@dataclass(frozen=True, slots=True)
class TendingParts:
    profiles: ExtractionProfiles
    conflicts: Conflicts
    compaction: Compaction
    pruning: Pruning
    policies: PolicyEnforcement
    consolidation: Consolidation

    @classmethod
    def open(cls, engine: MemoryEngine, provider: LLMProvider | None, settings: Settings) -> TendingParts:
        return cls(
            ExtractionProfiles(engine),
            Conflicts(engine),
            Compaction(engine),
            Pruning(engine),
            PolicyEnforcement(engine),
            Consolidation(engine, provider, settings),
        )

    @property
    def handlers(self) -> Sequence[JobHandler]:
        """Of those that have no lane of their own."""
        return self.compaction, self.pruning, self.policies
