"""Two agents under random interleaving: each equals a plain list of its own messages.

Both use the same words, sessions and users, so that any leak between agents shows.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from souvenir.conversations.message_search import MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.core.errors import MessageNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import MessageRole, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.cascade import Removal
from souvenir.store.messages.messages import Message, MessageDraft, MessageFilter
from souvenir.store.transaction import Transaction
from tests.conversations.talk import at
from tests.fake_embedder import FakeEmbedder
from tests.thoroughness import sampled

WORDS = "amber birch cedar delta ember fjord".split()
ALL = 10_000

agents = st.sampled_from(["ann_agent", "ben_agent"])
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
picks = st.integers(0, 10**6)
filters = st.fixed_dictionaries(
    {},
    optional={
        "session_id": st.sampled_from(["s1", "s2"]),
        "user": st.sampled_from(["alice", "bob"]),
        "role": st.sampled_from(MessageRole),
        "since": st.integers(0, 200).map(at),
        "until": st.integers(0, 200).map(at),
    },
)
drafts = st.builds(
    MessageDraft,
    st.sampled_from(MessageRole),
    texts,
    session_id=st.sampled_from([None, "s1", "s2"]),
    user=st.sampled_from([None, "alice", "bob"]),
    speaker=st.sampled_from([None, "Alice"]),
    created_at=st.integers(0, 200).map(at),
)


@dataclass
class Expected:
    """What an agent has: its messages by uid, and which of them can be found."""

    messages: dict[str, Message] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)

    def chosen(self, **wanted: Any) -> set[str]:
        return {uid for uid, message in self.messages.items() if _passes(message, **wanted)}


def _passes(message: Message, since: Any = None, until: Any = None, **equal: Any) -> bool:
    return (
        all(getattr(message, name) == value for name, value in equal.items())
        and (since is None or message.created_at >= since)
        and (until is None or message.created_at <= until)
    )


class TwoAgents(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.engine = MemoryEngine.open(Settings(data_dir=Path(self._folder.name)), FakeEmbedder())
        self.conversations, self.sessions = Conversations(self.engine), Sessions(self.engine)
        self.expected = {"ann_agent": Expected(), "ben_agent": Expected()}
        for agent in self.expected:
            self.sessions.start(Scope(agent), "s1", user="alice")

    def teardown(self) -> None:
        assert list(self.engine.check()) == []
        self.engine.close()
        self._folder.cleanup()

    def pick(self, agent: str, number: int) -> Message | None:
        messages = list(self.expected[agent].messages.values())
        return messages[number % len(messages)] if messages else None

    @rule(agent=agents, said=st.lists(drafts, min_size=1, max_size=4))
    def add(self, agent: str, said: list[MessageDraft]) -> None:
        stored = {one.uid: one for one in self.conversations.add(Scope(agent), said)}
        self.expected[agent].messages |= stored
        self.expected[agent].found |= stored.keys()

    @rule(agent=agents, said=drafts, session=st.sampled_from(["s1", "s2"]))
    def append(self, agent: str, said: MessageDraft, session: str) -> None:
        [stored] = self.conversations.append(Scope(agent), session, [said])
        self.expected[agent].messages[stored.uid] = stored

    @rule(agent=agents)
    def index(self, agent: str) -> None:
        expected = self.expected[agent]
        waiting = expected.messages.keys() - expected.found
        assert self.conversations.index_pending(Scope(agent)) == len(waiting)
        expected.found |= waiting
        for uid in waiting:
            expected.messages[uid] = replace(expected.messages[uid], indexed=True)

    @rule(agent=agents, number=picks, content=texts)
    def edit(self, agent: str, number: int, content: str) -> None:
        message = self.pick(agent, number)
        if message is not None:
            self.expected[agent].messages[message.uid] = self.conversations.edit(
                Scope(agent), message.uid, content=content
            )
            self.expected[agent].found.add(message.uid)

    @rule(agent=agents, number=picks)
    def delete(self, agent: str, number: int) -> None:
        message = self.pick(agent, number)
        if message is None:
            return

        def work(tx: Transaction) -> None:
            removal = Removal(tx.connection)
            removal.messages([message.id], tx.namespace_id)
            tx.passages.tell(removal.changes)

        self.engine.write(Scope(agent), work)
        del self.expected[agent].messages[message.uid]
        self.expected[agent].found.discard(message.uid)

    @rule(agent=agents, words=texts, wanted=filters)
    def search(self, agent: str, words: str, wanted: dict[str, Any]) -> None:
        hits = self.conversations.search(Scope(agent), MessageQuery(words, ALL, **wanted)).hits
        expected = self.expected[agent]
        allowed = expected.chosen(**wanted) & expected.found
        assert {hit.message.uid for hit in hits} <= allowed
        sharing = {uid for uid in allowed if set(expected.messages[uid].content.split()) & set(words.split())}
        assert {hit.message.uid for hit in hits} >= sharing
        assert all(hit.message == expected.messages[hit.message.uid] for hit in hits)

    @rule(agent=agents, wanted=filters)
    def listed(self, agent: str, wanted: dict[str, Any]) -> None:
        messages, total = self.conversations.page(Scope(agent), MessageFilter(**wanted), limit=ALL)
        expected = self.expected[agent]
        assert {one.uid: one for one in messages} == {uid: expected.messages[uid] for uid in expected.chosen(**wanted)}
        assert total == len(messages)
        assert [(one.created_at, one.id) for one in messages] == sorted(
            ((one.created_at, one.id) for one in messages), reverse=True
        )

    @rule(agent=agents, number=picks, around=st.integers(0, 2))
    def look_around(self, agent: str, number: int, around: int) -> None:
        message = self.pick(agent, number)
        if message is not None:
            found = self.conversations.neighbours(Scope(agent), [message], before=around, after=around)
            of_session = self.expected[agent].chosen(session_id=message.session_id)
            near = {
                uid
                for uid in of_session
                if abs(self.expected[agent].messages[uid].position - message.position) <= around
            }
            assert {one.uid for one in found} == near

    @rule(agent=agents, number=picks)
    def ask_the_other(self, agent: str, number: int) -> None:
        message = self.pick(agent, number)
        [other] = self.expected.keys() - {agent}
        if message is not None:
            with pytest.raises(MessageNotFound):
                self.conversations.get(Scope(other), message.uid)
            with pytest.raises(MessageNotFound):
                self.conversations.edit(Scope(other), message.uid, metadata={"n": 1})
            assert self.conversations.neighbours(Scope(other), [message]) == []

    @invariant()
    def users_and_sessions_count_their_own(self) -> None:
        for agent, expected in self.expected.items():
            for user in self.sessions.users(Scope(agent))[0]:
                assert user.messages == len(expected.chosen(user=user.name))


TestTwoAgents = TwoAgents.TestCase
TestTwoAgents.settings = settings(
    max_examples=sampled(20, 50),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
