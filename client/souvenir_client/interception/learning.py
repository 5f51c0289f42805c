"""`learning()`: one `with` statement, inside of which calls of models remember."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from souvenir_client.calls import Address
from souvenir_client.errors import ApiError, ConnectionFailed, SouvenirError
from souvenir_client.interception import blocks
from souvenir_client.interception.blocks import Block, Settings, checked_name
from souvenir_client.interception.connections import Connection, connection_of
from souvenir_client.interception.model_calls import around, around_async
from souvenir_client.interception.patches import Patches

PATCHES = Patches(around, around_async)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LEAST_TOKENS = 64
"""That the service takes for a budget."""

_log = logging.getLogger("souvenir_client")


def learning(
    agent: str,
    server_url: str | None = None,
    capture_only: bool = False,
    *,
    api_key: str | None = None,
    session_id: str | None = None,
    user: str | None = None,
    timeout_s: float = 1.0,
    max_tokens: int | None = None,
    extract: bool = False,
    flush_timeout_s: float = 10.0,
) -> Learning:
    """Give the model calls inside a block the memory of an agent, and store what is said in them.

        with learning("my_agent"):
            client.chat.completions.create(model="...", messages=[{"role": "user", "content": "What's my name?"}])

    It works with `with` and `async with`, and as a decorator of functions and coroutine functions, of which each call
    is a block of its own. Inside, calls of the OpenAI SDK (chat completions, Responses) and of the Anthropic SDK
    (messages) are captured in all their shapes, also of an SDK that is imported inside; other calls are left alone.
    Which agent a call belongs to is decided by the block in which it is made, so blocks may be nested and may run in
    many tasks and threads at once. One object may be entered many times; where it is left by code that does not stand
    in one of its blocks, such as another task, the oldest of them ends.

    A generator runs in the context of who iterates over it. So a `with` in the body of one holds between its `yield`s
    for the caller, too, and two such generators that take turns mix their agents: put the block around the iteration.

    Threads that you start inside do not stand in the block: run what shall in
    `contextvars.copy_context().run(function)`; `asyncio.to_thread` does that by itself.

    A call is never broken, and not delayed beyond `timeout_s`: what goes wrong with the memory is a warning of the
    logger `souvenir_client`, one for each outage.

    :param agent: Whose memory; a namespace of the service. It is made if it is new.
    :param server_url: SOUVENIR_URL or MEMORY_SERVER_URL unless given, else http://127.0.0.1:8900.
    :param capture_only: Store what is said and show the model nothing.
    :param api_key: SOUVENIR_API_KEY unless given.
    :param session_id: Which conversation it is. Unless it or `session()` says so, that of the block of the same agent
        around this one, else a new one.
    :param user: Whom the agent talks with: only what was said with them is recalled.
    :param timeout_s: That a call waits for its context at most.
    :param max_tokens: Budget of the context, 64 or more; the service's unless given.
    :param extract: Hand the conversations of the outermost block in to be learned from, when it ends.
    :param flush_timeout_s: That the end of a block waits for what is still on its way to the service. What is not
        stored by then is sent later, as long as the process lives.
    :raises ValueError: If an argument cannot be used.
    """
    for name, what in ((session_id, "session_id"), (user, "user")):
        if name is not None:
            checked_name(name, what)
    if flush_timeout_s < 0:
        raise ValueError("flush_timeout_s has to be 0 or above")
    if max_tokens is not None and max_tokens < LEAST_TOKENS:
        raise ValueError(f"max_tokens has to be {LEAST_TOKENS} or above")
    address = Address.of(server_url, api_key, None, timeout_s, 0)
    return Learning(
        Settings(agent, address, capture_only, session_id, user, timeout_s, max_tokens, extract, flush_timeout_s)
    )


class Learning:
    """Made by `learning()`. Entering gives the `Block`, which has `agent`, `session_id` and `user`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: list[Block] = []
        self._lock = Lock()

    def __enter__(self) -> Block:
        """:raises SouvenirError: If nobody answers (`ConnectionFailed`), or the service says no."""
        self._connection().reach(self._settings.agent)
        return self._enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block, connection = self._leave(), self._connection()
        self._finish(block, connection)

    async def __aenter__(self) -> Block:
        """:raises SouvenirError: If nobody answers (`ConnectionFailed`), or the service says no."""
        connection = await asyncio.to_thread(self._connection)
        await asyncio.to_thread(connection.reach, self._settings.agent)
        return self._enter()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block, connection = self._leave(), self._connection()
        settled = asyncio.wrap_future(connection.capture.settled(block))
        in_thread = functools.partial(asyncio.get_running_loop().run_in_executor, None)
        try:
            with suppress(TimeoutError):  # which the outcome tells
                await asyncio.wait_for(settled, self._settings.flush_timeout_s)
        except asyncio.CancelledError:
            # The task ends now, and its block is finished without it.
            in_thread(self._finish, block, connection)
            raise
        self._tell(block, connection)
        if block.owns_transcripts:
            await asyncio.shield(in_thread(_hand_in, block, connection))

    def __call__(self, function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        """The function, each call of which is a block of its own.

        :raises TypeError: If it is a generator function, whose calls end before its body runs.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("learning() does not decorate generators: decorate the function that iterates over it")
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def in_async_block(*args: Any, **kwargs: Any) -> Any:
                async with self:
                    return await function(*args, **kwargs)

            return cast(Callable[Arguments, Result], in_async_block)

        @functools.wraps(function)
        def in_block(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            with self:
                return function(*args, **kwargs)

        return in_block

    def _connection(self) -> Connection:
        return connection_of(self._settings.address)

    def _enter(self) -> Block:
        PATCHES.enter()
        block = blocks.enter(self._settings, self)
        with self._lock:
            self._open.append(block)
        return block

    def _leave(self) -> Block:
        """End the innermost block of this object around the running code.

        Where the code that leaves stands in none of them, that is the oldest of all: who entered a newer one is more
        likely to stand in it still.
        """
        with self._lock:
            block = blocks.entered_by(self) or self._open[0]
            self._open.remove(block)
        blocks.leave(block)
        PATCHES.leave()
        return block

    def _finish(self, block: Block, connection: Connection) -> None:
        with suppress(TimeoutError):  # which the outcome tells
            connection.capture.settled(block).result(self._settings.flush_timeout_s)
        self._tell(block, connection)
        _hand_in(block, connection)

    def _tell(self, block: Block, connection: Connection) -> None:
        waiting, dropped = connection.capture.outcome(block)
        parts = [f"{waiting} still wait for the service"] if waiting else []
        parts += [f"{dropped} were dropped"] if dropped else []
        if parts:
            _log.warning("Of the turns of agent %s, %s", block.agent, " and ".join(parts))


def _hand_in(block: Block, connection: Connection) -> None:
    """Hand the finished conversations in to be learned from, where the block keeps them.

    One that is refused does not keep the others back; a service that does not answer is not asked for each.
    """
    if not block.owns_transcripts or block.transcripts is None:
        return
    for session_id, user, messages in block.transcripts.finished():
        try:
            connection.learn(block.agent, session_id, user, messages)
        except SouvenirError as error:
            connection.warn_once(
                f"learn:{error.code if isinstance(error, ApiError) else type(error).__name__}",
                f"What was said with agent {block.agent} was not handed in to be learned from: {error}",
            )
            if isinstance(error, ConnectionFailed):
                return
