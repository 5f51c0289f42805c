"""Clients that write and read on random replicas, each with a ledger of its own items.

A client alone changes its items, so it knows what a read on any replica must show: what was acknowledged before.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from random import Random
from typing import Any

from benchmarks.faults.ledger import Change, Item, Ledger, marked, marks_of
from benchmarks.faults.writers import FORGOTTEN, OWNED_MAX, SOURCE, ids_in
from benchmarks.replica_faults.cluster import Replica
from benchmarks.replica_faults.registers import VALUES, Register
from benchmarks.replica_faults.requests import Attempt, Caller, Fate
from benchmarks.service import ServiceFailed

JOBS_WAITING_MAX = 2
BATCH_MAX = 6


@dataclass(slots=True)
class Client:
    """One thread's requests. `stale` has a sentence for each read that missed what was acknowledged before it.

    :param late: Ids of memories for which a request without an answer may still be carried out: they are not changed
        again, as that request could then come last.
    """

    number: int
    seed: int
    replicas: Sequence[Replica]
    ledger: Ledger = field(default_factory=Ledger)
    stale: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    late: set[str] = field(default_factory=set)
    dice: Random = field(init=False)
    caller: Caller = field(init=False)
    _numbers: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)
        self.caller = Caller(self.replicas, self.dice)

    def run(self, registers: Sequence[Register], stop: threading.Event) -> None:
        """Send requests until it is told to stop."""
        try:
            while not stop.is_set():
                self.step(registers)
        except ServiceFailed as error:
            self.failures.append(f"client {self.number}: {error}")

    def step(self, registers: Sequence[Register]) -> None:
        chance = self.dice.random()
        if chance < 0.5:
            self._use_register(registers)
        elif chance < 0.7:
            self._look()
        elif chance < 0.72:
            self._erase()
        else:
            self._write()

    def _use_register(self, registers: Sequence[Register]) -> None:
        register = self.dice.choice(registers)
        if register.is_full:
            self._look()
        elif self.dice.random() < 0.4:
            register.write(self.caller, f"value{next(VALUES)}")
        else:
            register.read(self.caller)

    # --- writes ------------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        mine = self.ledger.of_kind("memory")
        if not mine or self.dice.random() < 0.8 - 0.6 * len(mine) / OWNED_MAX:
            self._add()
            return
        item = self.dice.choice(mine)
        id_ = self.ledger.there[item] or ""
        if self.dice.random() < 0.5 and id_ not in self.late:
            self._update(item, id_)
        else:
            self._delete(item, id_)

    def _add(self, namespace: str | None = None, most: int = BATCH_MAX) -> list[tuple[Item, object]]:
        items = tuple(Item("memory", marked(self.dice)) for _ in range(self.dice.randint(1, most)))
        bodies = [{"text": item.content, "source": SOURCE} for item in items]
        path, body = ("/memory/add", bodies[0]) if len(items) == 1 else ("/memory/add-batch", {"memories": bodies})
        change = Change(added=items)
        self.ledger.begin(change)
        answer, _ = self.caller.write("POST", path, body, namespace=namespace, once=self._new_key())
        self.ledger.acknowledge(change, ids_in(answer))
        self._must_find(items[-1], namespace)
        return list(zip(items, ids_in(answer), strict=True))

    def _update(self, item: Item, id_: str) -> None:
        new = Item("memory", marked(self.dice))
        change = Change((item,), (new,))
        self.ledger.begin(change)
        answer, is_repeated = self.caller.write("PATCH", f"/memory/{id_}", {"text": new.content})
        if answer is None:
            raise ServiceFailed(f"memory {id_} is lost: PATCH was answered 404")
        self.ledger.acknowledge(change, [id_])
        if is_repeated:
            self.late.add(id_)
        self._must_find(new)
        self._must_not_find(item)

    def _delete(self, item: Item, id_: str) -> None:
        change = Change((item,))
        self.ledger.begin(change)
        self.caller.write("DELETE", f"/memory/{id_}")
        self.ledger.acknowledge(change)
        self._must_not_find(item)
        attempt, _ = self.caller.until_answered("GET", f"/memory/{id_}")
        if attempt.status != HTTPStatus.NOT_FOUND:
            self.stale.append(f"memory {id_} is deleted, and {attempt.replica} answers {attempt.answer}")

    def _erase(self) -> None:
        [(item, id_)] = self._add(FORGOTTEN, most=1)
        change = Change((item,), erases=True, atomic=False)
        self.ledger.begin(change)
        body = {"selector": {"agent_name": FORGOTTEN, "memory_id": id_}, "confirm": True}
        answer, _ = self.caller.write("POST", "/erase?wait_s=3", body)
        if answer is not None and "removed" not in answer:
            self.ledger.accept(change, answer["job_id"])
            return
        self.ledger.acknowledge(change)
        self._must_not_find(item, FORGOTTEN)

    def _new_key(self) -> str:
        return f"client-{self.seed}-{next(self._numbers)}"

    # --- reads -------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Read an own item that is there, or search one that is gone."""
        mine = self.ledger.of_kind("memory")
        gone = self.dice.choice(tuple(self.ledger.gone)) if len(self.ledger.gone) else None
        if gone is not None and (not mine or self.dice.random() < 0.3):
            self._must_not_find(gone)
        elif mine:
            item = self.dice.choice(mine)
            if self.dice.random() < 0.5:
                self._must_find(item)
                return
            attempt, _ = self.caller.until_answered("GET", f"/memory/{self.ledger.there[item]}")
            text = attempt.answer.get("text") if attempt.status == HTTPStatus.OK else None
            if text != item.content:
                self.stale.append(f"{item} was acknowledged, and {_told(attempt)}: {attempt.answer}")

    def _must_find(self, item: Item, namespace: str | None = None) -> None:
        attempt = self._searched(item, namespace)
        if item.content not in _texts(attempt.answer):
            self.stale.append(f"{item} was acknowledged, and {_told(attempt)} without it: {attempt.answer}")

    def _must_not_find(self, item: Item, namespace: str | None = None) -> None:
        attempt = self._searched(item, namespace)
        if item.content in _texts(attempt.answer):
            self.stale.append(f"{item} is gone, and {_told(attempt)} with it")

    def _searched(self, item: Item, namespace: str | None) -> Attempt:
        body = {"query": next(iter(marks_of(item.content))), "k": 3, "vector_weight": 0.0}
        attempt, _ = self.caller.until_answered("POST", "/search", body, namespace=namespace)
        if attempt.status != HTTPStatus.OK:
            raise ServiceFailed(f"a search was answered {attempt.status} by {attempt.replica}: {attempt.answer}")
        return attempt


class JobClient(Client):
    """Sends transcripts to a scripted model, which takes every sentence for a fact: each must be stored once."""

    def step(self, registers: Sequence[Register]) -> None:
        self._follow_jobs()
        if len(self.ledger.jobs) >= JOBS_WAITING_MAX:
            self._use_register(registers)
            return
        items = tuple(Item("memory", f"The {marked(self.dice, 6)} is ready.") for _ in range(self.dice.randint(1, 3)))
        change = Change(added=items, atomic=False)
        transcript = json.dumps([{"role": "user", "content": item.content} for item in items])
        body = {"messages": transcript, "source": f"{SOURCE}/extract"}
        self.ledger.begin(change)
        answer, _ = self.caller.write("POST", "/memory/extract", body, once=self._new_key())
        self.ledger.accept(change, answer["job_id"])

    def _look(self) -> None:
        mine = self.ledger.of_kind("memory")
        if mine:
            self._must_find(self.dice.choice(mine))

    def _follow_jobs(self) -> None:
        """:raises ServiceFailed: If a job did not complete."""
        for job_id in tuple(self.ledger.jobs):
            attempt = self.caller.attempt("GET", f"/jobs/{job_id}")
            if attempt.fate is not Fate.ANSWERED or attempt.answer.get("status") in ("queued", "running"):
                continue
            if attempt.answer.get("status") != "completed":
                del self.ledger.jobs[job_id]
                raise ServiceFailed(f"job {job_id} did not complete: {attempt.answer}")
            self.ledger.finish(job_id)


def _told(attempt: Attempt) -> str:
    return f"{attempt.replica} answered {attempt.status} from {attempt.called:.3f} to {attempt.answered:.3f}"


def _texts(answer: Any) -> set[str]:
    return {hit["text"] for hit in answer["results"]}
