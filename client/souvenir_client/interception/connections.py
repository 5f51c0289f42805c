"""The shared state of a process for one service: its client, its queue, its outages.

It is created once, so that entering a block is cheap. There is one connection for each address and key. A forked
process has its own connections; messages that were queued before the fork are sent by the parent. When the process
ends, waiting messages get a few seconds, and one warning counts those that were not stored.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
from collections.abc import Mapping
from concurrent.futures import Future
from threading import Lock, Thread

from souvenir_client.calls import NOT_SENT, Address
from souvenir_client.errors import TimedOut
from souvenir_client.interception.capture import Capture
from souvenir_client.interception.contexts import Contexts
from souvenir_client.interception.outages import Outage
from souvenir_client.interception.prefixes import KnownPrefixes
from souvenir_client.interception.storage import Messages, Place
from souvenir_client.records import ContextResponse
from souvenir_client.sync.client import Souvenir

ENTRY_TIMEOUT_S = 5.0
STORING_TIMEOUT_S = 30.0
"""Messages are embedded first, and no caller waits for that."""
LAST_FLUSH_S = 2.0
"""Maximum wait at the end of the process for unsent messages, of all connections together."""
DEADLINE_SHARE = 0.9
"""Share of the caller's timeout that the service gets for a context: the rest is for the network."""

_log = logging.getLogger("souvenir_client")


class Connection:
    def __init__(self, url: str, api_key: str | None) -> None:
        self._url = url
        self._api_key = api_key
        self._clients: dict[float, Souvenir] = {}
        self._lock = Lock()
        self.outage = Outage(url)
        self.contexts = Contexts(self.outage)
        self.capture = Capture(self._send, self.outage)
        self.prefixes = KnownPrefixes()
        self._warned: set[str] = set()

    def reach(self, agent: str) -> None:
        """Check the service and create the agent, in bounded time even if a response arrives byte by byte.

        :raises SouvenirError: If no service answers, or it refuses the request.
        """
        reached: Future[None] = Future()
        # A separate daemon thread, because the end of the process does not wait for it.
        Thread(target=self._reach, args=(agent, reached), name="souvenir entry", daemon=True).start()
        try:
            reached.result(ENTRY_TIMEOUT_S)
        except TimeoutError as error:
            raise TimedOut(self._url, ENTRY_TIMEOUT_S) from error

    def context(self, place: Place, query: str, max_tokens: int | None, timeout_s: float) -> ContextResponse:
        """:raises SouvenirError: If there is none."""
        # The request ends at its timeout too, and occupies no thread.
        return self._client(timeout_s).context.build(
            place.agent,
            query=query,
            session_id=place.session_id,
            user=place.user,
            max_tokens=NOT_SENT if max_tokens is None else max_tokens,
            deadline_ms=max(1, int(timeout_s * 1000 * DEADLINE_SHARE)),
        )

    def learn(self, agent: str, session_id: str, user: str | None, messages: str) -> None:
        """Submit a finished conversation for extraction, which runs asynchronously.

        :raises SouvenirError: If the service does not accept it.
        """
        extraction = self._client(ENTRY_TIMEOUT_S).in_namespace(agent).extraction
        extraction.start(messages=messages, session=session_id, user=user, context="session_end")

    def warn_once(self, subject: str, sentence: str) -> None:
        if subject not in self._warned:
            self._warned.add(subject)
            _log.warning(sentence)

    def close(self, timeout_s: float) -> Mapping[str, int]:
        """:returns: The number of turns that were not stored by then, by agent."""
        left = self.capture.close(timeout_s)
        self.contexts.close()
        with self._lock:
            for client in self._clients.values():
                client.close()
        return left

    def _reach(self, agent: str, reached: Future[None]) -> None:
        try:
            client = self._client(ENTRY_TIMEOUT_S)
            client.health.check()
            client.agents.create(name=agent)
        except BaseException as error:  # noqa: BLE001 - the thread's boundary: it is raised where the entry waits
            reached.set_exception(error)
        else:
            reached.set_result(None)

    def _client(self, timeout_s: float) -> Souvenir:
        """Return the client with that timeout; few different timeouts are used."""
        with self._lock:
            if timeout_s not in self._clients:
                self._clients[timeout_s] = Souvenir(
                    self._url, api_key=self._api_key, timeout_s=timeout_s, max_retries=0
                )
            return self._clients[timeout_s]

    def _send(self, place: Place, messages: Messages, idempotency_key: str) -> object:
        return self._client(STORING_TIMEOUT_S).messages.add_batch(
            agent_name=place.agent,
            session_id=place.session_id,
            messages=messages,
            idempotency_key=idempotency_key,
        )


_connections: dict[tuple[str, str | None], Connection] = {}
_lock = Lock()


def connection_of(address: Address) -> Connection:
    """Return the connection of this process, created on first use."""
    key = (address.url, address.api_key)
    found = _connections.get(key)
    if found is not None:
        return found
    with _lock:
        if key not in _connections:
            _connections[key] = Connection(*key)
        return _connections[key]


def _end() -> None:
    with _lock:
        ending = dict(_connections)
        _connections.clear()
    end = time.monotonic() + LAST_FLUSH_S
    for (url, _), connection in ending.items():
        left = connection.close(max(0.0, end - time.monotonic()))
        if left:
            counts = ", ".join(f"{turns} of {agent}" for agent, turns in left.items())
            _log.warning("The process ended before %s stored all turns; lost: %s", url, counts)


def _forget() -> None:
    """Reset in a forked process: sockets, threads and locks belong to its parent."""
    global _lock  # noqa: PLW0603 - the one that was copied may be held by a thread that is not here
    _connections.clear()
    _lock = Lock()


atexit.register(_end)
if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_forget)
