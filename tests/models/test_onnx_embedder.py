"""OnnxEmbedder with the shipped model."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.errors import InvalidRequest, ServiceClosing
from souvenir.core.telemetry import Instruments
from souvenir.core.types import Embedder
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder
from souvenir.models.embedding.tokens import ModelTokenizer
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


def test_documents_become_unit_vectors_in_order(embedder):
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dim)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert embedder.embed_documents([text])[0] @ vector >= 0.9999


def test_texts_of_similar_meaning_are_nearer_than_others(embedder):
    question, answer, other = embedder.embed_documents(
        ["Where does Anna work?", "Anna has a job at the city hospital.", "The soup needs more salt."]
    )
    assert question @ answer > 0.5 > question @ other


def test_an_empty_batch_gives_no_rows_and_does_not_load_the_model():
    fresh = OnnxEmbedder()
    assert fresh.embed_documents([]).shape == (0, 384)
    assert not fresh.ready


def test_id_and_dimension_are_known_before_the_model_is_loaded():
    fresh: Embedder = OnnxEmbedder()
    assert fresh.model_id == "all-MiniLM-L6-v2@53aa51172d14"
    assert (fresh.dim, fresh.max_tokens, fresh.token_space) == (384, 254, "b254af96")
    assert isinstance(fresh, OnnxEmbedder)
    assert not fresh.ready


def test_a_document_may_fill_the_window_and_not_more(embedder):
    assert embedder.embed_documents(["word " * embedder.max_tokens]).shape == (1, 384)
    with pytest.raises(InvalidRequest, match="Text 1 has 255 tokens"):
        embedder.embed_documents(["short", "word " * (embedder.max_tokens + 1)])


def test_a_lone_surrogate_is_refused(embedder):
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
def test_the_known_share_counts_tokens_known_to_the_model(embedder, text, share):
    assert embedder.known_share(text) == pytest.approx(share)


def test_the_known_share_is_computed_in_linear_time(embedder):
    assert embedder.known_share("x y " * 6_000) == 1.0
    assert_linear(embedder.known_share, "x y " * 6_000)


def test_token_offsets_are_not_cut_at_the_window(embedder):
    assert len(embedder.token_offsets("word " * 1000)) == 1000


@given(
    st.lists(
        st.sampled_from(
            ["a", "Ünï", "dog ", "\n", "\r\n", "\t", "\u2028", "\u200b", "12.5", "我", "[SEP]", "'s", "x" * 300]
        ),
        max_size=30,
    )
)
def test_the_tokens_of_a_text_are_counted_line_by_line(embedder, parts):
    text = "".join(parts)
    for _ in range(2):
        assert embedder.token_count(text) == len(embedder.token_offsets(text))


def test_counting_refuses_a_lone_surrogate_and_is_quick_the_second_time(embedder, monkeypatch):
    with pytest.raises(InvalidRequest, match="not valid Unicode"):
        embedder.token_count("half \ud83d a pair")
    text = "\n".join(f"a line that nobody counted before, {number}" for number in range(50))
    count = embedder.token_count(text)
    monkeypatch.setattr(ModelTokenizer, "_encode", None)
    assert embedder.token_count(text) == count


# --- queries -------------------------------------------------------------------------------------------------------


def test_a_query_gets_the_vector_of_the_same_document_as_read_only(embedder):
    vector = embedder.embed_query(TEXTS[0])
    assert vector.shape == (384,)
    assert vector @ embedder.embed_documents([TEXTS[0]])[0] >= 0.9999
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1


def test_the_query_cache_evicts_the_least_recently_used_query():
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


def test_a_cache_of_size_zero_stores_nothing():
    forgetful = OnnxEmbedder(threads=1, query_cache_size=0)
    assert forgetful.embed_query("again") is not forgetful.embed_query("again")
    forgetful.close()


def test_passages_get_the_vectors_of_their_content_tokens(embedder):
    text = "Caroline adopted two cats in March, and they were hers."
    embedded = embedder.embed_passages([text, "", TEXTS[-1]])
    assert (embedded.vectors == embedder.embed_documents([text, "", TEXTS[-1]])).all()
    tokens, none, many = embedded.tokens
    query = embedder.query_tokens(text)
    assert [text[start:end] for start, end in query.spans] == ["Caroline", "adopted", "two", "cats", "March", "hers"]
    assert tokens.ids.tolist() == query.ids.tolist()
    assert np.abs(tokens.codes / 127 - query.vectors).max() <= 0.05
    assert np.linalg.norm(query.vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert (len(none.ids), len(many.ids)) == (0, 64)


def test_tokens_of_a_query_come_from_the_run_that_made_its_vector():
    embedder = OnnxEmbedder(threads=1)
    vector = embedder.embed_query("Who adopted the cats?")
    embedder.close()
    tokens = embedder.query_tokens("Who adopted the cats?")
    assert tokens is not None
    assert len(tokens.ids) == 2
    assert not tokens.vectors.flags.writeable
    assert embedder.embed_query("Who adopted the cats?") is vector


def test_a_long_query_has_the_tokens_of_its_first_window(embedder):
    text = "cat " * 300
    tokens = embedder.query_tokens(text)
    assert len(tokens.ids) == 150
    assert tokens.spans[-1] == (149 * 4, 149 * 4 + 3)


def test_a_query_over_the_window_gets_the_mean_direction_of_its_windows(embedder):
    words = (["cat", "dog", "house", "tree", "river"] * 200)[:600]
    windows = embedder.embed_documents([" ".join(words[start : start + 200]) for start in (0, 200, 400)])
    mean = windows.mean(axis=0)
    assert embedder.embed_query(" ".join(words)) @ (mean / np.linalg.norm(mean)) >= 0.9999


def test_a_query_of_ten_thousand_characters_has_a_vector(embedder):
    assert np.linalg.norm(embedder.embed_query("long query 12345 " * 588)) == pytest.approx(1, abs=1e-5)


# --- many at once, and the end -------------------------------------------------------------------------------------


def test_concurrent_requests_get_the_same_vectors_as_single_ones(embedder):
    texts = [f"{text[:400]} {number}" for number in range(8) for text in TEXTS]
    expected = np.concatenate([embedder.embed_documents([text]) for text in texts])
    with ThreadPoolExecutor(8) as pool:
        queries = list(pool.map(embedder.embed_query, texts))
        documents = list(pool.map(embedder.embed_documents, [texts[start::7] for start in range(7)]))
    assert (np.stack(queries) * expected).sum(axis=1).min() >= 0.9999
    for start, vectors in enumerate(documents):
        assert (vectors * expected[start::7]).sum(axis=1).min() >= 0.9999


def test_waiting_callers_are_notified_when_the_model_is_loaded():
    fresh = OnnxEmbedder(threads=1)
    assert not fresh.wait_ready(0)
    with ThreadPoolExecutor(4) as pool:
        waiting = pool.submit(fresh.wait_ready, 60)
        loads = [pool.submit(fresh.load) for _ in range(3)]
        assert waiting.result()
        assert [load.result() for load in loads] == [None, None, None]
    assert fresh.ready
    fresh.close()


def test_a_closed_embedder_refuses_requests_and_close_is_idempotent():
    closed = OnnxEmbedder(threads=1)
    closed.load()
    closed.close()
    closed.close()
    assert not closed.ready
    with pytest.raises(ServiceClosing):
        closed.embed_query("too late")
