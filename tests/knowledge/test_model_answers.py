"""Each item of a model's answer is a claim about the given input, or is counted as dropped."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from souvenir.core.types import JsonObject, MessageRole
from souvenir.knowledge.claim_types import type_name
from souvenir.knowledge.model_answers import (
    MAX_CLAIMS,
    MAX_DESCRIPTION_CHARS,
    MAX_SUMMARY_CHARS,
    ClaimMaterial,
    ShownTopic,
    asked,
    first_of,
)
from souvenir.knowledge.recognition.spelling import MAX_KEY_CHARS
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph.claims import MessageRange
from souvenir.store.graph.description_queue import Undescribed
from tests.knowledge.agent import ANN
from tests.knowledge.model_claims_setup import MOVED, WORKS, always, lives

AT = datetime(2024, 1, 1, tzinfo=UTC)
MATERIAL = ClaimMaterial(
    [
        Undescribed(11, 2, MessageRole.USER, "Cleo", MOVED, AT),
        Undescribed(12, 3, MessageRole.ASSISTANT, None, f"{WORKS}\n<think>she is Zelda</think>", AT),
    ],
    [Undescribed(10, 1, MessageRole.USER, "Cleo", "Who is Zelda?", AT)],
    [("alice", "Alice"), ("lisbon", "Lisbon"), ("heron", "Heron"), ("zelda", "Zelda")],
    {11: ["alice", "lisbon"], 12: ["alice", "heron"], 10: ["zelda"]},
    [ShownTopic(7, "Alice", {11}), ShownTopic(8, "Heron", {12})],
    MessageRange(1, 1, 3),
    "0" * 32,
)
NAMES = (
    st.sampled_from(["Alice", "ALICE's", "Lisbon", "heron", "Zelda", "Bobby", "T1", "T2", "T3", "", " ", "</names>"])
    | st.text()
)
QUOTES = st.sampled_from([MOVED, WORKS, "moved to Lisbon", "she is Zelda", "Who is Zelda?", ""]) | st.text()
ITEMS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(
            ["relation", "ALIAS", "description", "kind", "name", "rumour", "topic_name", "Topic_Summary"]
        )
        | st.text(),
        "concept": NAMES,
        "text": NAMES | st.sampled_from(["lives in", "x" * 2000, "in 1987", "city"]),
        "other": st.none() | NAMES,
        "quote": QUOTES,
        "confidence": st.floats() | st.text(),
    }
)


def test_every_item_of_an_answer_is_accepted_or_counted(engine: MemoryEngine):
    strict, lenient = engine.screening.applied(ANN), engine.screening.applied(ANN, refuse=False)

    @hypothesis_settings(max_examples=40, deadline=None)
    @given(st.lists(ITEMS | st.integers(0, 9) | st.none() | st.lists(st.text(), min_size=1), max_size=MAX_CLAIMS + 5))
    def holds(items: list[JsonObject | int | list[str] | None]) -> None:
        answer = asked(always(lives(), *items), MATERIAL, strict, lenient, lambda: None)
        assert answer is not None
        counted = len(answer.found) + len(answer.topics) + sum(answer.dropped.values())
        # JSON has no infinity: of an answer with one, what can be read is salvaged, and the rest counts as one.
        numbers = [item["confidence"] for item in items if isinstance(item, dict)]
        is_json = all(isfinite(number) for number in numbers if isinstance(number, float))
        assert counted > (len(items) if is_json else 0)
        assert len(answer.found) + len(answer.topics) <= MAX_CLAIMS
        assert len({(one.kind, one.topic_id) for one in answer.topics}) == len(answer.topics)
        for named in answer.topics:
            assert (named.topic_id, named.message_id) in ((7, 11), (8, 12))
            assert 1 <= len(named.text) <= MAX_SUMMARY_CHARS
        for one in answer.found:
            assert {one.concept, one.other} <= {"alice", "lisbon", "heron", "zelda", None}
            assert one.message_id in (11, 12)
            assert 0.0 <= one.confidence <= 1.0
            assert 1 <= len(one.text) <= max(MAX_DESCRIPTION_CHARS, MAX_KEY_CHARS)
            assert one.other != one.concept

    holds()


@given(st.text(max_size=200))
def test_type_names_are_snake_case_and_idempotent(text: str):
    name = type_name(text)
    assert name is None or (type_name(name) == name and " " not in name and 1 <= len(name) <= 40)


@given(st.lists(st.integers(0, 40_000), max_size=30))
def test_the_messages_of_a_prompt_are_bounded_and_never_empty(lengths: list[int]):
    messages = [Undescribed(id_, id_, MessageRole.USER, None, "x" * n, AT) for id_, n in enumerate(lengths)]
    chosen = first_of(messages)
    assert chosen == messages[: len(chosen)]
    assert bool(chosen) == bool(messages)
    assert sum(min(len(one.content), 12_000) for one in chosen) <= 16_000
