"""One namespace's index: repeated updates, both arms under one filter, the nearest text, and the consistency check."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.array_file import Streamed
from souvenir.core.passages import Embedding, IndexChange, OwnerChanged, Passage, PassageAdded, PassageRemoved
from souvenir.core.types import Filters, FloatVector, PassageKind, Profile, SourceFilter
from souvenir.index.analyser import Analyser
from souvenir.index.candidates import Probe
from souvenir.index.cross_check import problems
from souvenir.index.namespace import NamespaceIndex
from souvenir.index.selection import MANY_SCORES, greatest
from souvenir.retrieval.preparation import embeddings_of
from tests.fake_embedder import FakeTokenEmbedder
from tests.index.shelf import PASSAGE_ANALYSER, RULES

START = datetime(2023, 5, 8, tzinfo=UTC)
EMBEDDER, ANALYSER = FakeTokenEmbedder(), Analyser()
WORDS = "garden bread violin harbour winter teacher engine mountain".split()


def passage_of(id_: int, text: str, *, owner: int | None = None, source: str = "a", archived: bool = False) -> Passage:
    return Passage(
        id_, PassageKind.MEMORY, id_ if owner is None else owner, 0, text, Profile.FACT, source, START, archived
    )


def adding(passage: Passage) -> PassageAdded:
    return PassageAdded(passage, embedding_of(passage), PASSAGE_ANALYSER.chunks(passage))


def embedding_of(passage: Passage) -> Embedding:
    return embeddings_of([passage.embeddable], EMBEDDER)[0]


def index_of(*passages: Passage) -> NamespaceIndex:
    index = NamespaceIndex(EMBEDDER.dim, RULES, ANALYSER.terms, token_space=EMBEDDER.token_space)
    index.apply(map(adding, passages), 1)
    return index


def differences(index: NamespaceIndex, passages: Sequence[Passage]) -> list[str]:
    truth = ((passage, embedding_of(passage)) for passage in passages)
    return problems(index, truth, PASSAGE_ANALYSER.chunks)


def probe(text: str, **changes: object) -> Probe:
    plain = Probe(EMBEDDER.embed_query(text), ANALYSER.query_words(text), Filters(), None, True, 400)
    return replace(plain, **changes)  # type: ignore[arg-type]  # fields by their names


def owners_found(index: NamespaceIndex, asked: Probe) -> list[int]:
    return sorted(index.search(asked).owner_ids.tolist())


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[IndexChange], list[Passage]]]:
    """Writes in commit order, each with the passages stored after it.

    As the store does it: new passages say what their owner says by then, so a change of text and source in one write
    is no `OwnerChanged`.
    """
    stored: dict[int, Passage] = {}
    owners = {owner: passage_of(0, "", owner=owner) for owner in range(1, 4)}
    writes: list[tuple[list[IndexChange], list[Passage]]] = []
    ids = iter(range(1, 1000))
    for _ in range(draw(st.integers(1, 6))):
        changes: list[IndexChange] = []
        owner = draw(st.sampled_from(sorted(owners)))
        held = [passage.id for passage in stored.values() if passage.owner_id == owner]
        verb = draw(st.sampled_from(["text", "move", "text and move", "delete"]))
        if "move" in verb:
            source, days = draw(st.sampled_from("ab")), draw(st.integers(0, 2))
            owners[owner] = replace(
                owners[owner],
                source=source,
                occurred_at=START + timedelta(days=days),
                archived=draw(st.booleans()),
            )
        if verb == "move":
            said = owners[owner]
            changes.append(
                OwnerChanged(PassageKind.MEMORY, owner, said.source, said.occurred_at, said.archived, said.dated)
            )
            stored |= {id_: replace(said, id=id_, text=stored[id_].text) for id_ in held}
        else:
            changes += [PassageRemoved(id_, PassageKind.MEMORY) for id_ in held]
            stored = {id_: passage for id_, passage in stored.items() if id_ not in held}
        if "text" in verb:
            for _ in range(draw(st.integers(1, 2))):
                text = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=3)))
                passage = replace(owners[owner], id=next(ids), text=text)
                stored[passage.id] = passage
                changes.append(adding(passage))
        writes.append((changes, list(stored.values())))
    return writes


@given(history=histories(), seen=st.integers(0, 8), again=st.integers(0, 8))
def test_writes_included_in_a_load_may_be_applied_again(
    history: list[tuple[list[IndexChange], list[Passage]]], seen: int, again: int
):
    seen = min(seen, len(history))
    again = min(again, seen)
    index = NamespaceIndex(EMBEDDER.dim, RULES, ANALYSER.terms, token_space=EMBEDDER.token_space)
    loaded = history[seen - 1][1] if seen else []
    index.apply(map(adding, loaded), seen)
    assert differences(index, loaded) == []
    for number, (changes, _) in enumerate(history[again:], start=again + 1):
        index.apply(changes, number)
    assert differences(index, history[-1][1]) == []
    assert index.change_seq == len(history)


def test_a_repeated_passage_after_an_earlier_move_has_its_current_source():
    """Loaded after two writes and then given both: the owner moves to b, then gets a new text and moves to c."""
    old, new = passage_of(1, "garden", owner=1, source="a"), passage_of(2, "bread", owner=1, source="c")
    index = index_of(new)
    index.apply([OwnerChanged(PassageKind.MEMORY, 1, "b", START, False, False)], 2)
    index.apply([PassageRemoved(old.id, PassageKind.MEMORY), adding(new)], 3)
    assert differences(index, [new]) == []


def test_a_large_write_is_applied_completely():
    passages = [passage_of(id_, f"text {id_} {WORDS[id_ % 8]}") for id_ in range(1, 1001)]
    index = index_of(*passages)
    assert differences(index, passages) == []
    index.apply([PassageRemoved(passage.id, PassageKind.MEMORY) for passage in passages[::2]], 2)
    assert differences(index, passages[1::2]) == []
    assert index.owner_count() == 500


def test_each_arm_alone_finds_its_own_matches():
    index = index_of(passage_of(1, "garden bread"), passage_of(2, "violin"), passage_of(3, "harbour"))
    assert owners_found(index, probe("violin", vector=None)) == [2]
    assert owners_found(index, probe("violin", words=None, candidate_count=1)) == [2]
    assert owners_found(index, probe("violin", vector=None, words=None)) == []
    assert owners_found(index, probe("violin")) == [1, 2, 3]


def test_cosines_are_zero_without_a_query_vector():
    found = index_of(passage_of(1, "violin")).search(probe("violin", vector=None))
    assert (found.dense.tolist(), found.similarity.tolist()) == ([0.0], [0.0])
    assert found.lexical[0] > 0


@pytest.mark.parametrize("count", [3, 300])
def test_filters_apply_before_the_cut_in_both_arms(count: int):
    """The best hits of either arm are all filtered out and replaced by lower ones."""
    best = [passage_of(id_, "violin violin", source="other") for id_ in range(1, 101)]
    wanted = [passage_of(id_, f"violin {WORDS[id_ % 8]} {id_}", source="mine") for id_ in range(101, 104)]
    index = index_of(*best, *wanted)
    asked = probe("violin", filters=Filters(sources=(SourceFilter("mine"),)), candidate_count=count)
    assert owners_found(index, asked) == [101, 102, 103]
    assert owners_found(index, replace(asked, words=None)) == [101, 102, 103]
    assert owners_found(index, replace(asked, vector=None)) == [101, 102, 103]
    found = index.search(asked)
    assert (found.complete, found.excluded) == (True, 100)
    assert owners_found(index, probe("violin", owner_ids=np.array([102]))) == [102]


def test_results_of_a_cut_are_marked_as_incomplete():
    index = index_of(*(passage_of(id_, f"violin {id_}") for id_ in range(1, 50)))
    assert not index.search(probe("violin", candidate_count=5)).complete
    assert index.search(probe("violin", candidate_count=49)).complete
    assert index.search(probe("violin", candidate_count=50)).complete


def test_explained_terms_add_up_to_the_lexical_score():
    index = index_of(passage_of(1, "garden bread bread"), passage_of(2, "violin garden"))
    found = index.search(probe("garden bread", explain=True))
    for score, terms in zip(found.lexical, found.terms, strict=True):
        assert {match.term for match in terms} == {"garden", "bread"}
        total = sum(match.idf * match.weight for match in terms)
        assert score == pytest.approx(total / sum(match.idf for match in terms), abs=1e-6)
    assert index.search(probe("garden bread")).terms == ()


def brute_nearest(passages: Sequence[Passage], texts: FloatVector) -> dict[int, float]:
    """Return the owner with the greatest mean, over the texts, of the best cosine with one of its passages."""
    vectors = {passage.id: EMBEDDER.embed_documents([passage.text])[0] for passage in passages}
    return {
        owner: float(
            np.mean([max(float(vectors[p.id] @ text) for p in passages if p.owner_id == owner) for text in texts])
        )
        for owner in {passage.owner_id for passage in passages if not passage.archived}
    }


@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=12),
    asked=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=3),
)
def test_the_nearest_owner_equals_that_of_an_exhaustive_comparison(texts: list[str], asked: list[str]):
    passages = [passage_of(id_, text, owner=id_ // 2, archived=id_ // 2 == 1) for id_, text in enumerate(texts)]
    index, vectors = index_of(*passages), EMBEDDER.embed_documents(asked)
    found, expected = index.nearest(vectors, filters=Filters()), brute_nearest(passages, vectors)
    assert found is not None
    owner, similarity = found
    assert similarity == pytest.approx(max(expected.values()), abs=1e-5)
    assert similarity == pytest.approx(expected[owner], abs=1e-5)


def test_an_empty_namespace_has_no_nearest_owner_and_no_results():
    index = NamespaceIndex(EMBEDDER.dim, RULES, ANALYSER.terms, token_space=EMBEDDER.token_space)
    assert index.nearest(EMBEDDER.embed_documents(["violin"]), filters=Filters()) is None
    assert owners_found(index, probe("violin")) == []
    archived = index_of(passage_of(1, "violin", archived=True))
    assert archived.nearest(EMBEDDER.embed_documents(["violin"]), filters=Filters()) is None


@pytest.mark.parametrize(
    ("truth", "problem"),
    [
        ([passage_of(1, "garden"), passage_of(2, "bread")], "passage 2 is not indexed"),
        ([], "0 passages stored, 1 rows, 1 vectors, 1 texts"),
        ([passage_of(1, "bread")], "passage 1 has another vector"),
        ([passage_of(1, "bread")], "passage 1 has other terms"),
        ([passage_of(1, "garden", source="b")], "passage 1 has other attributes"),
        ([passage_of(1, "garden", owner=2)], "passage 1 has other attributes"),
    ],
)
def test_the_check_reports_every_difference_from_the_stored_passages(truth: list[Passage], problem: str):
    assert problem in differences(index_of(passage_of(1, "garden")), truth)


def test_the_check_reports_aggregates_that_differ_from_the_rows():
    passages = [replace(passage_of(id_, "garden"), dated=True) for id_ in range(1, 4)]
    index = index_of(*passages)
    assert differences(index, passages) == []
    before, _ = index.attributes.neighbours()
    before[2] = 0
    assert differences(index, passages) == ["passages have other neighbours than their sessions say"]
    before[2] = 1
    index.attributes.archived[0] = True
    assert any("but (0, 0, " in problem for problem in differences(index, passages))


def test_searches_during_updates_see_consistent_rows():
    """Every row found has the cosine of its own text, whatever rows move meanwhile."""
    texts = {id_: f"{WORDS[id_ % 8]} number{id_}" for id_ in range(1, 401)}
    index = index_of(*(passage_of(id_, texts[id_]) for id_ in range(1, 201)))
    query = EMBEDDER.embed_query("violin garden")
    cosines = {id_: float(EMBEDDER.embed_documents([text])[0] @ query) for id_, text in texts.items()}

    def update() -> None:
        for id_ in range(1, 201):
            index.apply([PassageRemoved(id_, PassageKind.MEMORY), adding(passage_of(id_ + 200, texts[id_ + 200]))], id_)

    def search(_: int) -> None:
        found = index.search(probe("violin garden"))
        assert len(set(found.passage_ids.tolist())) == len(found.passage_ids) == 200
        for id_, similarity in zip(found.passage_ids.tolist(), found.similarity, strict=True):
            assert similarity == pytest.approx(cosines[id_], abs=1e-6)

    with ThreadPoolExecutor(4) as threads:
        updating = threads.submit(update)
        for searching in [threads.submit(search, number) for number in range(60)]:
            searching.result(60)
        updating.result(60)
    assert differences(index, [passage_of(id_, texts[id_]) for id_ in range(201, 401)]) == []


@pytest.mark.parametrize("distinct", [2, 50, 1_000_000])
@pytest.mark.parametrize("count", [1, 7, 256, MANY_SCORES])
def test_the_greatest_of_many_scores_are_those_of_a_sort(count: int, distinct: int):
    scores = np.random.default_rng(count).integers(0, distinct, 3 * MANY_SCORES).astype(np.float32)
    places = greatest(scores, count)
    assert len(set(places.tolist())) == count
    assert sorted(scores[places]) == sorted(scores)[-count:]


def test_changes_applied_at_once_are_those_applied_one_by_one():
    first, second, third = (passage_of(id_, f"{WORDS[id_]} {WORDS[id_ + 1]}", owner=id_ % 2) for id_ in (1, 2, 3))
    changes: list[IndexChange] = [
        adding(first),
        adding(second),
        adding(first),
        adding(third),
        PassageRemoved(second.id, second.kind),
        adding(second),
        OwnerChanged(first.kind, first.owner_id, "b", START, archived=True, dated=False),
        PassageRemoved(first.id, first.kind),
    ]
    at_once, one_by_one = index_of(), index_of()
    at_once.apply(changes, 2)
    for change in changes:
        one_by_one.apply([change], 2)
    assert len(at_once) == 2
    for name, array in one_by_one.to_arrays().items():
        expected, found = (
            np.concatenate(list(one.blocks())) if isinstance(one, Streamed) else one
            for one in (array, at_once.to_arrays()[name])
        )
        assert np.allclose(found, expected), name
    assert differences(at_once, [replace(third, source="b", archived=True), second]) == []
