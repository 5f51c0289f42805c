"""A service reachable from other machines creates an admin key at its first start, and is never open by accident."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from souvenir.core.errors import StoreUnusable
from souvenir.core.settings import Settings
from souvenir.store.sqlite.restore import restore_offline
from tests.api.conftest import KEY, Start, start
from tests.api.test_app import ROOT, START_TIMEOUT_S, served, stop
from tests.forking import ForkedPython

__all__ = ["start"]

NETWORK = {"HOST": "0.0.0.0"}
MADE = re.compile(r"mem_[0-9a-f]{32}")


def with_key(secret: str) -> dict[str, str]:
    return {"X-API-Key": secret}


def logged_keys(written: list[str]) -> list[str]:
    return [key for line in written for key in MADE.findall(line)]


def restarted(start: Start, **values: Any) -> Any:
    """A service on a network over the folder of the last one, which has ended."""
    return start(host="0.0.0.0", **values)


def admin_keys(client: Any, secret: str) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = client.get("/api/keys", headers=with_key(secret)).json()["keys"]
    return keys


def test_the_first_start_on_a_network_logs_an_admin_key_once_and_keeps_it_in_a_private_file(tmp_path: Path):
    data_dir = tmp_path / "data"
    with served(data_dir, ForkedPython, **NETWORK) as (client, process, written):
        [secret] = logged_keys(written)
        path = data_dir / "initial_admin_key"
        assert (path.read_text(), path.stat().st_mode & 0o777) == (f"{secret}\n", 0o600)
        assert client.get("/memories").status_code == 401
        assert client.post("/api/keys", json={"name": "mine", "role": "admin"}).status_code == 401
        assert client.get("/api/keys/me", headers=with_key(secret)).json()["role"] == "admin"
        stop(process)
    path.unlink()
    with served(data_dir, ForkedPython, **NETWORK) as (client, _, written):
        assert client.get("/memories").status_code == 401
        assert client.get("/memories", headers=with_key(secret)).status_code == 200
        assert logged_keys(written) == []
    assert not path.exists()


def test_one_of_two_concurrent_starts_creates_a_key_and_the_other_exits(tmp_path: Path):
    environment = {**os.environ, **NETWORK, "DATA_DIR": str(tmp_path / "data"), "PORT": "0", "LOG_FORMAT": "json"}
    both = [
        subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    written: list[list[str]] = []
    try:
        for process in both:
            assert process.stderr is not None
            lines: list[str] = []
            for line in process.stderr:
                lines.append(line)
                if "running on" in line:
                    break
            written.append(lines)
        # Not before both have been read: the other may start so late that the folder is free again.
        for process in both:
            process.terminate()
            process.wait(START_TIMEOUT_S)
    finally:
        for process in both:
            process.kill()
            process.communicate()
    [secret] = logged_keys([line for lines in written for line in lines])
    assert sum("Another process uses DATA_DIR" in line for lines in written for line in lines) == 1
    assert (tmp_path / "data" / "initial_admin_key").read_text() == f"{secret}\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "souvenir.lan", "192.0.2.7"])
def test_any_address_but_loopback_is_a_network(start: Start, tmp_path: Path, host: str):
    assert start(host=host).get("/memories").status_code == 401
    assert (tmp_path / "data" / "initial_admin_key").exists()


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"host": "localhost"},
        {"host": "::1"},
        {"host": "127.0.0.2"},
        {"host": "0.0.0.0", "published_on": "127.0.0.1"},
        {"host": "::", "published_on": "[::1]"},
        {"host": "0.0.0.0", "allow_open": True},
    ],
    ids=str,
)
def test_on_loopback_or_with_allow_open_no_key_is_made_or_needed(start: Start, tmp_path: Path, values):
    assert start(**values).get("/memories").status_code == 200
    assert not (tmp_path / "data" / "initial_admin_key").exists()


def test_with_api_key_no_key_is_made(start: Start, tmp_path: Path):
    client = start(host="0.0.0.0", api_key=KEY)
    assert client.get("/memories").status_code == 401
    assert client.get("/api/keys", headers=with_key(KEY)).json()["count"] == 0
    assert not (tmp_path / "data" / "initial_admin_key").exists()


def test_a_service_that_moves_from_loopback_to_a_network_gets_its_key_then(start: Start, tmp_path: Path):
    client = start()
    client.post("/memory/add", json={"text": "from before", "source": "s"}).raise_for_status()
    client.__exit__(None, None, None)
    moved = restarted(start)
    assert moved.get("/memories").status_code == 401
    secret = (tmp_path / "data" / "initial_admin_key").read_text().strip()
    assert moved.get("/memories/count", headers=with_key(secret)).json() == {"count": 1}


def test_a_key_that_was_rotated_or_revoked_is_not_made_again(start: Start, tmp_path: Path, capsys):
    client = restarted(start)
    path = tmp_path / "data" / "initial_admin_key"
    secret = path.read_text().strip()
    [key] = admin_keys(client, secret)
    rotated = client.post(f"/api/keys/{key['id']}/rotate", headers=with_key(secret)).json()["key"]
    client.__exit__(None, None, None)
    client = restarted(start)
    assert client.get("/memories", headers=with_key(secret)).status_code == 401
    assert len(admin_keys(client, rotated)) == 1
    assert "first_admin_key_outdated" in capsys.readouterr().err
    own = client.post("/api/keys", json={"name": "ann", "role": "admin"}, headers=with_key(rotated)).json()
    assert client.delete(f"/api/keys/{key['id']}", headers=with_key(own["key"])).status_code == 200
    client.__exit__(None, None, None)
    path.unlink()
    client = restarted(start)
    assert [key["revoked"] for key in admin_keys(client, own["key"])] == [1, 0]
    assert not path.exists()


def test_a_start_that_was_killed_before_the_key_was_stored_is_finished_with_the_same_key(start: Start, tmp_path: Path):
    path = tmp_path / "data" / "initial_admin_key"
    path.parent.mkdir()
    path.write_text("mem_" + "5" * 32 + "\n")
    client = restarted(start)
    [key] = admin_keys(client, "mem_" + "5" * 32)
    assert (key["name"], key["role"]) == ("initial-admin", "admin")
    assert client.get("/memories").status_code == 401


def test_a_file_that_is_no_key_stops_the_start_and_names_the_file(start: Start, tmp_path: Path):
    path = tmp_path / "data" / "initial_admin_key"
    path.parent.mkdir()
    path.write_text("swordfish")
    with pytest.raises(StoreUnusable, match="initial_admin_key does not contain an admin key; delete it"):
        restarted(start)
    path.unlink()
    assert restarted(start).get("/memories").status_code == 401


def test_a_folder_that_cannot_hold_the_file_stops_the_start_before_a_key_is_stored(start: Start, tmp_path: Path):
    in_the_way = tmp_path / "data" / "initial_admin_key"
    in_the_way.mkdir(parents=True)
    with pytest.raises(StoreUnusable, match=r"cannot be kept in .*initial_admin_key.*or set API_KEY"):
        restarted(start)
    in_the_way.rmdir()
    assert restarted(start).get("/memories").status_code == 401


@pytest.mark.sqlite_only(reason="backs up or restores")
def test_the_first_key_survives_the_restore_of_a_backup_without_keys(start: Start, tmp_path: Path):
    open_client = start()
    backup = open_client.post("/backup").json()["backup_path"].removeprefix("backups/")
    open_client.__exit__(None, None, None)
    client = restarted(start)
    path = tmp_path / "data" / "initial_admin_key"
    headers = with_key(path.read_text().strip())
    client.post("/restore", json={"backup_name": backup}, headers=headers).raise_for_status()
    assert client.get("/memories").status_code == 401
    assert client.get("/memories", headers=headers).status_code == 200
    client.__exit__(None, None, None)
    (tmp_path / "data" / "souvenir.db").write_bytes(b"")
    restore_offline(Settings(data_dir=tmp_path / "data"), backup)
    client = restarted(start)
    assert client.get("/memories").status_code == 401
    assert client.get("/memories", headers=headers).status_code == 200


@pytest.mark.sqlite_only(reason="backs up or restores")
def test_keys_of_a_backup_that_is_restored_before_the_first_start_are_used(start: Start, tmp_path: Path):
    first = start()
    key = first.post("/api/keys", json={"name": "ann", "role": "admin"}).json()["key"]
    backup = first.post("/backup", headers=with_key(key)).json()["backup_path"].removeprefix("backups/")
    first.__exit__(None, None, None)
    moved = tmp_path / "moved"
    shutil.copytree(tmp_path / "data" / "backups", moved / "backups")
    restore_offline(Settings(data_dir=moved), backup)
    client = start(host="0.0.0.0", data_dir=moved)
    assert client.get("/memories").status_code == 401
    assert [one["name"] for one in admin_keys(client, key)] == ["ann"]
    assert not (moved / "initial_admin_key").exists()


def test_making_the_first_key_is_in_the_audit(start: Start, tmp_path: Path):
    client = restarted(start)
    secret = (tmp_path / "data" / "initial_admin_key").read_text().strip()
    [event] = client.get("/audit", params={"action": "key.create"}, headers=with_key(secret)).json()["entries"]
    assert event["actor"] == "first-start"


def composed(**variables: str) -> dict[str, str]:
    """The environment that docker-compose.yml gives the service, in a folder without `.env`."""
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["souvenir"]
    [port] = service["ports"]
    assert port == "${BIND:-127.0.0.1}:${PORT:-8900}:8900"

    def value(text: str) -> str:
        return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1]) or found[2], text)

    own = ("PORT", "DATA_DIR")
    return {name: value(str(text)) for name, text in service["environment"].items() if name not in own}


def test_docker_compose_up_needs_no_key_on_loopback_and_answers_no_page_that_rebinds_its_name(tmp_path: Path):
    with served(tmp_path / "data", ForkedPython, **composed()) as (client, _, written):
        assert client.post("/memory/add", json={"text": "x", "source": "s"}).status_code == 200
        rebound = {"Host": "evil.example:8900", "Origin": "http://evil.example:8900", "Sec-Fetch-Site": "same-origin"}
        for path in ("/api/keys", "/memory/add", "/mcp"):
            assert client.post(path, json={"name": "mine", "role": "admin"}, headers=rebound).status_code == 421
        assert client.get("/memories", headers={"Host": "evil.example:8900"}).status_code == 421
        assert logged_keys(written) == []


def test_docker_compose_up_on_a_network_makes_a_key(tmp_path: Path):
    with served(tmp_path / "data", ForkedPython, **composed(BIND="0.0.0.0")) as (client, _, written):
        [secret] = logged_keys(written)
        assert client.get("/memories").status_code == 401
        assert client.get("/memories", headers={**with_key(secret), "Host": "souvenir.lan"}).status_code == 200
        [line] = [line for line in written if "first_admin_key_made" in line]
        assert json.loads(line)["file"].endswith("/initial_admin_key")
