"""Extraction profiles over HTTP: create, merge, list, delete; per namespace, and for admins only."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

WITHOUT = {
    "mode": "standard",
    "enabled": True,
    "max_facts": None,
    "max_fact_chars": None,
    "rules": {"always_remember": [], "never_remember": [], "custom_instructions": ""},
    "ttl_days": None,
    "confidence_threshold": None,
    "min_age_days": 0,
    "confidence_half_life_days": 90,
    "half_life_days": 30,
    "single_call": False,
}


def put(client: TestClient, prefix: str, **fields: object) -> dict[str, object]:
    response = client.put(f"/extraction/profiles/{prefix}", json=fields)
    assert response.status_code == 200, response.text
    answer: dict[str, object] = response.json()
    return answer


def test_a_profile_is_made_read_listed_and_deleted(client: TestClient):
    assert client.get("/extraction/profiles").json() == []
    made = put(client, "wip/", ttl_days=30, mode="aggressive")
    assert made == {**WITHOUT, "source_prefix": "wip/", "ttl_days": 30, "mode": "aggressive"}
    assert client.get("/extraction/profiles/wip/").json() == made
    second = put(client, "a/b/", max_facts=3)
    assert client.get("/extraction/profiles").json() == [second, made]
    assert client.delete("/extraction/profiles/wip/").json() == {"deleted": True, "source_prefix": "wip/"}
    gone = client.get("/extraction/profiles/wip/")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
    assert client.delete("/extraction/profiles/wip/").status_code == 404
    assert client.get("/extraction/profiles").json() == [second]


def test_a_put_merges_and_null_takes_a_field_back(client: TestClient):
    put(client, "wip/", ttl_days=30, max_facts=5, rules={"never_remember": ["salaries"], "custom_instructions": "x"})
    merged = put(client, "wip/", max_facts=7, rules={"always_remember": ["owners"], "custom_instructions": None})
    assert (merged["ttl_days"], merged["max_facts"]) == (30, 7)
    assert merged["rules"] == {
        "always_remember": ["owners"],
        "never_remember": ["salaries"],
        "custom_instructions": "",
    }
    assert put(client, "wip/", ttl_days=None, rules=None) == {**WITHOUT, "source_prefix": "wip/", "max_facts": 7}


def test_the_slash_at_the_end_may_be_left_out(client: TestClient):
    assert put(client, "a/b", enabled=False)["source_prefix"] == "a/b/"
    assert client.get("/extraction/profiles/a/b").json() == client.get("/extraction/profiles/a/b//").json()
    assert client.delete("/extraction/profiles/a/b").json()["source_prefix"] == "a/b/"
    assert client.put("/extraction/profiles//", json={}).json()["code"] == "invalid_request"


@pytest.mark.parametrize(
    "field",
    [
        {"mode": "greedy"},
        {"max_facts": 0},
        {"max_facts": 201},
        {"max_fact_chars": 49},
        {"ttl_days": 0},
        {"ttl_days": 36_501},
        {"confidence_threshold": 1.1},
        {"min_age_days": -1},
        {"confidence_half_life_days": 0},
        {"half_life_days": -1},
        {"enabled": "perhaps"},
        {"rules": {"always_remember": [""]}},
        {"rules": {"never_remember": ["x"] * 101}},
        {"rules": {"never_remember": ["x" * 501]}},
        {"rules": {"custom_instructions": "x" * 4_001}},
        {"rules": {"custom_instructions": "x\0"}},
    ],
    ids=str,
)
def test_a_value_out_of_bounds_is_422_and_makes_no_profile(client: TestClient, field: dict[str, object]):
    assert client.put("/extraction/profiles/wip/", json=field).status_code == 422
    assert client.get("/extraction/profiles").json() == []


def test_profiles_of_namespaces_are_isolated(client: TestClient):
    put(client, "wip/", ttl_days=30)
    elsewhere = {"X-Namespace": "elsewhere"}
    assert client.get("/extraction/profiles", headers=elsewhere).json() == []
    assert client.get("/extraction/profiles/wip/", headers=elsewhere).status_code == 404
    assert client.delete("/extraction/profiles/wip/", headers=elsewhere).status_code == 404
    assert client.get("/stats", headers=elsewhere).json()["created_at"] is None
    assert len(client.get("/extraction/profiles").json()) == 1


def test_who_changed_a_profile_is_in_the_audit(client: TestClient):
    put(client, "wip/", ttl_days=30)
    client.delete("/extraction/profiles/wip/")
    entries = client.get("/audit").json()["entries"]
    assert [entry["action"] for entry in entries] == ["profile.delete", "profile.set"]
    assert {entry["resource_id"] for entry in entries} == {None}
