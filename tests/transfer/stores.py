"""A store with its export and import, without HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from souvenir.api.transfer_lines import ReadAs, WrittenAs
from souvenir.core.settings import Settings
from souvenir.core.types import Filters, Scope
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import Job
from souvenir.transfer.export import Exports
from souvenir.transfer.import_job import ImportHandler, ImportOrder, Strategy
from souvenir.transfer.lines import SourceRemap
from souvenir.transfer.services import TransferServices
from souvenir.transfer.spool import Spools
from tests.fake_embedder import FakeEmbedder

DEFAULT = Scope()
EVERYTHING = Filters(include_archived=True)
PATIENCE_S = 60.0


@dataclass
class Store:
    engine: MemoryEngine
    jobs: Jobs
    spools: Spools
    exports: Exports

    def export(self, scope: Scope = DEFAULT, filters: Filters = EVERYTHING, *, history: bool = False) -> bytes:
        return b"".join(self.exports.stream(scope, filters, WrittenAs(None, None, None), history=history))

    def submit(self, body: bytes, scope: Scope = DEFAULT, **order: Any) -> Job:
        spool = drain(self.spools.receive(in_pieces(body), scope.actor))
        with self.spools.until_submitted(spool.job_id):
            parameters = ImportOrder(**{"back_up": False, "by_admin": True, **order}).parameters(spool)
            return self.jobs.submit(ImportHandler.kind, scope, parameters, job_id=spool.job_id)

    def import_(self, body: bytes, scope: Scope = DEFAULT, **order: Any) -> dict[str, Any]:
        job = self.jobs.wait(self.submit(body, scope, **order).id, PATIENCE_S)
        assert job.result is not None, job.error
        return dict(job.result)

    def smart(self, body: bytes, **order: Any) -> dict[str, Any]:
        return self.import_(body, strategy=Strategy.SMART, **order)

    def remapped(self, body: bytes, old: str, new: str) -> dict[str, Any]:
        return self.import_(body, remap=SourceRemap(old, new))


@contextmanager
def open_store(
    data_dir: Path, *, start: bool = True, engine_class: type[MemoryEngine] = MemoryEngine, queue_max: int = 3
) -> Iterator[Store]:
    """:param start: Whether its jobs are run."""
    settings = Settings(data_dir=data_dir)
    with closing(engine_class.open(settings, FakeEmbedder())) as engine:
        parts = TransferServices.open(engine, settings, ReadAs())
        jobs = Jobs(engine, parts.handlers, queue_max=queue_max, retention_days=1.0, on_end=parts.spools.sweep)
        if start:
            jobs.start()
        with closing(jobs):
            yield Store(engine, jobs, parts.spools, parts.exports)


def drain(awaitable: Any) -> Any:
    """The result of what never really waits for anything but threads."""
    return asyncio.run(awaitable)


async def in_pieces(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def lines_of(export: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in export.split(b"\n") if line]


def without_header(export: bytes) -> bytes:
    return export.partition(b"\n")[2]


def ndjson(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
