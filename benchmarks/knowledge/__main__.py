"""Quality of insights, descriptions and the page of an agent, on labelled conversations.

    python -m benchmarks.knowledge            the conversations of the development
    python -m benchmarks.knowledge --aside    those that were set aside
    python -m benchmarks.knowledge --show     prints the page of each agent too
    python -m benchmarks.knowledge --model    measures descriptions and topic names by the model of EXTRACT_PROVIDER too

Each conversation becomes an agent of the real engine, read as of its last message. An insight is rated by the label of
its exact sentence; a sentence without one counts as unrated, and is printed to be labelled. An expected finding counts
as found if an insight of its kind has one of its sources; a promise that was kept should not be found. The page has the
insights, the concepts that introduce the agent, and the topics with their summaries; a line of it is kept or deleted as
a reader did with the same line, or is unread. The names of topics were judged alone too, and are counted apart.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import ExitStack, closing

from benchmarks.knowledge.labels import Expected, Labelled, conversations
from benchmarks.knowledge.model import describe
from benchmarks.labelled import engine_of, parser
from benchmarks.report import Target, conclude, table
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import ConceptNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import Scope
from souvenir.knowledge.insights import Insight, InsightKind
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of
from souvenir.models.llm.provider import provider_of
from souvenir.store.graph.concepts import Concept

MIN_USEFUL, MIN_KEPT = 0.8, 0.9

CONCEPTS, TOPICS = 15, 10
"""Maximum lines of a page."""

KINDS = {
    InsightKind.OVERDUE: "promise",
    InsightKind.UPCOMING: "promise",
    InsightKind.CHANGE: "change",
    InsightKind.CONTRADICTION: "contradiction",
    InsightKind.NEW: "new",
    InsightKind.QUIET: "quiet",
    InsightKind.IMPORTANT: "important",
}
"""The kinds of the labels."""


Scores = Counter[str]
"""Ratings of sentences, expected and found findings by kind, and results of descriptions."""


def measure(engine: MemoryEngine, graph: KnowledgeServices, one: Labelled, scores: Scores, *, show: bool) -> list[str]:
    """Store a conversation and add to the scores; returns the ids of its messages, in order."""
    scope = Scope(one.name)
    stored = Conversations(engine).add(scope, one.messages)
    graph.indexer.catch_up()
    place_of = {message.uid: place for place, message in enumerate(stored)}
    insights = graph.insights.of_agent(scope, one.messages[-1].created_at)
    lines = page_of(graph, scope)
    scores.update(f"{sort}: {one.verdicts.get(line, 'unread')}" for sort, line in lines)
    if show:
        print("\n".join((f"\n# {one.name}", *(f"  [{found.kind}] {found.text}" for found in insights))))
        print("\n".join(f"  {line} ({one.verdicts.get(line, 'unread')})" for _, line in lines))
    for insight in insights:
        rating = one.ratings.get(insight.text, "unrated")
        scores[f"insights: {rating}"] += 1
        if rating == "unrated":
            print(
                f"unrated | {one.name} | {insight.kind} | {[place_of[s.id] for s in insight.sources]} | {insight.text}"
            )
    for wanted in one.expected:
        if not wanted.done:
            scores[f"expected: {wanted.kind}"] += 1
            scores[f"found: {wanted.kind}"] += any(_is_of(insight, wanted, place_of) for insight in insights)
    for described in one.described:
        concept = _concept(graph, scope, described.name)
        result = _result(concept, described.message is not None, described.sentence, one, described.message)
        scores[f"descriptions: {result}"] += 1
        if show and result != "right":
            shown = concept and (concept.description or concept.role)
            print(f"  {result}: {described.name}: {shown!r}, labelled {described.sentence!r}")
    return [message.uid for message in stored]


def _is_of(insight: Insight, wanted: Expected, place_of: dict[str, int]) -> bool:
    return KINDS[insight.kind] == wanted.kind and any(place_of.get(one.id) in wanted.sources for one in insight.sources)


def _concept(graph: KnowledgeServices, scope: Scope, name: str) -> Concept | None:
    try:
        return graph.concepts.details(scope, name).concept
    except ConceptNotFound:
        return None


def _result(concept: Concept | None, is_defined: bool, sentence: str | None, one: Labelled, place: int | None) -> str:
    """Return how a description compares with the label: any sentence of the labelled message is right."""
    text = None if concept is None else concept.description
    if not is_defined:
        return "rightly empty" if text is None else "not wanted"
    if text is None:
        return "role only" if concept and concept.role else "missing"
    same = place is not None and text in " ".join(one.messages[place].content.split())
    return "right" if same or text == sentence else "another"


def page_of(graph: KnowledgeServices, scope: Scope) -> list[tuple[str, str]]:
    """Return the lines of people, things and topics of an agent's page, and the names of topics alone, with a sort."""
    concepts = graph.concepts.leading(scope, limit=CONCEPTS)
    found, _ = graph.topics.page(scope, offset=0, limit=TOPICS)
    return [
        *(("concepts", f"- {one.name} ({one.kind}): {one.description or one.role or ''}") for one in concepts),
        *(("topics", f"* {one.name} — {one.summary or ''}") for one in found),
        *(("names of topics", f"* {one.name}") for one in found),
    ]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--show", action="store_true", help="print insights, concepts and topics of each agent")
    options.add_argument("--model", action="store_true", help="let the model of EXTRACT_PROVIDER describe them too")
    arguments = options.parse_args()
    scores, of_model = Scores(), Scores()
    with ExitStack() as opened:
        settings = Settings()
        provider = provider_of(settings) if arguments.model else None
        if provider is not None:
            opened.enter_context(closing(provider))
        elif arguments.model:
            options.error("--model needs a language model; set EXTRACT_PROVIDER to anthropic, openai or ollama")
        embedder = opened.enter_context(closing(embedder_of(settings)))
        embedder.load()
        engine = opened.enter_context(engine_of(embedder))
        graph = KnowledgeServices.open(engine)
        for one in conversations(aside=arguments.aside):
            messages = measure(engine, graph, one, scores, show=arguments.show)
            if provider is not None:
                describe(engine, graph, provider, one, messages, of_model)
    rows = [(name, f"{count:g}") for name, count in (*sorted(scores.items()), *sorted(of_model.items()))]
    print("\n" + table(("measured", "count"), rows))
    rated = sum(count for name, count in scores.items() if name.startswith("insights: "))
    share = scores["insights: useful"] / rated if rated else 0.0
    kept, deleted = (
        scores["concepts: keep"] + scores["topics: keep"],
        scores["concepts: delete"] + scores["topics: delete"],
    )
    read = kept + deleted + rated - scores["insights: unrated"]
    targets = [
        Target("share of insights rated useful", share, MIN_USEFUL, at_least=True),
        Target("share of lines kept", (kept + scores["insights: useful"]) / max(read, 1), MIN_KEPT, at_least=True),
    ]
    return conclude("knowledge", dict(rows), targets)


if __name__ == "__main__":
    sys.exit(main())
