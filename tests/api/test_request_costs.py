"""Limits on the cost of one request: tokens are bounded before embedding, on every route."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.concurrency import Deadline, deadline
from souvenir.core.errors import DeadlineExceeded
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.privacy.rules import PrivacyRules
from tests.api.busy import PATIENCE_S
from tests.api.conftest import Start
from tests.api.test_errors import problem
from tests.fake_embedder import FakeEmbedder

WORDS_150 = " ".join(f"word{number}" for number in range(150))
TOO_MANY = (413, "too_many_tokens")

STORES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "add": ("/memory/add", lambda text: {"text": text, "source": "s"}),
    "facts": ("/memory/add", lambda text: {"text": "A text.", "source": "s", "facts": [text[:1500]]}),
    "add-batch": ("/memory/add-batch", lambda text: {"memories": [{"text": text[:700], "source": "s"}] * 2}),
    "upsert": ("/memory/upsert", lambda text: {"text": text, "source": "s", "key": "k"}),
    "upsert-batch": ("/memory/upsert-batch", lambda text: {"memories": [{"text": text, "source": "s", "key": "k"}]}),
    "supersede": ("/memory/1/supersede", lambda text: {"text": text}),
    "novelty": ("/memory/is-novel", lambda text: {"text": text}),
    "messages": (
        "/messages/batch",
        lambda text: {"agent_name": "a", "messages": [{"role": "user", "content": text}] * 2},
    ),
}


@pytest.fixture
def client(start: Start) -> TestClient:
    made = start(max_request_tokens=100)
    made.post("/memory/add", json={"text": "a first memory", "source": "s"}).raise_for_status()
    return made


@pytest.mark.parametrize("name", STORES)
def test_texts_of_more_tokens_than_one_request_may_have_are_refused_with_the_bound(client: TestClient, name: str):
    path, body = STORES[name]
    refused = client.post(path, json=body(WORDS_150))
    assert problem(refused) == TOO_MANY
    assert "100 tokens together" in refused.json()["detail"]
    assert client.get("/memories/count").json() == {"count": 1}
    assert client.get("/messages/a").status_code == 404


def test_a_new_text_of_a_memory_is_bounded_too(client: TestClient):
    assert problem(client.patch("/memory/1", json={"text": WORDS_150})) == TOO_MANY
    assert client.get("/memory/1").json()["text"] == "a first memory"


def test_each_request_has_its_own_tokens(client: TestClient):
    for number in range(3):
        text = " ".join([f"memory{number}", *WORDS_150.split()[:80]])
        client.post("/memory/add", json={"text": text, "source": "s"}).raise_for_status()
    assert client.get("/memories/count").json() == {"count": 4}


def test_an_import_is_not_bounded(client: TestClient):
    lines = "\n".join(json.dumps({"text": f"{number} {WORDS_150}", "source": "s"}) for number in range(3))
    client.post("/import", content=lines, headers={"Content-Type": "application/x-ndjson"}).raise_for_status()
    assert client.get("/memories/count").json() == {"count": 4}


def test_only_the_beginning_of_a_message_is_counted(client: TestClient):
    said = {"agent_name": "a", "role": "user", "content": " ".join([WORDS_150] * 40)}
    refused = client.post("/messages", json=said)
    assert problem(refused) == TOO_MANY  # the first window has 128 tokens
    generous = said | {"content": WORDS_150[:500]}
    client.post("/messages", json=generous).raise_for_status()


def test_the_largest_batches_of_ordinary_texts_are_accepted(start: Start):
    client = start()
    memories = [{"text": f"{number} {WORDS_150}", "source": "s"} for number in range(500)]
    assert client.post("/memory/add-batch", json={"memories": memories}).json()["count"] == 500
    messages = [{"role": "user", "content": f"{number} {WORDS_150[:700]}"} for number in range(1000)]
    added = client.post("/messages/batch", json={"agent_name": "a", "messages": messages})
    assert added.json()["count"] == 1000
    longest = {"text": "记" * 50_000, "source": "s"}
    assert client.post("/memory/add", json=longest).status_code == 200


class CountingEmbedder(FakeEmbedder):
    """Lets the deadline of its caller pass at the third text that is tokenised."""

    def __init__(self) -> None:
        self.tokenised = 0
        self.until: Deadline | None = None

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        self.tokenised += 1
        if self.until is not None and self.tokenised == 3:
            self.until.end()
        return super().token_offsets(text)


def test_cutting_ends_when_nobody_waits_any_more(tmp_path: Path):
    embedder = CountingEmbedder()
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), embedder)) as engine:
        with deadline(PATIENCE_S) as embedder.until, pytest.raises(DeadlineExceeded):
            engine.add_batch(Scope(), [MemoryDraft(f"text {number}", "s") for number in range(100)])
        assert embedder.tokenised == 3
        assert engine.count(Scope()) == 0


def test_screening_ends_when_nobody_waits_any_more():
    rules = PrivacyRules.load(Settings().privacy_rules_path)
    with deadline(PATIENCE_S) as until:
        assert rules.screen("a text", rules.default_policy).text == "a text"
        until.end()
        with pytest.raises(DeadlineExceeded):
            rules.screen("a text", rules.default_policy)
