"""Profiles of users without a language model: settings, the list of memories, and jobs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compat.mem0.conftest import Running

SETTINGS = "/v2/profiles/settings/"
RECORDS = {
    "properties": {
        "known": {
            "type": "array",
            "items": {"type": "object", "properties": {"memory": {"type": "string"}, "created_at": {"type": "string"}}},
        }
    }
}


def refused(call: Any) -> Any:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the caller looks at it
        call()
    return raised.value


def set_up(running: Running, agent: str, **user: Any) -> str:
    """Enable the profiles of an agent; return a key of it."""
    with running.http() as http:
        body = {"enabled": True, **({"entities": {"user": user}} if user else {})}
        answer = http.post(SETTINGS, json=body, headers={"X-Namespace": agent})
        assert answer.status_code == 200, answer.text
    return running.new_key(role="read-write", namespace=agent)


def test_profiles_are_not_enabled_before_an_admin_enables_them(client, running, mem0):
    own = client(running.new_key(role="read-write", namespace="profiles-off"))
    own.add("I like chess", user_id="ann")
    assert own.get_profile_settings() == {
        "enabled": False,
        "capabilities": {"model": False},
        "entities": {"user": {"schema": None, "custom_instructions": None}},
    }
    found = own.get_profile("ann")
    assert (found["status"], found["profile"], found["entity_id"]) == ("not_enabled", {}, "ann")
    assert isinstance(refused(lambda: own.get_profile("nobody")), mem0.exceptions.MemoryNotFoundError)
    for call in (lambda: own.generate_profile("ann"), own.sample_profiles):
        assert isinstance(refused(call), mem0.exceptions.ValidationError)


def test_a_profile_is_made_of_the_memories_of_the_moment(client, running, mem0):
    own = client(set_up(running, "profiles-on"))
    added = own.add([{"role": "user", "content": text} for text in ("I like chess", "zebraquartz")], user_id="ann")
    own.add("I like tea", user_id="ben")
    assert own.get_profile("ann")["profile"] == {"memories": ["zebraquartz", "I like chess"]}
    own.delete(added["results"][1]["id"])
    found = own.get_profile("ann")
    assert (found["status"], found["profile"]) == ("succeeded", {"memories": ["I like chess"]})
    own.delete_users(user_id="ann")
    assert isinstance(refused(lambda: own.get_profile("ann")), mem0.exceptions.MemoryNotFoundError)
    assert isinstance(refused(lambda: own.get_profile("*")), mem0.exceptions.MemoryNotFoundError)


def test_a_profile_has_the_schema_of_the_settings(client, running):
    own = client(set_up(running, "profiles-schema", schema=RECORDS))
    own.add("I like chess", user_id="ann", timestamp=1_700_000_000)
    assert own.get_profile_settings()["entities"]["user"]["schema"] == RECORDS
    [known] = own.get_profile("ann")["profile"]["known"]
    assert (known["memory"], known["created_at"][:10]) == ("I like chess", "2023-11-14")


def test_settings_are_kept_unless_they_are_given(client, running):
    everyone = client("admin")
    everyone.update_profile_settings(schema=RECORDS, custom_instructions="Be short")
    everyone.update_profile_settings(enabled=True)
    shown = everyone.get_profile_settings()
    assert (shown["enabled"], shown["entities"]["user"]) == (
        True,
        {"schema": RECORDS, "custom_instructions": "Be short"},
    )
    with running.http() as http:
        http.put("/extraction/profiles/mem0/", json={"max_facts": 7})
        assert http.get("/extraction/profiles/mem0/").json()["max_facts"] == 7
    assert everyone.update_profile_settings(schema=None, enabled=False) == {
        "enabled": False,
        "capabilities": {"model": False},
        "entities": {"user": {"schema": None, "custom_instructions": "Be short"}},
    }
    assert refused(everyone.update_profile_settings).error_code == "HTTP_400"


def test_a_schema_that_needs_a_model_is_refused_without_one_and_nothing_is_set(client):
    everyone = client("admin")
    before = everyone.get_profile_settings()
    schema = {"properties": {"city": {"type": "string", "description": "Where they live"}}}
    assert refused(lambda: everyone.update_profile_settings(schema=schema)).error_code == "HTTP_501"
    assert refused(lambda: everyone.update_profile_settings(schema={"properties": {}})).error_code == "HTTP_422"
    assert everyone.get_profile_settings() == before


def test_jobs_name_the_users_whose_profiles_can_be_read(client, running, mem0):
    own = client(set_up(running, "profiles-jobs"))
    for user in ("cat", "ann", "ben"):
        own.add("I like chess", user_id=user)
    one = own.generate_profile("ann", idempotency_key="once")
    assert (one["status"], one["entity_ids"], one["operation"]) == ("succeeded", ["ann"], "trigger")
    sampled = own.sample_profiles(limit=2)
    assert (sampled["sampled"], sampled["entity_ids"]) == (2, ["ann", "ben"])
    for job in (sampled["status_url"], sampled["job_id"]):
        found = own.get_profile_job(job)["job"]
        assert (found["status"], found["total"], found["succeeded"], found["failed"]) == ("succeeded", 2, 2, 0)
    assert isinstance(refused(lambda: own.generate_profile("nobody")), mem0.exceptions.MemoryNotFoundError)
    for missing in ("trigger-x", "trigger-2", "sample-11", "sample-99"):
        error = refused(lambda missing=missing: own.get_profile_job(missing))
        assert isinstance(error, mem0.exceptions.MemoryNotFoundError)
    assert isinstance(refused(lambda: own.sample_profiles(limit=11)), mem0.exceptions.ValidationError)


def test_a_key_sees_the_profiles_of_its_own_agent_only(client, running, mem0):
    own, other = client(set_up(running, "profiles-mine")), client(set_up(running, "profiles-theirs"))
    own.add("only mine", user_id="ann")
    assert isinstance(refused(lambda: other.get_profile("ann")), mem0.exceptions.MemoryNotFoundError)
    assert isinstance(refused(lambda: other.generate_profile("ann")), mem0.exceptions.MemoryNotFoundError)
    assert other.sample_profiles()["entity_ids"] == []
