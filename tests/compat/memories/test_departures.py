"""Each known fault of the reference service, as its clients would meet it, is absent.

One test for each row of the list of differences (docs/migrate-from-memories.md), in its order; each fails on a service
that behaves as the reference does.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from souvenir.core.types import FloatVector
from tests.api.busy import until
from tests.api.conftest import (  # noqa: F401
    Start,
    learner,
    loaded,
    start,
)
from tests.api.learning import PATIENCE_S, ended
from tests.api.test_events import free_port, is_up, run_server
from tests.fake_embedder import FakeEmbedder
from tests.forking import CONTEXT
from tests.vendors.llm import LLMVendor, says

TALK = {"messages": "User: We moved billing to Postgres 17.", "source": "chat"}


class CountingEmbedder(FakeEmbedder):
    """Counts the texts that it embeds; waits before each embedding while `go_on` is not set."""

    def __init__(self) -> None:
        self.embedded = 0
        self.entered, self.go_on = Event(), Event()
        self.go_on.set()

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        self.entered.set()
        assert self.go_on.wait(PATIENCE_S)
        self.embedded += len(texts)
        return super().embed_documents(texts)


@pytest.fixture
def client(start: Start) -> TestClient:  # noqa: F811
    return loaded(start())


def add(client: TestClient, text: str, source: str = "notes", **more: Any) -> int:
    answer = client.post("/memory/add", json={"text": text, "source": source, **more})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def found(client: TestClient, query: str, **more: Any) -> list[int]:
    answer = client.post("/search", json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    return [hit["id"] for hit in answer.json()["results"]]


def test_a_write_embeds_only_its_own_text_however_many_memories_there_are(start: Start):  # noqa: F811
    embedder = CountingEmbedder()
    client = loaded(start(embedder=embedder))
    costs = []
    for size in (10, 400):
        memories = [{"text": f"Fact {size} {number}", "source": "notes"} for number in range(size)]
        ids = client.post("/memory/add-batch", json={"memories": memories}).json()["ids"]
        embedder.embedded = 0
        add(client, f"One more after {size}")
        client.delete(f"/memory/{ids[0]}").raise_for_status()
        costs.append(embedder.embedded)
    assert costs == [1, 1]


def test_an_id_is_never_used_twice(client: TestClient):
    first, second, third = (add(client, f"Fact {number}") for number in range(3))
    assert client.delete(f"/memory/{second}").status_code == 200
    assert client.delete(f"/memory/{second}").status_code == 404
    assert client.get(f"/memory/{third}").json()["text"] == "Fact 2"
    assert client.delete(f"/memory/{third}").status_code == 200
    assert add(client, "Fact 3") > third > first


def test_after_a_kill_the_service_starts_and_finds_what_it_acknowledged(tmp_path: Path, start: Start):  # noqa: F811
    port = free_port()
    process = CONTEXT.Process(target=run_server, args=(str(tmp_path / "killed"), port))
    process.start()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as remote:
        until(lambda: is_up(remote))
        added = remote.post("/memory/add", json={"text": "The boat is green", "source": "notes"}).json()["id"]
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    client = loaded(start(data_dir=tmp_path / "killed"))
    assert found(client, "green boat") == [added]


def test_a_search_changes_nothing_in_its_hits(client: TestClient):
    added = add(client, "The boat is green")
    before = client.get(f"/memory/{added}").json()
    assert found(client, "green boat") == [added]
    assert client.get(f"/memory/{added}").json() == before


def test_a_time_without_offset_is_utc_and_an_unreadable_one_is_refused(client: TestClient):
    add(client, "The boat is green")
    second = add(client, "The boat is blue")
    created_at = datetime.fromisoformat(client.get(f"/memory/{second}").json()["created_at"])
    assert found(client, "boat", since=created_at.replace(tzinfo=None).isoformat()) == [second]
    for name in ("since", "until"):
        assert client.post("/search", json={"query": "boat", name: "the day before"}).status_code == 422


def test_filters_are_applied_before_the_best_are_taken(client: TestClient):
    for number in range(40):
        add(client, f"The green boat number {number}", "notes/boats")
    wanted = {add(client, f"A boat and many other things {number}", "diary") for number in range(3)}
    assert set(found(client, "green boat", k=3, source_prefix="diary")) == wanted
    client.post("/memory/archive-batch", json={"ids": list(wanted)})
    assert len(found(client, "green boat", k=5)) == 5


def test_a_key_reaches_its_scope_to_the_path_boundary_on_every_route(start: Start):  # noqa: F811
    client = loaded(start(api_key="secret"))
    client.headers["X-API-Key"] = "secret"
    hidden = add(client, "The codename is Heron", "proj/ab")
    scoped = {"name": "scoped", "role": "read-write", "prefixes": ["proj/a"]}
    client.headers["X-API-Key"] = client.post("/api/keys", json=scoped).json()["key"]
    assert client.get(f"/memory/{hidden}").status_code == 404
    assert client.delete(f"/memory/{hidden}").status_code == 404
    novel = client.post("/memory/is-novel", json={"text": "The codename is Heron"}).json()
    assert novel["is_novel"]
    assert "Heron" not in str(novel["most_similar"])
    assert found(client, "codename Heron") == []
    exported = client.get("/export")
    assert "Heron" not in exported.text
    assert client.get("/memories/count").json()["count"] == 0
    client.headers["X-API-Key"] = "secret"
    assert client.get(f"/memory/{hidden}").status_code == 200


def test_a_managed_admin_sees_all_and_nobody_is_admin_without_a_key(client: TestClient):
    added = add(client, "The boat is green")
    made = client.post("/api/keys", json={"name": "root", "role": "admin"}).json()
    assert client.get("/memories").status_code == 401
    client.headers["X-API-Key"] = made["key"]
    assert found(client, "green boat") == [added]


def test_other_requests_are_answered_while_one_is_at_work(start: Start):  # noqa: F811
    embedder = CountingEmbedder()
    client = loaded(start(embedder=embedder))
    embedder.entered.clear()
    embedder.go_on.clear()
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(add, client, "The boat is green")
        assert embedder.entered.wait(PATIENCE_S)
        assert client.get("/health").status_code == 200
        assert client.get("/memories/count").json()["count"] == 0
        assert not slow.done()
        embedder.go_on.set()
        assert slow.result(PATIENCE_S) == 1


def test_building_the_index_keeps_the_other_memories(start: Start, tmp_path: Path):  # noqa: F811
    (tmp_path / "MEMORY.md").write_text("# Boats\n\nThe boat is green.\n")
    client = loaded(start(workspace_dir=tmp_path))
    kept = add(client, "The car is red")
    built = client.post("/index/build", json={"sources": ["MEMORY.md"]})
    assert built.status_code == 200, built.text
    assert built.json()["memories_added"] == 1
    assert client.get(f"/memory/{kept}").status_code == 200


@pytest.mark.sqlite_only(reason="backs up or restores")
def test_backups_of_one_second_have_different_names(client: TestClient):
    add(client, "The boat is green")
    names = [Path(client.post("/backup").json()["backup_path"]).name for _ in range(3)]
    assert len(set(names)) == 3
    listed = {backup["name"] for backup in client.get("/backups").json()["backups"]}
    assert set(names) <= listed


def test_missing_ids_are_404_and_metadata_may_be_given_for_some_items(client: TestClient):
    memories = [{"text": "With", "source": "notes", "metadata": {"kind": "a"}}, {"text": "Without", "source": "notes"}]
    assert client.post("/memory/add-batch", json={"memories": memories}).status_code == 200
    assert (
        client.post("/memory/merge", json={"ids": [1, 99], "merged_text": "Both", "source": "notes"}).status_code == 404
    )
    assert client.request("DELETE", "/memory/99/link/1", params={"type": "related_to"}).status_code == 404
    assert client.get("/memory/1").json()["text"] == "With"


def test_jobs_webhooks_and_usage_survive_a_restart(start: Start):  # noqa: F811
    client = loaded(start(extract_fallback_add=True))
    job_id = client.post("/memory/extract", json=TALK).json()["job_id"]
    ended(client, job_id)
    hook = {"url": "https://192.0.1.1/hook", "events": ["memory.added"]}
    made = client.post("/webhooks", json=hook)
    assert made.status_code == 200, made.text
    client.__exit__(None, None, None)
    again = loaded(start())
    assert again.get(f"/memory/extract/{job_id}").json()["status"] == "completed"
    assert [one["url"] for one in again.get("/webhooks").json()["webhooks"]] == [hook["url"]]
    operations = again.get("/usage", params={"period": "today"}).json()["operations"]
    assert sum(one["total"] for one in operations.values()) >= 2


def test_the_status_of_extraction_calls_no_model(start: Start, learner: LLMVendor):  # noqa: F811
    client = loaded(start(**learner.settings("openai")))
    assert client.get("/extract/status").json()["model"] == "scripted-1"
    assert learner.requests == []


def test_output_that_is_cut_is_reported_and_never_no_facts(start: Start, learner: LLMVendor):  # noqa: F811
    learner.script(lambda request: says('{"facts": [{"text": "We mov', ending="length"))
    client = loaded(start(**learner.settings("openai")))
    shown = ended(client, client.post("/memory/extract", json=TALK).json()["job_id"])
    assert len(learner.requests) > 1, "it is tried again"
    assert shown["result"]["error"] == "provider_runtime_failure"
    assert "it was cut" in shown["result"]["error_message"]


def test_words_are_found_without_the_punctuation_after_them(client: TestClient):
    wanted = add(client, "We deploy everything on fly.io, mostly from Lisbon")
    for number in range(5):
        add(client, f"Something else about deployment {number}")
    assert found(client, "fly.io", vector_weight=0)[0] == wanted


def test_a_long_text_is_embedded_to_its_end(start: Start):  # noqa: F811
    embedder = CountingEmbedder()
    client = loaded(start(embedder=embedder))
    wanted = add(client, " ".join(f"word{number}" for number in range(600)) + ". The boat in the harbour is green.")
    assert embedder.embedded > 1
    add(client, "Lunch at noon")
    assert found(client, "The boat in the harbour is green.", vector_weight=1, k=1) == [wanted]


@pytest.mark.parametrize("name", ["new_text", "text"])
def test_both_spellings_of_a_new_text_supersede(client: TestClient, name: str):
    old = add(client, "The boat is green")
    answer = client.post("/memory/supersede", json={"old_id": old, name: "The boat is blue"})
    assert client.get(f"/memory/{answer.json()['new_id']}").json()["text"] == "The boat is blue"


@pytest.mark.parametrize("names", [("old_name", "new_name"), ("old_prefix", "new_prefix")])
def test_both_spellings_of_a_folder_rename_it(client: TestClient, names: tuple[str, str]):
    moved = add(client, "The boat is green", "boats/notes")
    answer = client.post("/folders/rename", json=dict(zip(names, ("boats", "ships"), strict=True)))
    assert answer.status_code == 200, answer.text
    assert client.get(f"/memory/{moved}").json()["source"] == "ships/notes"


@pytest.mark.sqlite_only(reason="backs up or restores")
@pytest.mark.parametrize("sent", [{"json": {"prefix": "mine"}}, {"params": {"prefix": "mine"}}])
def test_the_prefix_of_a_backup_is_taken_from_the_body_and_the_query(client: TestClient, sent: Any):
    add(client, "The boat is green")
    answer = client.post("/backup", **sent)
    assert Path(answer.json()["backup_path"]).name.startswith("mine_")


def test_the_period_daily_is_today(client: TestClient):
    add(client, "The boat is green")
    today, daily = (client.get("/usage", params={"period": period}).json() for period in ("today", "daily"))
    assert daily["operations"]["add_memory"] == today["operations"]["add_memory"]
