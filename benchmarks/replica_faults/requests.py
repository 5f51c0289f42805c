"""Requests of one client to random replicas, sent again until one of them answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from random import Random
from typing import Any

from benchmarks.replica_faults.cluster import Replica
from benchmarks.service import Client, ServiceFailed

CLIENT_TIMEOUT_S = 4.0
GIVES_UP_S = 90.0
PAUSE_S = (0.02, 0.2)
DONE = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED})
LATER = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class Fate(Enum):
    """Outcome of a request: answered, not executed, or unknown (it may execute later)."""

    ANSWERED = "answered"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request to one replica. Times are of the clock that all clients share.

    :param status: 0 if there was no answer.
    """

    fate: Fate
    status: int
    answer: Any
    replica: str
    called: float
    answered: float


@dataclass(slots=True)
class Caller:
    """Not for more than one thread.

    :param acknowledged_at: When each write was acknowledged. :param uncertain: Number of requests of unknown fate.
    """

    replicas: Sequence[Replica]
    dice: Random
    acknowledged_at: list[float] = field(default_factory=list)
    requests: int = 0
    uncertain: int = 0
    _clients: dict[str, Client] = field(default_factory=dict)

    def attempt(
        self, method: str, path: str, body: Any = None, *, namespace: str | None = None, once: str | None = None
    ) -> Attempt:
        """Send a request to a random replica, once.

        :raises ServiceFailed: If the answer is one that no fault excuses.
        """
        replica = self.dice.choice(self.replicas)
        client = self._clients.setdefault(replica.name, Client(replica.port, timeout_s=CLIENT_TIMEOUT_S))
        self.requests += 1
        called = time.monotonic()
        try:
            status, answer = client.call(method, path, body, namespace=namespace, once=once)
        except OSError as error:
            client.close()
            fate = Fate.REFUSED if isinstance(error, ConnectionRefusedError) else Fate.UNKNOWN
            self.uncertain += fate is Fate.UNKNOWN
            return Attempt(fate, 0, repr(error), replica.name, called, time.monotonic())
        answered = time.monotonic()
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in LATER:
            raise ServiceFailed(f"{method} {path} was answered {status} by {replica.name} at {answered:.3f}: {answer}")
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.uncertain += 1
            return Attempt(Fate.UNKNOWN, status, answer, replica.name, called, answered)
        fate = Fate.REFUSED if status == HTTPStatus.TOO_MANY_REQUESTS else Fate.ANSWERED
        return Attempt(fate, status, answer, replica.name, called, answered)

    def until_answered(
        self, method: str, path: str, body: Any = None, *, namespace: str | None = None, once: str | None = None
    ) -> tuple[Attempt, bool]:
        """Send a request again until it is answered; return also whether an earlier one may have been carried out.

        :raises ServiceFailed: If nobody answers, or as `attempt`.
        """
        deadline, is_repeated = time.monotonic() + GIVES_UP_S, False
        while (attempt := self.attempt(method, path, body, namespace=namespace, once=once)).fate is not Fate.ANSWERED:
            if time.monotonic() > deadline:
                raise ServiceFailed(f"{method} {path} was not answered for {GIVES_UP_S:.0f} s, last: {attempt}")
            is_repeated = is_repeated or attempt.fate is Fate.UNKNOWN
            time.sleep(self.dice.uniform(*PAUSE_S))
        return attempt, is_repeated

    def write(
        self, method: str, path: str, body: Any = None, *, namespace: str | None = None, once: str | None = None
    ) -> tuple[Any, bool]:
        """Return the answer to a write that was done, and whether an earlier request may have been carried out.

        :return: None as the answer if an earlier request did it, so that this one found nothing to do (404).
        :raises ServiceFailed: If it was refused, or as `until_answered`.
        """
        attempt, is_repeated = self.until_answered(method, path, body, namespace=namespace, once=once)
        if attempt.status == HTTPStatus.NOT_FOUND and is_repeated:
            return None, True
        if attempt.status not in DONE:
            raise ServiceFailed(f"{method} {path} was answered {attempt.status} by {attempt.replica}: {attempt.answer}")
        self.acknowledged_at.append(attempt.answered)
        return attempt.answer, is_repeated

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
