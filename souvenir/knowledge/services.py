"""The services of an agent's knowledge: the graph that is indexed from texts, and the one that callers write."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir.knowledge.claims import Claims
from souvenir.knowledge.concepts import Concepts
from souvenir.knowledge.consistency import disagreements
from souvenir.knowledge.graph_indexer import GraphIndexer
from souvenir.knowledge.insights import Insights
from souvenir.knowledge.knowledge_graph import KnowledgeGraph
from souvenir.knowledge.topics import Topics
from souvenir.memories.engine import MemoryEngine


@dataclass(frozen=True, slots=True)
class KnowledgeServices:
    """:param knowledge: Entities and relations that callers store as memories."""

    indexer: GraphIndexer
    concepts: Concepts
    claims: Claims
    topics: Topics
    insights: Insights
    knowledge: KnowledgeGraph

    @classmethod
    def open(cls, engine: MemoryEngine) -> KnowledgeServices:
        """Create the services, and add the graph to the checks of the engine."""
        engine.models.also_checked.append(disagreements)
        return cls(
            indexer=GraphIndexer(engine),
            concepts=Concepts(engine),
            claims=Claims(engine),
            topics=Topics(engine),
            insights=Insights(engine),
            knowledge=KnowledgeGraph(engine),
        )

    def start(self) -> None:
        self.indexer.start()

    def close(self) -> None:
        self.indexer.close()
