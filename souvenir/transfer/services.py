"""Data transfer of one engine: its exports, import spools, workspace, and their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from souvenir.core.settings import Settings
from souvenir.jobs.handler import JobHandler
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import LLMProvider
from souvenir.transfer.export import Exports
from souvenir.transfer.import_job import ImportHandler
from souvenir.transfer.index_build import BuildHandler
from souvenir.transfer.lines import ImportFormat
from souvenir.transfer.spool import Spools
from souvenir.transfer.workspace import Workspace


@dataclass(frozen=True, slots=True)
class TransferServices:
    exports: Exports
    spools: Spools
    workspace: Workspace
    handlers: Sequence[JobHandler]

    @classmethod
    def open(
        cls,
        engine: MemoryEngine,
        settings: Settings,
        read_as: ImportFormat,
        provider: LLMProvider | None = None,
    ) -> TransferServices:
        """Open the services and delete spools without an unfinished job; call it before jobs run."""
        spools = Spools(engine, settings.import_dir, max_bytes=settings.import_max_bytes)
        spools.sweep()
        workspace = Workspace(settings.workspace_dir)
        handlers: list[JobHandler] = [ImportHandler(engine, spools, read_as, provider), BuildHandler(engine, workspace)]
        return cls(Exports(engine, settings.data_dir), spools, workspace, handlers)
