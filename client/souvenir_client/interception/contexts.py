"""The context of a model call: asked for within a hard bound, and the same throughout a tool loop.

Requests run in a few threads, so that a caller waits `timeout_s` and no longer, whatever the network does; an event
loop is never blocked. While the service fails, most calls do not ask it (`Outage`). Safe in threads.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock

from souvenir_client.errors import SouvenirError
from souvenir_client.interception.outages import Outage, Part
from souvenir_client.interception.prefixes import News
from souvenir_client.records import ContextResponse
from souvenir_client.wording import prefaced

MAX_KEPT = 1_000
"""Contexts of questions that a tool loop may still run for."""
THREADS = 8


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model is shown: `stable` changes only with the blocks, `tail` with each question; "" is nothing."""

    stable: str
    tail: str

    @classmethod
    def of(cls, context: ContextResponse) -> Shown:
        tail = prefaced(context.volatile_tail, doubtful=context.evidence == "none")
        return cls(prefaced(context.stable_prefix), tail)


class Contexts:
    def __init__(self, outage: Outage) -> None:
        self._outage = outage
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="souvenir context")
        self._kept: OrderedDict[bytes, Shown] = OrderedDict()
        self._lock = Lock()

    def kept(self, news: News) -> Shown | None:
        """What was shown for a tool loop's question when it was asked; None for what is no tool loop.

        Where the vendor keeps the conversation, a request of a loop holds no question. The vendor then has the tail,
        too, but not what stands in the instructions, which go with each request.
        """
        with self._lock:
            if news.question is None:
                last = self._kept.get(news.conversation)
                return None if last is None else replace(last, tail="")
            return self._kept.get(news.question) if news.in_loop else None

    def ask(self, news: News, build: Callable[[], ContextResponse], timeout_s: float) -> Shown | None:
        """None if there is none in time."""
        asked = self._begin(build)
        if asked is None:
            return None
        try:
            return self._answered(news, asked.result(timeout_s))
        except TimeoutError:
            self._late(asked, timeout_s)
        except SouvenirError as error:
            self._outage.failed(Part.CONTEXT, str(error))
        return None

    async def ask_async(self, news: News, build: Callable[[], ContextResponse], timeout_s: float) -> Shown | None:
        """`ask` without blocking the event loop."""
        asked = self._begin(build)
        if asked is None:
            return None
        try:
            return self._answered(news, await asyncio.wait_for(asyncio.wrap_future(asked), timeout_s))
        except TimeoutError:
            self._late(asked, timeout_s)
        except SouvenirError as error:
            self._outage.failed(Part.CONTEXT, str(error))
        return None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, build: Callable[[], ContextResponse]) -> Future[ContextResponse] | None:
        return self._pool.submit(build) if self._outage.may_ask() else None

    def _answered(self, news: News, context: ContextResponse) -> Shown:
        self._outage.worked(Part.CONTEXT)
        shown = Shown.of(context)
        with self._lock:
            for key in (news.conversation, news.question):
                if key is not None:
                    self._kept[key] = shown
                    self._kept.move_to_end(key)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return shown

    def _late(self, asked: Future[ContextResponse], timeout_s: float) -> None:
        asked.cancel()
        self._outage.failed(Part.CONTEXT, f"there was none within {timeout_s:g} s")
