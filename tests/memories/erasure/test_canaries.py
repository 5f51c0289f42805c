"""Erased data is in no byte of any file and no backup restores it; the data of others is complete."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient

from app import create_app
from souvenir.conversations.message_search import MessageQuery
from souvenir.core.settings import Settings
from souvenir.core.types import FloatVector, Scope, SearchQuery
from souvenir.server.service import Service
from tests.api.conftest import BASE_URL
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.memories.erasure.canaries import LEARNED, Garden, found_in, stored
from tests.thoroughness import sampled

pytestmark = pytest.mark.sqlite_only(reason="looks for erased bytes in files and backups")

PATIENCE_S = 60.0
ANN, BEN = Scope("ann", "gardener"), Scope("ben", "gardener")
HOLD = "holdtheline"
SEASONS = 4


class Holding(FakeEmbedder):
    """Blocks on texts with the word HOLD until released."""

    def __init__(self) -> None:
        self.reached, self.let = Event(), Event()

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        if any(HOLD in text for text in texts):
            self.reached.set()
            assert self.let.wait(PATIENCE_S)
        return super().embed_documents(texts)


@pytest.fixture
def embedder() -> Iterator[Holding]:
    embedder = Holding()
    yield embedder
    embedder.let.set()


def served(data_dir: Path, embedder: FakeEmbedder) -> TestClient:
    return TestClient(create_app(Settings(data_dir=data_dir, max_backups=50), embedder, fake_of), base_url=BASE_URL)


def service_of(client: TestClient) -> Service:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    return service


Gardens = tuple[Garden, Garden]
Seasons = dict[str, set[str]]
"""The content of the store at each backup, by backup name."""


def plant_season(service: Service, gardens: Gardens, seasons: Seasons) -> None:
    """Let both agents plant, search, and make a backup and snapshots."""
    for garden in gardens:
        garden.plant()
    for scope in (ANN, BEN):
        service.engine.search(scope, SearchQuery("words"))
        service.conversations.search(scope, MessageQuery("words"))
    backup = service.engine.back_up(reason=f"season{len(seasons)}").name
    seasons[backup] = stored(service, [word for garden in gardens for word in garden.all()])
    service.engine.snapshot()


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Gardens, Seasons]:
    """A folder with the first seasons of two agents."""
    folder, seasons = tmp_path_factory.mktemp("grown") / "data", Seasons()
    with served(folder, FakeEmbedder()) as client:
        service = service_of(client)
        gardens = Garden(service, ANN, 1), Garden(service, BEN, 2)
        for _ in range(SEASONS - 1):
            plant_season(service, gardens, seasons)
    return folder, gardens, seasons


@pytest.fixture
def client(tmp_path: Path, embedder: Holding, request: pytest.FixtureRequest) -> Iterator[TestClient]:
    if "gardens" in request.fixturenames:
        folder, *_ = request.getfixturevalue("grown")
        shutil.copytree(folder, tmp_path / "data")
    with served(tmp_path / "data", embedder) as client:
        yield client


@pytest.fixture
def service(client: TestClient) -> Service:
    return service_of(client)


@pytest.fixture
def seasons(grown: tuple[Path, Gardens, Seasons]) -> Seasons:
    return dict(grown[2])


@pytest.fixture
def gardens(service: Service, grown: tuple[Path, Gardens, Seasons], seasons: Seasons) -> Gardens:
    """Two agents with four seasons each, of which the service that runs saw the last."""
    gardens = grown[1][0].moved_to(service), grown[1][1].moved_to(service)
    plant_season(service, gardens, seasons)
    return gardens


def restored(seasons: Seasons) -> list[tuple[str, set[str]]]:
    """Return the backups that a test restores: the first and the last, or all of them."""
    return list(seasons.items())[:: sampled(SEASONS - 1, 1)]


def erase(client: TestClient, selector: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"selector": {"agent_name": "ann", **selector}, "confirm": True, **fields}
    answer = client.post("/erase", json=body)
    assert answer.status_code == 200, answer.text
    receipt: dict[str, Any] = answer.json()
    return receipt


def selector_of(garden: Garden, part: str) -> list[dict[str, Any]]:
    selectors: dict[str, list[dict[str, Any]]] = {
        "agent": [{}],
        "user": [{"user": garden.user}],
        "session": [{"session_id": garden.session}],
        "message": [{"message_id": garden.message_id}],
        "found": [{"memory_ids": garden.memory_ids, "message_ids": [garden.message_id]}],
        "source": [{"source": "diary"}],
        "block": [{"block": "human"}],
    }
    return selectors[part]


def words_of(garden: Garden, part: str) -> list[str]:
    if part == "agent":
        return garden.all()
    parts = ["memory", "message"] if part == "found" else [part]
    return [word for each in [*parts, LEARNED] for word in garden.planted[each]]


def previewed(client: TestClient, selector: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/erase/preview", json={"selector": {"agent_name": "ann", **selector}})
    assert answer.status_code == 200, answer.text
    preview: dict[str, Any] = answer.json()
    return preview


@pytest.mark.parametrize("part", ["agent", "user", "session", "message", "found", "source", "block"])
def test_erased_data_is_in_no_file_and_does_not_come_back(
    client: TestClient, service: Service, gardens: Gardens, seasons: Seasons, part: str
):
    ann, ben = gardens
    folder = service.settings.data_dir
    words = words_of(ann, part)
    others = [word for word in ann.all() + ben.all() if word not in set(words)]
    before = stored(service, words)
    assert before
    assert found_in(folder, words).keys() >= before
    living = stored(service, others)
    assert len(living) > 150
    receipts = []
    for selector in selector_of(ann, part):
        preview = previewed(client, selector)
        receipts.append(erase(client, selector, backups=True))
        removed = receipts[-1]["removed"]
        assert preview["would_remove"] == {name: removed[name] for name in preview["would_remove"]}
        assert set(preview["backups_holding"]) == set(receipts[-1]["backups_rewritten"])
    assert found_in(folder, words) == {}
    assert stored(service, others) == living
    assert list(service.engine.check()) == []
    for receipt in receipts:
        assert receipt["files_cleared"] is True
        assert receipt["backups_dropped"] == receipt["backups_holding"] == []
    assert {name for receipt in receipts for name in receipt["backups_rewritten"]} == seasons.keys()
    for backup, words_then in restored(seasons):
        assert client.post("/restore", json={"backup_name": backup}).status_code == 200
        assert found_in(folder, words) == {}, backup
        assert stored(service, ann.all() + ben.all()) == words_then - set(words)
        assert list(service.engine.check()) == []


def test_the_seasons_plant_many_canaries(gardens: Gardens):
    ann, _ = gardens
    assert len(ann.all()) > 200
    assert sum(not word.isascii() for word in ann.all()) > 50


@pytest.mark.parametrize("part", ["agent", "user", "source"])
def test_remaining_backups_are_reported_and_restore_no_erased_data(
    client: TestClient, service: Service, gardens: Gardens, seasons: Seasons, part: str
):
    ann, ben = gardens
    words = words_of(ann, part)
    [receipt] = [erase(client, selector) for selector in selector_of(ann, part)]
    assert set(receipt["backups_holding"]) == seasons.keys()
    assert receipt["backups_rewritten"] == receipt["backups_dropped"] == []
    where = {path for paths in found_in(service.settings.data_dir, words).values() for path in paths}
    assert {Path(path).parts[:2] for path in where} == {("backups", name) for name in seasons}
    for backup, words_then in restored(seasons):
        assert client.post("/restore", json={"backup_name": backup}).status_code == 200
        assert stored(service, ann.all() + ben.all()) == words_then - set(words)
        assert list(service.engine.check()) == []
        held = found_in(service.settings.data_dir, words).values()
        assert {Path(path).parts[0] for paths in held for path in paths} <= {"backups"}


def test_earlier_deletions_are_erased_from_backups_too(client: TestClient, service: Service, gardens: Gardens):
    ann, _ = gardens
    for path in (f"/agents/ann/users/{ann.user}", f"/sessions/ann/{ann.session}", f"/messages/ann/{ann.message_id}"):
        assert client.delete(path).status_code == 200
    assert client.delete("/agents/ann").status_code == 200
    for part in ("message", "session", "user", "agent"):
        for selector in selector_of(ann, part):
            preview = previewed(client, selector)
            assert set(preview["would_remove"].values()) == {0}
            assert preview["only_in_backups"] > 0
            receipt = erase(client, selector, backups=True)
            assert receipt["removed"]["messages"] == 0
            assert receipt["backups_rewritten"]
        assert found_in(service.settings.data_dir, words_of(ann, part)) == {}
    missing = client.post("/erase", json={"selector": {"agent_name": "ann"}, "confirm": True})
    assert (missing.status_code, missing.json()["code"]) == (404, "agent_not_found")


def test_running_and_queued_imports_are_erased_with_their_agent(
    client: TestClient, service: Service, embedder: Holding
):
    ann = Garden(service, ANN, 3)
    ann.plant()
    folder = service.settings.data_dir
    headers = {"X-Namespace": "ann", "Content-Type": "application/x-ndjson"}

    def import_of(first: str) -> str:
        lines = [first, *(ann.text("agent") for _ in range(20))]
        content = "".join(f'{{"text": "{line}", "source": "in"}}\n' for line in lines)
        accepted = client.post("/import?wait_s=0&no_backup=true", content=content.encode(), headers=headers)
        assert accepted.status_code == 202, accepted.text
        return str(accepted.json()["job_id"])

    jobs = [import_of(HOLD)]
    assert embedder.reached.wait(PATIENCE_S)
    jobs.append(import_of("a first line"))
    spools = {path.stem for path in service.settings.import_dir.iterdir()}
    assert spools == set(jobs)
    body = {"selector": {"agent_name": "ann"}, "confirm": True, "backups": True}
    accepted = client.post("/erase?wait_s=0", json=body)
    assert accepted.status_code == 202
    assert list(service.settings.import_dir.iterdir()) == []
    assert client.get("/agents/ann").status_code == 404
    embedder.let.set()
    job = service.erasure_jobs.wait(accepted.json()["job_id"], PATIENCE_S)
    assert job.result is not None, job
    # Both imports and an extraction; a job that splits a changed text may be one more by then.
    assert job.result["removed"]["jobs"] in (3, 4)
    assert found_in(folder, ann.all()) == {}
    for job_id in jobs:
        assert client.get(f"/jobs/{job_id}", headers=headers).status_code == 404
    assert client.get("/memories/count", headers=headers).json()["count"] == 0


def test_unreadable_backups_and_replaced_files_are_reported_and_then_dropped(
    client: TestClient, service: Service, gardens: Gardens
):
    ann, _ = gardens
    folder = service.settings.data_dir
    damaged = next(one.name for one in service.engine.backups() if one.reason == "season2")
    manifest = service.settings.backup_dir / damaged / "manifest.json"
    manifest.write_text("{}")
    replaced = folder / "souvenir.db.replaced-0a1b2c3d"
    shutil.copyfile(service.settings.backup_dir / damaged / "souvenir.db", replaced)
    receipt = erase(client, {"user": ann.user})
    assert {damaged, replaced.name} <= set(receipt["backups_holding"])
    again = erase(client, {"user": ann.user}, backups=True)
    assert sorted(again["backups_dropped"]) == sorted([damaged, replaced.name])
    assert len(again["backups_rewritten"]) == 3
    assert again["backups_holding"] == []
    assert not manifest.parent.exists()
    assert found_in(folder, ann.planted["user"]) == {}


def test_an_interrupted_rewrite_leaves_the_old_or_the_new_backup(tmp_path: Path):
    settings = Settings(data_dir=tmp_path / "data")
    folder = None
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
        service: Service = client.app.state.service  # type: ignore[attr-defined]
        Garden(service, ANN, 4).plant()
        folder = settings.backup_dir / service.engine.back_up(reason="manual").name
        old = {path.name: path.read_bytes() for path in folder.iterdir()}
        erase(client, {}, backups=True)
        new = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert set(new) == set(old)
    database, manifest = "souvenir.db", "manifest.json"
    before = {database: old[database], manifest: old[manifest], f"{database}.rewritten": new[database][:5000]}
    between = {database: old[database], manifest: new[manifest], f"{database}.rewritten": new[database]}
    for files, left in ((before, old), (between, new)):
        shutil.rmtree(folder)
        folder.mkdir()
        for name, content in {
            **files,
            f"{database}.rewritten-journal": b"pages",
            f"{manifest}.rewritten": b"{",
        }.items():
            (folder / name).write_bytes(content)
        with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL) as client:
            assert [one["name"] for one in client.get("/backups").json()["backups"]] == [folder.name]
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == left
