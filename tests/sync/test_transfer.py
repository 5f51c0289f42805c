"""Transfers of large backups, kills in the middle of them, scheduled uploads, and the recovery on an empty machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.files import sha256_of
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.sqlite.backups import Backup, Backups
from souvenir.sync.bucket import PART_BYTES, Bucket
from souvenir.sync.transfer import BackupTransfer
from tests.api.conftest import BASE_URL
from tests.fake_embedder import FakeEmbedder, fake_of
from tests.forking import completed
from tests.killing import lines_until_killed
from tests.sync.conftest import PASSPHRASE
from tests.vendors.s3 import BUCKET, PAGE_KEYS, CuttingProxy

ROOT = Path(__file__).resolve().parent.parent.parent
DEADLINE_S = 60


def settings_of(data_dir: Path, values: dict[str, Any], **others: Any) -> Settings:
    return Settings(**values, data_dir=data_dir, **others)


def transfer_of(settings: Settings) -> BackupTransfer:
    return BackupTransfer(settings, Bucket(settings), Backups(settings.backup_dir, keep=10))


def large_backup(settings: Settings, size: int) -> Backup:
    """A backup whose database is random bytes."""
    content = os.urandom(size)
    path = settings.data_dir / "content"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    backup = Backup("manual_1", "manual", "2026-11-02T03:04:05+00:00", sha256_of(path), size, 1, 1, 1, 12)
    path.unlink()

    def write(path: Path) -> None:
        path.write_bytes(content)

    received = Backups(settings.backup_dir, keep=10).receive(backup, write)
    assert received.name == "manual_1"
    return received


@pytest.mark.parametrize("passphrase", [None, PASSPHRASE])
def test_a_large_backup_is_sent_in_parts_and_comes_back(tmp_path, sync_values, s3, passphrase):
    settings = settings_of(tmp_path / "here", sync_values, sync_passphrase=passphrase)
    backup = large_backup(settings, 2 * PART_BYTES + 12_345)
    uploads: list[int] = []
    manifest = transfer_of(settings).upload("manual_1", lambda done, _: uploads.append(done))
    assert (uploads == sorted(uploads), uploads[-1]) == (True, backup.bytes)
    key = f"souvenir/manual_1/souvenir.db{'.enc' if passphrase else ''}"
    assert s3.client.head_object(Bucket=BUCKET, Key=key)["ETag"].endswith('-3"'), "three parts"
    there = settings_of(tmp_path / "there", sync_values, sync_passphrase=passphrase)
    received = transfer_of(there).download(manifest, allow_unencrypted=False)
    assert received.transferred is True
    assert received.backup.sha256 == backup.sha256
    assert sha256_of(Backups(there.backup_dir, keep=10).verify("manual_1")) == backup.sha256


class Stopped(Exception):
    pass


def test_an_upload_that_is_stopped_leaves_no_backup_and_no_parts(tmp_path, sync_values, s3):
    settings = settings_of(tmp_path / "here", sync_values, sync_passphrase=PASSPHRASE)
    large_backup(settings, 2 * PART_BYTES + 12_345)

    def stop(done: int, total: int) -> None:
        if done > PART_BYTES + 2**20:
            raise Stopped

    with pytest.raises(Stopped):
        transfer_of(settings).upload("manual_1", stop)
    assert s3.objects() == []
    assert s3.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []) == []


def test_a_download_that_is_stopped_leaves_nothing(tmp_path, sync_values, s3):
    settings = settings_of(tmp_path / "here", sync_values, sync_passphrase=PASSPHRASE)
    large_backup(settings, 3 * 2**20)
    manifest = transfer_of(settings).upload("manual_1")
    there = settings_of(tmp_path / "there", sync_values, sync_passphrase=PASSPHRASE)

    def stop(done: int, total: int) -> None:
        if done > 2**20:
            raise Stopped

    with pytest.raises(Stopped):
        transfer_of(there).download(manifest, allow_unencrypted=False, advance=stop)
    assert list(there.backup_dir.iterdir()) == []


def test_what_a_killed_upload_left_is_deleted_after_a_day(tmp_path, sync_values, s3):
    bucket = Bucket(settings_of(tmp_path, sync_values))
    s3.write("souvenir/manual_1/souvenir.db", b"the beginning")
    s3.write("souvenir/manual_2/souvenir.db.enc", b"whole")
    s3.write("souvenir/manual_2/manifest.json", b"{}")
    bucket.clear_abandoned(datetime.now(UTC) + timedelta(hours=23))
    assert "souvenir/manual_1/souvenir.db" in s3.objects()
    bucket.clear_abandoned(datetime.now(UTC) + timedelta(hours=25))
    assert s3.objects() == ["souvenir/manual_2/manifest.json", "souvenir/manual_2/souvenir.db.enc"]


def test_more_objects_than_one_page_lists_are_listed(tmp_path, sync_values, s3):
    count = PAGE_KEYS // 2 + 5
    for n in range(count):
        s3.write(f"souvenir/manual_{n}/souvenir.db", b"")
        s3.write(f"souvenir/manual_{n}/manifest.json", b"{}")
    assert len(Bucket(settings_of(tmp_path, sync_values)).backups()) == count


# --- scheduled uploads ---------------------------------------------------------------------------------------------


def remember(settings: Settings, text: str) -> None:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        engine.warm_up()
        engine.add(Scope(), MemoryDraft(text=text, source="notes"))


def service_on(settings: Settings) -> TestClient:
    return TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL)


def eventually(holds: Any, what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_a_due_upload_is_made_without_a_request_and_again_only_after_a_change(tmp_path, sync_values, s3):
    values = {**sync_values, "sync_interval_hours": 1e-6}
    settings = settings_of(tmp_path / "data", values)
    remember(settings, "The staging database moved to Frankfurt")
    with service_on(settings) as client:
        eventually(lambda: len(remotes(client)) == 1, "no upload was made")
        sync = client.app.state.service.sync  # type: ignore[attr-defined]
        eventually(lambda: not sync._running, "the upload did not end")
        sync.upload_if_due()
        assert client.get("/jobs", params={"kind": "sync"}).json()["total"] == 1
        assert client.post("/memory/add", json={"text": "The key was rotated", "source": "notes"}).status_code == 200
        sync.upload_if_due()
        eventually(lambda: len(remotes(client)) == 2, "the change was not uploaded")
    with service_on(settings) as client:
        sync = client.app.state.service.sync  # type: ignore[attr-defined]
        eventually(lambda: sync._newest is not None, "the bucket was not asked")
        assert len(remotes(client)) == 2, "a restart uploads nothing again"
        assert client.get("/jobs", params={"kind": "sync"}).json()["total"] == 2


def remotes(client: TestClient) -> list[str]:
    return [one["name"] for one in client.get("/sync/snapshots").json()["snapshots"]]


def test_no_upload_is_scheduled_before_its_time_or_with_the_interval_0(tmp_path, sync_values, s3):
    for hours in (0, 24):
        settings = settings_of(tmp_path / str(hours), {**sync_values, "sync_interval_hours": hours})
        remember(settings, "The staging database moved to Frankfurt")
        with service_on(settings) as client:
            sync = client.app.state.service.sync  # type: ignore[attr-defined]
            assert sync.is_scheduled is (hours > 0)
            if hours:
                sync.upload_if_due()
            assert client.get("/jobs", params={"kind": "sync"}).json()["total"] == 0
    assert s3.objects() == []


def test_a_scheduled_upload_that_fails_is_a_warning(tmp_path, sync_values, s3):
    s3.client.delete_bucket(Bucket=BUCKET)
    settings = settings_of(tmp_path / "data", {**sync_values, "sync_interval_hours": 1e-6})
    remember(settings, "The staging database moved to Frankfurt")
    with service_on(settings) as client:

        def warned() -> bool:
            warnings = client.get("/health/ready").json().get("warnings", [])
            return "sync_upload_failed" in [warning["code"] for warning in warnings]

        eventually(warned, "the failure is not shown")


# --- the command line ----------------------------------------------------------------------------------------------


def run(data_dir: Path, values: dict[str, Any], *arguments: str) -> subprocess.CompletedProcess[str]:
    return completed(["app.py", *arguments], environment_of(data_dir, values))


def run_as_a_program(data_dir: Path, values: dict[str, Any], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same, with all that starting Python and importing the application takes."""
    return subprocess.run(
        [sys.executable, "app.py", *arguments],
        cwd=ROOT,
        env=environment_of(data_dir, values),
        capture_output=True,
        text=True,
        check=False,
    )


def environment_of(data_dir: Path, values: dict[str, Any]) -> dict[str, str]:
    named = {name.upper(): str(value) for name, value in values.items()}
    return {**os.environ, **named, "DATA_DIR": str(data_dir)}


def test_a_lost_machine_is_recovered_from_the_bucket_and_the_passphrase(tmp_path, sync_values, s3):
    """The commands of docs/operations.md on a machine that has nothing but the settings."""
    values = {**sync_values, "sync_passphrase": PASSPHRASE}
    lost, found = tmp_path / "lost", tmp_path / "found"
    settings = settings_of(lost, values)
    remember(settings, "The staging database moved to Frankfurt")
    with service_on(settings) as client:
        key = client.post("/api/keys", json={"name": "ana", "role": "admin"}).json()["key"]
        headers = {"X-API-Key": key}
        name = client.post("/sync/upload", headers=headers).json()["backup_name"]

    listed = run_as_a_program(found, values, "sync-list")
    assert listed.returncode == 0, listed.stderr
    assert re.match(rf"{name}  .* UTC, \d+ bytes, encrypted\n", listed.stdout)
    downloaded = run(found, values, "sync-download")
    assert downloaded.returncode == 0, downloaded.stderr
    assert f"python app.py restore {name}" in downloaded.stdout
    restored = run(found, values, "restore", name)
    assert restored.returncode == 0, restored.stderr
    with service_on(settings_of(found, values)) as client:
        assert [one["text"] for one in client.get("/memories", headers=headers).json()["memories"]] == [
            "The staging database moved to Frankfurt"
        ]
        assert client.get("/memories").status_code == 401, "its keys came back too"


def test_the_command_line_reports_failures_in_one_sentence(tmp_path, sync_values, s3):
    cases = [
        ({}, ("sync-list",), "Cloud sync not configured"),
        (sync_values, ("sync-download",), "There is no backup in the bucket"),
        (sync_values, ("sync-download", "manual_1"), "There is no backup 'manual_1' in the bucket"),
        ({**sync_values, "sync_bucket": "no-such-bucket"}, ("sync-list",), "does not exist there"),
    ]
    for values, arguments, sentence in cases:
        done = run(tmp_path, values, *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert sentence in done.stderr


def test_an_upload_that_a_kill_interrupts_is_made_at_the_next_start(tmp_path, sync_values, s3):
    settings = settings_of(tmp_path / "data", sync_values)
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        engine.warm_up()
        filling = {"filling": "x" * 60_000}
        texts = [f"Fact number {n} of many" for n in range(600)]
        engine.add_batch(Scope(), [MemoryDraft(text=text, source="notes", metadata=filling) for text in texts])
    proxy = CuttingProxy(s3.port, stalls_after=PART_BYTES + PART_BYTES // 2)
    assert lines_until_killed("tests.sync.uploading", settings.data_dir, proxy.address, s3.address, lines=1) == [
        "begun"
    ]
    proxy.close()
    assert s3.objects() == []
    with service_on(settings) as client:
        eventually(lambda: len(remotes(client)) == 1, "the job was not resumed")
        assert client.get("/jobs", params={"kind": "sync"}).json()["total"] == 1
        [local] = client.get("/backups").json()["backups"]
        assert remotes(client) == [local["name"]], "the backup that was begun was not used again"
