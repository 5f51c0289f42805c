"""A data set in the real service on a free port of this machine: stored and searched by a client.

A text is sent up to the length that the service takes, and not at all if it is empty.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.report import percentile_ms
from benchmarks.retrieval.data_sets import DataSet, Document, Question
from benchmarks.retrieval.metrics import SESSION_DEPTH, Found
from benchmarks.retrieval.rankings import Rankings, ask
from benchmarks.service import Client, Service, ServiceFailed
from souvenir.api.fields import MAX_TEXT_CHARS
from souvenir.conversations.messages import Conversations
from souvenir.core.types import PassageKind, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import MessageDraft, MessageFilter

OVER_HTTP = "souvenir, over HTTP"
BATCH = 500
OK = 200
REQUEST_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class HttpSearcher:
    """:param names: Which document each id on the wire is."""

    client: Client
    kind: PassageKind
    names: Mapping[str, str]
    seconds: list[float] = field(default_factory=list)

    def search(self, question: Question, top_k: int) -> Found:
        begin = time.perf_counter()
        if self.kind is PassageKind.MESSAGE:
            body = {"agent_name": question.scope, "query": question.text, "limit": top_k}
            hits = _answer(self.client, "/messages/search", body)
        else:
            hits = _answer(self.client, "/search", {"query": question.text, "k": top_k}, question.scope)["results"]
        self.seconds.append(time.perf_counter() - begin)
        return [(self.names[str(hit["id"])], hit["score"]) for hit in hits]


def measure_over_http(data_set: DataSet, data_dir: Path) -> tuple[Rankings, Mapping[str, str]]:
    """The service's answers, and which document each id on the wire is; the folder stays as the service left it."""
    service = Service(data_dir, MAX_SEARCH_LIMIT=str(SESSION_DEPTH), REQUEST_TIMEOUT_S=str(REQUEST_TIMEOUT_S))
    service.start()
    try:
        with closing(Client(service.port, timeout_s=REQUEST_TIMEOUT_S)) as client:
            begin = time.perf_counter()
            names = _store(data_set, client)
            stored_s = time.perf_counter() - begin
            searcher = HttpSearcher(client, data_set.kind, names)
            answers = ask(OVER_HTTP, searcher, data_set)
    finally:
        service.stop()
    costs = {
        "stored a second, with embedding": len(data_set) / stored_s,
        "search with embedding p50 ms": percentile_ms(searcher.seconds, 50),
        "search with embedding p95 ms": percentile_ms(searcher.seconds, 95),
    }
    return Rankings(answers.name, answers.found, costs), names


def names_in(engine: MemoryEngine, data_set: DataSet, on_the_wire: Mapping[str, str]) -> Mapping[int, str]:
    """Which document each id of the engine is, in a folder that the service filled."""
    if data_set.kind is PassageKind.MEMORY:
        return {int(id_): name for id_, name in on_the_wire.items()}
    conversations = Conversations(engine)
    return {
        message.id: on_the_wire[message.uid]
        for scope, documents in data_set.documents.items()
        for message in conversations.page(Scope(scope), MessageFilter(), limit=len(documents))[0]
    }


def agreement(one: Rankings, other: Rankings) -> float:
    """The share of questions that both answer with the same documents in the same order."""
    same = [
        [id_ for id_, _ in first] == [id_ for id_, _ in second]
        for first, second in zip(one.found, other.found, strict=True)
    ]
    return sum(same) / len(same)


def _store(data_set: DataSet, client: Client) -> Mapping[str, str]:
    names: dict[str, str] = {}
    for scope, documents in data_set.documents.items():
        for batch in _batches(documents, data_set.kind):
            if data_set.kind is PassageKind.MESSAGE:
                answer = _answer(client, "/messages/batch", _messages_body(scope, batch))
                ids = [message["id"] for message in answer["messages"]]
            else:
                memories = [_memory_body(document) for document in batch]
                ids = _answer(client, "/memory/add-batch", {"memories": memories}, scope)["ids"]
            names.update(zip(map(str, ids), (document.id for document in batch), strict=True))
    return names


def _batches(documents: Sequence[Document], kind: PassageKind) -> Iterator[Sequence[Document]]:
    """In order; a batch of messages is of one session."""
    documents = [document for document in documents if document.text]
    runs = (
        [list(run) for _, run in groupby(documents, key=lambda document: document.session)]
        if kind is PassageKind.MESSAGE
        else [documents]
    )
    for run in runs:
        for start in range(0, len(run), BATCH):
            yield run[start : start + BATCH]


def _messages_body(scope: str, batch: Sequence[Document]) -> dict[str, Any]:
    drafts = [document.message() for document in batch]
    return {
        "agent_name": scope,
        "session_id": drafts[0].session_id,
        "messages": [_message_body(draft) for draft in drafts],
    }


def _message_body(draft: MessageDraft) -> dict[str, Any]:
    at = {} if draft.created_at is None else {"created_at": draft.created_at.isoformat()}
    return {"role": draft.role.value, "content": draft.content[:MAX_TEXT_CHARS], "name": draft.speaker, **at}


def _memory_body(document: Document) -> dict[str, Any]:
    draft = document.memory()
    at = {} if draft.document_at is None else {"document_at": draft.document_at.isoformat()}
    return {"text": draft.text[:MAX_TEXT_CHARS], "source": draft.source, "metadata": at}


def _answer(client: Client, path: str, body: Any, namespace: str | None = None) -> Any:
    status, answer = client.call("POST", path, body, namespace=namespace)
    if status != OK:
        raise ServiceFailed(f"{path} was answered {status}: {answer}")
    return answer
