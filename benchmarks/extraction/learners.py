"""Systems that extract from a transcript: the pipeline, its fallback without a model, and a store of every turn.

All go over HTTP to a service that was started for them alone. What is learned is read from the answers; a job that does
not end is an error of the run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from benchmarks.extraction.data_sets import LINE_END
from benchmarks.service import Client, ServiceFailed

JOB_TIMEOUT_S = 1800.0
FIRST_PAUSE_S, LAST_PAUSE_S = 0.02, 0.5
PAGE = 500

TOUCHING = frozenset({"update", "delete", "conflict"})
"""Actions that change a memory that is there, or cast doubt on it."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is learned from: lines of a transcript, said by one in one place.

    :param parts: A turn each; the transcript is their lines.
    """

    namespace: str
    source: str
    parts: Sequence[str]
    at: datetime | None

    @property
    def transcript(self) -> str:
        return LINE_END.join(self.parts)


@dataclass(frozen=True, slots=True)
class LearnedFact:
    """:param action: What became of it, in the words of the wire.

    :param memory_id: The memory that was made of it; None if none was.
    :param target: The memory that it touched, or that said it already.
    :param offset: Where its quote begins in the transcript; None if it has none there.
    """

    text: str
    action: str
    memory_id: int | None = None
    target: int | None = None
    category: str | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """:param answer: That of the job; empty where there was none."""

    facts: Sequence[LearnedFact]
    seconds: float
    answer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def holding(self) -> frozenset[int]:
        """The memories that say it: those that were made of it, and those that said it already."""
        made = {fact.memory_id for fact in self.facts if fact.memory_id is not None}
        return frozenset(
            made | {fact.target for fact in self.facts if fact.action == "noop" and fact.target is not None}
        )


class Learner(Protocol):
    @property
    def name(self) -> str: ...

    def learn(self, said: Said) -> Learned: ...


class Turns:
    """Every turn is a memory: nothing is lost, and nothing is told from anything."""

    name = "every turn stored"

    def __init__(self, client: Client) -> None:
        self._client = client

    def learn(self, said: Said) -> Learned:
        begin = time.perf_counter()
        ids = store(self._client, said.namespace, said.source, said.parts, said.at)
        facts, offset = [], 0
        for part, id_ in zip(said.parts, ids, strict=True):
            facts.append(LearnedFact(part, "add", memory_id=id_, offset=offset))
            offset += len(part) + len(LINE_END)
        return Learned(facts, time.perf_counter() - begin)


class Extracting:
    """`POST /memory/extract`, and the job until its end.

    :param mode: That every answer must have; None: any.
    """

    def __init__(self, name: str, client: Client, *, mode: str | None = None) -> None:
        self.name = name
        self._client = client
        self._mode = mode

    def learn(self, said: Said) -> Learned:
        begin = time.perf_counter()
        body = {"messages": said.transcript, "source": said.source, "debug": True, **_document_at(said.at)}
        status, answer = self._client.call("POST", "/memory/extract", body, namespace=said.namespace)
        if status != 202:
            raise ServiceFailed(f"/memory/extract was answered {status}: {answer}")
        job = self._ended(str(answer["job_id"]), said.namespace)
        result = job["result"]
        if self._mode is not None and result.get("mode") != self._mode:
            raise ServiceFailed(f"the service has a model; take EXTRACT_PROVIDER out of .env to measure {self.name}")
        return Learned([_fact(action) for action in result["actions"]], time.perf_counter() - begin, job)

    def _ended(self, job_id: str, namespace: str) -> Mapping[str, Any]:
        deadline, pause_s = time.monotonic() + JOB_TIMEOUT_S, FIRST_PAUSE_S
        while time.monotonic() < deadline:
            status, job = self._client.call("GET", f"/memory/extract/{job_id}", namespace=namespace)
            if status != 200 or job["status"] in ("failed", "cancelled"):
                raise ServiceFailed(f"the extraction ended with {status}: {job}")
            if job["status"] == "completed":
                return dict(job)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LAST_PAUSE_S)
        raise ServiceFailed(f"the extraction {job_id} did not end in {JOB_TIMEOUT_S:.0f} s")


def store(
    client: Client, namespace: str, source: str, texts: Sequence[str], at: datetime | None = None
) -> Sequence[int]:
    """The ids of the texts as memories of that source."""
    memories = [{"text": text, "source": source, "metadata": _document_at(at)} for text in texts]
    ids: list[int] = []
    for start in range(0, len(memories), PAGE):
        body = {"memories": memories[start : start + PAGE]}
        status, answer = client.call("POST", "/memory/add-batch", body, namespace=namespace)
        if status != 200:
            raise ServiceFailed(f"/memory/add-batch was answered {status}: {answer}")
        ids += answer["ids"]
    return ids


def standing(client: Client, namespace: str) -> dict[int, str]:
    """The memories that are not archived, by id."""
    found: dict[int, str] = {}
    offset = 0
    while True:
        path = f"/memories?offset={offset}&limit={PAGE}"
        status, answer = client.call("GET", path, namespace=namespace)
        if status != 200:
            raise ServiceFailed(f"{path} was answered {status}: {answer}")
        found |= {memory["id"]: memory["text"] for memory in answer["memories"] if not memory.get("archived")}
        offset += PAGE
        if offset >= answer["total"]:
            return found


def search(client: Client, namespace: str, source: str, question: str, top_k: int) -> Sequence[int]:
    """The ids of what is found in one source, best first."""
    body = {"query": question, "k": top_k, "source_prefix": source, "source_boundary": True}
    status, answer = client.call("POST", "/search", body, namespace=namespace)
    if status != 200:
        raise ServiceFailed(f"/search was answered {status}: {answer}")
    return [hit["id"] for hit in answer["results"]]


def _fact(action: Mapping[str, Any]) -> LearnedFact:
    """What an action of a job's result says; the field that names a memory is the action's own."""
    fact = action.get("fact") or {}
    span = fact.get("span")
    targets = [action[name] for name in ("old_id", "conflicts_with", "existing_id") if action.get(name) is not None]
    return LearnedFact(
        str(action.get("text", "")),
        str(action["action"]),
        memory_id=action.get("new_id", action.get("id")),
        target=targets[0] if targets else None,
        category=fact.get("category"),
        offset=span[0] if span else None,
    )


def _document_at(at: datetime | None) -> dict[str, str]:
    return {} if at is None else {"document_at": at.isoformat()}
