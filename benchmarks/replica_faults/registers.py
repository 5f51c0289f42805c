"""Registers that many clients write and read on random replicas, and the histories of what they were answered.

A register is a memory with a key, or a block. A memory is read from the database by its id, and from the indexes by a
search for its own word; all three show one value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from random import Random
from typing import Any

from benchmarks.replica_faults.linearizability import Kind, Operation, is_linearizable, shortest_violation
from benchmarks.replica_faults.requests import DONE, Attempt, Caller, Fate
from benchmarks.service import ServiceFailed

NAMESPACE = "registers"
OPERATIONS_MAX = 120
"""Operations on one register, so that the checker answers within milliseconds."""


@dataclass(slots=True)
class Register:
    """:param name: A word that is in no other text; a block's label. :param identity: The id of the memory."""

    name: str
    is_block: bool
    identity: str
    history: list[Operation] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.history) >= OPERATIONS_MAX

    @classmethod
    def created(cls, caller: Caller, name: str, *, is_block: bool) -> Register:
        """Create it with the value `first`."""
        value = f"{name} first"
        if is_block:
            body = {"agent_name": NAMESPACE, "label": name, "value": value}
            caller.write("POST", "/memory-blocks", body, once=f"create {name}")
            return cls(name, True, name)
        body = {"text": value, "source": NAMESPACE, "key": name}
        answer, _ = caller.write("POST", "/memory/upsert", body, namespace=NAMESPACE)
        return cls(name, False, str(answer["id"]))

    def write(self, caller: Caller, value: str) -> None:
        """Send it once; without an answer it may take effect at any time."""
        if self.is_block:
            body: dict[str, str] = {"value": f"{self.name} {value}"}
            attempt = caller.attempt("PUT", f"/memory-blocks/{NAMESPACE}/{self.name}", body)
        else:
            body = {"text": f"{self.name} {value}", "source": NAMESPACE, "key": self.name}
            attempt = caller.attempt("POST", "/memory/upsert", body, namespace=NAMESPACE)
        where = f"on {attempt.replica}, status {attempt.status}"
        match attempt.fate:
            case Fate.UNKNOWN:
                self.history.append(Operation(Kind.WRITE, value, attempt.called, where=where))
            case Fate.ANSWERED if attempt.status in DONE:
                caller.acknowledged_at.append(attempt.answered)
                self.history.append(Operation(Kind.WRITE, value, attempt.called, attempt.answered, where))
            case Fate.ANSWERED:
                raise ServiceFailed(f"a write to {self.name} was answered {attempt.status}: {attempt.answer}")
            case Fate.REFUSED:
                # It was not carried out: a read of its value has no write that explains it.
                return

    def read(self, caller: Caller) -> None:
        """Read it in one of the ways; a read without an answer says nothing."""
        self._read(caller, *caller.dice.choice(self._reads()))

    def read_in_all_ways(self, caller: Caller) -> None:
        for way in self._reads():
            self._read(caller, *way)

    def _read(
        self,
        caller: Caller,
        kind: str,
        request: Callable[[Caller], Attempt],
        value_in: Callable[[Attempt], str | None],
    ) -> None:
        attempt = request(caller)
        if attempt.fate is Fate.ANSWERED:
            value = value_in(attempt)
            where = f"by {kind} on {attempt.replica}"
            self.history.append(Operation(Kind.READ, value, attempt.called, attempt.answered, where))

    def _reads(self) -> list[tuple[str, Callable[[Caller], Attempt], Callable[[Attempt], str | None]]]:
        if self.is_block:
            path = f"/memory-blocks/{NAMESPACE}/{self.name}"
            return [("id", lambda caller: caller.attempt("GET", path), lambda one: self._value(one, "value"))]
        path = f"/memory/{self.identity}"
        query = {"query": self.name, "k": 2, "vector_weight": 0.0}
        return [
            (
                "id",
                lambda caller: caller.attempt("GET", path, namespace=NAMESPACE),
                lambda one: self._value(one, "text"),
            ),
            ("search", lambda caller: caller.attempt("POST", "/search", query, namespace=NAMESPACE), self._found),
        ]

    def _value(self, attempt: Attempt, field_name: str) -> str | None:
        return self._without_name(attempt.answer[field_name]) if attempt.status == HTTPStatus.OK else None

    def _found(self, attempt: Attempt) -> str | None:
        results: list[dict[str, Any]] = attempt.answer["results"] if attempt.status == HTTPStatus.OK else []
        values = [self._without_name(hit["text"]) for hit in results if hit["text"].startswith(f"{self.name} ")]
        # Two values at once are none that was written.
        return " and ".join(values) or None

    def _without_name(self, text: str) -> str:
        return text.removeprefix(f"{self.name} ")

    def violation(self) -> str | None:
        """A sentence with the operations that have no order."""
        if is_linearizable(self.history, "first"):
            return None
        lines = "\n    ".join(str(one) for one in shortest_violation(self.history, "first")[-12:])
        return f"register {self.name} is not linearizable:\n    {lines}"


def new_registers(caller: Caller, dice: Random, number: int) -> list[Register]:
    names = [f"reg{dice.getrandbits(64):016x}" for _ in range(number)]
    return [Register.created(caller, name, is_block=place % 3 == 2) for place, name in enumerate(names)]


VALUES = count(1)
"""Numbers for values: each is written once."""
