"""How Mem0's routes store memories beside those of other routes: names, marks of the service, and other values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from app import create_app
from souvenir.core.settings import Settings
from tests.api.conftest import BASE_URL, KEY
from tests.compat.mem0.test_routes import ENV
from tests.fake_embedder import FakeEmbedder, fake_of


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("stored"), api_key=SecretStr(KEY), auth_rate_limit=10**6)
    with TestClient(create_app(settings, FakeEmbedder(), fake_of), base_url=BASE_URL, headers=ENV) as running:
        yield running


def add(client: TestClient, agent: str, text: str, **more: Any) -> str:
    body = {"messages": [{"role": "user", "content": text}], "agent_id": agent, **more}
    answer = client.post("/v3/memories/add/", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["results"][0]["id"])


def listed(client: TestClient, agent: str, **filters: Any) -> list[dict[str, Any]]:
    answer = client.post("/v3/memories/", json={"filters": {"agent_id": agent, **filters}})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def record(client: TestClient, agent: str, id_: str) -> dict[str, Any]:
    shown: dict[str, Any] = client.get(f"/memory/{id_}", headers={"X-Namespace": agent}).json()
    return shown


def with_policy(client: TestClient, agent: str, **policy: Any) -> None:
    """Create an agent with a privacy policy."""
    assert client.post("/agents", json={"name": agent}).status_code in (200, 201)
    assert client.put(f"/agents/{agent}/policy", json=policy).status_code == 200


@pytest.mark.parametrize("action", ["redact", "reject"])
def test_a_policy_for_personal_data_leaves_the_names_of_entities(client, action):
    agent = f"personal-{action}"
    with_policy(client, agent, pii=action)
    ann, ben = "ann@example.com", "ben@example.com"
    for user in (ann, ben):
        add(client, agent, f"tea of {user[:3]}", user_id=user, app_id=f"app {user}", run_id=f"run {user}")
    [only] = listed(client, agent, user_id=ann)
    assert (only["user_id"], only["app_id"], only["run_id"]) == (ann, f"app {ann}", f"run {ann}")
    assert client.put(f"/v1/memories/{only['id']}/", json={"metadata": {"n": 1}}).json()["user_id"] == ann
    client.delete(f"/v2/entities/user/{ann}/")
    assert [one["memory"] for one in listed(client, agent)] == ["tea of ben"]


def test_a_policy_for_personal_data_redacts_everything_else_in_metadata(client):
    with_policy(client, "other-data", pii="redact")
    mail = "ann@example.com"
    metadata = {"user_id": "x " * 150 + mail, "deep": {"user_id": mail}, "mail": mail}
    body = {"text": "tea", "source": "notes", "metadata": metadata}
    stored = client.post("/memory/add", json=body, headers={"X-Namespace": "other-data"}).json()
    assert "@" not in str(record(client, "other-data", stored["id"]))


def test_metadata_of_an_update_neither_replaces_nor_removes_the_marks_of_the_service(client):
    with_policy(client, "marks", hidden_topics=["health"], pii="flag")
    id_ = add(client, "marks", "My diagnosis is diabetes, write to ann@example.com", metadata={"color": "red"})
    before = record(client, "marks", id_)
    marks = {name: before[name] for name in ("sensitive_topics", "sensitive_data")}
    assert marks["sensitive_topics"] == ["health"]
    for metadata in ({"color": "blue"}, {}, {"sensitive_topics": [], "sensitive_data": ["none"], "protected": True}):
        changed = client.put(f"/v1/memories/{id_}/", json={"metadata": metadata}).json()
        assert changed["metadata"] == metadata
        after = record(client, "marks", id_)
        assert {name: after[name] for name in marks} == marks
        assert after.get("protected") is None
    assert "diabetes" not in client.post("/context/marks", json={"query": "diagnosis diabetes"}).text


def test_a_document_of_the_memory_tool_stays_protected(client):
    body = {"command": "create", "path": "/memories/a.md", "file_text": "tea notes"}
    client.post("/agents/files/memory-tool", json=body)
    [file] = listed(client, "files")
    client.put(f"/v1/memories/{file['id']}/", json={"metadata": {"n": 1}})
    assert record(client, "files", file["id"])["protected"] is True


@pytest.mark.parametrize("value", [5, 20_300_101, {"a": 1}, ["a"], True], ids=str)
def test_values_of_another_kind_under_the_names_of_entities_are_not_shown(client, value):
    agent = f"kinds-{type(value).__name__}-{value}".replace("/", "")
    metadata = dict.fromkeys(("user_id", "app_id", "run_id", "expiration_date"), value)
    headers = {"X-Namespace": agent}
    client.post("/memory/add", json={"text": "green tea", "source": "notes", "metadata": metadata}, headers=headers)
    [one] = listed(client, agent)
    assert [one[name] for name in metadata] == [None] * 4
    found = client.post("/v3/memories/search/", json={"query": "tea", "filters": {"agent_id": agent}})
    assert [hit["id"] for hit in found.json()["results"]] == [one["id"]]
    assert client.get(f"/v1/memories/{one['id']}/history/").status_code == 200


def test_a_batch_changes_a_memory_once(client):
    id_ = add(client, "batch", "green tea", metadata={"n": 0})
    changes = [{"memory_id": id_, "metadata": {"a": 1}}, {"memory_id": id_, "metadata": {"b": 2}}]
    refused = client.put("/v1/batch/", json={"memories": changes})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "A batch changes each memory once; merge the changes of a memory into one"
    assert client.get(f"/v1/memories/{id_}/").json()["metadata"] == {"n": 0}
