"""An agent whose texts are indexed: what the tests of this folder do with it."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import MessageRole, Scope
from souvenir.knowledge.concepts import ConceptDetails
from souvenir.knowledge.model_claims import ModelClaims
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.graph.concepts import Concept
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.selection import Chooses

ANN, BEN = Scope("ann", "tester"), Scope("ben", "tester")


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent of the scope `ANN`, in an engine with others."""

    engine: MemoryEngine
    graph: KnowledgeServices
    opened: ExitStack = field(default_factory=ExitStack)

    def say(
        self,
        *texts: str,
        session: str = "s",
        scope: Scope = ANN,
        role: MessageRole = MessageRole.USER,
        at: datetime | None = None,
    ) -> list[str]:
        """Store messages without indexing them, one a minute from a time on; return their ids."""
        times = [at and at + timedelta(minutes=minute) for minute in range(len(texts))]
        drafts = [
            MessageDraft(role, text, session_id=session, user="cleo", created_at=created_at)
            for text, created_at in zip(texts, times, strict=True)
        ]
        return [message.uid for message in Conversations(self.engine).add(scope, drafts)]

    def tell(self, *texts: str, **more: Any) -> list[str]:
        """Store messages and index them."""
        said = self.say(*texts, **more)
        self.index()
        return said

    def index(self) -> None:
        self.graph.indexer.catch_up()

    def edit(self, uid: str, content: str) -> None:
        Conversations(self.engine).edit(ANN, uid, content=content)

    def remove(self, chosen: Chooses, name: str) -> Any:
        with closing(Removals(self.engine, on_jobs_gone=lambda: None)) as removals:
            removals.start()
            return removals.remove(ANN, chosen, name)

    def execute(self, *statements: str) -> None:
        """Change the stored rows behind the back of the services."""
        self.engine.write_rows(lambda connection: [connection.execute(one) for one in statements])

    def details(self, name: str | int) -> ConceptDetails:
        return self.graph.concepts.details(ANN, name)

    def concept(self, name: str | int) -> Concept:
        return self.details(name).concept

    def model_claims(self, provider: LLMProvider | None, **settings: Any) -> ModelClaims:
        """Open jobs that are closed at the end of the test."""
        return self.opened.enter_context(closing(ModelClaims(self.engine, provider, Settings(**settings))))
