"""What keeps the store of one engine in order, and the handlers of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_engine import MemoryEngine
from souvenir.jobs.running import JobHandler
from souvenir.tending.compaction import Compaction
from souvenir.tending.conflicts import Conflicts
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

    @classmethod
    def open(cls, engine: MemoryEngine) -> TendingParts:
        return cls(
            ExtractionProfiles(engine),
            Conflicts(engine),
            Compaction(engine),
            Pruning(engine),
            PolicyEnforcement(engine),
        )

    @property
    def handlers(self) -> Sequence[JobHandler]:
        return self.compaction, self.pruning, self.policies
