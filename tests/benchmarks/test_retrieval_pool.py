"""A small conversation with its facts, and with a stranger's, through the benchmark of one ranking over kinds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.retrieval.data_sets import read_data_set
from benchmarks.retrieval.pool import FACTS, POOL_METRICS, TURNS, measure_pool, measure_strangers, read_pool
from benchmarks.retrieval.vector_cache import CachedEmbedder
from tests.fake_embedder import FakeEmbedder

SAID = ("The boat is green now.", "My sister plays the cello.", "Mine collects stamps of Peru.")
KNOWN = (("Ann painted the boat green.", 0), ("Bob has a sister with a cello.", 1))


def written(folder: Path, documents: Sequence[dict[str, Any]], questions: Sequence[dict[str, Any]]) -> None:
    folder.mkdir()
    for name, rows in (("docs", documents), ("queries", questions)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    meta = {"scope": "talk", "session": "s"}
    turns = [
        {"id": f"t{turn}", "text": f"Ann: {text}", "meta": {**meta, "turn": turn, "speaker": "Ann"}}
        for turn, text in enumerate(SAID)
    ]
    facts = [
        {"id": f"f{number}", "text": text, "meta": {**meta, "evidence": [f"t{turn}"]}}
        for number, (text, turn) in enumerate(KNOWN)
    ]
    asked = {"scope": "talk", "category": "single-hop"}
    boat, stamps = ({"id": "q0", "text": "Is the boat green?"}, {"id": "q1", "text": "Who collects stamps?"})
    nobody = {"id": "q2", "text": "Is the boat blue?", "scope": "talk", "category": "adversarial"}
    written(
        tmp_path / TURNS,
        turns,
        [
            {**boat, **asked, "relevant": {"t0": 1}},
            {**stamps, **asked, "relevant": {"t2": 1}},
            {**nobody, "relevant": {"t0": 1}},
        ],
    )
    written(tmp_path / FACTS, facts, [{**boat, **asked, "relevant": {"f0": 1}}, {**stamps, **asked, "relevant": {}}])
    return tmp_path


@pytest.fixture
def embedder(tmp_path: Path) -> CachedEmbedder:
    return CachedEmbedder(FakeEmbedder(), tmp_path / "vectors")


def test_a_question_has_answers_of_both_kinds_and_a_fact_counts_as_its_turn(folder: Path):
    questions, covers = read_pool(folder)
    assert [sorted(one.turns | one.facts) for one in questions] == [["f0", "t0"], ["t2"]]
    assert [sorted(one.turns) for one in questions] == [["t0"], ["t2"]]
    assert {fact: list(turns) for fact, turns in covers.items()} == {"f0": ["t0"], "f1": ["t1"]}


def test_one_ranking_is_scored_next_to_either_kind_alone(folder: Path, embedder: CachedEmbedder):
    scores = measure_pool(folder, embedder)
    recall, evidence = POOL_METRICS.index("recall@5"), POOL_METRICS.index("evidence@5")
    found = {way: (of[:, recall].tolist(), of[:, evidence].tolist()) for way, of in scores.items()}
    assert found["one ranking"] == ([1.0, 1.0], [1.0, 1.0])
    assert found["turns alone"] == ([0.5, 1.0], [1.0, 1.0])
    assert found["facts alone"] == ([0.5, 0.0], [1.0, 0.0])


def test_strangers_in_one_agent_are_scored_next_to_either_alone(folder: Path, embedder: CachedEmbedder):
    turns, facts = read_data_set(folder / TURNS), read_data_set(folder / FACTS)
    found = measure_strangers(turns, facts, embedder)
    assert {name: len(scores.alone) for name, scores in found.items()} == {TURNS: 2, FACTS: 1}
    for scores in found.values():
        assert scores.together.keys() == {"one ranking", "by raw score", "in turns only"}
        assert (scores.alone[:, 0] == 1.0).all()
        assert all((together[:, 2] <= scores.alone[:, 2]).all() for together in scores.together.values())
