"""The lexical index compared with rank_bm25 and with a plain reference under any changes, and its snapshots."""

from __future__ import annotations

import io
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from souvenir.core.types import Profile
from souvenir.index.analyser import Analyser, QueryWord, WordKind
from souvenir.index.lexical import LEAST_SIMILARITY, MAX_TF, Bm25Constants, LexicalIndex
from souvenir.index.trigrams import TrigramIndex
from tests.index.arrays import partly_in_file, whole
from tests.index.reference_lexical import ReferenceIndex, trigram_similarity
from tests.thoroughness import sampled

CONSTANTS = {Profile.FACT: Bm25Constants(0.9, 0.4), Profile.DOC: Bm25Constants(1.2, 0.75)}
WORDS = [
    "a",
    "b",
    "cat",
    "cats",
    "garden",
    "gardener",
    "gadren",
    "warden",
    "hello",
    "hallo",
    "café",
    "猫犬",
    "v2.1",
    "x",
]

rows_of_terms = st.lists(st.sampled_from(WORDS), max_size=8)
profiles = st.sampled_from(list(CONSTANTS))


def index_of(*texts: str, profile: Profile = Profile.FACT) -> LexicalIndex:
    analyser, index = Analyser(), LexicalIndex(CONSTANTS)
    for text in texts:
        index.add(analyser.terms(text), profile)
    return index


def zipf_rows(count: int, length: int, vocabulary: int) -> list[list[str]]:
    chosen = random.Random(7).choices(range(vocabulary), [1 / (n + 3) for n in range(vocabulary)], k=count * length)
    return [[f"word{n}" for n in chosen[at : at + length]] for at in range(0, count * length, length)]


# --- scores ---------------------------------------------------------------------------------------------------------


@given(st.lists(rows_of_terms, min_size=1, max_size=12).filter(any), rows_of_terms)
def test_weights_times_the_idf_of_rank_bm25_equal_its_scores(corpus: list[list[str]], query: list[str]) -> None:
    okapi = BM25Okapi(corpus, k1=1.5, b=0.75)
    index = LexicalIndex({Profile.DOC: Bm25Constants(1.5, 0.75)})
    for terms in corpus:
        index.add(terms, Profile.DOC)
    distinct = list(dict.fromkeys(query))
    ours = [
        sum(okapi.idf[match.term] * match.weight for match in matches)
        for matches in index.explain(distinct, range(len(corpus)))
    ]
    np.testing.assert_allclose(ours, okapi.get_scores(distinct), rtol=1e-6, atol=1e-6)


def test_a_score_is_the_idf_weighted_mean_of_saturated_frequencies() -> None:
    index = LexicalIndex({Profile.FACT: Bm25Constants(1.0, 0.0)})
    index.add(["apple", "apple", "apple"], Profile.FACT)
    index.add(["pear"], Profile.FACT)
    # One known term, so its idf cancels: 3 * 2 / (3 + 1).
    np.testing.assert_allclose(index.score(["apple", "apple", "unknown"]), [1.5, 0.0])
    assert index.score(["apple"]).dtype == np.float32


def test_each_row_is_scored_with_the_constants_of_its_profile() -> None:
    index = LexicalIndex(CONSTANTS)
    index.add(["apple", "pear"], Profile.DOC)
    index.add(["apple", "pear"], Profile.FACT)
    assert index.score(["apple"]) == pytest.approx([1.0, 1.0])
    index.add(["apple"] * 4, Profile.DOC)
    doc, fact, _ = index.score(["apple"])
    assert doc > fact
    np.testing.assert_array_equal(index.profiles, [Profile.DOC, Profile.FACT, Profile.DOC])


def test_scores_are_empty_or_zero_without_rows_or_known_terms() -> None:
    index = LexicalIndex(CONSTANTS)
    assert index.score(["apple"]).shape == (0,)
    assert index.average_length == 0
    index.add([], Profile.FACT)
    index.add(["apple"], Profile.FACT)
    np.testing.assert_array_equal(index.score(["pear"]), [0, 0])
    np.testing.assert_array_equal(index.score([]), [0, 0])
    assert index.explain(["pear"], [1]) == [[]]


def test_weigh_returns_each_distinct_known_term_with_its_rows() -> None:
    index = index_of("red apple", "green apple", "pear")
    apple, red = index.weigh(["appl", "missing", "red", "appl"]).terms
    assert (apple.term, apple.rows.tolist(), red.term, red.rows.tolist()) == ("appl", [0, 1], "red", [0])
    scores = np.zeros(3)
    for part in (apple, red):
        scores[part.rows] += part.idf * part.weights
    np.testing.assert_allclose(scores / (apple.idf + red.idf), index.score(["appl", "red"]), rtol=1e-6)


def test_concurrent_readers_get_the_same_scores() -> None:
    index = LexicalIndex(CONSTANTS)
    for terms in zipf_rows(500, 10, 200):
        index.add(terms, Profile.FACT)
    query = ["word0", "word3", "word50"]
    expected = index.score(query)
    with ThreadPoolExecutor(8) as threads:
        for scores in threads.map(lambda _: index.score(query), range(200)):
            np.testing.assert_array_equal(scores, expected)


# --- changes --------------------------------------------------------------------------------------------------------


class LexicalIndexMachine(RuleBasedStateMachine):
    """Any order of adding, removing and restoring a snapshot equals the reference."""

    def __init__(self) -> None:
        super().__init__()
        self.index = LexicalIndex(CONSTANTS)
        self.reference = ReferenceIndex(CONSTANTS)

    @rule(terms=rows_of_terms, profile=profiles)
    def add(self, terms: list[str], profile: Profile) -> None:
        self.index.add(terms, profile)
        self.reference.add(terms, profile)

    @precondition(lambda self: self.reference.rows)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        row = data.draw(st.integers(0, len(self.reference.rows) - 1))
        self.index.remove(row)
        self.reference.remove(row)

    @rule()
    def go_through_a_snapshot(self) -> None:
        self.index = LexicalIndex.from_arrays(whole(self.index.to_arrays()), CONSTANTS)

    @rule()
    def leave_the_terms_of_rows_in_a_file(self) -> None:
        self.index.rebase(partly_in_file(self.index.to_arrays()))

    @rule(query=rows_of_terms)
    def score(self, query: list[str]) -> None:
        scores = self.index.score(query)
        np.testing.assert_allclose(scores, self.reference.score(query), rtol=1e-5, atol=1e-7)
        for row, matches in enumerate(self.index.explain(query, range(len(self.index)))):
            total = sum(match.idf for match in matches)
            assert sum(match.idf * match.weight for match in matches) / (total or 1) == pytest.approx(scores[row], 1e-5)
            for match in matches:
                assert match.tf == self.reference.rows[row][0].count(match.term)
                assert match.weight == pytest.approx(self.reference.weight(match.term, row))
                assert match.idf == pytest.approx(self.reference.idf(match.term))

    @rule(word=st.sampled_from(["gardn", "gadern", "wardne", "helo", "cafés", "catss", "zzzz"]))
    def repair(self, word: str) -> None:
        repaired = self.index.repair([QueryWord(word, word, WordKind.PLAIN)])
        unknown = not self.reference.document_frequency(word)
        nearest = self.reference.nearest(word, LEAST_SIMILARITY) if unknown else None
        assert repaired.repairs == ({word: nearest} if nearest else {})

    @invariant()
    def agrees_on_everything_else(self) -> None:
        rows = self.reference.rows
        assert len(self.index) == len(rows)
        assert self.index.average_length == pytest.approx(self.reference.average_length())
        assert [self.index.terms_of(row) for row in range(len(rows))] == [Counter(terms) for terms, _ in rows]
        assert self.index.profiles.tolist() == [profile.value for _, profile in rows]
        for term in WORDS:
            assert self.index.document_frequency(term) == self.reference.document_frequency(term)


TestLexicalIndexMachine = LexicalIndexMachine.TestCase
TestLexicalIndexMachine.settings = settings(max_examples=sampled(60, 120), stateful_step_count=25, deadline=None)


def test_a_large_index_after_many_changes_equals_a_new_one() -> None:
    chance, rows = random.Random(3), zipf_rows(1_500, 12, 800)
    index, left = LexicalIndex(CONSTANTS), []
    for terms in rows:
        index.add(terms, Profile.DOC)
        left.append(terms)
        if chance.random() < 0.45:
            gone = chance.randrange(len(left))
            index.remove(gone)
            left[gone] = left[-1]
            left.pop()
    fresh = LexicalIndex(CONSTANTS)
    for terms in left:
        fresh.add(terms, Profile.DOC)
    for query in (["word0"], ["word1", "word9", "word99"], ["word400", "word799"]):
        np.testing.assert_allclose(index.score(query), fresh.score(query), rtol=1e-6)
    assert index.nbytes == pytest.approx(fresh.nbytes, rel=0.2)


@pytest.mark.parametrize("row", [-1, 1, 99])
def test_a_missing_row_is_an_index_error_and_changes_nothing(row: int) -> None:
    index = index_of("an apple")
    for read_or_remove in (index.remove, index.terms_of, lambda row: index.explain(["appl"], [row])):
        with pytest.raises(IndexError, match=f"row {row} "):
            read_or_remove(row)
    assert index.terms_of(0) == {"appl": 1}


def test_a_row_of_a_profile_without_constants_is_refused_before_anything_changes() -> None:
    index = LexicalIndex({Profile.FACT: CONSTANTS[Profile.FACT]})
    with pytest.raises(KeyError):
        index.add(["apple"], Profile.DOC)
    assert (len(index), index.document_frequency("apple")) == (0, 0)


def test_removing_a_text_removes_its_terms() -> None:
    index = index_of("a public garden", "a secret password")
    index.remove(1)
    assert index.document_frequency("password") == 0
    assert b"password" not in whole(index.to_arrays())["term_bytes"].tobytes()
    assert index.repair(Analyser().query_words("pasword")).repairs == {}


def test_a_frequency_beyond_16_bits_is_capped() -> None:
    index = LexicalIndex(CONSTANTS)
    index.add(["apple"] * (MAX_TF + 10), Profile.FACT)
    assert index.terms_of(0) == {"apple": MAX_TF}
    again = LexicalIndex.from_arrays(whole(index.to_arrays()), CONSTANTS)
    np.testing.assert_array_equal(again.score(["apple"]), index.score(["apple"]))
    assert again.average_length == MAX_TF + 10


def test_the_reported_memory_is_close_to_the_actual_memory() -> None:
    rows = zipf_rows(5_000, 20, 20_000)
    tracemalloc.start()
    index = LexicalIndex(CONSTANTS)
    for terms in rows:
        index.add([term[:1] + term[1:] for term in terms], Profile.FACT)  # strings of its own
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert index.nbytes == pytest.approx(held, rel=0.3)


# --- typos ----------------------------------------------------------------------------------------------------------

REPAIR_TEXTS = (
    "She received a birthday present",
    "the gardener's garden",
    "the warden of a garden",
    "getUserName 2023",
)


@pytest.mark.parametrize(
    ("query", "terms", "repairs"),
    [
        ("garden", ["garden"], {}),
        ("gaden", ["garden"], {"gaden": "garden"}),
        ("recieved", ["receiv"], {"recieved": "receiv"}),
        ("brithday presnt", ["birthday", "present"], {"brithday": "birthday", "presnt": "present"}),
        ("Gardn garden", ["garden"], {"gardn": "garden"}),
        ("bicycle", ["bicycl"], {}),
        ("gar", ["gar"], {}),
        ("2033", ["2033"], {}),
        ("gardenn2", ["gardenn2", "2", "garden"], {"gardenn": "garden"}),
        ("getUsrName", ["getusrnam", "get", "usr", "name"], {}),
    ],
)
def test_an_unknown_word_is_repaired_to_the_most_similar_known_one(
    query: str, terms: list[str], repairs: dict[str, str]
) -> None:
    repaired = index_of(*REPAIR_TEXTS).repair(Analyser().query_words(query))
    assert (list(repaired.terms), repaired.repairs) == (terms, repairs)


def test_ties_of_similar_terms_are_broken_by_frequency_then_alphabetically() -> None:
    query = Analyser().query_words("wxnder")
    assert index_of("wonder", "wander").repair(query).terms == ("wander",)
    assert index_of("wonder", "wander", "wonder").repair(query).terms == ("wonder",)


def test_stop_words_are_not_repaired_when_nothing_else_is_left() -> None:
    assert index_of("whale", "wheel").repair(Analyser().query_words("where")).repairs == {}


words_of_letters = st.text("abcé", min_size=3, max_size=7)


@given(st.lists(words_of_letters, max_size=25, unique=True), st.data())
def test_similar_terms_equal_those_of_pairwise_comparison(words: list[str], data: st.DataObject) -> None:
    added, built = TrigramIndex(), TrigramIndex.of(words)
    for term_id, word in enumerate(words):
        added.add(term_id, word)
    held = dict(enumerate(words))
    for term_id in data.draw(st.lists(st.integers(0, max(0, len(words) - 1)), unique=True, max_size=len(words))):
        added.remove(term_id, held.pop(term_id))
        built.remove(term_id, words[term_id])
        if data.draw(st.booleans()):
            held[term_id] = data.draw(words_of_letters)
            added.add(term_id, held[term_id])
            built.add(term_id, held[term_id])
    asked = data.draw(words_of_letters)
    expected = [
        (term_id, similarity)
        for term_id, word in sorted(held.items())
        if (similarity := trigram_similarity(asked, word)) >= LEAST_SIMILARITY
    ]
    assert added.similar(asked, LEAST_SIMILARITY) == built.similar(asked, LEAST_SIMILARITY) == expected
    assert added.nbytes == built.nbytes


# --- snapshots ------------------------------------------------------------------------------------------------------


def test_a_snapshot_of_plain_arrays_restores_the_same_index() -> None:
    index = index_of("我的上司叫赵雅琳", "Jane likes fly.io", "", profile=Profile.DOC)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **whole(index.to_arrays()))
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        again = LexicalIndex.from_arrays(dict(stored), CONSTANTS)
    assert [again.terms_of(row) for row in range(3)] == [index.terms_of(row) for row in range(3)]
    assert {name: array.tolist() for name, array in whole(again.to_arrays()).items()} == {
        name: array.tolist() for name, array in whole(index.to_arrays()).items()
    }


def test_an_empty_index_can_be_restored_from_its_snapshot() -> None:
    again = LexicalIndex.from_arrays(whole(LexicalIndex(CONSTANTS).to_arrays()), CONSTANTS)
    again.add(["apple"], Profile.FACT)
    assert again.score(["apple"]) == pytest.approx([1.0])


Arrays = dict[str, NDArray[Any]]


def changed(name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {**arrays, name: change(arrays[name])}


def with_item(at: int, value: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def change(array: NDArray[Any]) -> NDArray[Any]:
        array = array.copy()
        array[at] = value
        return array

    return change


@pytest.mark.parametrize(
    "damage",
    [
        *(changed(name, lambda array: array.astype(np.float64)) for name in LexicalIndex(CONSTANTS).to_arrays()),
        *(changed(name, lambda array: array[:-1]) for name in LexicalIndex(CONSTANTS).to_arrays()),
        changed("row_lengths", lambda array: array[:, None]),
        changed("row_lengths", with_item(0, 1)),
        changed("row_profiles", with_item(0, 200)),
        changed("term_offsets", with_item(0, 1)),
        changed("term_offsets", with_item(1, 99)),
        changed("term_offsets", lambda array: array[:0]),
        changed("posting_offsets", with_item(1, 0)),
        changed("term_offsets", with_item(1, 0)),
        changed("posting_offsets", with_item(1, -5)),
        changed("postings", with_item(0, 7 << 16 | 1)),
        changed("postings", with_item(0, -1)),
        changed("row_terms", lambda array: array[:, 0]),
        changed("row_term_counts", with_item(0, 9)),
        changed("term_bytes", with_item(0, 0xFF)),
        changed("term_bytes", lambda array: np.full_like(array, ord("a"))),
    ],
)
def test_a_damaged_snapshot_is_refused(damage: Callable[[Arrays], Arrays]) -> None:
    arrays = whole(index_of("red fox", "tan fox").to_arrays())
    with pytest.raises(ValueError, match=r"lexical snapshot|utf-8"):
        LexicalIndex.from_arrays(damage(arrays), CONSTANTS)


def test_a_snapshot_with_a_profile_that_has_no_constants_is_refused() -> None:
    arrays = whole(index_of("red apple", profile=Profile.DOC).to_arrays())
    with pytest.raises(ValueError, match="profiles"):
        LexicalIndex.from_arrays(arrays, {Profile.FACT: CONSTANTS[Profile.FACT]})
