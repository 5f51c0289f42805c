"""Operator actions during the durability benchmark: keys, imports, changes of the embedding model.

An import that was answered must be there wholly, each line once, however often the service was killed meanwhile. One
whose answer was cut off may be there wholly or in part or not at all, each line at most once.
"""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.service import Client, ServiceFailed

IMPORT_LINES = (5, 60)
IMPORTS_WAITING_MAX = 3
IMPORT_SOURCE = "operator/import"
JOBS_TIMEOUT_S = 300.0
FINISHED = frozenset({"completed", "failed", "cancelled"})


@dataclass(slots=True)
class Operated:
    """What the operator was told.

    `stored` texts must be there once; those of `imports`, which have not come to their end, and the `doubtful` ones,
    whose import was not answered, at most once.
    """

    stored: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    imports: dict[str, list[str]] = field(default_factory=dict)
    reembeds: set[str] = field(default_factory=set)
    completed: Counter[str] = field(default_factory=Counter)
    killed: set[str] = field(default_factory=set)
    resumed: Counter[str] = field(default_factory=Counter)


class Operator(threading.Thread):
    """Imports and re-embeds until the service dies or `stop` is set."""

    def __init__(self, client: Client, operated: Operated, models: list[str], seed: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._client = client
        self._operated = operated
        self._models = models
        self._random = random.Random(seed)
        self._stopping = stop
        self.failure: str | None = None

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                if len(self._operated.imports) < IMPORTS_WAITING_MAX:
                    self._import()
                if not self._operated.reembeds:
                    self._reembed()
                self._stopping.wait(self._random.uniform(0.0, 0.4))
        except OSError:
            return  # the service is gone; what was under way is doubtful
        except ServiceFailed as error:
            self.failure = str(error)
        finally:
            self._client.close()

    def _import(self) -> None:
        mark = uuid.UUID(int=self._random.getrandbits(128)).hex
        texts = [f"line {number} of import {mark}" for number in range(self._random.randint(*IMPORT_LINES))]
        self._operated.doubtful.update(texts)
        lines = "\n".join(json.dumps({"text": text, "source": IMPORT_SOURCE}) for text in texts)
        answer = self._accepted(self._client.send_lines("/import?no_backup=true&wait_s=0", lines))
        self._operated.doubtful.difference_update(texts)
        if "job_id" in answer:
            self._operated.imports[answer["job_id"]] = texts
        else:
            self._operated.stored.update(texts)
            self._operated.completed["import"] += 1

    def _reembed(self) -> None:
        model = self._random.choice(self._models)
        self._operated.reembeds.add(
            self._accepted(self._client.call("POST", "/maintenance/reembed?wait_s=0", {"model": model}))["job_id"]
        )

    @staticmethod
    def _accepted(answered: tuple[int, Any]) -> Any:
        status, answer = answered
        if status not in (200, 202):
            raise ServiceFailed(f"the operator was answered {status}: {answer}")
        return answer


def settle_jobs(client: Client, operated: Operated, *, wait: bool) -> list[str]:
    """Look after a start what became of the jobs, or wait for their end; one sentence a job that did not complete."""
    problems: list[str] = []
    deadline = time.monotonic() + JOBS_TIMEOUT_S
    for job_id in [*operated.imports, *operated.reembeds]:
        kind = "import" if job_id in operated.imports else "reembed"
        status, job = client.call("GET", f"/jobs/{job_id}")
        while status == 200 and job["status"] not in FINISHED:
            operated.killed.add(job_id)
            if not wait or time.monotonic() > deadline:
                break
            time.sleep(0.05)
            status, job = client.call("GET", f"/jobs/{job_id}")
        if status == 200 and job["status"] not in FINISHED and not wait:
            continue
        if status != 200 or job["status"] != "completed":
            problems.append(f"job {job_id} ({kind}) was answered {status}: {job}")
        operated.completed[kind] += 1
        operated.resumed[kind] += job_id in operated.killed
        operated.stored.update(operated.imports.pop(job_id, ()))
        operated.reembeds.discard(job_id)
    return problems


def compare_imports(operated: Operated, stored: dict[int, str]) -> tuple[list[str], list[str], set[int]]:
    """What was lost, what is there too often, and the ids of all that the operator imported."""
    running = {text for texts in operated.imports.values() for text in texts}
    ours = operated.stored | operated.doubtful | running
    ids = {id_ for id_, text in stored.items() if text in ours}
    counts = Counter(stored[id_] for id_ in ids)
    lost = [f"the imported line {text!r} is gone" for text in sorted(operated.stored - counts.keys())]
    doubled = [f"the imported line {text!r} is there {count} times" for text, count in counts.items() if count > 1]
    return lost, doubled, ids


def second_model(model: Path, folder: Path) -> Path:
    """The same model under another name, and so of another vector space to the service."""
    return Path(shutil.copytree(model, folder, ignore=shutil.ignore_patterns("manifest.json")))
