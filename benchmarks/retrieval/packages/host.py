"""Starts a package in its environment, with the same texts and questions as the service."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import Any

from benchmarks.report import percentile_ms, progress
from benchmarks.retrieval.data_sets import DataSet, Question
from benchmarks.retrieval.metrics import Found
from benchmarks.retrieval.packages.endpoint import serving
from benchmarks.retrieval.packages.environments import Package, PackageFailed, confined, python_of
from benchmarks.retrieval.rankings import Rankings, ask
from benchmarks.retrieval.vector_cache import CachedEmbedder

GUEST = Path(__file__).with_name("guest.py")
BATCH = 100
RUN_TIMEOUT_S = 1800.0
"""Of one package on one set."""


@dataclass(frozen=True, slots=True)
class Guest:
    """A running package."""

    process: subprocess.Popen[str]
    log: Path
    seconds: list[float] = field(default_factory=list)

    def add(self, scope: str, items: Sequence[Any]) -> float:
        return float(self._ask({"add": scope, "items": items})["seconds"])

    def search(self, question: Question, top_k: int) -> Found:
        answer = self._ask({"search": question.scope, "text": question.text, "top_k": top_k})
        self.seconds.append(answer["seconds"])
        return [(id_, score) for id_, score in answer["found"]]

    def _ask(self, asked: Any) -> Any:
        if self.process.stdin is None or self.process.stdout is None:
            raise TypeError("the package was started without pipes")
        try:
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError) as error:
            lines = [line for line in self.log.read_text(encoding="utf-8").splitlines() if line.strip()]
            raise PackageFailed(" ".join(lines[-1:]) or f"it took longer than {RUN_TIMEOUT_S:.0f} s") from error


def measure_package(package: Package, data_set: DataSet, embedder: CachedEmbedder, folder: Path) -> Rankings:
    """What it answers. That is kept in the folder for the next run, since nothing of it depends on our own code.

    :raises PackageFailed: If it cannot be installed or run.
    """
    kept = folder.resolve() / package.name / f"{data_set.name}_{_fingerprint(package, data_set, embedder)}.json"
    if kept.exists():
        progress(f"{package.name}: answers of an earlier run")
        stored = json.loads(kept.read_text(encoding="utf-8"))
        return Rankings(package.name, stored["found"], stored["costs"])
    python = python_of(package, folder)
    with (
        tempfile.TemporaryDirectory(prefix=f"{package.name}-", dir=kept.parent) as home,
        serving(embedder) as address,
        _started(package, python, Path(home), address, embedder.dim) as guest,
    ):
        stored_s = _store(data_set, guest)
        progress(f"{package.name}: stored in {stored_s:.0f} s")
        answers = ask(package.name, guest, data_set)
    costs = {
        "stored a second": len(data_set) / stored_s,
        **{f"search p{percent} ms": percentile_ms(guest.seconds, percent) for percent in (50, 95)},
    }
    kept.write_text(json.dumps({"found": answers.found, "costs": costs}), encoding="utf-8")
    return Rankings(answers.name, answers.found, costs)


def _store(data_set: DataSet, guest: Guest) -> float:
    """The seconds that it took."""
    stored_s = 0.0
    for scope, documents in data_set.documents.items():
        items = [
            {"id": one.id, "text": one.text, "time": one.occurred_at and one.occurred_at.isoformat()}
            for one in documents
        ]
        for start in range(0, len(items), BATCH):
            stored_s += guest.add(scope, items[start : start + BATCH])
    return stored_s


def _fingerprint(package: Package, data_set: DataSet, embedder: CachedEmbedder) -> str:
    """Of everything that its answers depend on."""
    parts = (package, embedder.model_id, dict(data_set.documents), data_set.questions, GUEST.read_bytes())
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@contextmanager
def _started(package: Package, python: Path, home: Path, address: str, dim: int) -> Iterator[Guest]:
    log = home.with_name("run.log")
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [str(python), str(GUEST), package.name, address, str(dim), str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            env=dict(confined(home)),
        )
    deadline = Timer(RUN_TIMEOUT_S, process.kill)
    deadline.start()
    try:
        yield Guest(process, log)
    finally:
        deadline.cancel()
        process.kill()
        process.communicate()
