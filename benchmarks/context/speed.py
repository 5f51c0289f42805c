"""The time of a context in a long history, next to that of a search."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path

from benchmarks.conversation.filling import SCOPE, fill
from benchmarks.conversation.turns import new_questions
from benchmarks.report import percentile_ms
from souvenir.api.context import ContextResponse
from souvenir.conversations.context import ContextQuery, Contexts
from souvenir.conversations.message_search import MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.core.concurrency import deadline
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of

CONTEXT, SEARCH = "context", "search of messages"
WARM_UP = 5
LOADING_S = 900.0


def durations_ms(messages: int, questions: int, folder: Path) -> dict[str, dict[str, float]]:
    """The p50 and p95 of each, in turns, with a new question each time.

    :param folder: Where the filled data stays for the next run.
    """
    settings = Settings(data_dir=folder / "ours")
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    with closing(embedder_of(settings)) as embedder:
        embedder.load()
        with closing(MemoryEngine.open(settings, embedder)) as engine:
            fill(engine, messages)
            verbs = _verbs(engine)
            with deadline(LOADING_S):
                verbs[SEARCH]("the first search loads the index")
            for number, question in enumerate(islice(new_questions(), (WARM_UP + questions) * len(verbs))):
                verb = list(verbs)[number % len(verbs)]
                begin = time.perf_counter()
                verbs[verb](question)
                if number >= WARM_UP * len(verbs):
                    seconds[verb].append(time.perf_counter() - begin)
    return {verb: {"p50": percentile_ms(of, 50), "p95": percentile_ms(of, 95)} for verb, of in seconds.items()}


def _verbs(engine: MemoryEngine) -> dict[str, Callable[[str], object]]:
    conversations = Conversations(engine)
    contexts = Contexts(engine, conversations)
    return {
        CONTEXT: lambda question: _answer(contexts, question),
        SEARCH: lambda question: conversations.search(SCOPE, MessageQuery(question, 10)),
    }


def _answer(contexts: Contexts, question: str) -> str:
    """The body that `POST /context` answers."""
    return ContextResponse.of(contexts.build(SCOPE, ContextQuery(question)), None, now=utc_now()).model_dump_json()
