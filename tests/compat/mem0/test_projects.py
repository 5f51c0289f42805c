"""Mem0's projects: namespaces, their extraction profile, their keys, and their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.conftest import KEY

ORGANISATION = "/api/v1/orgs/organizations/souvenir/projects/"


def refused(call: Any) -> Any:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the caller looks at it
        call()
    return raised.value


def test_a_project_is_created_as_an_agent_with_its_description(client, running):
    everyone = client("admin")
    made = everyone.project.create("project-new", "What it is for")
    assert (made["project_id"], made["name"], made["description"]) == ("project-new", "project-new", "What it is for")
    with running.http() as http:
        assert http.get("/agents/project-new").json()["metadata"] == {"description": "What it is for"}
    own = client(running.new_key(role="read-only", namespace="project-new"))
    assert own.project.get(fields=["name", "description", "unknown"]) == {
        "name": "project-new",
        "description": "What it is for",
    }
    assert everyone.project.create("project-new", "again")["description"] == "What it is for"


def test_a_project_that_is_no_agent_has_no_description(client):
    found = client("beta").project.get()
    assert (found["name"], found["description"], found["created_at"]) == ("beta", None, None)
    assert (found["custom_categories"], found["multilingual"], found["decay"]) == ([], True, False)


def test_custom_instructions_are_those_of_the_extraction_profile(client, running):
    everyone = client("admin")
    said = everyone.project.update(custom_instructions="Only tea")["message"]
    assert said.endswith("its instructions take effect when a language model is configured (EXTRACT_PROVIDER)")
    with running.http() as http:
        assert http.get("/extraction/profiles/mem0/").json()["rules"]["custom_instructions"] == "Only tea"
        http.put("/extraction/profiles/mem0/", json={"rules": {"custom_instructions": "Only chess"}})
    assert everyone.project.get()["custom_instructions"] == "Only chess"
    everyone.project.update(custom_instructions="", multilingual=True, decay=False, custom_categories=[])
    assert everyone.project.get()["custom_instructions"] is None


def test_only_an_admin_sees_and_sets_what_changes_extractions(client):
    alpha = client("alpha")
    assert "custom_instructions" not in alpha.project.get()
    for call in (
        lambda: alpha.project.update(custom_instructions="x"),
        alpha.project.get_members,
        lambda: alpha.project.add_member("a@example.com"),
        lambda: alpha.update_profile_settings(enabled=True),
    ):
        assert refused(call).error_code == "HTTP_403"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"custom_categories": [{"tea": "Drinks"}]}, "categories are tags"),
        ({"multilingual": False}, "nothing is translated"),
        ({"decay": True}, "recency_half_life_days"),
        ({"agent_custom_instructions": "x"}, "set custom_instructions"),
    ],
    ids=str,
)
def test_a_setting_without_an_effect_is_refused_and_nothing_is_set(client, mem0, setting, said):
    everyone = client("admin")
    error = refused(lambda: everyone.project.update(**{"custom_instructions": "not set", **setting}))
    assert (type(error), error.error_code) == (mem0.exceptions.MemoryError, "HTTP_501")
    assert said in error.message
    assert everyone.project.get()["custom_instructions"] != "not set"


def test_the_older_method_refuses_what_it_cannot_set(client):
    for setting in ({"memory_depth": "deep"}, {"usecase_setting": "x"}):
        assert refused(lambda setting=setting: client("admin").update_project(**setting)).error_code == "HTTP_501"
    error = refused(lambda: client("admin").update_project(custom_instructions="x" * 4_001))
    assert error.error_code == "HTTP_422"


def test_the_members_of_a_project_are_its_keys(client, running):
    for role in ("read-only", "read-write"):
        running.new_key(role=role, namespace="default", prefixes=["notes"])
    members = client("admin").project.get_members()["members"]
    with running.http() as http:
        keys = {key["id"]: key for key in http.get("/api/keys").json()["keys"]}
    assert {keys[one["user_id"]]["namespace"] for one in members} <= {None, "default"}
    assert {one["role"] for one in members if keys[one["user_id"]]["namespace"] == "default"} == {"READER", "OWNER"}
    assert "key" not in str([list(one) for one in members])


def test_deleting_a_project_deletes_everything_in_it_and_nothing_else(client, running):
    key = running.new_key(role="read-write", namespace="project-gone")
    mem0 = client(key)
    [id_] = [one["id"] for one in mem0.add("the zebraquartz", user_id="ann")["results"]]
    made = mem0.create_webhook("http://127.0.0.1:9/x", "x", "project-gone", ["memory_add"])
    with running.http(key) as http:
        http.patch(f"/memory/{id_}", json={"pinned": True})
        http.post("/agents/project-gone/messages", json={"role": "user", "content": "a message"})
    client("beta").add("kept", user_id="project-user")
    assert mem0.project.delete()["message"] == "Project deleted successfully"
    assert mem0.get_all()["count"] == 0
    assert made["webhook_id"] not in str(mem0.get_webhooks("project-gone"))
    assert client("beta").get_all(filters={"user_id": "project-user"})["count"] == 1
    with running.http() as http:
        assert http.get("/agents/project-gone").status_code == 404


@pytest.mark.parametrize(
    "ask",
    [
        lambda http, path: http.get(path),
        lambda http, path: http.patch(path, json={"custom_instructions": "x"}),
        lambda http, path: http.delete(path),
        lambda http, path: http.get(f"{path}members/"),
        lambda http, path: http.post(ORGANISATION, json={"name": path.split("/")[-2]}),
    ],
    ids=["get", "update", "delete", "members", "create"],
)
def test_a_key_reaches_its_own_project_only(running, ask: Callable[..., Any]):
    with running.http(running.keys["beta"]) as http:
        for name in ("alpha", "missing"):
            assert ask(http, f"{ORGANISATION}{name}/").status_code == 403
    with running.http(running.new_key(role="read-write", namespace="alpha", prefixes=["mem0"])) as http:
        assert http.delete(f"{ORGANISATION}alpha/").status_code == 403
    with running.http(KEY) as http:
        assert http.get(f"{ORGANISATION}alpha/").status_code == 200
