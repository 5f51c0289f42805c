"""export, backup, restore, keys: commands for data safety and access."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from souvenir_client import Souvenir
from tests.client.running import RunningService


def test_exports_to_a_file_and_to_stdout_are_equal_and_importable(run, answer, service, tmp_path):
    for text in ("Grüße 😀", "two\nlines", "\x1b[31mred"):
        run("add", text, "--namespace", "out", "--metadata", "n:=1.50")
    path = tmp_path / "all.ndjson"
    done = run("export", str(path), "--namespace", "out")
    assert (done.exit_code, done.stdout) == (0, f"Wrote 3 records to {path}.\n")
    in_file, on_stdout = path.read_text(encoding="utf-8"), run("export", "--namespace", "out").stdout
    assert [json.loads(line) for line in in_file.splitlines()][1:] == [
        json.loads(line) for line in on_stdout.splitlines()
    ][1:]
    with Souvenir(service.url, namespace="back") as client:
        assert client.transfer.import_memories(path.read_bytes(), wait_s=20.0).imported == 3  # type: ignore[union-attr]
    texts = [memory["text"] for memory in answer("list", "--namespace", "back")["memories"]]
    assert texts == ["Grüße 😀", "two\nlines", "\x1b[31mred"]


def test_an_export_of_an_agent_holds_its_messages(run, service, tmp_path):
    with Souvenir(service.url) as client:
        client.messages.add(agent_name="leaving", role="user", content="Hello.", session_id="s")
    path = tmp_path / "agent.ndjson"
    assert run("export", str(path), "--agent", "leaving").exit_code == 0
    types = [json.loads(line)["type"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert types == ["header", "agent", "session", "message"]


def test_graphs_to_a_file_and_to_stdout_are_equal_and_imported_once(run, answer, service, tmp_path):
    said = "Redis \x9b31m runs in Oslo. \u202e😀"
    with Souvenir(service.url) as client:
        client.messages.add(agent_name="seen", role="user", content=said, session_id="s")
    for written_as in ("json", "graphml"):
        path = tmp_path / f"graph.{written_as}"
        done = run("graph", "export", "seen", str(path), "--format", written_as)
        assert (done.exit_code, done.stdout) == (0, f"Wrote the graph of seen to {path}.\n")
        shown = tmp_path / f"shown.{written_as}"
        shown.write_text(run("graph", "export", "seen", "--format", written_as).stdout, encoding="utf-8")
        assert "\x9b" not in shown.read_text(encoding="utf-8")
        assert "\u202e" not in shown.read_text(encoding="utf-8")
        told = "Imported 1 session, 1 message (graph).\n"
        assert run("graph", "import", f"from-{written_as}", str(path)).stdout == told
        assert answer("graph", "import", f"from-{written_as}", str(shown))["messages"]["unchanged"] == 1
        [message] = answer("chat", "history", f"from-{written_as}")["messages"]
        assert message["content"] == said


def test_a_refused_graph_export_keeps_the_previous_file(run, tmp_path):
    path = tmp_path / "old.json"
    path.write_text("old", encoding="utf-8")
    done = run("graph", "export", "nobody-of-that-name", str(path))
    assert (done.exit_code, path.read_text(encoding="utf-8"), list(tmp_path.iterdir())) == (1, "old", [path])
    done = run("graph", "import", "nobody", str(path))
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)


def test_a_refused_export_keeps_the_previous_file(run, tmp_path):
    path = tmp_path / "old.ndjson"
    path.write_text("old", encoding="utf-8")
    done = run("export", str(path), "--agent", "nobody-of-that-name")
    assert (done.exit_code, path.read_text(encoding="utf-8"), list(tmp_path.iterdir())) == (1, "old", [path])


def test_a_missing_folder_is_wrong_usage(run, tmp_path):
    path = tmp_path / "missing" / "all.ndjson"
    done = run("export", str(path))
    assert (done.exit_code, done.stderr) == (2, f"{path} cannot be written: No such file or directory.\n")
    done = run("export", str(tmp_path))
    assert (done.exit_code, done.stderr) == (2, f"{tmp_path} cannot be written: Is a directory.\n")


def test_a_key_without_a_role_is_refused_in_one_line(run):
    done = run("keys", "create", "somebody")
    assert done.exit_code == 2
    assert "Choose from: read-only, read-write, admin" in done.stderr


def test_a_backup_is_listed_and_restores_deleted_memories(run, answer, own_service):
    url = {"SOUVENIR_URL": own_service.url}
    made = run("add", "Comes back.", "--json", **url)
    name = run("backup", "--prefix", "before", **url).stdout.split()[1]
    assert name in run("backup", "list", **url).stdout
    run("delete", str(json.loads(made.stdout)["id"]), "--yes", **url)
    done = run("restore", name, "--yes", **url)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Restored {name}; what was there before is pre_restore_")
    assert answer("list", **url)["total"] == 1


def test_restoring_an_unknown_backup_exits_with_1(run):
    assert run("restore", "no_such_backup", "--yes").exit_code == 1


@pytest.mark.parametrize("arguments", [("restore", "x"), ("agents", "delete", "x"), ("keys", "revoke", "x")])
def test_without_a_terminal_for_confirmation_nothing_is_changed(run, arguments):
    done = run(*arguments, stdin="y\n")
    assert done.exit_code in (1, 2)
    assert done.stdout == ""


@pytest.fixture
def guarded(own_service: RunningService) -> dict[str, str]:
    with Souvenir(own_service.url) as client:
        key = client.keys.create(name="ana", role="admin").key
    return {"SOUVENIR_URL": own_service.url, "SOUVENIR_API_KEY": key}


def test_the_quotas_of_a_key_are_set_changed_and_shown_with_their_usage(run, answer, guarded):
    limits = ("--quota", "memories=1", "--quota", "stored_bytes=5000")
    made = answer("keys", "create", "bot", "--role", "read-write", "--namespace", "bots", *limits, **guarded)
    mine = {**guarded, "SOUVENIR_API_KEY": made["key"]}
    assert run("add", "The first.", **mine).exit_code == 0
    refused = run("add", "The second.", **mine)
    assert refused.exit_code == 1
    assert "This key may store 1 memories" in refused.stderr
    shown = answer("keys", "usage", **mine)
    assert (shown["quotas"]["memories"], shown["used"]["memories"]) == (1, 1)
    assert "memories" in run("keys", "usage", made["id"], **guarded).stdout
    assert run("keys", "limit", made["id"], "--quota", "memories=2", **guarded).exit_code == 0
    assert run("add", "The second.", **mine).exit_code == 0
    assert answer("keys", "usage", **mine)["quotas"].get("stored_bytes") is None
    wrong = run("keys", "limit", made["id"], "--quota", "memory=2", **guarded)
    assert (wrong.exit_code, "is not NAME=NUMBER" in wrong.stderr) == (2, True)


def test_a_key_for_a_namespace_is_created_used_rotated_and_revoked(run, answer, guarded):
    made = run("keys", "create", "bot", "--role", "read-write", "--namespace", "bots", "--prefix", "a", **guarded)
    first = made.stdout.strip()
    assert first.startswith("mem_")
    mine = {**guarded, "SOUVENIR_API_KEY": first}
    assert run("keys", "me", **mine).stdout == (
        "The key bot has the role read-write for the namespace bots, limited to a and below.\n"
    )
    refused = run("keys", "list", **mine)
    assert (refused.exit_code, refused.stdout) == (1, "")
    [row] = [one for one in answer("keys", "list", **guarded)["keys"] if one["name"] == "bot"]
    second = answer("keys", "rotate", row["id"], "--yes", **guarded)["key"]
    assert run("keys", "me", **mine).exit_code == 1
    assert run("keys", "me", **{**mine, "SOUVENIR_API_KEY": second}).exit_code == 0
    assert run("keys", "revoke", row["id"], "--yes", **guarded).exit_code == 0
    assert run("keys", "me", **{**mine, "SOUVENIR_API_KEY": second}).exit_code == 1
    drawn = run("keys", "list", **guarded).stdout
    assert "revoked" in drawn
    assert first not in drawn


def test_an_export_file_is_readable_by_its_owner_only(run, tmp_path: Path):
    path = tmp_path / "private.ndjson"
    run("export", str(path))
    assert path.stat().st_mode & 0o077 == 0
