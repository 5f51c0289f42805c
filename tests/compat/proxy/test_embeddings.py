"""Vectors in OpenAI's form: those of the service's own model, with the real SDK."""

from __future__ import annotations

import httpx
import numpy as np
import openai
import pytest

from tests.compat.proxy.conftest import Proxied


def test_the_vectors_are_those_of_the_services_model(proxied: Proxied):
    embedder = proxied.service.app.state.service.engine.models.serving.embedder
    texts = ["My cat is called Otto.", "It rains."]
    with proxied.openai() as client:
        # The SDK asks for base64 by default.
        packed = client.embeddings.create(model="any", input=texts)
        listed = client.embeddings.create(model="any", input=texts[0], encoding_format="float")
    expected = embedder.embed_documents(texts)
    assert np.allclose([one.embedding for one in packed.data], expected, atol=1e-6)
    assert np.allclose(listed.data[0].embedding, expected[0], atol=1e-6)
    assert [one.index for one in packed.data] == [0, 1]
    assert packed.model == embedder.model_id
    assert packed.usage.total_tokens == sum(embedder.token_count(text) for text in texts)
    assert proxied.vendor.requests == []


def test_a_long_text_has_one_unit_vector(proxied: Proxied):
    with proxied.openai() as client:
        [made] = client.embeddings.create(model="any", input=["cat " * 3000 + "dog " * 3000]).data
    assert np.linalg.norm(made.embedding) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": [[1, 2]]}, "send texts"),
        ({"input": [1, 2]}, "send texts"),
        ({}, "input"),
        ({"input": "a", "dimensions": 3}, "dimensions"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": ["a"] * 2049}, "input"),
    ],
)
def test_what_cannot_be_embedded_is_refused_in_openais_form(proxied: Proxied, body: dict[str, object], part: str):
    answer = httpx.post(f"{proxied.service.url}/v1/embeddings", json={"model": "any", **body})
    assert answer.status_code == 422
    assert part in answer.json()["error"]["message"]
    with proxied.openai() as client, pytest.raises(openai.UnprocessableEntityError):
        client.post("/embeddings", cast_to=object, body={"model": "any", **body})
