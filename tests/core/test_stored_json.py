"""Stored JSON has the bytes of earlier releases, and theirs can be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from souvenir.conversations import privacy_rescan
from souvenir.core.ledger import (
    DECISION_JSON,
    FACT_JSON,
    Category,
    DecidedBy,
    Decision,
    LedgerFact,
    Seen,
    TextSpan,
    Verdict,
)
from souvenir.core.settings import EmbedProvider
from souvenir.core.stored_json import StoredJson, to_json
from souvenir.core.types import Fact as MemoryFact
from souvenir.core.types import FactsBy, Memory, OriginClass
from souvenir.knowledge import model_claims
from souvenir.learning.guards import GUIDANCE_JSON, Guidance
from souvenir.memories import consolidation, deduplication, erasure, reembedding, retention, split_queue
from souvenir.models.embedding.specs import ModelSpec
from souvenir.privacy.policy import PrivacyPolicy
from souvenir.store.learning.profiles import ExtractionMode, ExtractionProfile, ExtractionRules
from souvenir.store.memories.memories import MEMORY_STATE, FactState, written_state
from souvenir.transfer import import_job, index_build

AT = datetime(2024, 5, 6, 7, 8, 9, 123456, UTC)

STATES: dict[str, tuple[StoredJson[Any], str]] = {
    "rescan": (privacy_rescan._STATE, '{"done":1,"last":2,"looked_at":3,"changed":4}'),
    "describe": (
        model_claims._STATE,
        '{"after":[7,3],"read":[[1,"digest"]],"found":[{"kind":"relation","concept":"ann","other":"acme",'
        '"text":"works_at","confidence":0.5,"message_id":9}],"topics":[{"kind":"topic_name","topic_id":4,'
        '"text":"Work","message_id":9,"written_from":[7,1,3],"digest":"digest"}],'
        '"dropped":[["alias","unknown_concept",2]],'
        '"calls":[{"model":"m","cost":0.25,"error":null}],"failed":1,"stopped":"budget"}',
    ),
    "deduplicate": (
        deduplication._STATE,
        '{"source":"a","compared":5,"found":1,"removed":1,"backup":"b","pairs":[[1,2,0.987654]]}',
    ),
    "erase": (
        erasure._STATE,
        '{"removed":{"agents":0,"users":1,"sessions":2,"messages":3,"memories":4,"facts":5,"tags":6,"blocks":7,'
        '"block_versions":8,"links":9,"history":10,"passages":11,"vectors":12,"mentions":13,"concepts":14,'
        '"idempotency_keys":15,"jobs":16},"total":17,"postings":2,"rewritten":["one"],"dropped":[]}',
    ),
    "consolidate": (
        consolidation._STATE,
        '{"clusters":[[[1,1700000000000000],[2,1700000000000001]]],"more":true,"done":1,"backup":null,'
        '"merged":[{"id":3,"ids":[1,2],"text":"both"}],"skipped":[{"ids":[4,5],"reason":"changed"}]}',
    ),
    "reembed": (reembedding._STATE, '{"last":10,"embedded":9,"total":20,"switched":true}'),
    "clusters": (
        deduplication._COMPACTION_STATE,
        '{"source":null,"compared":2,"clusters":1,"memories":2,"shown":[{"source":"a","ids":[1,2],"similarity":0.9}]}',
    ),
    "split": (
        split_queue._STATE,
        '{"after_id":3,"by_model":1,"by_sentences":2,"changed":0,"unanswered":"none","in_a_row":true}',
    ),
    "enforce": (
        retention._STATE,
        '{"source":"a/b","last":4,"scanned":9,"ttl":1,"confidence":0,"excluded_pinned":2,"excluded_young":3,'
        '"actions":[{"memory_id":4,"rule":"ttl","source_prefix":"a/","measured":9.5,"limit":3.0}]}',
    ),
    "prune": (retention._PRUNING_STATE, '{"candidates":3,"pruned":2,"backup":"b"}'),
    "build": (
        index_build._STATE,
        '{"files":1,"processed":1,"sections":4,"added":2,"updated":1,"gone":1,"backup":null,"error_count":1,'
        '"errors":[{"file":"a.md","error":"No"}]}',
    ),
    "import": (
        import_job._STATE,
        '{"phase":"links","offset":100,"line":7,"linking":true,"imported":3,"skipped":2,"updated":1,'
        '"links":4,"links_dropped":5,"error_count":1,"errors":[{"line":2,"error":"Ö"}],"changed_id_count":1,"changed_ids":[],"backup":"b"}',
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_the_state_of_a_job_is_read_and_written_byte_for_byte(name: str) -> None:
    adapter, stored = STATES[name]
    assert to_json(adapter.dump(adapter.load(json.loads(stored)))) == stored


@pytest.mark.parametrize("name", STATES)
def test_the_state_of_a_job_that_has_not_begun_is_read(name: str) -> None:
    adapter, stored = STATES[name]
    assert set(adapter.dump(adapter.load({}))) == set(json.loads(stored))


@pytest.mark.parametrize("name", sorted(STATES.keys() - {"import"}))  # an import drops fields of older releases
def test_a_job_does_not_resume_from_a_state_of_a_newer_release(name: str) -> None:
    adapter, stored = STATES[name]
    with pytest.raises(ValueError, match="from_tomorrow"):
        adapter.load({**json.loads(stored), "from_tomorrow": 1})


FACT = LedgerFact(
    "It rains", Category.DETAIL, OriginClass.USER, TextSpan(3, 11), "ann", datetime(2024, 1, 2, tzinfo=UTC)
)
STORED_FACT = (
    '{"text":"It rains","category":"DETAIL","origin_class":"user","span":[3,11],"speaker":"ann",'
    '"event_at":"2024-01-02T00:00:00+00:00"}'
)
DECISION = Decision(
    Verdict.UPDATE, DecidedBy.MODEL, "newer", Seen(4, 17), "text", (Seen(4, 17), Seen(5, 18)), "decide@1", "m", 0.75, 2
)
STORED_DECISION = (
    '{"verdict":"UPDATE","by":"model","reason":"newer","target":[4,17],"text":"text","candidates":[[4,17],[5,18]],'
    '"prompt":"decide@1","model":"m","similarity":0.75,"asked":2}'
)


def test_the_ledger_is_read_and_written_byte_for_byte() -> None:
    assert to_json(FACT_JSON.dump(FACT)) == STORED_FACT
    assert FACT_JSON.load(json.loads(STORED_FACT)) == FACT
    assert to_json(DECISION_JSON.dump(DECISION)) == STORED_DECISION
    assert DECISION_JSON.load(json.loads(STORED_DECISION)) == DECISION


@pytest.mark.parametrize(
    "at",
    [
        AT,
        datetime(2024, 1, 2, tzinfo=UTC),
        datetime(2024, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=-5, minutes=-30))),
        datetime(1, 1, 1, tzinfo=UTC),
    ],
)
def test_the_time_of_a_fact_is_written_as_isoformat(at: datetime) -> None:
    fact = LedgerFact("It rains", Category.DETAIL, OriginClass.USER, event_at=at)
    dumped = FACT_JSON.dump(fact)
    assert dumped["event_at"] == at.isoformat()
    assert FACT_JSON.load(dumped) == fact
    assert FACT_JSON.dump(FACT_JSON.load(dumped)) == dumped


def test_the_ledger_ignores_keys_that_it_does_not_know() -> None:
    assert FACT_JSON.load({**json.loads(STORED_FACT), "mood": "sad"}) == FACT
    assert DECISION_JSON.load({**json.loads(STORED_DECISION), "mood": "sad"}) == DECISION


MEMORY = Memory(
    id=1,
    text="It rains",
    source="a/b",
    created_at=AT,
    updated_at=AT + timedelta(seconds=1),
    metadata={"b": 1, "a": [1.0, None, "ö"]},
    key="k",
    document_at=AT,
    pinned=True,
    origin_class=OriginClass.TOOL,
    tags=("one", "two"),
    facts=(MemoryFact(7, "It rains", FactsBy.MODEL, AT),),
)
STORED_MEMORY = (
    '{"text":"It rains","source":"a/b","key":"k","metadata":{"b":1,"a":[1.0,null,"ö"]},'
    '"document_at":1714979289123456,"pinned":true,"archived":false,"origin_class":"tool","valid_to":null,'
    '"created_at":1714979289123456,"updated_at":1714979290123456,"tags":["one","two"],'
    '"facts":[{"id":7,"text":"It rains","made_by":"model","created_at":1714979289123456}]}'
)


def test_the_history_of_a_memory_is_written_byte_for_byte() -> None:
    assert written_state(MEMORY) == STORED_MEMORY
    bare = Memory(1, "It rains", "", AT, AT, {})
    assert written_state(bare) == (
        '{"text":"It rains","source":"","key":null,"metadata":{},"document_at":null,"pinned":false,"archived":false,'
        '"origin_class":"user","valid_to":null,"created_at":1714979289123456,"updated_at":1714979289123456}'
    )


def test_the_history_of_a_memory_is_read() -> None:
    state = MEMORY_STATE.load(json.loads(STORED_MEMORY))
    assert (state.created_at, state.document_at, state.tags) == (AT, AT, ("one", "two"))
    assert state.facts == (FactState(id=7, text="It rains", made_by=FactsBy.MODEL, created_at=AT),)


def test_the_history_of_the_first_release_is_read() -> None:
    stored: dict[str, Any] = {
        "text": "t",
        "source": "",
        "key": None,
        "metadata": {},
        "pinned": False,
        "archived": False,
    }
    state = MEMORY_STATE.load({**stored, "unknown": 1, "facts": [{"text": "f", "made_by": "caller", "created_at": 5}]})
    assert (state.origin_class, state.created_at, state.valid_to) == (OriginClass.USER, None, None)
    assert state.facts[0].id == 0


SPEC = ModelSpec(EmbedProvider.ONNX, "models/m", "main", None)
POLICY = PrivacyPolicy(hidden_topics=("health",))


@pytest.mark.parametrize(
    ("write", "stored"),
    [
        (SPEC.to_json, '{"provider":"onnx","model":"models/m","revision":"main","dim":null}'),
        (POLICY.to_json, '{"secrets":"redact","pii":"allow","hidden_topics":["health"]}'),
        (
            lambda: GUIDANCE_JSON.dump(Guidance(8, 400, 200, 5, True, ("a",), (), "b")),
            '{"max_facts":8,"max_fact_chars":400,"similar_text_chars":200,"fallback_max_facts":5,"keep_all":true,'
            '"always_remember":["a"],"never_remember":[],"custom_instructions":"b"}',
        ),
    ],
)
def test_specs_policies_and_guidance_are_written_byte_for_byte(write: Callable[[], Any], stored: str) -> None:
    assert to_json(write()) == stored


def test_specs_and_guidance_are_read() -> None:
    assert ModelSpec.from_json(SPEC.to_json()) == SPEC
    assert ModelSpec.from_json({"provider": "onnx", "model": "m"}) == ModelSpec(EmbedProvider.ONNX, "m")
    guidance = Guidance(8, 400, 200, 5, True, ("a",), (), "b")
    assert GUIDANCE_JSON.load(json.loads(to_json(GUIDANCE_JSON.dump(guidance)))) == guidance
    for broken in ({"provider": "telepathy", "model": "m"}, {"provider": "onnx", "model": "m", "mood": 1}):
        with pytest.raises(ValueError, match="ModelSpec"):
            ModelSpec.from_json(broken)


def test_an_extraction_profile_is_read_from_the_fields_that_were_set() -> None:
    assert ExtractionProfile.of("a/", {}) == ExtractionProfile("a/")
    fields = {"mode": "aggressive", "max_facts": 3, "rules": {"always_remember": ["names"], "unknown": 1}}
    expected = ExtractionProfile(
        "a/", ExtractionMode.AGGRESSIVE, max_facts=3, rules=ExtractionRules(always_remember=("names",))
    )
    assert ExtractionProfile.of("a/", fields) == expected
