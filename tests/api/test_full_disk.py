"""A full disk refuses what needs space, in words, and still deletes; nothing that was acknowledged is lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.store.sqlite import disk_space
from souvenir.store.sqlite.disk_space import RESERVE_BYTES
from tests.api.conftest import Start, loaded
from tests.api.test_erase import erase
from tests.api.test_removals import say, service_in
from tests.memories.engine.test_maintenance import happens
from tests.memories.erasure.canaries import found_in
from tests.small_disk import fill, small_disk

pytestmark = pytest.mark.sqlite_only(reason="fills the disk of the file")

PADDING = "and so it goes on " * 60


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", RESERVE_BYTES)
    with small_disk(tmp_path / "disk", mib=RESERVE_BYTES // 2**20 + 24) as folder:
        yield folder


@pytest.fixture
def client(disk: Path, start: Start) -> TestClient:
    """The disk comes first, so that it is unmounted when the service has stopped."""
    client = loaded(start(data_dir=disk / "data", snapshot_interval_s=0.2))
    for number in range(40):
        say(client, f"message {number} of zebra {PADDING}", user="mia" if number % 2 else "tom")
    return client


def add(client: TestClient, number: int) -> Any:
    return client.post("/memory/add", json={"text": f"memory {number} of yak {PADDING}", "source": "notes"})


def add_until_full(client: TestClient) -> list[int]:
    """Store memories until one is refused; return the ids of the others."""
    ids: list[int] = []
    for number in count():
        answer = add(client, number)
        if answer.status_code != 200:
            assert (answer.status_code, answer.json()["code"]) == (503, "disk_full")
            assert "is full, so nothing was written; free some space" in answer.json()["detail"]
            return ids
        ids.append(answer.json()["id"])
    raise AssertionError


def warnings(client: TestClient) -> set[str]:
    return {warning["code"] for warning in client.get("/health/ready").json()["warnings"]}


def test_deleting_works_on_a_full_disk_and_so_does_adding_afterwards(client: TestClient, disk: Path):
    filler = fill(disk, leave=3 * 2**20)
    ids = add_until_full(client)
    assert len(ids) > 20
    assert "disk_full" in warnings(client)
    for memory_id in ids[:20]:
        assert client.delete(f"/memory/{memory_id}").status_code == 200
        assert client.get(f"/memory/{memory_id}").status_code == 404
    again = [add(client, 1000 + number) for number in range(3)]
    assert [answer.status_code for answer in again] == [200] * 3
    assert client.get("/memories/count").json() == {"count": len(ids) - 20 + 3}
    filler.unlink()
    assert happens(lambda: not warnings(client))
    assert (disk / "data" / "souvenir.db.reserve").stat().st_size == RESERVE_BYTES
    assert add(client, 2000).status_code == 200
    assert list(service_in(client).engine.check()) == []


def test_an_erasure_and_the_removal_of_an_agent_work_on_a_full_disk(client: TestClient, disk: Path):
    fill(disk, leave=2**20)
    ids = add_until_full(client)
    erased = erase(client, {"user": "mia"})
    assert (erased.status_code, erased.json()["files_cleared"]) == (200, True)
    assert found_in(disk / "data", ["message 1 of zebra"]) == {}
    assert client.delete("/agents/mine").status_code == 200
    assert client.get("/agents/mine").status_code == 404
    assert client.get("/memories/count").json() == {"count": len(ids)}
    assert list(service_in(client).engine.check()) == []


def test_a_deletion_by_source_says_that_its_backup_does_not_fit(client: TestClient, disk: Path):
    fill(disk, leave=2**20)
    add_until_full(client)
    answer = client.post("/memory/delete-by-source", json={"source_pattern": "notes"})
    assert (answer.status_code, answer.json()["code"]) == (503, "disk_full")
    assert "a deletion by source makes a backup first, deleting by id needs none" in answer.json()["detail"]
