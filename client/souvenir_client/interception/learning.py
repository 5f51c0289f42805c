"""`learning()`: a context manager that gives model calls a memory."""

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
"""Minimum budget that the service accepts."""

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
    """Give the model calls inside a block the memory of an agent, and store their messages.

        with learning("my_agent"):
            client.chat.completions.create(model="...", messages=[{"role": "user", "content": "What's my name?"}])

    Use it with `with` or `async with`, or as a decorator of functions and coroutine functions: each call is then a
    block. Inside, all forms of calls of the OpenAI SDK (chat completions, Responses) and of the Anthropic SDK
    (messages) are captured, also of an SDK that is imported inside. Other calls are not touched. The innermost block
    around a call determines its agent, so blocks can be nested and can run in many tasks and threads concurrently. One
    object can be entered many times; if it is left by code outside of its blocks, such as another task, the oldest
    block ends.

    A generator runs in the context of the code that iterates over it. A `with` in its body therefore also applies to
    the caller between two `yield`s, and two such generators that alternate mix their agents. Put the block around the
    iteration instead.

    Threads that you start inside do not inherit the block: run their function with
    `contextvars.copy_context().run(function)`. `asyncio.to_thread` does this itself.

    A model call never fails because of the memory and is not delayed beyond `timeout_s`: problems are logged as
    warnings of the logger `souvenir_client`, once for each outage.

    :param agent: The agent whose memory is used, a namespace of the service. It is created if it is new.
    :param server_url: Address of the service. Default: SOUVENIR_URL or MEMORY_SERVER_URL, then the saved address, then
        http://127.0.0.1:8900.
    :param capture_only: Store messages, and add no context to model calls.
    :param api_key: Default: SOUVENIR_API_KEY, then the saved key.
    :param session_id: Id of the conversation. Default: the id set by `session()`, then that of the enclosing block of
        the same agent, then a new one.
    :param user: The user that the agent talks with. Only messages with this user are recalled.
    :param timeout_s: Maximum wait of a model call for its context.
    :param max_tokens: Token budget of the context, at least 64. Default: that of the service.
    :param extract: Extract memories from the conversations of the outermost block when it ends.
    :param flush_timeout_s: Maximum wait at the end of a block for messages that are not stored yet. Later messages are
        sent in the background while the process runs.
    :raises ValueError: If an argument is invalid.
    """
    for name, what in ((session_id, "session_id"), (user, "user")):
        if name is not None:
            checked_name(name, what)
    if flush_timeout_s < 0:
        raise ValueError("flush_timeout_s must be 0 or above")
    if max_tokens is not None and max_tokens < LEAST_TOKENS:
        raise ValueError(f"max_tokens must be {LEAST_TOKENS} or above")
    address = Address.of(server_url, api_key, None, timeout_s, 0)
    return Learning(
        Settings(agent, address, capture_only, session_id, user, timeout_s, max_tokens, extract, flush_timeout_s)
    )


class Learning:
    """The result of `learning()`. Entering it returns the `Block` with `agent`, `session_id` and `user`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: list[Block] = []
        self._lock = Lock()

    def __enter__(self) -> Block:
        """:raises SouvenirError: If no service answers (`ConnectionFailed`), or it refuses the request."""
        self._connection().reach(self._settings.agent)
        return self._enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        block, connection = self._leave(), self._connection()
        self._finish(block, connection)

    async def __aenter__(self) -> Block:
        """:raises SouvenirError: If no service answers (`ConnectionFailed`), or it refuses the request."""
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
            # The task ends now; its block is finished in a thread.
            in_thread(self._finish, block, connection)
            raise
        self._tell(block, connection)
        if block.owns_transcripts:
            await asyncio.shield(in_thread(_hand_in, block, connection))

    def __call__(self, function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        """Decorate a function: each call is a block.

        :raises TypeError: If it is a generator function: its body runs after the call returns.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                "learning() cannot decorate generators: decorate the function that iterates over the generator"
            )
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

        If the running code is in none of them, end the oldest: the code that entered a newer one is more likely to be
        still inside.
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
        parts = [f"{waiting} are still waiting for the service"] if waiting else []
        parts += [f"{dropped} were dropped"] if dropped else []
        if parts:
            _log.warning("Of the turns of agent %s, %s", block.agent, " and ".join(parts))


def _hand_in(block: Block, connection: Connection) -> None:
    """Submit the finished conversations for extraction, if the block keeps them.

    A refused conversation does not prevent the others; an unavailable service is not asked for each.
    """
    if not block.owns_transcripts or block.transcripts is None:
        return
    for session_id, user, messages in block.transcripts.finished():
        try:
            connection.learn(block.agent, session_id, user, messages)
        except SouvenirError as error:
            connection.warn_once(
                f"learn:{error.code if isinstance(error, ApiError) else type(error).__name__}",
                f"The conversation with agent {block.agent} was not submitted for extraction: {error}",
            )
            if isinstance(error, ConnectionFailed):
                return
