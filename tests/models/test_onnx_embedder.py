"""OnnxEmbedder with the model that is shipped."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from souvenir.core.errors import InvalidRequest, ServiceClosing
from souvenir.core.telemetry import Instruments
from souvenir.core.types import Embedder
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder
from tests.growth import assert_linear

TEXTS = [
    "Caroline adopted two cats in March.",
    "hi",
    "我昨天在北京买了一台新电脑。",
    "The database is backed up every night at two, and the copies are kept for ten days on another machine.",
    "",
    "👍 café naïve",
    " ".join(["The harbour had a lighthouse and the ferry ran twice a day."] * 18),
]


@pytest.fixture(scope="module")
def embedder() -> Iterator[OnnxEmbedder]:
    embedder = OnnxEmbedder(threads=1)
    yield embedder
    embedder.close()


# --- vectors -------------------------------------------------------------------------------------------------------


def test_documents_become_unit_rows_in_the_order_of_the_texts(embedder):
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dim)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert embedder.embed_documents([text])[0] @ vector >= 0.9999


def test_texts_that_mean_the_same_are_nearer_than_others(embedder):
    question, answer, other = embedder.embed_documents(
        ["Where does Anna work?", "Anna has a job at the city hospital.", "The soup needs more salt."]
    )
    assert question @ answer > 0.5 > question @ other


def test_no_texts_give_no_rows_and_load_nothing():
    fresh = OnnxEmbedder()
    assert fresh.embed_documents([]).shape == (0, 384)
    assert not fresh.ready


def test_what_the_model_is_called_and_holds_is_known_before_it_is_loaded():
    fresh: Embedder = OnnxEmbedder()
    assert fresh.model_id == "all-MiniLM-L6-v2@53aa51172d14"
    assert (fresh.dim, fresh.max_tokens) == (384, 254)
    assert isinstance(fresh, OnnxEmbedder)
    assert not fresh.ready


def test_a_document_may_fill_the_window_and_not_more(embedder):
    assert embedder.embed_documents(["word " * embedder.max_tokens]).shape == (1, 384)
    with pytest.raises(InvalidRequest, match="Text 1 has 255 tokens"):
        embedder.embed_documents(["short", "word " * (embedder.max_tokens + 1)])


def test_half_a_surrogate_pair_is_refused_as_no_unicode(embedder):
    for call in (embedder.embed_query, embedder.token_offsets, lambda text: embedder.embed_documents([text])):
        with pytest.raises(InvalidRequest, match="not valid Unicode"):
            call("half \ud83d a pair")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, café!", ["Hello", ",", "café", "!"]),
        ("我的 👍🏽 naïve", ["我", "的", "👍🏽", "naïve"]),
        ("Souvenirs: 12.5", ["So", "uven", "irs", ":", "12", ".", "5"]),
        ("   ", []),
    ],
)
def test_token_offsets_are_character_spans_without_special_tokens(embedder, text, tokens):
    assert [text[start:end] for start, end in embedder.token_offsets(text)] == tokens


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("a known text", 1.0),
        ("", 1.0),
        ("fly 网 😀", 1 / 3),
        ("hydrochlorothiazide, fesetival, Donaudampfschifffahrtsgesellschaft on 2023-05-08", 1.0),
        ("c6849b025d71be491a608102d500a386", 0.0),
        ("who saw 0x8007045D", 2 / 9),
    ],
)
def test_the_known_share_is_that_of_the_tokens_that_are_words_to_the_model(embedder, text, share):
    assert embedder.known_share(text) == pytest.approx(share)


def test_the_known_share_of_the_longest_question_takes_no_longer_than_its_words(embedder):
    assert embedder.known_share("x y " * 6_000) == 1.0
    assert_linear(embedder.known_share, "x y " * 6_000)


def test_token_offsets_are_not_cut_at_the_window(embedder):
    assert len(embedder.token_offsets("word " * 1000)) == 1000


# --- queries -------------------------------------------------------------------------------------------------------


def test_a_query_gets_the_vector_of_the_same_document_and_nobody_can_change_it(embedder):
    vector = embedder.embed_query(TEXTS[0])
    assert vector.shape == (384,)
    assert vector @ embedder.embed_documents([TEXTS[0]])[0] >= 0.9999
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1


def test_the_last_queries_are_remembered_and_the_least_recently_used_is_forgotten():
    instruments = Instruments()
    small = OnnxEmbedder(threads=1, query_cache_size=2, instruments=instruments)
    first = small.embed_query("first")
    second = small.embed_query("second")
    assert small.embed_query("first") is first
    small.embed_query("third")
    assert small.embed_query("first") is first
    assert small.embed_query("second") is not second
    lookups = {
        result: instruments.registry.get_sample_value("souvenir_query_cache_lookups_total", {"result": result})
        for result in ("hit", "miss")
    }
    assert lookups == {"hit": 2, "miss": 4}
    assert instruments.registry.get_sample_value("souvenir_queue_depth", {"queue": "embedding"}) == 0
    small.close()


def test_a_cache_of_size_zero_remembers_nothing():
    forgetful = OnnxEmbedder(threads=1, query_cache_size=0)
    assert forgetful.embed_query("again") is not forgetful.embed_query("again")
    forgetful.close()


def test_a_query_over_the_window_gets_the_mean_direction_of_its_windows(embedder):
    words = (["cat", "dog", "house", "tree", "river"] * 200)[:600]
    windows = embedder.embed_documents([" ".join(words[start : start + 200]) for start in (0, 200, 400)])
    mean = windows.mean(axis=0)
    assert embedder.embed_query(" ".join(words)) @ (mean / np.linalg.norm(mean)) >= 0.9999


def test_a_query_of_ten_thousand_characters_has_a_vector(embedder):
    assert np.linalg.norm(embedder.embed_query("long query 12345 " * 588)) == pytest.approx(1, abs=1e-5)


# --- many at once, and the end -------------------------------------------------------------------------------------


def test_requests_of_many_threads_get_the_vectors_that_each_would_get_alone(embedder):
    texts = [f"{text[:400]} {number}" for number in range(8) for text in TEXTS]
    expected = np.concatenate([embedder.embed_documents([text]) for text in texts])
    with ThreadPoolExecutor(8) as pool:
        queries = list(pool.map(embedder.embed_query, texts))
        documents = list(pool.map(embedder.embed_documents, [texts[start::7] for start in range(7)]))
    assert (np.stack(queries) * expected).sum(axis=1).min() >= 0.9999
    for start, vectors in enumerate(documents):
        assert (vectors * expected[start::7]).sum(axis=1).min() >= 0.9999


def test_whoever_waits_for_the_model_hears_when_it_is_loaded():
    fresh = OnnxEmbedder(threads=1)
    assert not fresh.wait_ready(0)
    with ThreadPoolExecutor(4) as pool:
        waiting = pool.submit(fresh.wait_ready, 60)
        loads = [pool.submit(fresh.load) for _ in range(3)]
        assert waiting.result()
        assert [load.result() for load in loads] == [None, None, None]
    assert fresh.ready
    fresh.close()


def test_a_closed_embedder_refuses_and_can_be_closed_again():
    closed = OnnxEmbedder(threads=1)
    closed.load()
    closed.close()
    closed.close()
    assert not closed.ready
    with pytest.raises(ServiceClosing):
        closed.embed_query("too late")
