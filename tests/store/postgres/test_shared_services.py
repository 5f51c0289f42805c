"""Services on one database: what one changes, all follow; what only one may do, one does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.errors import DatabaseUnavailable, StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.core.types import MemoryDraft, OnDuplicate, Scope, SearchQuery
from souvenir.events.feed import EventFeed
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import jobs
from souvenir.store.admin.events import Event
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.replicas import DATABASE_UNREACHABLE
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.store.postgres.waiting import Open, eventually

KEY = "k-4f9c2a7d6b1e"
ADMIN = {"X-API-Key": KEY}
WAIT_S = 20.0
Start = Callable[..., TestClient]


@pytest.fixture
def start(tmp_path: Path, postgres: PostgresConnection, server_address: str) -> Iterator[Start]:
    """Starts a service by the name of its folder."""
    with ExitStack() as running:

        def start_service(name: str, **values: Any) -> TestClient:
            settings = Settings(data_dir=tmp_path / name, database_url=SecretStr(server_address), **values)
            app = create_app(settings, FakeEmbedder(), fake_of)
            client = running.enter_context(TestClient(app, base_url="http://localhost"))
            app.state.service.loading.join(WAIT_S)
            return client

        yield start_service


# --- keys ------------------------------------------------------------------------------------------------------------


def test_a_key_that_one_replica_makes_or_revokes_is_known_to_all(start: Start):
    one, other = start("one", api_key=KEY), start("other", api_key=KEY)
    made = one.post("/api/keys", headers=ADMIN, json={"name": "reader", "role": "read-only", "namespace": "ann"}).json()
    its = {"X-API-Key": made["key"]}
    assert eventually(lambda: other.get("/memories", headers=its).status_code == 200)
    assert one.delete(f"/api/keys/{made['id']}", headers=ADMIN).status_code == 200
    assert eventually(lambda: other.get("/memories", headers=its).status_code == 401)


def test_the_first_key_closes_every_open_replica(start: Start):
    one, other = start("one"), start("other")
    assert other.get("/memories").status_code == 200
    assert one.post("/api/keys", json={"name": "boss", "role": "admin"}).status_code == 200
    assert eventually(lambda: other.get("/memories").status_code == 401)


# --- events and webhooks ---------------------------------------------------------------------------------------------


def test_a_reader_of_the_feed_misses_no_event_of_concurrent_transactions(open_engine: Open):
    writers = [open_engine("one"), open_engine("other")]
    feed, stop, seen = EventFeed(writers[0]), threading.Event(), list[int]()
    positions = {f"space{number}": 0 for number in range(8)}

    def read() -> None:
        events: list[Event] = []
        is_last = False
        while events or not is_last:
            is_last = stop.is_set()
            events = feed.after_each(positions, limit=50)
            seen.extend(event.id for event in events)
            positions.update((event.namespace, event.id) for event in events)

    def write(number: int) -> None:
        for step in range(15):
            writers[step % 2].add(Scope(f"space{number}"), MemoryDraft(f"note {step} of {number}", "notes"))

    with ThreadPoolExecutor(9) as pool:
        reading = pool.submit(read)
        list(pool.map(write, range(8)))
        stop.set()
        reading.result(WAIT_S)
    with writers[0].namespace(Scope()) as (connection, _):
        stored = [row[0] for row in connection.execute("SELECT id FROM events ORDER BY id")]
    assert sorted(seen) == stored
    assert positions == {name: feed.last_of(name) for name in positions}
    assert len(stored) >= 8 * 15


@contextmanager
def receiver() -> Iterator[tuple[int, list[int]]]:
    """Yield the port of a receiver of webhooks, and the ids of the events that arrive."""
    arrived: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            arrived.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["id"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, arrived
    finally:
        server.shutdown()
        server.server_close()


def test_each_event_is_delivered_by_one_replica(start: Start):
    with receiver() as (port, arrived):
        one, other = (start(name, webhook_allowed_hosts="127.0.0.1") for name in ("one", "other"))
        made = one.post("/webhooks", json={"url": f"http://127.0.0.1:{port}/", "events": ["memory.added"]})
        assert made.status_code in (200, 201), made.text
        for number in range(20):
            client = (one, other)[number % 2]
            assert client.post("/memory/add", json={"text": f"note {number}", "source": "notes"}).status_code == 200
        assert eventually(lambda: len(arrived) >= 20)
        time.sleep(0.5)
        assert arrived == sorted(set(arrived))
        assert len(arrived) == 20


# --- memories --------------------------------------------------------------------------------------------------------


def test_of_two_equal_texts_on_two_replicas_at_once_one_is_stored(open_engine: Open):
    replicas = [open_engine("one"), open_engine("other")]
    for text in ("Ann plays the violin", "a shed for bicycles", "Ben bakes bread", "rain in the north of Lisbon"):
        draft = MemoryDraft(text, "notes")
        with ThreadPoolExecutor(4) as pool:
            added = pool.map(lambda at: replicas[at % 2].add(Scope(), draft, on_duplicate=OnDuplicate.SKIP), range(4))  # noqa: B023
            assert len([outcome for outcome in added if outcome.id is not None]) == 1


def test_a_snapshot_of_a_replica_is_removed_when_another_one_erases(start: Start, tmp_path: Path):
    one, other = start("one"), start("other")
    added = [one.post("/memory/add", json={"text": f"the secret {n}", "source": "n"}).json()["id"] for n in range(3)]
    assert other.post("/search", json={"query": "secret"}).json()["count"] == 3
    service = other.app.state.service  # type: ignore[attr-defined]
    service.engine.snapshot()
    assert list((tmp_path / "other" / "index").glob("*.index"))
    erased = one.post("/erase", json={"selector": {"agent_name": "default", "memory_ids": added[:1]}, "confirm": True})
    assert erased.status_code == 200, erased.text
    service.removals.finish()
    assert not list((tmp_path / "other" / "index").glob("*.index"))
    assert other.post("/search", json={"query": "secret"}).json()["count"] == 2


# --- jobs ------------------------------------------------------------------------------------------------------------


def test_a_replica_that_was_taken_for_ended_cannot_write_for_its_job(open_engine: Open):
    one, other = open_engine("one"), open_engine("other")
    now = utc_now()

    def begin(connection: Any) -> jobs.Job | None:
        jobs.insert(connection, "a", "dedup", Scope(), {}, now)
        return jobs.claim(connection, now, replica=one.replica)

    first = one.write_rows(begin)
    assert first is not None
    assert other.write_rows(lambda connection: jobs.claim(connection, now, replica=other.replica)) is None

    def take_over(connection: Any) -> jobs.Job | None:
        # In one transaction, since the replica renews its row every few seconds.
        connection.execute("DELETE FROM replicas WHERE id = ?", (one.replica,))
        jobs.requeue_abandoned(connection, None, other.replica, ())
        return jobs.claim(connection, now, replica=other.replica)

    second = other.write_rows(take_over)
    assert second is not None
    assert second.id == first.id

    def finish(turn: int | None) -> Callable[[Any], None]:
        return lambda connection: jobs.finish(connection, "a", turn, jobs.JobStatus.COMPLETED, now, result="{}")

    assert not one.write_rows(lambda rows: jobs.advance(rows, "a", first.turn, done=1, total=1, state={"by": "one"}))
    one.write_rows(finish(first.turn))
    assert other.write_rows(lambda rows: jobs.advance(rows, "a", second.turn, done=1, total=1, state={"by": "other"}))
    other.write_rows(finish(second.turn))
    with one.namespace(Scope()) as (connection, _):
        found = jobs.find(connection, "a")
    assert found is not None
    assert (found.status, found.turn) == (jobs.JobStatus.COMPLETED, second.turn)


def test_an_ended_replica_leaves_its_row_at_once_and_a_dead_one_after_the_lease(
    open_engine: Open, postgres: PostgresConnection
):
    one = open_engine("one")
    with closing(open_engine("other")) as other:
        assert eventually(lambda: one.runs(other.replica))
    assert postgres.execute("SELECT count(*) FROM replicas").get == 1
    postgres.execute("INSERT INTO replicas VALUES ('dead', ?)", (1,))
    assert eventually(lambda: postgres.execute("SELECT count(*) FROM replicas WHERE id = 'dead'").get == 0)


# --- the database ----------------------------------------------------------------------------------------------------


def test_a_new_timeline_begins_a_history_whose_indexes_are_loaded_again(
    open_engine: Open, postgres: PostgresConnection
):
    one = open_engine("one", database_connections=2)
    one.add(Scope(), MemoryDraft("Ann plays the violin", "notes"))
    one.snapshot()
    replaced: list[str] = []
    one.when_restored(lambda: replaced.append("told"))
    before = one.models.serving.registry
    postgres.execute("UPDATE meta SET value = 'another server' WHERE key = 'timeline'")
    postgres.execute(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND application_name = 'souvenir'"
    )

    def is_replaced() -> bool:
        try:
            one.count(Scope())
        except DatabaseUnavailable:
            return False
        return bool(replaced)

    assert eventually(is_replaced)
    assert one.models.serving.registry is not before
    [hit] = one.search(Scope(), SearchQuery("violin")).hits
    assert hit.memory.text == "Ann plays the violin"


def test_a_lost_connection_is_replaced_before_a_request_notices(open_engine: Open, postgres: PostgresConnection):
    one = open_engine("one")
    one.add(Scope(), MemoryDraft("Ann plays the violin", "notes"))
    for number in range(5):
        postgres.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND application_name = 'souvenir'"
        )
        assert one.page(Scope(), offset=0, limit=5).total == number + 1
        assert one.search(Scope(), SearchQuery("violin")).hits
        assert one.add(Scope(), MemoryDraft(f"note {number}", "notes")).id is not None
    assert eventually(lambda: DATABASE_UNREACHABLE not in {one.code for one in one.warnings.current()})


def test_what_cannot_be_used_is_refused_with_a_sentence(tmp_path: Path, server_address: str, postgres: object):
    with psycopg.connect(server_address, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS plain")
        connection.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN")

    def refusal(address: str) -> str:
        settings = Settings(data_dir=tmp_path / "refused", database_url=SecretStr(address))
        with pytest.raises(StoreUnusable) as refused:
            MemoryEngine.open(settings, FakeEmbedder())
        return refused.value.message

    assert "ENCODING 'UTF8'" in refusal(server_address.replace("/postgres?", "/plain?"))
    assert "owner of the schema" in refusal(server_address.replace("postgres:@", "guest@"))
    assert "look at DATABASE_URL" in refusal("postgresql://guest:secret@127.0.0.1:1/none")
    assert "malformed" in refusal("postgresql://guest:secret@127.0.0.1:1/none?colour=blue")
    assert "secret" not in refusal("postgresql://guest:secret@127.0.0.1:1/none?colour=blue")


def test_a_folder_is_of_one_replica(open_engine: Open):
    open_engine("one")
    with pytest.raises(StoreUnusable, match="Another process uses DATA_DIR"):
        open_engine("one")


def test_backups_are_left_to_the_database(start: Start):
    client = start("one")
    added = client.post("/memory/add", json={"text": "Ann plays the violin", "source": "notes"})
    assert added.status_code == 200
    for path, body in (
        ("/backup", None),
        ("/restore", {"backup_name": "manual_20250402_093000"}),
        ("/snapshots", None),
    ):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (501, "not_of_this_database")
    assert client.get("/backups").json()["count"] == 0
    deleted = client.post("/memory/delete-by-source", json={"source_pattern": "notes"})
    assert (deleted.status_code, deleted.json()["deleted_count"]) == (200, 1)
