"""A small conversation through the whole benchmark: the engine, the service, the peers, the endpoint for packages."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import openai
import pytest

from benchmarks.retrieval.data_sets import DataSet, Document, Question
from benchmarks.retrieval.over_http import agreement, measure_over_http, names_in
from benchmarks.retrieval.own import SOUVENIR, EngineSearcher, opened
from benchmarks.retrieval.packages.endpoint import MODEL_NAME, serving
from benchmarks.retrieval.packages.environments import Package, PackageFailed
from benchmarks.retrieval.packages.host import measure_package
from benchmarks.retrieval.peers import measure_peers
from benchmarks.retrieval.rankings import ask
from benchmarks.retrieval.run import Plan, measure
from benchmarks.retrieval.targets import targets_of
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.settings import Settings
from souvenir.core.types import PassageKind
from souvenir.models.embedding.factory import embedder_of
from tests.fake_embedder import FakeEmbedder, FakeTokenEmbedder

TURNS = (
    ("Ann", "S1", "The harbour lies north of the old mill."),
    ("Bob", "S1", "Did you paint the boat?"),
    ("Ann", "S1", "Yes, the boat is green now."),
    ("Bob", "S2", "My sister plays the cello on Sundays."),
    ("Ann", "S2", "Mine collects stamps of Peru."),
)


@pytest.fixture
def talk() -> DataSet:
    documents = [
        Document(f"t{number}", f"{speaker}: {text}", "talk", session=session, speaker=speaker, turn=True)
        for number, (speaker, session, text) in enumerate(TURNS)
    ]
    questions = [
        Question("Where does the harbour lie?", "talk", "place", {"t0": 1.0}),
        Question("Who plays the cello?", "talk", "person", {"t3": 1.0}),
    ]
    return DataSet("talk", PassageKind.MESSAGE, {"talk": documents}, questions)


@pytest.fixture
def embedder(tmp_path: Path) -> CachedEmbedder:
    return CachedEmbedder(FakeEmbedder(), tmp_path / "vectors")


def test_a_run_reports_the_service_its_arms_and_its_peers_and_what_differs(talk, embedder, tmp_path):
    report = measure(talk, embedder, Plan(tmp_path, ["talk"]))
    assert report.souvenir.estimates["recall@5"].mean == 1.0
    assert report.souvenir.estimates["all@5"].mean == 1.0
    assert report.categories.keys() == {"person", "place"}
    assert {"lexical arm alone", "vector arm alone", "SEARCH_FUSION=rrf"} <= report.own.keys()
    for line in [*report.own.values(), *report.peers.values()]:
        behind = report.souvenir.estimates["MRR@10"].mean - line.estimates["MRR@10"].mean
        assert line.behind_ours["MRR@10"].mean == pytest.approx(behind)
    assert all(target.met for target in targets_of("talk", report.measured))


def test_bm25_and_faiss_find_what_shares_the_words(talk, embedder):
    peers = {rankings.name: rankings for rankings in measure_peers(talk, embedder)}
    assert len(peers) == 5
    for rankings in peers.values():
        assert [found[0][0] for found in rankings.found] == ["t0", "t3"]


def test_a_second_run_takes_every_vector_from_the_file_of_the_first(talk, embedder, tmp_path):
    measure(talk, embedder, Plan(tmp_path, ["talk"]))
    embedder.save()
    again = CachedEmbedder(FakeEmbedder(), tmp_path / "vectors")
    before = again.model_s
    again.embed_query(talk.questions[0].text)
    assert again.model_s == before


def test_two_runs_at_once_keep_the_vectors_of_both(embedder, tmp_path):
    other = CachedEmbedder(FakeEmbedder(), tmp_path / "vectors")
    embedder.embed_query("a boat")
    other.embed_query("a cello")
    embedder.save()
    other.save()
    third = CachedEmbedder(FakeEmbedder(), tmp_path / "vectors")
    before = third.model_s
    third.embed_query("a boat")
    third.embed_query("a cello")
    assert third.model_s == before


def test_token_vectors_are_kept_with_the_vectors(tmp_path):
    first = CachedEmbedder(FakeTokenEmbedder(), tmp_path)
    made = first.embed_passages(["a boat", "", "the cello"])
    first.save()
    second = CachedEmbedder(FakeTokenEmbedder(), tmp_path)
    kept = second.embed_passages(["the cello", "a boat", ""])
    assert second.model_s == 0.0
    assert made.tokens is not None
    assert kept.tokens is not None
    for one, other in zip(kept.tokens, [made.tokens[2], *made.tokens[:2]], strict=True):
        np.testing.assert_array_equal(one.ids, other.ids)
        np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(kept.vectors, made.vectors[[2, 0, 1]])


def test_vectors_of_a_model_that_was_rebuilt_under_the_same_id_are_not_used(tmp_path):
    first = CachedEmbedder(FakeEmbedder(), tmp_path)
    first.embed_query("a boat")
    first.save()
    rebuilt = FakeEmbedder()
    rebuilt.seed = 1
    for _ in range(2):
        again = CachedEmbedder(rebuilt, tmp_path)
        np.testing.assert_array_equal(again.embed_query("a boat"), rebuilt.embed_query("a boat"))
        again.save()


def test_the_service_and_the_engine_answer_with_the_same_rankings(talk, tmp_path):
    over_http, on_the_wire = measure_over_http(talk, tmp_path / "data")
    with closing(embedder_of(Settings())) as model:
        embedder = CachedEmbedder(model, tmp_path / "vectors")
        with opened(tmp_path / "data", embedder) as engine:
            names = names_in(engine, talk, on_the_wire)
            ours = ask(SOUVENIR.name, EngineSearcher(engine, talk.kind, names), talk)
    assert agreement(ours, over_http) == 1.0
    assert [found[0][0] for found in over_http.found] == ["t0", "t3"]


def test_the_endpoint_gives_clients_of_openai_the_vectors_of_our_model(embedder):
    texts = ["a boat", "the cello " * 500]
    with serving(embedder) as address, openai.OpenAI(base_url=address, api_key="none") as client:
        answer = client.embeddings.create(model=MODEL_NAME, input=texts)
        plain = client.embeddings.create(model=MODEL_NAME, input=texts[0], encoding_format="float")
    wanted = embedder.embed_documents([embedder.first_window(text) for text in texts])
    assert [row.embedding for row in answer.data] == [pytest.approx(vector.tolist()) for vector in wanted]
    assert plain.data[0].embedding == pytest.approx(wanted[0].tolist())


def test_answers_of_a_package_are_cached_until_it_changes(talk, embedder, tmp_path):
    package = Package("own", ())
    kept = tmp_path / "own"
    kept.mkdir()
    # An environment that is there already, whose interpreter stands in for the package.
    (kept / "installed.json").write_text("[]", encoding="utf-8")
    (kept / "venv" / "bin").mkdir(parents=True)
    python = kept / "venv" / "bin" / "python"
    answers = tmp_path / "answers.py"
    answers.write_text(
        'import sys\nfor _ in sys.stdin:\n    print(\'{"found": [["t0", 1.0]], "seconds": 0.5}\', flush=True)\n',
        encoding="utf-8",
    )
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {answers}\n", encoding="utf-8")
    python.chmod(0o755)
    first = measure_package(package, talk, embedder, tmp_path)
    python.write_text("#!/bin/sh\necho it is gone >&2\n", encoding="utf-8")
    assert list(map(list, measure_package(package, talk, embedder, tmp_path).found[0])) == [["t0", 1.0]]
    assert first.costs["search p50 ms"] == 500.0
    with pytest.raises(PackageFailed, match="it is gone"):
        measure_package(package, replace(talk, questions=talk.questions[:1]), embedder, tmp_path)


def test_an_ablation_says_what_a_part_was_worth_and_leaves_out_parts_that_change_nothing(talk, embedder, tmp_path):
    # Only the neighbours say what this question asks about.
    asked = replace(talk, questions=[Question("Which colour was the boat painted?", "talk", "colour", {"t2": 1.0})])
    report = measure(asked, embedder, Plan(tmp_path, ["talk"], ablation=True))
    assert "without spread over neighbours" in report.own
    assert "without role" not in report.own
