"""The context of a call, which its tool loop keeps, so that vendors can cache the prompt.

It is rebuilt as soon as anything in it is changed or deleted, so deleted text is not shown again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from souvenir.compat.proxy.wires.prefixes import News
from souvenir.compat.proxy.wires.wording import prefaced
from souvenir.conversations.context import Context
from souvenir.core.types import EvidenceLevel, JsonObject, Memory, Scope
from souvenir.server.service import Service
from souvenir.store.memories import reads
from souvenir.store.messages import agents, blocks
from souvenir.store.messages import messages as rows
from souvenir.store.sql import Connection

MAX_KEPT = 1_000
"""Maximum number of questions whose context is kept for their tool loop."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The context of a call: `stable` changes only with the blocks, `tail` with each question; "" means none.

    :param blocks: The values of the blocks in it, by label. :param messages: The contents of messages, by UUID.
    :param memories: The texts of memories, by id. :param max_results: What the caller's access allowed.
    :param policy: The agent's privacy policy.
    """

    stable: str = ""
    tail: str = ""
    blocks: Mapping[str, str] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)
    memories: Mapping[int, str] = field(default_factory=dict)
    max_results: int | None = None
    policy: JsonObject = field(default_factory=dict)

    @classmethod
    def of(cls, context: Context, max_results: int | None, policy: JsonObject) -> Shown:
        return cls(
            prefaced(context.stable_prefix),
            prefaced(context.volatile_tail, doubtful=context.evidence is EvidenceLevel.NONE),
            {block.label: block.value for block in context.blocks},
            {record.uid: record.content for record in context.records if not isinstance(record, Memory)},
            {record.id: record.text for record in context.records if isinstance(record, Memory)},
            max_results,
            policy,
        )

    def without_tail(self) -> Shown:
        return replace(self, tail="", messages={}, memories={})

    def is_current(self, service: Service, scope: Scope) -> bool:
        """Return whether all that it shows is stored as it is shown."""
        with service.engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return not (self.blocks or self.messages or self.memories)
            of_agent, _ = blocks.page(connection, namespace.id, offset=0, limit=len(self.blocks) + 1)
            held = {block.label: block.value for block in of_agent}
            messages = rows.by_uid(connection, namespace.id, list(self.messages))
            memories = reads.memories(connection, namespace, self.memories)
            policy = policy_of(connection, scope)
        return (
            held == self.blocks
            and policy == self.policy
            and {uid: message.content for uid, message in messages.items()} == self.messages
            and {number: memory.text for number, memory in memories.items()} == self.memories
        )


def policy_of(connection: Connection, scope: Scope) -> JsonObject:
    """Return the privacy policy of an agent; empty for one that does not exist yet."""
    agent = agents.find(connection, scope.namespace)
    return {} if agent is None else agent.policy


class KeptContexts:
    """Thread-safe."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Shown] = OrderedDict()
        self._lock = Lock()

    def of(self, news: News) -> Shown | None:
        """The context that was added for the question of a tool loop; None outside of a loop.

        If the vendor stores the conversation, the requests of a loop contain no question. The vendor then has the tail,
        but not the instructions, which are sent with each request.
        """
        with self._lock:
            if news.question is None:
                last = self._kept.get(news.conversation)
                return None if last is None else last.without_tail()
            return self._kept.get(news.question) if news.in_loop else None

    def keep(self, news: News, shown: Shown) -> None:
        with self._lock:
            for key in (news.conversation, news.question):
                if key is not None:
                    self._kept[key] = shown
                    self._kept.move_to_end(key)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
