"""Exports and imports over HTTP: content, permissions and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.core.types import Scope
from souvenir.transfer.import_job import ImportHandler
from tests.api.conftest import KEY, Add, Start, keeps_backups
from tests.transfer.stores import lines_of, ndjson

PATIENCE_S = 30.0
ENV = {"X-API-Key": KEY}
AT = "2023-05-08T09:30:00.000000+00:00"
LINES = {"Content-Type": "application/x-ndjson"}


class Unread:
    """A body that must not be read."""

    def __iter__(self) -> Iterator[bytes]:
        raise AssertionError("the body was read")


def exported(client: TestClient, headers: dict[str, str] | None = None, **query: Any) -> list[dict[str, Any]]:
    response = client.get("/export", params=query, headers=headers)
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"] == "application/x-ndjson"
    return lines_of(response.content)


def imported(client: TestClient, body: bytes, headers: dict[str, str] | None = None, **query: Any) -> dict[str, Any]:
    response = client.post("/import", content=body, params=query, headers={**LINES, **(headers or {})})
    assert response.status_code == 200, response.text
    report: dict[str, Any] = response.json()
    return report


def test_an_export_has_the_header_and_the_fields_of_the_wire_in_a_fixed_order(client: TestClient, add: Add):
    add("Ann plays the violin", "talk/ann", category="hobby", document_at="2023-01-02", entity_key="k")
    [header, line] = exported(client, source="talk", since="2023-01-01", until="2023-01-02")
    assert list(header) == ["_header", "exported_at", "source_filter", "since", "until", "count", "version"]
    assert (header["_header"], header["count"], header["version"]) == (True, 1, "4.2.0")
    assert (header["source_filter"], header["since"]) == ("talk", "2023-01-01T00:00:00.000000+00:00")
    fields = ["text", "source", "created_at", "updated_at", "custom_fields"]
    own = ["id", "key", "document_at", "pinned", "archived", "origin_class", "valid_to"]
    assert list(line) == [*fields, *own, "links", "tags", "facts"]
    record = client.get(f"/memory/{line['id']}").json()
    assert {name: line[name] for name in fields[:4]} == {name: record[name] for name in fields[:4]}
    assert (line["custom_fields"], line["key"]) == ({"category": "hobby"}, "k")


def test_an_export_is_filtered_like_a_list_and_a_search(client: TestClient, add: Add):
    for source, at in (("proj/a", "2023-01-01"), ("proj/ab", "2023-02-01"), ("proj/a/b", "2023-03-01")):
        add(f"a text of {source}", source, document_at=at)

    def sources(**query: Any) -> list[str]:
        [header, *lines] = exported(client, **query)
        assert header["count"] == len(lines)
        return [line["source"] for line in lines]

    assert sources(source="proj/a") == ["proj/a", "proj/ab", "proj/a/b"]
    assert sources(source="proj/a", source_boundary=True) == ["proj/a", "proj/a/b"]
    assert sources(since="2023-02-01", until="2023-02-01") == ["proj/ab"]
    assert sources(source="nowhere") == []
    assert client.get("/export", params={"since": "yesterday"}).status_code == 422


def test_an_export_of_an_empty_namespace_is_a_header(client: TestClient):
    [header] = exported(client, {"X-Namespace": "nobody"})
    assert header["count"] == 0


def test_an_export_can_be_imported_elsewhere(start: Start, client: TestClient, add: Add, tmp_path):
    old = add("Ann plays the violin")
    client.post(f"/memory/{old}/supersede", json={"text": "Ann plays the viola"})
    add("日本の首都は東京です", "ü", pinned=True)
    left = client.get("/export", params={"history": True}).content
    other = start(data_dir=tmp_path / "other")
    report = imported(other, left)
    assert (report["imported"], report["links"], report["errors"]) == (3, 1, [])
    if keeps_backups(other):
        assert report["backup"].startswith("pre_import_")
    came = [line | {"history": None} for line in exported(other, history=True)[1:]]
    assert came == [line | {"history": None} for line in lines_of(left)[1:]]
    found = other.post("/search", json={"query": "who plays the viola", "k": 1}).json()["results"]
    assert [hit["text"] for hit in found] == ["Ann plays the viola"]


def test_an_import_takes_a_remap_and_needs_no_backup(client: TestClient):
    report = imported(
        client, ndjson({"text": "x", "source": "old/a"}), no_backup=True, source_remap="old/=new/team", strategy="smart"
    )
    assert (report["imported"], report["backup"]) == (1, None)
    assert [line["source"] for line in exported(client)[1:]] == ["new/team/a"]
    assert client.get("/backups").json()["count"] == 0


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"strategy": "smart+extract"}, 501, "extraction_not_configured"),
        ({"strategy": "smart extract"}, 501, "extraction_not_configured"),
        ({"strategy": "merge"}, 400, "unknown_strategy"),
        ({"source_remap": "old"}, 422, "invalid_request"),
        ({"source_remap": "=new"}, 422, "invalid_request"),
        ({"source_remap": "old=/"}, 422, "invalid_request"),
        ({"wait_s": 51}, 422, "invalid_request"),
    ],
)
def test_an_import_that_cannot_be_done_is_refused_before_its_body_is_read(client: TestClient, query, status, code):
    response = client.post("/import", content=Unread(), params=query, headers=LINES)
    assert (response.status_code, response.json()["code"]) == (status, code)


@pytest.mark.parametrize("sent", [None, "text/plain", "multipart/form-data; boundary=x", "application/json"])
def test_an_import_of_another_type_is_415_before_its_body_is_read(client: TestClient, sent: str | None):
    response = client.post("/import", content=Unread(), headers={"Content-Type": sent} if sent else {})
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")
    assert "application/x-ndjson" in response.json()["detail"]


def test_the_type_of_an_import_may_have_parameters_and_capitals(client: TestClient):
    headers = {"Content-Type": "Application/X-NDJSON; charset=utf-8"}
    assert imported(client, ndjson({"text": "x", "source": "s"}), headers)["imported"] == 1


def test_a_file_of_a_newer_format_is_refused_whole(client: TestClient):
    newer = {"_header": True, "version": "5.1.0", "count": 1}
    response = client.post("/import", content=ndjson(newer, {"text": "x", "source": "s"}), headers=LINES)
    assert response.status_code == 422
    assert "5.1.0" in response.json()["detail"]
    assert exported(client)[0]["count"] == 0
    assert imported(client, ndjson({**newer, "version": "4.9.9"}, {"text": "x", "source": "s"}))["imported"] == 1


def test_an_import_has_a_separate_size_limit(start: Start, tmp_path):
    client = start(max_body_bytes=2_000, import_max_bytes=20_000)
    body = ndjson(*({"text": f"a text of number {number}", "source": "s"} for number in range(100)))
    assert 2_000 < len(body) < 20_000
    assert imported(client, body)["imported"] == 100
    for content in (body * 5, iter([body] * 5)):
        response = client.post("/import", content=content, headers=LINES)
        assert (response.status_code, response.json()["code"]) == (413, "payload_too_large")
    assert client.post("/memory/add", json={"text": "x" * 3_000, "source": "s"}).status_code == 413
    assert list((tmp_path / "data" / "imports").iterdir()) == []


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Imports stand still until it is set."""
    let_go = Event()
    run: Callable[..., Any] = ImportHandler.run

    def held_run(*args: Any) -> Any:
        assert let_go.wait(PATIENCE_S)
        return run(*args)

    monkeypatch.setattr(ImportHandler, "run", held_run)
    return let_go


def test_an_import_that_takes_longer_is_a_job(client: TestClient, held: Event):
    response = client.post("/import", content=ndjson({"text": "x", "source": "s"}), params={"wait_s": 0}, headers=LINES)
    assert response.status_code == 202
    url = response.json()["result_url"]
    assert client.get(url).json()["status"] in {"queued", "running"}
    held.set()
    service = client.app.state.service  # type: ignore[attr-defined]  # an application
    service.jobs.wait(response.json()["job_id"], PATIENCE_S)
    job = client.get(url).json()
    assert (job["status"], job["done"], job["total"]) == ("completed", 1, 1)
    assert job["result"]["imported"] == 1


def test_too_many_exports_are_refused(start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("souvenir.transfer.export.MAX_OPEN", 0)
    response = start().get("/export")
    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) > 0


# --- scopes --------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(start: Start) -> TestClient:
    """A service with memories of two projects, some of which were moved or merged from one into the other."""
    client = start(api_key=KEY)
    client.headers.update(ENV)
    for text, source in (("mine", "proj/a"), ("a secret", "proj/ab"), ("moved", "proj/ab")):
        assert client.post("/memory/add", json={"text": text, "source": source}).status_code == 200
    client.patch("/memory/3", json={"text": "not a secret", "source": "proj/a/b"})
    client.post("/memory/merge", json={"ids": [1, 2], "merged_text": "both", "source": "proj/a"})
    return client


def key_for(client: TestClient, role: str) -> dict[str, str]:
    made = client.post("/api/keys", json={"name": role, "role": role, "prefixes": ["proj/a"]})
    assert made.status_code == 200, made.text
    return {"X-API-Key": made.json()["key"]}


def test_a_limited_key_exports_only_its_sources(guarded: TestClient):
    reader = key_for(guarded, "read-only")
    [header, *lines] = exported(guarded, reader, history=True)
    assert header["count"] == 3
    assert [line["text"] for line in lines] == ["mine", "not a secret", "both"]
    assert [link["to_id"] for link in lines[2]["links"]] == [1]
    assert lines[2]["custom_fields"] == {"source_memory_ids": [1]}
    assert [entry["before"] for entry in lines[1]["history"]] == [None, None]
    assert [entry["after"] is None for entry in lines[1]["history"]] == [True, False]
    assert [entry["after"]["metadata"] for entry in lines[2]["history"]] == [{"source_memory_ids": [1]}]
    everything = json.dumps(lines)
    assert "secret" not in everything.replace("not a secret", "")
    assert "proj/ab" not in everything
    assert exported(guarded, reader, source="proj/ab")[0]["count"] == 0


def test_a_key_imports_into_its_own_sources_only(guarded: TestClient):
    writer = key_for(guarded, "read-write")
    state = {"text": "x", "source": "proj/ab", "metadata": {}}
    history = [{"action": "add", "actor": "a", "at": AT, "before": None, "after": {**state, "source": "proj/a"}}]
    body = ndjson(
        {"text": "one", "source": "proj/a/new"},
        {"text": "two", "source": "proj/ab"},
        {"text": "three", "source": "proj/a/../ab"},
        {"text": "four", "source": "proj/a", "history": history},
    )
    for strategy in ("add", "smart"):
        report = imported(guarded, body, writer, strategy=strategy)
        assert [error["line"] for error in report["errors"]] == [2, 3, 4]
        assert report["imported"] + report["skipped"] == 1
    report = imported(guarded, ndjson({"text": "five", "source": "elsewhere"}), writer, source_remap="elsewhere=proj/a")
    assert report["imported"] == 1
    # What another scope holds is neither found nor changed, however near it is.
    guarded.post("/memory/add", json={"text": "hidden from others", "source": "proj/ab"})
    again = imported(guarded, ndjson({"text": "hidden from others", "source": "proj/a"}), writer, strategy="smart")
    assert (again["imported"], again["skipped"]) == (1, 0)


def test_only_an_admin_brings_histories_which_name_others_and_keeps_ids(guarded: TestClient):
    writer = key_for(guarded, "read-write")
    forged = {"action": "delete", "actor": "key:of-an-admin", "at": AT}
    lines = [{"text": "forged", "source": "proj/a", "history": [forged]}]
    report = imported(guarded, ndjson(*lines, {"text": "far", "source": "proj/a/far", "id": 4_000_000}), writer)
    assert (report["imported"], [error["line"] for error in report["errors"]]) == (1, [1])
    assert "of-an-admin" not in guarded.get("/audit?limit=500").text
    [line] = exported(guarded, writer, source="proj/a/far")[1:]
    assert line["id"] < 4_000_000


def test_the_jobs_of_a_key_end_when_it_is_revoked_or_narrowed(guarded: TestClient, held: Event):
    service = guarded.app.state.service  # type: ignore[attr-defined]  # an application
    bodies = {name: ndjson({"text": f"of {name}", "source": f"proj/a/{name}"}) for name in ("one", "two", "three")}
    jobs: dict[str, str] = {}
    for name, body in bodies.items():
        made = guarded.post("/api/keys", json={"name": name, "role": "read-write", "prefixes": ["proj/a"]}).json()
        answer = guarded.post("/import?wait_s=0", content=body, headers={**LINES, "X-API-Key": made["key"]})
        jobs[name] = answer.json()["job_id"]
        if name == "one":
            assert guarded.delete(f"/api/keys/{made['id']}").status_code == 200
        if name == "two":
            assert guarded.patch(f"/api/keys/{made['id']}", json={"prefixes": ["proj/a/two"]}).status_code == 200
    held.set()
    ends = {name: service.jobs.wait(job_id, PATIENCE_S).status for name, job_id in jobs.items()}
    assert ends == {"one": "cancelled", "two": "cancelled", "three": "completed"}
    assert guarded.get("/memories/count", params={"source": "proj/a/one"}).json() == {"count": 0}


def test_an_import_whose_key_is_revoked_while_its_body_arrives_is_refused(guarded: TestClient):
    made = guarded.post("/api/keys", json={"name": "w", "role": "read-write", "prefixes": ["proj/a"]}).json()
    service = guarded.app.state.service  # type: ignore[attr-defined]  # an application

    def body() -> Iterator[bytes]:
        yield ndjson({"text": "one", "source": "proj/a/late"})
        service.keys.revoke(made["id"], by=Scope())

    response = guarded.post("/import", content=body(), headers={**LINES, "X-API-Key": made["key"]})
    assert response.status_code == 401
    assert guarded.get("/memories/count", params={"source": "proj/a/late"}).json() == {"count": 0}
    assert guarded.get("/jobs").json()["total"] == 0


def test_a_reader_cannot_import_and_only_an_admin_builds(guarded: TestClient):
    reader, writer = key_for(guarded, "read-only"), key_for(guarded, "read-write")
    assert guarded.post("/import", content=b"", headers=reader).status_code == 403
    assert guarded.post("/index/build", headers=writer).status_code == 403
    assert guarded.post("/index/build").status_code == 409


def test_an_unauthenticated_body_is_not_read(start: Start):
    assert start(api_key=KEY).post("/import", content=Unread()).status_code == 401


@pytest.mark.parametrize(("said", "expected"), [(None, "tool"), ("user", "tool"), ("recalled", "recalled")])
def test_a_smart_import_makes_no_memory_more_trusted(client: TestClient, add: Add, said: str | None, expected: str):
    memory_id = add("the disk of the second runner is full", "ci", origin_class="tool")
    line = {"text": "the disk of the second runner is empty", "source": "ci", "created_at": "2100-01-01"}
    report = imported(client, ndjson(line if said is None else {**line, "origin_class": said}), strategy="smart")
    assert report["updated"] == 1
    record = client.get(f"/memory/{memory_id}").json()
    assert (record["text"], record["origin_class"]) == (line["text"], expected)


def test_an_import_brings_the_class_that_a_line_names(client: TestClient):
    lines: list[dict[str, Any]] = [{"text": "one", "source": "a", "origin_class": "inferred"}]
    lines += [{"text": "two", "source": "a", "custom_fields": {"origin_class": "document"}}]
    lines += [{"text": "three", "source": "a"}, {"text": "four", "source": "a", "origin_class": "unknown"}]
    report = imported(client, ndjson(*lines))
    assert (report["imported"], [error["line"] for error in report["errors"]]) == (3, [4])
    memories = client.get("/memories").json()["memories"]
    assert [(one["text"], one["origin_class"]) for one in memories] == [
        ("one", "inferred"),
        ("two", "document"),
        ("three", "user"),
    ]
