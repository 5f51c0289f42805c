"""Only the user that the service runs as can read stored data, and what other users own is used or refused clearly."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from souvenir.core.errors import StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.sqlite.locks import StoreLock
from souvenir.store.sqlite.permissions import make_private
from tests.api.test_app import served, stop
from tests.fake_embedder import FakeEmbedder

OTHER_USER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def modes(folder: Path) -> dict[str, int]:
    paths = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in paths}


def public(folder: Path) -> list[str]:
    """What others than the owner can use."""
    return [name for name, mode in modes(folder).items() if mode & 0o077]


@pytest.fixture(autouse=True)
def _every_log_level() -> None:
    """An application of an earlier test may have set a level for the whole process."""
    structlog.reset_defaults()


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def filled(settings: Settings) -> None:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        engine.add(Scope(), MemoryDraft("apple", "notes"))
        engine.back_up(reason="manual")


@pytest.mark.usefixtures("open_umask")
def test_every_file_of_the_service_is_private_under_any_umask(tmp_path: Path):
    folder = tmp_path / "data"
    with served(folder, HOST="0.0.0.0") as (client, process, _):
        headers = {"X-API-Key": (folder / "initial_admin_key").read_text().strip()}
        client.post("/memory/add", json={"text": "apple", "source": "s"}, headers=headers).raise_for_status()
        client.post("/backup", headers=headers).raise_for_status()
        lines = {**headers, "Content-Type": "application/x-ndjson"}
        client.post("/import", content=b'{"text": "pear", "source": "s"}', headers=lines).raise_for_status()
        while_it_runs = modes(folder)
        assert public(folder) == []
        stop(process)
    assert {"souvenir.db", "souvenir.db-wal", "souvenir.db-shm", "souvenir.lock"} < while_it_runs.keys()
    after = modes(folder)
    assert any(name.startswith("backups/manual_") for name in after)
    assert public(folder) == []
    assert (after["."], after["souvenir.db"], after["backups"]) == (0o700, 0o600, 0o700)


@pytest.mark.usefixtures("open_umask")
def test_a_program_that_embeds_the_engine_keeps_its_umask_and_gets_a_private_folder(tmp_path: Path):
    filled(Settings(data_dir=tmp_path / "data"))
    assert (os.umask(0), modes(tmp_path / "data")["."]) == (0, 0o700)


def test_files_of_an_earlier_release_become_private_at_the_start_and_the_log_says_so(tmp_path: Path):
    settings = Settings(data_dir=tmp_path / "data")
    filled(settings)
    settings.first_key_path.write_text("mem_")
    for folder, name in ((settings.import_dir, "a.ndjson"), (settings.index_dir, "1.index")):
        folder.mkdir()
        (folder / name).write_text("")
    foreign = settings.data_dir / "notes.sh"
    foreign.write_text("")
    for path in settings.data_dir.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o664)
    settings.data_dir.chmod(0o755)
    with capture_logs() as logged:
        MemoryEngine.open(settings, FakeEmbedder()).close()
    assert public(settings.data_dir) == ["notes.sh"]
    [line] = [line for line in logged if line["event"] == "data_made_private"]
    assert line["folder"] == str(settings.data_dir)
    with capture_logs() as logged:
        MemoryEngine.open(settings, FakeEmbedder()).close()
    assert [line for line in logged if "private" in line["event"]] == []


def test_a_folder_that_only_holds_the_named_database_keeps_its_own_permissions(tmp_path: Path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    filled(Settings(db_path=shared / "memory.db"))
    assert modes(shared)["."] == 0o755
    assert {modes(shared)[name] for name in ("memory.db", "souvenir.lock")} == {0o600}


def test_a_folder_that_every_user_may_write_to_keeps_its_own_permissions(tmp_path: Path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    filled(Settings(data_dir=shared))
    assert shared.stat().st_mode & 0o7777 == 0o1777
    assert {modes(shared)[name] for name in ("souvenir.db", "souvenir.lock")} == {0o600}
    assert modes(shared)["backups"] == 0o700


def test_what_a_link_points_to_outside_of_the_folder_is_left(tmp_path: Path):
    settings = Settings(data_dir=tmp_path / "data")
    filled(settings)
    outside = tmp_path / "outside.txt"
    outside.write_text("")
    outside.chmod(0o644)
    (settings.backup_dir / "link").symlink_to(outside)
    make_private(settings)
    assert outside.stat().st_mode & 0o777 == 0o644


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that other users can reach, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def as_other_user(work: Callable[[], str]) -> str:
    """What the work returns in a process of another user."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setgid(OTHER_USER)
            os.setuid(OTHER_USER)
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as result:
        text = result.read()
    os.waitpid(child, 0)
    return text


def lock(settings: Settings) -> str:
    try:
        with StoreLock(settings):
            return "locked"
    except StoreUnusable as error:
        return error.message


@needs_root
def test_a_folder_of_another_user_that_may_be_written_is_used_and_reported(reachable: Path):
    settings = Settings(data_dir=reachable / "data")
    settings.data_dir.mkdir()
    settings.data_dir.chmod(0o777)

    def work() -> str:
        with capture_logs() as logged:
            make_private(settings)
        [line] = logged
        return f"{lock(settings)}; {line['event']} {line['path']}; {line['action']}"

    said = as_other_user(work)
    assert said.startswith(f"locked; data_not_private {settings.data_dir}; chown -R {OTHER_USER} {settings.data_dir}")


@needs_root
def test_a_folder_of_another_user_that_may_not_be_written_is_refused_with_both_users(reachable: Path):
    settings = Settings(data_dir=reachable / "data")
    settings.data_dir.mkdir(mode=0o755)
    said = as_other_user(lambda: lock(settings))
    assert said.startswith(f"DATA_DIR {settings.data_dir} cannot be written")
    assert f"give it to user {OTHER_USER}" in said


@needs_root
def test_a_database_of_another_user_is_refused_with_the_command_that_helps(reachable: Path):
    settings = Settings(data_dir=reachable / "data")
    settings.data_dir.mkdir()
    settings.data_dir.chmod(0o777)
    settings.database_path.touch(mode=0o600)
    said = as_other_user(lambda: lock(settings))
    assert f"{settings.database_path} belongs to user 0, and user {OTHER_USER}" in said
    assert said.endswith(f"run chown -R {OTHER_USER} {settings.data_dir}")
