"""Descriptions and topic names by the language model of EXTRACT_PROVIDER, next to those by rules.

Each conversation is read by jobs as `POST /agents/{agent}/graph/describe` starts them. A description counts as right if
its claim quotes the labelled message; that its words are true is not measured. Of topics, the names and summaries that
passed the checks are counted, and the names are printed to be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from contextlib import closing

from benchmarks.knowledge.labels import Labelled
from souvenir.core.errors import ConceptNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import ClaimKind, JsonObject, Scope
from souvenir.knowledge.model_claims import ModelClaims
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import LLMProvider

REQUESTS = 50
"""Maximum number of requests for one conversation."""

PATIENCE_S = 1_800.0


def describe(
    engine: MemoryEngine,
    graph: KnowledgeServices,
    provider: LLMProvider,
    one: Labelled,
    messages: Sequence[str],
    scores: Counter[str],
) -> None:
    """Let the model read the conversation, which is stored and indexed, and add to the scores.

    :param messages: The ids of its messages, in order.
    :raises RuntimeError: If the job fails.
    """
    scope = Scope(one.name)
    before = {topic.topic.id: topic.name for topic in graph.topics.page(scope)[0]}
    with closing(ModelClaims(engine, provider, Settings())) as model_claims:
        model_claims.start()
        job = model_claims.submit(scope, session=None, limit=REQUESTS)
        done = model_claims.jobs.wait(job.id, PATIENCE_S)
        if done.result is None:
            raise RuntimeError(f"the job for {one.name} ended as {done.status}: {done.failure}")
        _, claims, _ = model_claims.get(scope, job.id)
    graph.indexer.catch_up()
    _count(done.result, scores)
    sources = {(one.key, one.message) for one in claims if one.kind is ClaimKind.DESCRIPTION}
    for described in one.described:
        labelled = None if described.message is None else messages[described.message]
        scores[f"model: descriptions: {_result(graph, scope, described.name, labelled, sources)}"] += 1
    for topic in graph.topics.page(scope)[0]:
        scores["model: topics: all"] += 1
        scores["model: topics: named or summarised by the model"] += topic.named_by is not None
        print(f"topic | {one.name} | {before.get(topic.topic.id)} | {topic.name} | {topic.summary}")


def _count(result: JsonObject, scores: Counter[str]) -> None:
    for kind, count in result["claims"].items():
        scores[f"model: claims stored: {kind}"] += count
    for dropped in result["dropped"]:
        scores[f"model: claims dropped: {dropped['kind']}, {dropped['reason']}"] += dropped["count"]
    for name in ("questions", "input_tokens", "output_tokens", "cost_usd", "failed"):
        if result[name] is not None:
            scores[f"model: {name}"] += result[name]


def _result(
    graph: KnowledgeServices, scope: Scope, name: str, labelled: str | None, sources: Set[tuple[str, str | None]]
) -> str:
    """Return how the description of a concept compares with its label: the id of the message that defines it."""
    try:
        shown = graph.concepts.details(scope, name)
    except ConceptNotFound:
        return "no concept"
    if shown.described_by != "model":
        return f"by {shown.described_by}" if shown.concept.description else "none"
    if labelled is None:
        return "by the model, where nothing defines it"
    is_labelled = (shown.concept.key, labelled) in sources
    return f"by the model, from {'the labelled' if is_labelled else 'another'} message"
