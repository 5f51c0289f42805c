"""Memories built from the Markdown files in WORKSPACE_DIR."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import Start, keeps_backups

MEMORY = "# Deploys\n\nOn Fridays.\n\n# Team\n\nAnn and Ben.\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(MEMORY)
    (folder / "memory" / "day.md").write_text("It rained.")
    (folder / "notes.md").write_text("not among the defaults")
    return folder


@pytest.fixture
def client(start: Start, workspace: Path) -> TestClient:
    return start(workspace_dir=workspace)


def build(client: TestClient, *sources: str) -> dict[str, Any]:
    response = client.post("/index/build", json={"sources": list(sources)} if sources else None)
    assert response.status_code == 200, response.text
    report: dict[str, Any] = response.json()
    return report


def counts(report: dict[str, Any]) -> tuple[int, ...]:
    """Files processed; memories added, updated, unchanged."""
    memories = (report[f"memories_{name}"] for name in ("added", "updated", "unchanged"))
    return (report["files_processed"], *memories)


def stored(client: TestClient) -> dict[tuple[str, str], dict[str, Any]]:
    memories = client.get("/memories", params={"limit": 1000}).json()["memories"]
    return {(memory["source"], memory.get("entity_key", "")): memory for memory in memories}


def test_a_build_stores_a_memory_for_each_section_under_its_file_and_headings(client: TestClient):
    client.post("/memory/add", json={"text": "said by a person", "source": "MEMORY.md"})
    report = build(client)
    assert counts(report) == (2, 3, 0, 0)
    assert report["message"] == "2 files: 3 memories added, 0 updated, 0 unchanged"
    assert (report["success"], report["errors"]) == (True, [])
    if keeps_backups(client):
        [backup] = client.get("/backups").json()["backups"]
        assert report["backup_location"] == f"backups/{backup['name']}"
    classes = {at: memory["origin_class"] for at, memory in stored(client).items()}
    assert (classes.pop(("MEMORY.md", "")), set(classes.values())) == ("user", {"document"})
    assert {at: memory["text"] for at, memory in stored(client).items()} == {
        ("MEMORY.md", ""): "said by a person",
        ("MEMORY.md", "Deploys#1"): "Deploys\n\nOn Fridays.",
        ("MEMORY.md", "Team#1"): "Team\n\nAnn and Ben.",
        ("memory/day.md", "#1"): "It rained.",
    }
    found = client.post("/search", json={"query": "who is in the team", "k": 1}).json()["results"][0]
    assert (found["heading"], found["origin"]) == ("Team", "markdown")


def test_a_second_build_writes_only_changes(client: TestClient, workspace: Path):
    build(client)
    before = stored(client)
    again = build(client)
    assert counts(again) == (2, 0, 0, 3)
    assert (again["backup_location"], stored(client)) == (None, before)
    (workspace / "MEMORY.md").write_text("# New\n\nA section.\n\n# Deploys\n\nOn Mondays.\n")
    changed = build(client)
    assert counts(changed) == (2, 1, 1, 1)
    assert "1 of sections that are no longer there" in changed["message"]
    after = stored(client)
    deploys, team = ("MEMORY.md", "Deploys#1"), ("MEMORY.md", "Team#1")
    assert (after[deploys]["text"], after[deploys]["id"]) == ("Deploys\n\nOn Mondays.", before[deploys]["id"])
    assert after[team] == {**before[team], "confidence": after[team]["confidence"]}
    assert after["MEMORY.md", "New#1"]["text"] == "New\n\nA section."


def test_files_can_be_named_and_found_by_globs(client: TestClient, workspace: Path):
    (workspace / "memory" / "deep" / "er").mkdir(parents=True)
    (workspace / "memory" / "deep" / "er" / "x.md").write_text("deep")
    assert counts(build(client, "notes.md")) == (1, 1, 0, 0)
    assert counts(build(client, "memory/**/*.md", "notes.md", "gone.md")) == (3, 2, 0, 1)


@pytest.mark.parametrize(
    "source", ["../outside.md", "memory/../../outside.md", "/etc/passwd", "..", "memory/../notes.md"]
)
def test_a_name_that_leads_out_is_refused_and_nothing_is_done(client: TestClient, source: str):
    response = client.post("/index/build", json={"sources": ["MEMORY.md", source]})
    assert (response.status_code, response.json()["code"]) == (403, "outside_workspace")
    assert stored(client) == {}


@pytest.mark.parametrize("link_to", ["file", "folder"])
def test_a_link_that_leads_out_is_refused_and_nothing_is_done(client: TestClient, workspace: Path, link_to: str):
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("a secret")
    target, pattern = (outside, "memory/link/*.md") if link_to == "folder" else (outside / "secret.md", "memory/*")
    (workspace / "memory" / "link").symlink_to(target)
    response = client.post("/index/build", json={"sources": ["MEMORY.md", pattern]})
    assert response.status_code == 403
    assert "secret" not in response.json()["detail"] or link_to == "folder"
    assert stored(client) == {}


def test_a_link_that_stays_inside_is_read(client: TestClient, workspace: Path):
    (workspace / "memory" / "linked.md").symlink_to(workspace / "notes.md")
    assert counts(build(client)) == (3, 4, 0, 0)


def _not_utf_8(folder: Path) -> None:
    (folder / "memory" / "bad.md").write_bytes(b"\xff\xfe")


def _too_large(folder: Path) -> None:
    (folder / "memory" / "bad.md").write_bytes(b"x" * (8 * 1024 * 1024 + 1))


@pytest.mark.parametrize(("make", "error"), [(_not_utf_8, "UTF-8"), (_too_large, "larger than")])
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_built(
    client: TestClient, workspace: Path, make: Callable[[Path], None], error: str
):
    make(workspace)
    report = build(client)
    assert (counts(report), report["success"]) == ((2, 3, 0, 0), False)
    [named] = report["errors"]
    assert named["file"] == "memory/bad.md"
    assert error in named["error"]


@pytest.mark.parametrize("sources", [[], [""], ["."], ["a\0b"], ["x" * 501], ["***/x"], ["MEMORY.md"] * 1_001])
def test_invalid_patterns_are_refused(client: TestClient, sources: list[str]):
    assert client.post("/index/build", json={"sources": sources}).status_code == 422


def test_a_folder_is_no_file(client: TestClient):
    assert counts(build(client, "memory", "**")) == (0, 0, 0, 0)


@pytest.mark.parametrize("folder", [None, "missing", "MEMORY.md"])
def test_without_a_workspace_nothing_can_be_built(start: Start, workspace: Path, folder: str | None):
    response = start(workspace_dir=None if folder is None else workspace / folder).post("/index/build")
    assert (response.status_code, response.json()["code"]) == (409, "conflict")
    assert "WORKSPACE_DIR" in response.json()["detail"]
