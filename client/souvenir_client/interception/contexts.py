"""The context of a model call: requested within a hard time limit, and the same throughout a tool loop.

Requests run in threads created on demand, so that a caller waits at most `timeout_s`, whatever the network does; an
event loop is never blocked. While the service fails, most calls make no request (`Outage`); a lack of free threads is
no failure of the service. Thread-safe.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock

from souvenir_client.errors import Overloaded, SouvenirError
from souvenir_client.interception.outages import Outage, Use
from souvenir_client.interception.prefixes import News
from souvenir_client.records import ContextResponse
from souvenir_client.wording import prefaced

MAX_KEPT = 1_000
"""Maximum number of cached contexts of questions whose tool loop may still run."""
MAX_THREADS = 16
LEAST_PAUSE_S = 0.5
LATE_SHARE = 0.8
"""Minimum share of the caller's timeout that a request must have run to count as a failure of the service."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The context of a model call: `stable` changes only with the blocks, `tail` with each question; "" means none."""

    stable: str
    tail: str

    @classmethod
    def of(cls, context: ContextResponse) -> Shown:
        tail = prefaced(context.volatile_tail, doubtful=context.evidence == "none")
        return cls(prefaced(context.stable_prefix), tail)


class _Request:
    """Requests a context in a thread, and measures the time.

    An overloaded service is asked again after the delay that it requests, as long as the caller waits.
    """

    def __init__(self, build: Callable[[], ContextResponse], timeout_s: float) -> None:
        self._build = build
        self._timeout_s = timeout_s
        self._began_at = math.inf

    def __call__(self) -> ContextResponse:
        self._began_at = time.monotonic()
        while True:
            try:
                return self._build()
            except Overloaded as error:
                pause_s = max(LEAST_PAUSE_S, error.retry_after_s or 0.0)
                if self.ran_for(self._timeout_s - pause_s):
                    raise
                time.sleep(pause_s)

    def ran_for(self, seconds: float) -> bool:
        return time.monotonic() - self._began_at >= seconds


class Contexts:
    def __init__(self, outage: Outage) -> None:
        self._outage = outage
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="souvenir context")
        self._kept: OrderedDict[bytes, Shown] = OrderedDict()
        self._lock = Lock()

    def kept(self, news: News) -> Shown | None:
        """The context that was added for the question of a tool loop; None outside of a loop.

        If the vendor stores the conversation, the requests of a loop contain no question. The vendor then has the tail,
        but not the instructions, which are sent with each request.
        """
        with self._lock:
            if news.question is None:
                last = self._kept.get(news.conversation)
                return None if last is None else replace(last, tail="")
            return self._kept.get(news.question) if news.in_loop else None

    def ask(self, news: News, build: Callable[[], ContextResponse], timeout_s: float) -> Shown | None:
        """Return None if there is none in time."""
        if not self._outage.may_ask():
            return None
        request = _Request(build, timeout_s)
        asked = self._pool.submit(request)
        try:
            return self._answered(news, asked.result(timeout_s))
        except TimeoutError:
            self._late(request, asked, timeout_s)
        except SouvenirError as error:
            self._outage.failed(Use.CONTEXT, str(error))
        return None

    async def ask_async(self, news: News, build: Callable[[], ContextResponse], timeout_s: float) -> Shown | None:
        """`ask` without blocking the event loop."""
        if not self._outage.may_ask():
            return None
        request = _Request(build, timeout_s)
        asked = self._pool.submit(request)
        try:
            return self._answered(news, await asyncio.wait_for(asyncio.wrap_future(asked), timeout_s))
        except TimeoutError:
            self._late(request, asked, timeout_s)
        except SouvenirError as error:
            self._outage.failed(Use.CONTEXT, str(error))
        return None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answered(self, news: News, context: ContextResponse) -> Shown:
        self._outage.worked(Use.CONTEXT)
        shown = Shown.of(context)
        with self._lock:
            for key in (news.conversation, news.question):
                if key is not None:
                    self._kept[key] = shown
                    self._kept.move_to_end(key)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return shown

    def _late(self, request: _Request, asked: Future[ContextResponse], timeout_s: float) -> None:
        asked.cancel()
        if request.ran_for(timeout_s * LATE_SHARE):
            self._outage.failed(Use.CONTEXT, f"no answer within {timeout_s:g} s")
