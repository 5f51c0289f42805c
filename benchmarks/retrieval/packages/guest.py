"""Runs in a package's environment, independent of the project: stores and searches as the package documents.

    python guest.py PACKAGE ADDRESS_OF_EMBEDDINGS DIMENSIONS FOLDER

Reads a JSON object a line from its input and answers each with one: `{"add": scope, "items": [{id, text, time}]}` and
`{"search": scope, "text": ..., "top_k": ...}`, answered by `{"found": [[id, score], ...], "seconds": ...}`.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Protocol

MODEL_NAME = "benchmark"
BATCH = 64
MEMPALACE_MAX_CHARS = 100_000
"""It refuses a longer text."""

Items = list[dict[str, Any]]
Found = list[tuple[str, float]]


class Guest(Protocol):
    def add(self, scope: str, items: Items) -> None: ...

    def search(self, scope: str, text: str, top_k: int) -> Found: ...


class Mem0:
    """`infer=False`: the texts as they are, in Qdrant's local mode. It embeds and searches by itself."""

    def __init__(self, address: str, dimensions: int, folder: Path) -> None:
        from mem0 import Memory

        embeddings = {"model": MODEL_NAME, "openai_base_url": address, "api_key": "none"}
        self._memory = Memory.from_config(
            {
                "embedder": {"provider": "openai", "config": embeddings},
                "llm": {"provider": "openai", "config": {"openai_base_url": address, "api_key": "none"}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": str(folder / "qdrant"), "embedding_model_dims": dimensions, "on_disk": True},
                },
                "history_db_path": str(folder / "history.db"),
            }
        )

    def add(self, scope: str, items: Items) -> None:
        for item in items:
            self._memory.add(item["text"], user_id=_plain(scope), metadata={"document": item["id"]}, infer=False)

    def search(self, scope: str, text: str, top_k: int) -> Found:
        hits = self._memory.search(text, top_k=top_k, filters={"user_id": _plain(scope)}, threshold=0.0)["results"]
        return [(hit["metadata"]["document"], hit["score"]) for hit in hits]


class MemPalace:
    """Drawers of one room, a wing a scope, found by its hybrid search; it cuts a long text into several drawers."""

    def __init__(self, address: str, dimensions: int, folder: Path) -> None:
        self._palace = str(folder / "palace")
        os.environ |= {
            "MEMPALACE_PALACE_PATH": self._palace,
            "MEMPALACE_EMBEDDING_MODEL": "openai-compat",
            "MEMPALACE_EMBEDDING_API_URL": address,
            "MEMPALACE_EMBEDDING_API_MODEL": MODEL_NAME,
        }
        from mempalace import mcp_server, searcher

        self._server, self._searcher = mcp_server, searcher

    def add(self, scope: str, items: Items) -> None:
        for item in items:
            text = item["text"][:MEMPALACE_MAX_CHARS]
            filed = self._server.tool_add_drawer(_plain(scope), "all", text, source_file=item["id"])
            if not filed["success"]:
                raise RuntimeError(filed["error"])

    def search(self, scope: str, text: str, top_k: int) -> Found:
        answer = self._searcher.search_memories(text, self._palace, wing=_plain(scope), n_results=top_k)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        hits = answer["results"]
        most = max((hit["bm25_score"] for hit in hits), default=0.0) or 1.0
        best: dict[str, float] = {}
        for hit in hits:
            # It says the two parts of the sum that it ranks by, and not the sum.
            best.setdefault(hit["source_path"], 0.6 * hit["similarity"] + 0.4 * hit["bm25_score"] / most)
        return list(best.items())


class Engram:
    """Its pipeline of dense, sparse and name ranks over the documents of a scope, without its cross-encoder."""

    def __init__(self, address: str, dimensions: int, folder: Path) -> None:
        from engram.backends.base import Document
        from engram.retrieval.pipeline import RetrievalPipeline

        self._document = Document
        self._embeddings = Embeddings(address)
        self._pipeline = RetrievalPipeline(embedder=self._embeddings, use_reranker=False)
        self._documents: dict[str, list[Any]] = {}

    def add(self, scope: str, items: Items) -> None:
        vectors = self._embeddings.encode_documents([item["text"] for item in items])
        self._documents.setdefault(scope, []).extend(
            self._document(item["id"], item["text"], embedding=vector, metadata={"timestamp": item["time"] or ""})
            for item, vector in zip(items, vectors, strict=True)
        )

    def search(self, scope: str, text: str, top_k: int) -> Found:
        return [(hit.id, hit.score) for hit in self._pipeline.search(text, self._documents[scope], top_k=top_k)]


class Embeddings:
    """The vectors of the endpoint, under the names that engram's own embedder has."""

    def __init__(self, address: str) -> None:
        self._address = f"{address}/embeddings"

    def encode_documents(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            body = json.dumps({"model": MODEL_NAME, "input": texts[start : start + BATCH]}).encode()
            request = urllib.request.Request(self._address, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                found += [row["embedding"] for row in json.load(answer)["data"]]
        return found

    def encode_query(self, text: str) -> list[float]:
        return self.encode_documents([text])[0]


GUESTS: dict[str, type[Mem0] | type[MemPalace] | type[Engram]] = {
    "mem0": Mem0,
    "mempalace": MemPalace,
    "engram": Engram,
}


def main() -> None:
    name, address, dimensions, folder = sys.argv[1:]
    # What a package prints must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    guest: Guest = GUESTS[name](address, int(dimensions), Path(folder))
    for line in sys.stdin:
        asked = json.loads(line)
        begin = time.perf_counter()
        found: Found = []
        if "add" in asked:
            guest.add(asked["add"], asked["items"])
        else:
            found = guest.search(asked["search"], asked["text"], asked["top_k"])
        print(json.dumps({"found": found, "seconds": time.perf_counter() - begin}), file=answers, flush=True)


def _plain(scope: str) -> str:
    """A name that a wing and a user may have."""
    return "".join(character if character.isalnum() else "-" for character in scope)


if __name__ == "__main__":
    main()
