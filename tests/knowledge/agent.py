"""An agent whose texts are indexed: what the tests of this folder do with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import MessageRole, Scope
from souvenir.knowledge.claim_types import ConceptPatch
from souvenir.knowledge.concepts import ConceptDetails
from souvenir.knowledge.model_claims import ModelClaims
from souvenir.knowledge.related import ReachedConcept
from souvenir.knowledge.services import KnowledgeServices
from souvenir.knowledge.topics import NamedTopic
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.graph.concepts import Concept
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.selection import Chooses

ANN, BEN = Scope("ann", "tester"), Scope("ben", "tester")


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent of a scope, in an engine with others."""

    engine: MemoryEngine
    graph: KnowledgeServices
    opened: ExitStack = field(default_factory=ExitStack)
    scope: Scope = ANN

    def another(self, scope: Scope) -> Agent:
        return replace(self, scope=scope)

    def say(
        self,
        *texts: str,
        session: str = "s",
        role: MessageRole = MessageRole.USER,
        at: datetime | None = None,
        apart: timedelta = timedelta(minutes=1),
        **more: Any,
    ) -> list[str]:
        """Store messages without indexing them, one after the other from a time on; return their ids."""
        drafts = [
            MessageDraft(role, text, session_id=session, user="cleo", created_at=at and at + number * apart, **more)
            for number, text in enumerate(texts)
        ]
        return [message.uid for message in Conversations(self.engine).add(self.scope, drafts)]

    def tell(self, *texts: str, **more: Any) -> list[str]:
        """Store messages and index them."""
        said = self.say(*texts, **more)
        self.index()
        return said

    def index(self) -> None:
        self.graph.indexer.catch_up()

    def edit(self, uid: str, content: str) -> None:
        Conversations(self.engine).edit(self.scope, uid, content=content)

    def remove(self, chosen: Chooses, name: str) -> Any:
        with closing(Removals(self.engine, on_jobs_gone=lambda: None)) as removals:
            removals.start()
            return removals.remove(self.scope, chosen, name)

    def execute(self, *statements: str) -> None:
        """Change the stored rows behind the back of the services."""
        self.engine.write_rows(lambda connection: [connection.execute(one) for one in statements])

    def rows(self, query: str) -> list[Any]:
        with self.engine.namespace(self.scope) as (connection, _):
            return list(connection.execute(query))

    def details(self, name: str | int) -> ConceptDetails:
        return self.graph.concepts.details(self.scope, name)

    def concept(self, name: str | int) -> Concept:
        return self.details(name).concept

    def update(self, concept: Concept, **patch: Any) -> Concept:
        """Claim something of a concept, and index what follows from it."""
        changed = self.graph.claims.update(self.scope, concept.id, ConceptPatch(**patch))
        self.index()
        return changed

    def listed(self) -> Sequence[Concept]:
        return self.graph.concepts.page(self.scope)[0]

    def leading(self) -> dict[str, Concept]:
        """The concepts that introduce the agent, by key."""
        return {one.key: one for one in self.graph.concepts.leading(self.scope, limit=20)}

    def related(self, name: str, depth: int = 1) -> dict[str, ReachedConcept]:
        found = self.graph.concepts.related(self.scope, name, depth=depth)[1]
        return {one.concept.name: one for one in found}

    def topics(self) -> Sequence[NamedTopic]:
        found, total = self.graph.topics.page(self.scope)
        assert len(found) == total
        return found

    def topic(self) -> NamedTopic:
        """The only one."""
        [found] = self.topics()
        return found

    def model_claims(self, provider: LLMProvider | None, **settings: Any) -> ModelClaims:
        """Open jobs that are closed at the end of the test."""
        return self.opened.enter_context(closing(ModelClaims(self.engine, provider, Settings(**settings))))
