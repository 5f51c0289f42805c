"""Folders over HTTP: the list, and renaming with history, keys, scopes and jobs."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.compat.memories import folders
from tests.api.conftest import KEY, Add, Start


def folders_of(client: TestClient, **options: object) -> dict[str, int]:
    answer = client.get("/folders", **options).json()  # type: ignore[arg-type]
    assert answer["total"] == len(answer["folders"])
    return {one["name"]: one["count"] for one in answer["folders"]}


def rename(client: TestClient, old: str, new: str):
    return client.post("/folders/rename", json={"old_name": old, "new_name": new})


def source_of(client: TestClient, memory_id: int) -> str:
    return str(client.get(f"/memory/{memory_id}").json()["source"])


def test_folders_are_the_first_segments_of_sources(client: TestClient, add: Add):
    for source in ("proj/a", "proj/b/c", "proj", "notes", "/odd", "projects/a"):
        add(f"text of {source}", source)
    archived = add("an old text", "gone/a")
    client.patch(f"/memory/{archived}", json={"archived": True})
    active = {"(ungrouped)": 1, "notes": 1, "proj": 3, "projects": 1}
    assert folders_of(client) == active
    assert folders_of(client, params={"include_archived": True}) == {**active, "gone": 1}


def level(client: TestClient, below: str, **options: object) -> list[dict[str, Any]]:
    return list(client.get("/folders", params={"below": below, **options}).json()["folders"])  # type: ignore[dict-item]


def tree(client: TestClient, below: str, **options: object) -> dict[str, tuple[int, int]]:
    return {one["below"]: (one["count"], one["own"]) for one in level(client, below, **options)}


def test_folders_below_a_path_are_the_next_level_of_the_tree(client: TestClient, add: Add):
    for source in ("proj/a", "proj/b/c", "proj/b/c", "proj/b", "proj", "projects/a", "notes", "/odd/x", "proj//deep"):
        add(f"text of {source}", source)
    archived = add("an old text", "proj/gone")
    client.patch(f"/memory/{archived}", json={"archived": True})
    assert tree(client, "") == {"/": (1, 0), "notes": (1, 1), "proj": (6, 1), "projects": (1, 0)}
    assert tree(client, "proj") == tree(client, "proj/") == {"proj//": (1, 0), "proj/a": (1, 1), "proj/b": (3, 1)}
    assert tree(client, "proj", include_archived=True)["proj/gone"] == (1, 1)
    assert tree(client, "proj/b") == {"proj/b/c": (2, 2)}
    assert tree(client, "/") == {"/odd": (1, 0)}
    assert tree(client, "proj//") == {"proj//deep": (1, 1)}
    assert tree(client, "proj/a") == tree(client, "none") == {}
    found = client.post("/search", json={"query": "text", "source_prefix": "/"}).json()
    assert [hit["source"] for hit in found["results"]] == ["/odd/x"]


def test_every_path_of_the_tree_is_a_filter_of_as_many_memories(client: TestClient, add: Add):
    for source in ("a", "a/", "a//b", "a/*/c", "a/b", "a0", "/", "//y", "/x", "/*", "*", "*/*", " a/b ", "é/ü"):
        add(f"text of {source}", source)
    without, below = set(), [""]
    for path in below:
        for node in level(client, path):
            below += [node["below"]] if node["own"] < node["count"] else []
            if node["path"] is None:
                without.add(node["below"])
                continue
            wanted = {"source": node["path"], "source_boundary": True}
            assert client.get("/memories", params=wanted).json()["total"] == node["count"], node
    assert without == {"a//", "a/*", "//", "/*", "*/*"}


def test_a_level_of_the_tree_comes_page_by_page(client: TestClient, add: Add):
    for number in range(5):
        add(f"text {number}", f"proj/{number}")
    answer = client.get("/folders?below=proj&offset=3&limit=2").json()
    assert ([one["name"] for one in answer["folders"]], answer["total"]) == (["3", "4"], 5)
    assert client.get("/folders?below=proj&offset=5").json() == {"folders": [], "total": 5}


def test_renaming_moves_all_memories_of_a_folder_and_no_others(client: TestClient, add: Add):
    inside = {add("red", "proj/a"): "work/a", add("green", "proj"): "work", add("blue", "proj/b/c"): "work/b/c"}
    outside = {add("black", "projects/a"): "projects/a", add("white", "x/proj/a"): "x/proj/a"}
    archived = add("grey", "proj/a")
    client.patch(f"/memory/{archived}", json={"archived": True})
    answer = rename(client, "proj/", "work")
    assert answer.json() == {"success": True, "updated": 4, "errors": 0, "old_name": "proj", "new_name": "work"}
    assert {id_: source_of(client, id_) for id_ in (*inside, *outside)} == {**inside, **outside}
    assert source_of(client, archived) == "work/a"
    first = next(iter(inside))
    last = client.get(f"/memory/{first}/history").json()["changes"][-1]
    assert (last["action"], last["before"]["source"], last["after"]["source"]) == ("update", "proj/a", "work/a")
    found = client.post("/search", json={"query": "red", "source_prefix": "work/"}).json()["results"]
    assert found[0]["id"] == first
    assert client.post("/search", json={"query": "red", "source_prefix": "proj/"}).json()["results"] == []
    assert client.app.state.service.engine.check() == []  # type: ignore[attr-defined]


def test_renaming_into_an_existing_folder_merges_them_and_leaves_taken_keys(client: TestClient, add: Add):
    add("red", "new/a")
    for source in ("new/rota", "old/rota"):
        client.post("/memory/upsert", json={"text": f"who is on call: {source}", "source": source, "key": "on-call"})
    moved = add("blue", "old/a")
    too_long = add("green", "old/" + "x" * 495)
    answer = rename(client, "old", "longer").json()
    assert (answer["updated"], answer["errors"]) == (2, 1)
    assert source_of(client, too_long).startswith("old/")
    answer = rename(client, "longer", "new").json()
    assert (answer["updated"], answer["errors"]) == (1, 1)
    assert source_of(client, moved) == "new/a"
    assert folders_of(client) == {"longer": 1, "new": 3, "old": 1}


def test_a_folder_can_be_renamed_into_itself(client: TestClient, add: Add):
    ids = [add(f"text {n}", "a/b") for n in range(3)]
    assert rename(client, "a", "a/old").json()["updated"] == 3
    assert {source_of(client, id_) for id_ in ids} == {"a/old/b"}


def test_a_large_folder_is_renamed_by_a_job_in_steps(client: TestClient, add: Add, monkeypatch):
    monkeypatch.setattr(folders, "JOB_ABOVE_MEMORIES", 1)
    monkeypatch.setattr("souvenir.memories.folders.MOVED_AT_ONCE", 2)
    for n in range(5):
        add(f"text {n}", f"old/{n}")
    answer = client.post("/folders/rename?wait_s=50", json={"old_prefix": "old", "new_prefix": "old/er"})
    assert (answer.status_code, answer.json()["updated"]) == (200, 5)
    [job] = client.get("/jobs").json()["jobs"]
    assert (job["kind"], job["done"], job["total"]) == ("rename_folder", 5, 5)


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [("none", "x", 404), ("a", "a", 422), ("a", "person/ana", 422), ("project/x", "a", 422), ("a", "/", 422)],
)
def test_a_rename_that_cannot_be_done_changes_nothing(client: TestClient, add: Add, old: str, new: str, status: int):
    add("red", "a/b"), add("blue", "project/x")
    assert rename(client, old, new).status_code == status
    assert folders_of(client) == {"a": 1, "project": 1}


def test_a_scoped_key_lists_its_folders_only_and_renames_none(start: Start):
    client = start(api_key=KEY)
    admin = {"X-API-Key": KEY}
    for source in ("proj/a", "proj/ab", "other/a"):
        client.post("/memory/add", json={"text": f"text of {source}", "source": source}, headers=admin)
    body = {"name": "scoped", "role": "read-write", "prefixes": ["proj/a"]}
    scoped = {"X-API-Key": client.post("/api/keys", json=body, headers=admin).json()["key"]}
    assert folders_of(client, headers=scoped) == {"proj": 1}
    below = client.get("/folders?below=proj", headers=scoped).json()
    assert below == {"folders": [{"name": "a", "path": "proj/a", "below": "proj/a", "count": 1, "own": 1}], "total": 1}
    answer = client.post("/folders/rename", json={"old_name": "proj", "new_name": "x"}, headers=scoped)
    assert answer.status_code == 403
    assert folders_of(client, headers=admin) == {"other": 1, "proj": 2}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", ["/promotions", "/promotions/7", "/promotions/7/approve"])
def test_promotions_are_404_with_the_routes_that_replace_them(client: TestClient, method: str, path: str):
    answer = client.request(method, path)
    assert answer.status_code == 404
    assert "POST /memory/add" in answer.json()["detail"]


@pytest.mark.parametrize("name", ["../x", "a/../b", " "])
def test_a_folder_gets_no_name_that_keys_of_sources_cannot_reach(client: TestClient, add: Add, name: str):
    kept = add("red", "crew/a")
    assert rename(client, "crew", name).status_code == 422
    assert source_of(client, kept) == "crew/a"
