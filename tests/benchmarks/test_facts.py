"""A small conversation with its facts through the benchmarks of facts, and the peer that scans them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.facts.__main__ import METRICS, measure, targets_of
from benchmarks.facts.cases import FACTS, TURNS, Case, read_cases
from benchmarks.facts.fact_scan import TAG_BOOST, FactScan
from benchmarks.facts.grounding import verdicts
from benchmarks.facts.told import COMMON, EMBEDDED, FACTS_EACH, RARE, TurnedEmbedder, drafts
from benchmarks.facts.turns import at_once, in_turns
from benchmarks.facts.ways import TEXT, WITH_FACTS
from benchmarks.load.sentences import memories
from benchmarks.retrieval.vector_cache import CachedEmbedder
from tests.fake_embedder import FakeEmbedder

SAID = ("Look at it now!", "My sister plays the cello.", "Mine collects stamps.", "Of Peru?", "Yes, of Peru.")
KNOWN = (("Ann painted the boat green.", "t0"), ("Ann has a sister with a cello.", "t1"), ("Stamps of Peru.", "t4"))


def written(folder: Path, documents: Sequence[dict[str, Any]], questions: Sequence[dict[str, Any]]) -> None:
    folder.mkdir()
    for name, rows in (("docs", documents), ("queries", questions)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


@pytest.fixture
def cases(tmp_path: Path) -> dict[str, Case]:
    meta = {"scope": "talk", "session": "s", "speaker": "Ann"}
    turns = [
        {"id": f"t{turn}", "text": f"Ann: {text}", "meta": {**meta, "turn": turn}} for turn, text in enumerate(SAID)
    ]
    facts = [
        {"id": f"f{number}", "text": text, "meta": {**meta, "evidence": [turn]}}
        for number, (text, turn) in enumerate(KNOWN)
    ]
    asked = {"text": "Who painted the boat green?", "scope": "talk", "category": "single-hop"}
    data = tmp_path / "data"
    data.mkdir()
    written(data / TURNS, turns, [{**asked, "id": "q", "relevant": {"t0": 1}}])
    written(data / FACTS, facts, [{**asked, "id": "q", "relevant": {"f0": 1}}])
    return {case.name: case for case in read_cases(data)}


def test_memories_are_turns_and_sessions_with_the_facts_that_were_drawn_from_them(cases: dict[str, Case]):
    told = {name: [(one.id, one.facts) for one in case.tellings] for name, case in cases.items()}
    facts = tuple(text for text, _ in KNOWN)
    assert told["4 turns"] == [("t0", facts[:2]), ("t4", facts[2:])]
    assert told["session"] == [("t0", facts)]
    assert told["4 facts"] == [("f0", facts)]
    assert [facts for _, facts in told["1 turn"]] == [facts[:1], facts[1:2], (), (), facts[2:]]
    assert [case.questions[0].relevant for case in cases.values()] == [
        {"t0": 1.0},
        {"t0": 1.0},
        {"t0": 1.0},
        {"f0": 1.0},
    ]


def test_content_of_a_fact_alone_is_found_if_facts_are_stored(cases: dict[str, Case], tmp_path: Path):
    scores = measure(cases["1 turn"], CachedEmbedder(FakeEmbedder(), tmp_path / "vectors"))
    gain = METRICS.index("NDCG@10")
    assert {way: of[0, gain] for way, of in scores.items() if "facts" in way} == {
        "text and facts": 1.0,
        "facts": 1.0,
        "facts by cosine alone": 1.0,
    }
    assert scores[TEXT.name][0, gain] < 1.0
    assert next(iter(scores)) == WITH_FACTS.name
    assert targets_of(cases["1 turn"], scores)[0].met


def test_the_scan_gives_each_memory_the_score_of_its_best_fact_and_more_to_one_with_the_tag(tmp_path: Path):
    with closing(FactScan(tmp_path / "scan.db", FakeEmbedder())) as scan:
        scan.add("Ann and Bob", ["Ann paints boats", "Bob sails"], ["art"])
        scan.add("Cleo", ["Cleo paints"])
        plain = scan.search("Ann paints boats", 2)
        assert [text for text, _ in plain] == ["Ann and Bob", "Cleo"]
        assert plain[0][1] == pytest.approx(1.0)
        [(text, score)] = scan.search("Ann paints boats", 2, ["art"])
        assert text == "Ann and Bob"
        assert score == pytest.approx(TAG_BOOST)
        assert scan.search("Ann paints boats", 2, ["none"]) == []


def test_memories_have_facts_tags_and_realistic_vectors():
    told = drafts()
    first, second = next(told), next(told)
    assert len(first.facts) == FACTS_EACH
    assert first.text == " ".join(first.facts)
    assert (first.tags, second.tags) == ((COMMON, RARE), ())
    real, turned = FakeEmbedder(), TurnedEmbedder(FakeEmbedder())
    vectors = turned.embed_documents(first.facts)
    nearest = (vectors @ real.embed_documents(list(islice(memories(seed=0), EMBEDDED))).T).max(axis=1)
    assert nearest == pytest.approx(np.full(FACTS_EACH, 0.8), abs=0.1)
    assert (turned.embed_documents(first.facts[:1])[0] == vectors[0]).all()


def test_operations_take_turns_and_callers_at_once_share_what_is_to_be_done():
    done: list[tuple[str, int]] = []
    operations = {name: lambda number, name=name: done.append((name, number)) for name in ("often", "seldom")}
    seconds = in_turns(operations, 4, {"seldom": 2})
    assert {name: len(of) for name, of in seconds.items()} == {"often": 4, "seldom": 2}
    assert done[2:5] == [("often", 0), ("seldom", 0), ("often", 1)]
    numbers: list[int] = []
    assert len(at_once(lambda: numbers.append, 3, 10)[0]) == 10
    assert sorted(numbers) == list(range(10))


def test_statements_are_held_against_their_text_another_one_and_with_inventions():
    found = list(verdicts([("Ann painted her boat.", ["Ann painted the boat."]), ("Bo plays chess.", [])]))
    assert found == [("of this text", True), ("of another", False), *[("with an invention", False)] * 4]
