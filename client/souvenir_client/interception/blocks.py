"""The block of `learning()` and the session of the running code, kept in a context variable.

Tasks inherit the variable when they are created, threads do not, so two tasks in two blocks never see each other's
agent. A task that outlives its block still has it; the block knows that it has ended, and the task then uses the next
open block around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import uuid4

from souvenir_client.calls import Address
from souvenir_client.interception.storage import Place
from souvenir_client.interception.transcripts import Transcripts

MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of `learning()`."""

    agent: str
    address: Address
    capture_only: bool
    session_id: str | None
    user: str | None
    timeout_s: float
    max_tokens: int | None
    extract: bool
    flush_timeout_s: float

    @property
    def memory(self) -> tuple[str, str, str | None]:
        """Identifies the agent among all services."""
        return self.agent, self.address.url, self.address.api_key


@dataclass(frozen=True, slots=True)
class RunningState:
    """:param session_id: None outside of all blocks and sessions.

    :param of_all_agents: True if the session was set by `session()`, which names no agent.
    """

    block: Block | None = None
    session_id: str | None = None
    of_all_agents: bool = False


class Block:
    """One entry of `learning()`.

    :param outer: The state in which it was entered.
    :param transcripts: Collects its turns for extraction; those of the enclosing block, if it has some.
    """

    def __init__(self, settings: Settings, owner: object, outer: RunningState) -> None:
        around = _around(settings, outer)
        self.settings = settings
        self.owner = owner
        self.outer = outer
        self.open = True
        self.session_id = settings.session_id or _session_within(outer, around) or str(uuid4())
        self.user: str | None = settings.user or (around.block.user if around and around.block else None)
        self.transcripts: Transcripts | None = around.block.transcripts if around and around.block else None
        self.owns_transcripts = self.transcripts is None and settings.extract
        if self.owns_transcripts:
            self.transcripts = Transcripts()

    @property
    def agent(self) -> str:
        return self.settings.agent


_running_state: ContextVar[RunningState] = ContextVar("souvenir_running_state", default=RunningState())  # noqa: B039 - it is frozen


def enter(settings: Settings, owner: object) -> Block:
    outer = _now()
    block = Block(settings, owner, outer)
    chosen = settings.session_id is None and outer.of_all_agents
    _running_state.set(RunningState(block, block.session_id, chosen))
    return block


def leave(block: Block) -> None:
    """End a block, wherever it was entered."""
    block.open = False
    _running_state.set(_now())


def entered_by(owner: object) -> Block | None:
    """The innermost open block around the running code that this owner entered."""
    return next((block for block in _outwards(_running_state.get()) if block.owner is owner), None)


def here() -> tuple[Block, Place] | None:
    """Return the innermost open block around the running code, and the place of its turns; None outside of all."""
    state = _now()
    block = state.block
    if block is None:
        return None
    return block, Place(block.agent, state.session_id or block.session_id, block.user)


@contextmanager
def session(session_id: str) -> Iterator[None]:
    """Assign the model calls of a `with` block to a session, for all agents.

        with learning("support"):
            with session("chat-42"):
                ...

    It also applies to `learning()` blocks inside that set no session of their own. It applies to the running task and
    the tasks that it creates, not to threads.

    :param session_id: 1 to 200 printable characters without `/`.
    :raises ValueError: If the name is invalid.
    """
    checked_name(session_id, "session_id")
    before = _running_state.get()
    _running_state.set(RunningState(before.block, session_id, of_all_agents=True))
    try:
        yield
    finally:
        _running_state.set(before)


def checked_name(name: str, what: str) -> None:
    """:raises ValueError: If the service does not accept the name."""
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable() or "/" in name or name in (".", ".."):
        raise ValueError(f"{what} must have 1 to {MAX_NAME_CHARS} printable characters without /: {name!r}")


def _now() -> RunningState:
    """The state of the running code, without blocks that have ended; the session of `session()` remains."""
    carried = state = _running_state.get()
    while state.block is not None and not state.block.open:
        state = state.block.outer
    if state is not carried and carried.of_all_agents:
        return RunningState(state.block, carried.session_id, of_all_agents=True)
    return state


def _outwards(state: RunningState) -> Iterator[Block]:
    while state.block is not None:
        if state.block.open:
            yield state.block
        state = state.block.outer


def _around(settings: Settings, state: RunningState) -> RunningState | None:
    """The innermost open block of the same agent, with its state."""
    while state.block is not None:
        block = state.block
        if block.open and block.settings.memory == settings.memory:
            return state
        state = block.outer
    return None


def _session_within(outer: RunningState, around: RunningState | None) -> str | None:
    if outer.of_all_agents:
        return outer.session_id
    return None if around is None else around.session_id
