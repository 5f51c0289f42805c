"""What an agent knows: the graph that fills itself, and the one that is written by hand."""

from __future__ import annotations

from dataclasses import dataclass

from memory_engine import MemoryEngine
from souvenir.graph.checking import disagreements
from souvenir.graph.concepts import Concepts
from souvenir.graph.filling import Filling
from souvenir.graph.insights import Insights
from souvenir.graph.knowledge_graph import KnowledgeGraph
from souvenir.graph.neighbourhoods import Neighbourhoods
from souvenir.graph.stating import Stating
from souvenir.graph.topics import Topics
from souvenir.graph.typed_relations import TypedRelations


@dataclass(frozen=True, slots=True)
class GraphParts:
    """:param knowledge: Entities and relations as memories, as somebody wrote them.

    :param stating: What somebody says of concepts.
    """

    filling: Filling
    concepts: Concepts
    topics: Topics
    insights: Insights
    neighbourhoods: Neighbourhoods
    knowledge: KnowledgeGraph
    stating: Stating
    relations: TypedRelations

    @classmethod
    def open(cls, engine: MemoryEngine) -> GraphParts:
        """From now on a check of the engine looks at the graph too."""
        engine.models.also_checked.append(disagreements)
        return cls(
            Filling(engine),
            Concepts(engine),
            Topics(engine),
            Insights(engine),
            Neighbourhoods(engine),
            KnowledgeGraph(engine),
            Stating(engine),
            TypedRelations(engine),
        )

    def start(self) -> None:
        self.filling.start()

    def close(self) -> None:
        self.filling.close()
