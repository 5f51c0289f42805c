"""RemoteEmbedder against a scripted vendor on loopback."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from souvenir.core.errors import EmbeddingUnavailable, InvalidRequest, ServiceClosing, SouvenirError
from souvenir.core.settings import EmbedProvider, Settings
from souvenir.core.types import LoadableEmbedder
from souvenir.models.embedding.factory import embedder_of
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder
from souvenir.models.embedding.remote import RemoteEmbedder
from souvenir.models.embedding.specs import ModelSpec
from souvenir.models.providers.endpoints import EmbeddingEndpoint
from souvenir.retrieval.preparation import split_passages
from tests.fake_embedder import FakeEmbedder
from tests.vendors.embeddings import DIM, VendorServer, answer, ollama_error, openai_error, vectors_of
from tests.vendors.server import Reply

KEY = "sk-proj-Zm9vYmFyYmF6"
SECRET_TEXT = "Margarethe owes nine hundred crowns"

Embedding = Callable[..., LoadableEmbedder]


@pytest.fixture
def embedding(vendor: VendorServer) -> Iterator[Embedding]:
    """Create an embedder that calls the vendor, with additional settings."""
    with ExitStack() as opened:

        def make(**values: Any) -> LoadableEmbedder:
            defaults = {
                "embed_provider": "openai",
                "embed_model": "their-model",
                "embed_dim": DIM,
                "embed_api_key": KEY,
                "embed_base_url": f"{vendor.url}/v1",
                "embed_rest_s": 0,
                "embed_timeout_s": 20,
            }
            return opened.enter_context(closing(embedder_of(Settings(**{**defaults, **values}))))

        yield make


def ollama() -> LoadableEmbedder:
    return embedder_of(Settings(embed_provider=EmbedProvider.OLLAMA))


# --- what it is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "model_id", "max_tokens"),
    [
        ({"embed_provider": "openai", "openai_api_key": KEY}, "openai/text-embedding-3-small/1536", 510),
        (
            {"embed_provider": "openai", "openai_api_key": KEY, "embed_dim": 256},
            "openai/text-embedding-3-small/256",
            510,
        ),
        ({"embed_provider": "ollama"}, "ollama/all-minilm/384", 169),
        ({"embed_provider": "ollama", "embed_model": "snowflake-arctic-embed:22m"}, None, 325),
        ({"embed_provider": "ollama", "embed_model": "mxbai-embed-large:latest"}, None, 325),
        ({"embed_provider": "ollama", "embed_model": "new-model", "embed_dim": 7}, "ollama/new-model/7", 340),
    ],
)
def test_id_and_dimension_are_known_without_the_network(values, model_id, max_tokens):
    embedder = embedder_of(Settings(**values))
    assert isinstance(embedder, RemoteEmbedder)
    assert model_id in (None, embedder.model_id)
    assert embedder.model_id.endswith(f"/{embedder.dim}")
    assert embedder.max_tokens == max_tokens
    assert embedder.known_share("Xylophagous 木") == 1.0
    assert not embedder.ready


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"embed_provider": "openai"}, "set EMBED_API_KEY or OPENAI_API_KEY"),
        ({"embed_provider": "openai", "embed_api_key": "k\u00e9y"}, "holds signs that no key has"),
        ({"embed_provider": "openai", "embed_api_key": KEY, "embed_model": "other"}, "say it in EMBED_DIM"),
        ({"embed_provider": "openai", "embed_api_key": KEY, "embed_dim": 1537}, "1536 numbers at most"),
        ({"embed_provider": "ollama", "ollama_base_url": "ftp://localhost"}, "OLLAMA_BASE_URL is not an address"),
        ({"embed_provider": "openai", "embed_base_url": "http://"}, "EMBED_BASE_URL is not an address"),
        ({"embed_provider": "openai", "embed_base_url": "http://[gpu/v1"}, "EMBED_BASE_URL is not an address"),
        ({"embed_provider": "openai", "embed_base_url": "http://gpu:80000/v1"}, "EMBED_BASE_URL is not an address"),
    ],
)
def test_the_error_of_incomplete_settings_names_them(values, sentence):
    with pytest.raises(InvalidRequest, match=sentence) as refused:
        embedder_of(Settings(**values))
    assert "k\u00e9y" not in refused.value.message


def test_loading_sends_no_request_and_closing_is_final(vendor, embedding):
    embedder = embedding()
    embedder.load()
    assert embedder.ready
    assert vendor.requests == []
    embedder.close()
    assert not embedder.ready
    with pytest.raises(ServiceClosing):
        embedder.embed_documents(["late"])


# --- the wire ------------------------------------------------------------------------------------------------------


def test_texts_become_unit_vectors_in_their_order(vendor, embedding):
    texts = ["red fox", "blue whale and red fox", "green"]
    vectors = embedding().embed_documents(texts)
    assert vectors == pytest.approx(FakeEmbedder().embed_documents(texts), abs=1e-6)
    assert vectors.dtype == np.float32
    [request] = vendor.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "their-model", "input": request.texts, "encoding_format": "base64"}


def test_a_server_without_base64_is_supported(vendor, embedding):
    vendor.base64 = False
    assert embedding().embed_documents(["red fox"]) == pytest.approx(vectors_of(["red fox"]) / 3, abs=1e-6)


def test_vectors_are_ordered_by_their_index(vendor, embedding):
    texts = ["one of three", "two", "three or more words"]
    embedder = embedding(embed_concurrency=1)
    vendor.replies.append(Reply(body=answer(vectors_of(sorted(texts, key=lambda t: -len(t))), order=[2, 0, 1])))
    assert embedder.embed_documents(texts) == pytest.approx(vectors_of(texts) / 3, abs=1e-6)


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_ollama_is_called_with_or_without_v1_and_without_openai_s_key(vendor, embedding, path):
    embedder = embedding(
        embed_provider="ollama",
        embed_base_url=None,
        ollama_base_url=vendor.url + path,
        embed_api_key=None,
        openai_api_key=KEY,
    )
    embedder.embed_query("where")
    [request] = vendor.requests
    assert request.path == "/v1/embeddings"
    assert KEY not in str(request.headers)


def test_shorter_vectors_are_requested_only_from_models_that_support_them(vendor, embedding):
    assert embedding(embed_model="text-embedding-3-large", embed_dim=64).embed_query("short").shape == (64,)
    assert vendor.requests[-1].body["dimensions"] == 64
    embedding().embed_query("long")
    assert "dimensions" not in vendor.requests[-1].body


def test_queries_and_documents_get_the_model_s_prefixes(vendor, embedding):
    embedder = embedding(embed_model="nomic-embed-text")
    embedder.embed_documents(["a fact"])
    embedder.embed_query("a question")
    assert vendor.batches == [["search_document: a fact"], ["search_query: a question"]]


def test_blank_texts_have_a_fixed_vector_and_are_never_sent(vendor, embedding):
    vectors = embedding().embed_documents(["", "red fox", " \n\t "])
    assert vendor.batches == [["red fox"]]
    assert vectors[0] @ vectors[2] == 1.0
    assert vectors[1] == pytest.approx(vectors_of(["red fox"])[0] / 3, abs=1e-6)
    assert embedding().embed_documents([]).shape == (0, DIM)


def test_a_lone_surrogate_is_refused_and_not_sent(vendor, embedding):
    with pytest.raises(InvalidRequest, match="not valid Unicode"):
        embedding().embed_documents(["half \ud83d a pair"])
    assert vendor.requests == []


# --- batches -------------------------------------------------------------------------------------------------------


def test_a_batch_respects_the_maximum_number_of_texts(vendor, embedding):
    texts = [f"text {number}" for number in range(23)]
    vectors = embedding(embed_batch_size=5).embed_documents(texts)
    assert vectors == pytest.approx(vectors_of(texts) / 3, abs=1e-6)
    assert sorted(len(batch) for batch in vendor.batches) == [3, 5, 5, 5, 5]


def test_a_batch_respects_the_token_limit_of_openai(vendor, embedding):
    embedding(embed_batch_size=2048).embed_documents(["word " * 20_000] * 7)
    assert sum(len(batch) for batch in vendor.batches) == 7
    assert all(sum(len(text.encode()) for text in batch) <= 300_000 for batch in vendor.batches)


def test_a_search_does_not_wait_for_an_import(vendor, embedding):
    embedder = embedding(embed_concurrency=2, embed_batch_size=1)
    vendor.replies.append(Reply(waits=True))
    with ThreadPoolExecutor(1) as threads:
        importing = threads.submit(embedder.embed_documents, ["a", "b", "c"])
        assert vendor.arrived.acquire(timeout=30)
        assert embedder.embed_query("now").shape == (DIM,)
        assert not importing.done()
        vendor.go_on.set()
        assert importing.result(30).shape == (3, DIM)


def test_a_query_is_requested_once_and_cached(vendor, embedding):
    embedder = embedding()
    assert embedder.embed_query("again") is embedder.embed_query("again")
    assert len(vendor.requests) == 1


def test_a_long_query_gets_the_mean_direction_of_its_windows(vendor, embedding):
    embedder = embedding(embed_provider="ollama", embed_model="all-minilm", embed_api_key=None)
    words = " ".join(f"word{number}" for number in range(400))
    vector = embedder.embed_query(words)
    windows = [window for batch in vendor.batches for window in batch]
    assert len(windows) > 1
    assert sorted(windows, key=words.index) == _cut_at(words, [words.index(window) for window in windows])
    assert all(len(embedder.token_offsets(window)) <= embedder.max_tokens for window in windows)
    mean = (vectors_of(windows) / 3).mean(axis=0)
    assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def _cut_at(text: str, starts: list[int]) -> list[str]:
    return [text[start:end] for start, end in pairwise([*sorted(starts), len(text)])]


# --- length --------------------------------------------------------------------------------------------------------


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=300))
def test_every_character_belongs_to_a_token_of_at_most_four(text):
    offsets = ollama().token_offsets(text)
    covered = "".join(text[start:end] for start, end in offsets)
    assert covered == "".join(sign for sign in text if not sign.isspace())
    assert all(0 < end - start <= 4 for start, end in offsets)


@pytest.mark.parametrize(
    "text",
    [
        "The conference about lighthouses begins on Tuesday, and Anna will not be there. ",
        "我昨天在北京买了一台新电脑，价格是五千元。",
        "Rechtsschutzversicherungsgesellschaften veröffentlichen Geschwindigkeitsbegrenzungen. ",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301 ",
        "getElementById(setTimeoutMillis, 86400000);\n",
    ],
)
def test_a_passage_fits_in_the_smallest_window(text):
    embedder, word_pieces = ollama(), OnnxEmbedder()
    passages, _ = split_passages(text * 60, embedder.token_offsets, max_tokens=embedder.max_tokens)
    assert len(passages) > 1
    assert max(len(word_pieces.token_offsets(passage)) for passage in passages) <= 254


def test_a_text_rejected_as_too_long_is_embedded_in_halves(vendor, embedding):
    vendor.max_text_chars = 30
    long, short = "one two three four five six seven eight", "short"
    vectors = embedding().embed_documents([long, short])
    assert vectors[1] == pytest.approx(vectors_of([short])[0] / 3, abs=1e-6)
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-5)
    assert "".join(text for batch in vendor.batches[-2:] for text in batch).replace(short, "") == long


# --- failures ------------------------------------------------------------------------------------------------------

GOOD = vectors_of([SECRET_TEXT])
NO_NUMBERS: dict[str, Any] = {
    "no JSON": b"<html>Bad gateway</html>",
    "half of it": json.dumps(answer(GOOD)).encode()[:100],
    "nothing in it": {},
    "a list": [],
    "null": b"null",
    "an empty list": {"data": []},
    "two for one": answer(np.repeat(GOOD, 2, axis=0)),
    "the same twice": {"data": answer(GOOD)["data"] * 2},
    "another index": {"data": [{"index": 7, "embedding": GOOD[0].tolist()}]},
    "no index": {"data": [{"embedding": GOOD[0].tolist()}]},
    "NaN": answer(np.full((1, DIM), np.nan, dtype=np.float32)),
    "infinity": answer(np.full((1, DIM), np.inf, dtype=np.float32), as_base64=True),
    "zeros": answer(0 * GOOD),
    "words": {"data": [{"index": 0, "embedding": ["0.1"] * DIM}]},
    "truths": {"data": [{"index": 0, "embedding": [True] * DIM}]},
    "nothing for a vector": {"data": [{"index": 0, "embedding": None}]},
    "no base64": {"data": [{"index": 0, "embedding": "%%%%"}]},
    "half a float": {"data": [{"index": 0, "embedding": "AAAAAAA="}]},
    "vectors in a vector": {"data": [{"index": 0, "embedding": [[0.1] * DIM]}]},
    "numbers beyond all": b'{"data": [{"index": 0, "embedding": [' + b"1e999, " * (DIM - 1) + b"1]}]}",
    "brackets": b"[" * 100_000,
    "more than it can be": b'{"data": [' + b" " * 200_000,
}


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_an_answer_without_usable_vectors_is_refused(vendor, embedding, name):
    vendor.replies.append(Reply(body=NO_NUMBERS[name]))
    with pytest.raises(EmbeddingUnavailable, match="gave no usable vectors"):
        embedding().embed_documents([SECRET_TEXT])


def test_vectors_of_another_length_name_the_setting_to_correct(vendor, embedding):
    vendor.replies.append(Reply(body=answer(vectors_of(["x"], 128))))
    with pytest.raises(EmbeddingUnavailable, match="128 numbers where 256 were expected; correct EMBED_MODEL or EMBED"):
        embedding().embed_documents(["x"])


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (openai_error(401, f"Incorrect API key provided: {KEY}.", "invalid_api_key"), "refused the key"),
        (openai_error(403, "Country not supported"), "refused the key"),
        (ollama_error(404, 'model "their-model" not found, try pulling it first'), "has no model 'their-model'"),
        (openai_error(400, f"cannot read: {SECRET_TEXT}"), "refused the text"),
        (Reply(307, b"", {"Location": "http://127.0.0.1:1/v1/embeddings"}), "failed with status 307"),
    ],
)
def test_permanent_errors_are_not_retried(vendor, embedding, reply, sentence):
    vendor.replies.append(reply)
    with pytest.raises(EmbeddingUnavailable, match=sentence):
        embedding().embed_documents([SECRET_TEXT])
    assert len(vendor.requests) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_transient_errors_are_retried(vendor, embedding, status):
    vendor.replies.extend([openai_error(status, "a moment", retry_after="0")] * 2)
    assert embedding().embed_query("again").shape == (DIM,)
    assert len(vendor.requests) == 3


def test_a_call_is_tried_at_most_three_times(vendor, embedding):
    vendor.replies.extend([openai_error(500, "broken", retry_after_ms="1")] * 9)
    with pytest.raises(EmbeddingUnavailable, match="failed with status 500"):
        embedding().embed_query("again")
    assert len(vendor.requests) == 3


def test_a_retry_after_the_deadline_is_skipped(vendor, embedding):
    vendor.replies.append(openai_error(429, "Rate limit reached", "rate_limit_exceeded", retry_after="60"))
    with pytest.raises(EmbeddingUnavailable, match="takes no more requests now"):
        embedding().embed_query("now")
    assert len(vendor.requests) == 1


@pytest.mark.parametrize("reply", [Reply(waits=True), Reply(drips=True)])
def test_a_slow_vendor_times_out(vendor, embedding, reply):
    vendor.replies.extend([reply] * 3)
    with pytest.raises(EmbeddingUnavailable, match=r"did not answer within 0\.2 s"):
        embedding(embed_timeout_s=0.2).embed_query("now")


def test_a_failure_opens_the_circuit_breaker(vendor, embedding):
    embedder = embedding(embed_rest_s=600)
    vendor.replies.append(openai_error(401, "Incorrect API key"))
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailable, match="refused the key"):
            embedder.embed_query("now")
    assert len(vendor.requests) == 1


def test_a_refused_text_does_not_affect_the_next_one(vendor, embedding):
    embedder = embedding(embed_rest_s=600)
    vendor.replies.append(openai_error(400, "no"))
    with pytest.raises(EmbeddingUnavailable):
        embedder.embed_query("bad")
    assert embedder.embed_query("good").shape == (DIM,)


def test_the_circuit_breaker_closes_when_the_vendor_is_back(vendor, embedding):
    embedder = embedding()
    vendor.stop()
    with pytest.raises(EmbeddingUnavailable, match="cannot be reached"):
        embedder.embed_query("where")
    vendor.start()
    assert embedder.embed_query("where").shape == (DIM,)


def test_closing_does_not_wait_for_a_retry(vendor, embedding):
    embedder = embedding(embed_timeout_s=600)
    vendor.replies.append(openai_error(503, "restarting", retry_after="500"))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(embedder.embed_query, "late")
        assert vendor.arrived.acquire(timeout=30)
        embedder.close()
        assert isinstance(waiting.exception(30), SouvenirError)


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
def test_log_lines_and_errors_contain_neither_key_nor_text(vendor, embedding, caplog, monkeypatch, level):
    caplog.set_level(level)
    embedder = embedding()
    embedder.embed_documents([SECRET_TEXT])
    vendor.replies.extend(
        [
            openai_error(401, f"Incorrect API key provided: {KEY}"),
            openai_error(400, f"cannot read {SECRET_TEXT}"),
            Reply(body={"data": SECRET_TEXT}),
        ]
    )
    shown = []
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailable) as failure:
            embedder.embed_documents([SECRET_TEXT])
        chain: BaseException | None = failure.value
        while chain is not None:
            shown.append(repr(chain))
            chain = chain.__cause__ or chain.__context__
    shown += [record.getMessage() for record in caplog.records]
    assert not any(KEY in line or "Margarethe" in line for line in shown), shown
    settings = Settings(embed_provider=EmbedProvider.OPENAI, embed_api_key=SecretStr(KEY))
    assert KEY not in repr(settings)
    assert KEY not in repr(EmbeddingEndpoint.of(settings, ModelSpec.of(settings)))


def test_openai_base_url_gets_the_texts_and_the_key_as_with_the_sdk(vendor, embedding, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", f"{vendor.url}/v1")
    embedding(embed_base_url=None, embed_api_key=None, openai_api_key=KEY).embed_query("where")
    [request] = vendor.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"


def test_a_server_named_by_embed_base_url_gets_no_key_of_openai(vendor, embedding):
    embedding(embed_api_key=None, openai_api_key=KEY).embed_query("where")
    [request] = vendor.requests
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("gpu", "http://gpu:11434/v1"),
        ("gpu:8080", "http://gpu:8080/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("https://gpu/ollama/", "https://gpu/ollama/v1"),
    ],
)
def test_ollama_host_is_read_as_its_own_client_does(monkeypatch, host, url):
    monkeypatch.setenv("OLLAMA_HOST", host)
    settings = Settings(embed_provider=EmbedProvider.OLLAMA)
    assert EmbeddingEndpoint.of(settings, ModelSpec.of(settings)).base_url == url
