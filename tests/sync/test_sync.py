"""Cloud sync of a running service with a real S3 server: upload, list, download, restore, retention, errors."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from souvenir.command_line import main
from souvenir.core.settings import Settings
from souvenir.store.sqlite.backups import Backups
from tests.api.conftest import Start, start  # noqa: F401
from tests.sync.conftest import PASSPHRASE
from tests.vendors.s3 import BUCKET, CuttingProxy, S3Server, free_port

TEXT = "The staging database moved to Frankfurt"


@pytest.fixture
def client(start: Start, sync_values: dict[str, Any]) -> TestClient:  # noqa: F811
    """A service whose uploads are encrypted, with one memory."""
    client = start(**sync_values, sync_passphrase=PASSPHRASE)
    remember(client, TEXT)
    return client


@pytest.fixture
def plain_client(start: Start, sync_values: dict[str, Any]) -> TestClient:  # noqa: F811
    """A service whose uploads are not encrypted, with one memory."""
    client = start(**sync_values)
    remember(client, TEXT)
    return client


def remember(client: TestClient, text: str) -> int:
    answer = client.post("/memory/add", json={"text": text, "source": "notes"})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def posted(client: TestClient, path: str, **parameters: Any) -> Any:
    answer = client.post(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def uploaded(client: TestClient, **parameters: Any) -> str:
    name: str = posted(client, "/sync/upload", **parameters)["backup_name"]
    return name


def texts(client: TestClient) -> list[str]:
    return [memory["text"] for memory in client.get("/memories").json()["memories"]]


def local_names(client: TestClient) -> list[str]:
    return [backup["name"] for backup in client.get("/backups").json()["backups"]]


def forget_local(client: TestClient, name: str) -> None:
    """Delete a local backup, as if the machine were another."""
    backups: Backups = client.app.state.service.engine.copies.backups  # type: ignore[attr-defined]
    backups.drop(name)


def hidden(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "data" / "backups").glob(".*")]


def object_of(name: str, *, encrypted: bool = True) -> str:
    return f"souvenir/{name}/souvenir.db{'.enc' if encrypted else ''}"


def test_without_a_bucket_the_status_says_so_and_the_rest_is_400(start: Start):  # noqa: F811
    client = start()
    status = client.get("/sync/status")
    assert (status.status_code, status.json()["enabled"]) == (200, False)
    assert status.json()["message"].startswith("Cloud sync not configured")
    for method, path in [
        ("POST", "/sync/upload"),
        ("POST", "/sync/download?confirm=true"),
        ("GET", "/sync/snapshots"),
        ("POST", "/sync/restore/manual_20250402_093000?confirm=true"),
        ("POST", "/sync/restore/manual_20250402_093000"),
    ]:
        answer = client.request(method, path)
        assert answer.status_code == 400
        assert answer.json()["detail"].startswith("Cloud sync not configured")


def test_an_upload_is_listed_and_counted(client, s3):
    assert client.get("/sync/status").json() == {
        "enabled": True,
        "message": None,
        "latest_remote": None,
        "latest_local": None,
        "remote_count": 0,
        "local_count": 0,
        "encrypted": True,
    }
    name = uploaded(client)
    assert client.get("/sync/snapshots").json()["snapshots"][0].items() >= {"name": name, "encrypted": True}.items()
    status = client.get("/sync/status").json()
    assert (status["latest_remote"], status["latest_local"]) == (name, name)
    assert (status["remote_count"], status["local_count"]) == (1, 1)


def test_an_encrypted_upload_shows_nothing_of_the_memories(client, s3):
    name = uploaded(client)
    assert sorted(s3.objects()) == [f"souvenir/{name}/manifest.json", object_of(name)]
    assert all(b"Frankfurt" not in s3.read(key) and b"notes" not in s3.read(key) for key in s3.objects())


def test_an_upload_without_a_passphrase_is_the_database_itself(plain_client, s3):
    name = uploaded(plain_client)
    assert b"Frankfurt" in s3.read(object_of(name, encrypted=False))
    assert plain_client.get("/sync/status").json()["encrypted"] is False


def test_an_unchanged_store_is_uploaded_without_another_backup(client):
    first = uploaded(client)
    assert uploaded(client) == first
    assert local_names(client) == [first]
    remember(client, "The deploy key was rotated")
    assert uploaded(client) != first


def test_a_named_backup_is_uploaded_and_an_unknown_one_is_404(client):
    name = client.post("/backup").json()["backup_path"].removeprefix("backups/")
    remember(client, "The deploy key was rotated")
    assert uploaded(client, backup_name=name) == name
    assert client.post("/sync/upload", params={"backup_name": "manual_1"}).status_code == 404


def test_a_restore_from_the_bucket_brings_everything_back(client):
    name = uploaded(client)
    forget_local(client, name)
    assert client.delete("/memory/1").status_code == 200
    answer = posted(client, f"/sync/restore/{name}", confirm=True)
    assert (answer["restored"], answer["total_memories"]) == (name, 1)
    assert texts(client) == [TEXT]
    assert remember(client, "Later") > 1


def test_a_restore_uses_the_local_copy_if_it_is_the_same(client, s3):
    name = uploaded(client)
    s3.client.delete_object(Bucket=BUCKET, Key=object_of(name))
    s3.write(object_of(name), b"never read")
    assert client.delete("/memory/1").status_code == 200
    posted(client, f"/sync/restore/{name}", confirm=True)
    assert texts(client) == [TEXT]


def test_a_download_keeps_a_local_backup_of_the_same_name(client, tmp_path):
    name = uploaded(client)
    database = tmp_path / "data" / "backups" / name / "souvenir.db"
    database.write_bytes(database.read_bytes()[:-1] + b"?")
    answer = posted(client, "/sync/download", confirm=True)
    assert answer["backup_name"] == f"{name}_2"
    assert answer["transferred"] is True
    assert set(local_names(client)) == {name, f"{name}_2"}
    assert posted(client, "/sync/download", confirm=True)["transferred"] is False
    assert client.post("/restore", json={"backup_name": f"{name}_2"}).status_code == 200


@pytest.mark.parametrize("path", ["/sync/download", "/sync/restore/manual_20250402_093000"])
def test_download_and_restore_need_a_confirmation(client, path):
    answer = client.post(path)
    assert answer.status_code == 400
    assert "confirm=true" in answer.json()["detail"]


def test_a_missing_remote_backup_is_404(client):
    assert client.post("/sync/download", params={"confirm": True}).status_code == 404
    for name in ("manual_20250402_093000", "a.b"):
        assert client.post(f"/sync/restore/{name}", params={"confirm": True}).status_code == 404


def refused(client: TestClient, name: str, tmp_path: Path, **parameters: Any) -> str:
    """The reason why a download fails; nothing of it is left."""
    before = local_names(client)
    answer = client.post("/sync/download", params={"backup_name": name, "confirm": True, **parameters})
    assert answer.status_code == 503, answer.text
    assert local_names(client) == before
    assert hidden(tmp_path) == []
    reason: str = answer.json()["detail"]
    return reason


@pytest.fixture
def remote(client: TestClient) -> str:
    """An encrypted backup that is only in the bucket."""
    name = uploaded(client)
    forget_local(client, name)
    return name


def test_a_truncated_object_is_refused(client, remote, s3, tmp_path):
    s3.write(object_of(remote), s3.read(object_of(remote))[:-1000])
    assert "size" in refused(client, remote, tmp_path)


def test_a_flipped_bit_is_refused(client, remote, s3, tmp_path):
    content = bytearray(s3.read(object_of(remote)))
    content[len(content) // 2] ^= 1
    s3.write(object_of(remote), bytes(content))
    assert "checksum" in refused(client, remote, tmp_path)
    manifest = json.loads(s3.read(f"souvenir/{remote}/manifest.json"))
    manifest["sha256"] = hashlib.sha256(content).hexdigest()
    s3.write(f"souvenir/{remote}/manifest.json", json.dumps(manifest).encode())
    assert "changed" in refused(client, remote, tmp_path)


def test_a_flipped_bit_of_an_unencrypted_object_is_refused(plain_client, s3, tmp_path):
    name = uploaded(plain_client)
    forget_local(plain_client, name)
    key = object_of(name, encrypted=False)
    content = bytearray(s3.read(key))
    content[len(content) // 2] ^= 1
    s3.write(key, bytes(content))
    assert "checksum" in refused(plain_client, name, tmp_path)


def test_swapped_objects_are_refused_even_with_matching_manifests(client, s3, tmp_path):
    """The bucket's owner exchanges two backups, manifests included, to have an older state restored."""
    old = uploaded(client)
    remember(client, "The deploy key was rotated")
    new = uploaded(client)
    s3.write(object_of(new), s3.read(object_of(old)))
    manifest = json.loads(s3.read(f"souvenir/{old}/manifest.json"))
    manifest["backup"]["name"] = new
    s3.write(f"souvenir/{new}/manifest.json", json.dumps(manifest).encode())
    forget_local(client, old)
    forget_local(client, new)
    assert "changed" in refused(client, new, tmp_path)


def test_a_manifest_of_another_backup_and_an_unreadable_one_are_refused(client, remote, s3, tmp_path):
    key = f"souvenir/{remote}/manifest.json"
    original = s3.read(key)
    s3.write(key, original.replace(remote.encode(), b"manual_1"))
    assert "of another backup" in refused(client, remote, tmp_path)
    for content in (b"", b"[]", b"{}", original[:-5], original.replace(b'"memories": 1', b'"memories": "x"')):
        s3.write(key, content)
        assert "manifest cannot be read" in refused(client, remote, tmp_path)


def test_a_wrong_passphrase_is_one_clear_sentence(client, remote, start, sync_values, tmp_path):  # noqa: F811
    other = start(**sync_values, sync_passphrase="another", data_dir=tmp_path / "other")
    answer = other.post("/sync/download", params={"confirm": True})
    assert answer.status_code == 503
    assert "SYNC_PASSPHRASE is not the passphrase" in answer.json()["detail"]
    assert "another" not in answer.text.replace("another one", "")
    assert local_names(other) == []


def test_an_encrypted_backup_needs_a_passphrase(client, remote, start, sync_values, tmp_path):  # noqa: F811
    other = start(**sync_values, data_dir=tmp_path / "other")
    answer = other.post(f"/sync/restore/{remote}", params={"confirm": True})
    assert (answer.status_code, "set SYNC_PASSPHRASE" in answer.json()["detail"]) == (503, True)


def test_an_unencrypted_backup_is_refused_with_a_passphrase_unless_it_is_allowed(
    plain_client,
    start,  # noqa: F811
    sync_values,
    tmp_path,
):
    name = uploaded(plain_client)
    other = start(**sync_values, sync_passphrase=PASSPHRASE, data_dir=tmp_path / "other")
    answer = other.post(f"/sync/restore/{name}", params={"confirm": True})
    assert (answer.status_code, "not encrypted" in answer.json()["detail"]) == (503, True)
    posted(other, f"/sync/restore/{name}", confirm=True, allow_unencrypted=True)
    assert texts(other) == [TEXT]


def test_an_upload_deletes_the_oldest_beyond_the_limit(start, sync_values, s3):  # noqa: F811
    client = start(**sync_values, sync_keep=2)
    names = []
    for n in range(3):
        remember(client, f"Fact number {n}")
        names.append(uploaded(client))
        s3.client.put_object(Bucket=BUCKET, Key=f"another/{n}", Body=b"of another program")
    assert len(remote_names(client)) == 2
    assert names[2] in remote_names(client)
    assert {key for key in s3.objects() if key.startswith("another/")} == {"another/0", "another/1", "another/2"}
    remember(client, "One more")
    last = uploaded(client, keep=1)
    assert remote_names(client) == [last]
    assert {key.split("/")[1] for key in s3.objects() if key.startswith("souvenir/")} == {last}


def remote_names(client: TestClient) -> list[str]:
    return [one["name"] for one in client.get("/sync/snapshots").json()["snapshots"]]


def test_an_interrupted_download_is_resumed(start, sync_values, s3, tmp_path):  # noqa: F811
    proxy = CuttingProxy(s3.port, [])
    client = start(**{**sync_values, "sync_endpoint_url": proxy.address, "sync_passphrase": PASSPHRASE})
    remember(client, TEXT)
    name = uploaded(client)
    forget_local(client, name)
    size = len(s3.read(object_of(name)))
    assert size > 150_000
    proxy.cuts += [100_000, 100_000]
    assert posted(client, "/sync/download", backup_name=name, confirm=True)["transferred"] is True
    assert proxy.cuts == []
    posted(client, f"/sync/restore/{name}", confirm=True)
    proxy.close()


def test_a_download_that_breaks_off_again_and_again_leaves_nothing(start, sync_values, s3, tmp_path):  # noqa: F811
    proxy = CuttingProxy(s3.port, [])
    client = start(**{**sync_values, "sync_endpoint_url": proxy.address})
    remember(client, TEXT)
    name = uploaded(client)
    forget_local(client, name)
    proxy.cuts += [66_000] * 100
    assert "cannot be reached" in refused(client, name, tmp_path)
    proxy.close()


def test_an_upload_without_its_end_is_not_listed_and_is_cleared_later(client, s3):
    s3.write(object_of("manual_1"), b"the beginning of an upload")
    s3.write("souvenir/manual_2/manifest.json", b"{}")
    assert remote_names(client) == []
    uploaded(client)
    assert object_of("manual_1") in s3.objects(), "it may be an upload that is being made"


def unreachable(client: TestClient) -> list[str]:
    """The sentences with which every operation fails."""
    answers = [
        client.get("/sync/status"),
        client.get("/sync/snapshots"),
        client.post("/sync/upload"),
        client.post("/sync/download", params={"confirm": True}),
        client.post("/sync/restore/manual_1", params={"confirm": True}),
    ]
    assert [answer.status_code for answer in answers] == [503] * 5
    return [answer.json()["detail"] for answer in answers]


def test_a_missing_bucket_is_one_clear_sentence(start, sync_values):  # noqa: F811
    client = start(**{**sync_values, "sync_bucket": "no-such-bucket"})
    assert all("'no-such-bucket' does not exist" in sentence for sentence in unreachable(client))


def test_an_unreachable_store_is_one_clear_sentence(start, sync_values):  # noqa: F811
    client = start(**{**sync_values, "sync_endpoint_url": f"http://127.0.0.1:{free_port()}"})
    assert all("cannot be reached" in sentence for sentence in unreachable(client))


def test_wrong_keys_are_one_clear_sentence_without_the_keys(start, sync_values, capsys):  # noqa: F811
    server = S3Server(unauthenticated=1)
    try:
        server.wait()
        server.client.create_bucket(Bucket=BUCKET)
        client = start(**{**sync_values, "sync_endpoint_url": server.address})
        sentences = unreachable(client)
    finally:
        server.close()
    assert all("refused the keys" in sentence for sentence in sentences)
    log = capsys.readouterr().err
    assert sync_values["sync_secret_access_key"] not in log + "".join(sentences)
    assert sync_values["sync_access_key_id"] not in log + "".join(sentences)


def test_a_failed_upload_is_a_warning_until_one_succeeds(client, s3):
    s3.client.delete_bucket(Bucket=BUCKET)
    assert client.post("/sync/upload").status_code == 503
    codes = [warning["code"] for warning in client.get("/health/ready").json()["warnings"]]
    assert codes == ["sync_upload_failed"]
    s3.client.create_bucket(Bucket=BUCKET)
    uploaded(client)
    assert client.get("/health/ready").json()["warnings"] == []


def test_a_transfer_is_a_job_with_progress(client):
    answer = client.post("/sync/upload", params={"wait_s": 0})
    assert answer.status_code == 202
    service = client.app.state.service
    job = service.sync.jobs.wait(answer.json()["job_id"], 30)
    shown = client.get(answer.json()["result_url"]).json()
    assert (shown["kind"], shown["status"], shown["done"]) == ("sync", "completed", job.done)
    assert shown["result"]["backup_name"] in remote_names(client)


def test_too_little_space_is_one_clear_sentence(client, remote, s3, tmp_path):
    key = f"souvenir/{remote}/manifest.json"
    manifest = json.loads(s3.read(key))
    manifest["backup"]["bytes"] = 10**18
    s3.write(key, json.dumps(manifest).encode())
    assert "too large for the disk" in refused(client, remote, tmp_path)


def test_only_admins_may_sync(start, sync_values):  # noqa: F811
    client = start(**sync_values, api_key="k-admin")
    admin = {"X-API-Key": "k-admin"}
    key = client.post(
        "/api/keys", json={"name": "w", "role": "read-write", "prefixes": ["notes"]}, headers=admin
    ).json()["key"]
    for method, path in [("GET", "/sync/status"), ("GET", "/sync/snapshots"), ("POST", "/sync/upload")]:
        assert client.request(method, path, headers={"X-API-Key": key}).status_code == 403
    assert client.get("/sync/status", headers=admin).status_code == 200


def test_the_package_is_named_if_it_is_missing(tmp_path, sync_values, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "boto3", None)
    for name, value in {"SYNC_BUCKET": BUCKET, "DATA_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    assert main(["sync-list"]) == 1
    assert "install requirements-sync.txt" in capsys.readouterr().err


def test_secrets_are_not_shown_by_the_settings(sync_values):
    settings = Settings(**sync_values, sync_passphrase=SecretStr(PASSPHRASE))
    assert PASSPHRASE not in repr(settings)
    assert sync_values["sync_secret_access_key"] not in repr(settings)
