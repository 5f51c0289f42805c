"""The profile that applies to a source."""

from __future__ import annotations

import pytest

from souvenir.core.errors import Conflict
from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.extraction_profiles import ExtractionProfiles
from souvenir.store.learning.profiles import ExtractionMode, ExtractionProfile, ExtractionRules, profile_for
from tests.memories.engine.verbs import ANN, DEFAULT


def chosen(engine: MemoryEngine, source: str, scope: Scope = DEFAULT) -> ExtractionProfile:
    with engine.namespace(scope) as (connection, namespace):
        return profile_for(connection, namespace, source)


def test_only_the_profile_of_the_longest_prefix_applies(engine: MemoryEngine):
    profiles = ExtractionProfiles(engine)
    profiles.put(DEFAULT, "proj/", {"max_facts": 1, "ttl_days": 5})
    profiles.put(DEFAULT, "proj/a/", {"max_facts": 2})
    expected = {
        "proj": "proj/",
        "proj/b": "proj/",
        "proj/ab": "proj/",
        "proj/a": "proj/a/",
        "proj/a/x/y": "proj/a/",
        "project": "",
        "other/proj/a": "",
        "": "",
        "PROJ/a": "",
    }
    assert {source: chosen(engine, source).source_prefix for source in expected} == expected
    assert chosen(engine, "proj/a/x").ttl_days is None
    assert chosen(engine, "nobody/made/one") == ExtractionProfile()


def test_profiles_are_limited_to_their_namespace(engine: MemoryEngine):
    ExtractionProfiles(engine).put(DEFAULT, "proj/", {"max_facts": 1})
    assert chosen(engine, "proj/a", ANN) == ExtractionProfile()
    ExtractionProfiles(engine).put(ANN, "proj/", {"max_facts": 2})
    assert (chosen(engine, "proj/a").max_facts, chosen(engine, "proj/a", ANN).max_facts) == (1, 2)


def test_a_profile_is_read_as_it_was_set(engine: MemoryEngine):
    rules = {"always_remember": ["owners"], "never_remember": ["salaries", "ages"], "custom_instructions": "In English"}
    ExtractionProfiles(engine).put(DEFAULT, "proj", {"mode": "aggressive", "rules": rules, "min_age_days": 2})
    assert chosen(engine, "proj/x") == ExtractionProfile(
        source_prefix="proj/",
        mode=ExtractionMode.AGGRESSIVE,
        rules=ExtractionRules(("owners",), ("salaries", "ages"), "In English"),
        min_age_days=2,
    )


def test_a_profile_can_switch_extraction_off(engine: MemoryEngine):
    profiles = ExtractionProfiles(engine)
    profiles.put(DEFAULT, "proj/", {"enabled": False})
    with pytest.raises(Conflict, match="'proj/'"):
        chosen(engine, "proj/x").require_enabled()
    chosen(engine, "other").require_enabled()
    profiles.put(DEFAULT, "proj/x/", {"enabled": True})
    chosen(engine, "proj/x").require_enabled()
