"""A restore replaces memories and leaves keys unchanged."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from starlette.testclient import TestClient

import app as program
from souvenir.core.settings import Settings
from souvenir.store.sqlite.restore import restore_offline
from tests.api.conftest import KEY, Start
from tests.api.test_keys import ADMIN, ENV, READER, bearing, listed, make

pytestmark = pytest.mark.sqlite_only(reason="restores backups")


def can_read(client: TestClient, made: dict[str, str]) -> bool:
    return client.get("/memories", headers=bearing(made)).status_code == 200


def test_a_restore_neither_revives_a_revoked_key_nor_stops_a_new_one(start: Start):
    client = start(api_key=KEY)
    revoked, rotated, stays = (make(client, READER, ENV) for _ in range(3))
    backup = client.post("/snapshots", headers=ENV).json()["snapshot"]
    client.delete(f"/api/keys/{revoked['id']}", headers=ENV)
    replaced = client.post(f"/api/keys/{rotated['id']}/rotate", headers=ENV).json()
    new = make(client, READER, ENV)
    assert client.post(f"/snapshots/{backup}/restore", headers=ENV).status_code == 200
    for after in (client, None):
        after = after or restarted(start, client)
        assert [can_read(after, key) for key in (stays, replaced, new)] == [True, True, True]
        assert [can_read(after, key) for key in (revoked, rotated)] == [False, False]
        assert listed(after, revoked["id"])["revoked"] == 1


def restarted(start: Start, client: TestClient) -> TestClient:
    client.__exit__(None, None, None)
    return start(api_key=KEY)


def test_a_service_that_never_had_a_key_gets_those_of_the_backup(start: Start, tmp_path: Path):
    client = start()
    admin = make(client, ADMIN)
    backup = client.post("/snapshots", headers=bearing(admin)).json()["snapshot"]
    client.__exit__(None, None, None)
    (tmp_path / "new").mkdir()
    (tmp_path / "data" / "backups").rename(tmp_path / "new" / "backups")
    for path in (tmp_path / "data").glob("souvenir.db*"):
        path.unlink()
    empty = apsw.Connection(str(tmp_path / "new" / "souvenir.db"))
    empty.close()
    restore_offline(Settings(data_dir=tmp_path / "new"), backup)
    fresh = start(data_dir=tmp_path / "new")
    assert can_read(fresh, admin)
    assert fresh.get("/memories").status_code == 401


def test_a_new_service_that_restores_a_backup_with_keys_asks_for_them_at_once(start: Start, tmp_path: Path):
    guarded = start()
    admin = make(guarded, ADMIN)
    backup = guarded.post("/snapshots", headers=bearing(admin)).json()["snapshot"]
    fresh = start(data_dir=tmp_path / "new")
    fresh.post("/backup?prefix=first")
    (tmp_path / "data" / "backups" / backup).rename(tmp_path / "new" / "backups" / backup)
    assert fresh.post(f"/snapshots/{backup}/restore").status_code == 200
    assert fresh.get("/memories").status_code == 401
    assert can_read(fresh, admin)


def test_an_offline_restore_keeps_the_present_keys_and_says_if_it_cannot(
    start: Start, tmp_path: Path, capsys, monkeypatch
):
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    client = start(api_key=KEY)
    revoked = make(client, READER, ENV)
    backup = client.post("/snapshots", headers=ENV).json()["snapshot"]
    client.delete(f"/api/keys/{revoked['id']}", headers=ENV)
    new = make(client, READER, ENV)
    client.__exit__(None, None, None)
    assert program.main(["restore", backup]) == 0
    assert "The keys are those of the backup" not in capsys.readouterr().out
    after = start(api_key=KEY)
    assert (can_read(after, revoked), can_read(after, new)) == (False, True)
    after.__exit__(None, None, None)
    (tmp_path / "data" / "souvenir.db").write_bytes(b"damaged" * 1000)
    assert program.main(["restore", backup]) == 0
    assert "The keys are those of the backup" in capsys.readouterr().out
    assert can_read(start(api_key=KEY), revoked)


def test_audit_events_are_kept_too(start: Start, tmp_path: Path):
    client = start(api_key=KEY)
    backup = client.post("/snapshots", headers=ENV).json()["snapshot"]
    engine = client.app.state.service.engine  # type: ignore[attr-defined]
    row = "INSERT INTO audit_events (at, action, actor) VALUES (1, 'denied', 'somebody')"
    engine.write_rows(lambda connection: connection.execute(row))
    client.post(f"/snapshots/{backup}/restore", headers=ENV)
    client.__exit__(None, None, None)
    stored = apsw.Connection(str(tmp_path / "data" / "souvenir.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert stored.execute("SELECT count(*) FROM audit_events WHERE actor = 'somebody'").get == 1


def test_an_offline_restore_keeps_the_keys_of_a_database_of_an_older_schema(start: Start, tmp_path: Path):
    client = start(api_key=KEY)
    revoked = make(client, READER, ENV)
    backup = client.post("/snapshots", headers=ENV).json()["snapshot"]
    client.delete(f"/api/keys/{revoked['id']}", headers=ENV)
    client.__exit__(None, None, None)
    settings = Settings(data_dir=tmp_path / "data")
    with apsw.Connection(str(settings.database_path)) as connection:
        for event in ("added", "changed", "deleted"):
            connection.execute(f"DROP TRIGGER api_keys_checksum_{event}")
        for (column,) in list(
            connection.execute("SELECT name FROM pragma_table_info('api_keys') WHERE name LIKE 'quota%'")
        ):
            connection.execute(f"ALTER TABLE api_keys DROP COLUMN {column}")
        connection.pragma("user_version", 7)
    assert restore_offline(settings, backup).keys_carried_over
    assert not can_read(start(api_key=KEY), revoked)
