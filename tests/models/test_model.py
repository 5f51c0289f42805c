"""The committed model: vectors of golden texts, their distance to float32, and independence of batches.

tests/golden/vectors.npz is written by scripts/build_model.py; scripts/compare_vectors.py prints the tested values.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from scripts.compare_vectors import GOLDEN, MODEL, Model, cosines, golden_rows
from scripts.encoder_graph import PAIR_LIMIT, TOKEN_OUTPUT, EncoderGraph, Outliers, TokenProjection, quantised_weight
from scripts.reference_encoder import Architecture, Weights, encode, encode_tokens

MAX_TOTAL_BYTES = 45 * 1024 * 1024


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(str(MODEL / "model.onnx"))


@pytest.fixture(scope="module")
def vectors(model) -> NDArray[np.float32]:
    """Vectors of the golden texts, by the committed model on this processor."""
    return np.concatenate([model.vectors([row]) for row in golden_rows()])


def test_the_files_match_the_manifest_and_are_small_enough_to_commit():
    manifest = json.loads((MODEL / "manifest.json").read_text(encoding="utf-8"))
    content = (MODEL / manifest["onnx"]["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == manifest["onnx"]["sha256"]
    assert len(content) == manifest["onnx"]["size_bytes"]
    assert sum(path.stat().st_size for path in MODEL.rglob("*") if path.is_file()) <= MAX_TOTAL_BYTES


def test_golden_texts_get_the_vectors_of_the_build_within_processor_differences(vectors):
    """CONTRIBUTING.md has the differences and measurements on several processors; the smallest is 0.99965."""
    built = np.load(GOLDEN / "vectors.npz", allow_pickle=False)["built"]
    similar = cosines(vectors, built)
    assert similar.min() >= 0.9995
    assert similar.mean() >= 0.9998
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_golden_texts_get_vectors_close_to_float32_on_every_processor(vectors):
    """A processor with errors, for example by overflow of 16-bit sums, would be far from the reference."""
    reference = np.load(GOLDEN / "vectors.npz", allow_pickle=False)["reference"]
    to_reference = cosines(vectors, reference)
    assert to_reference.min() >= 0.998
    assert to_reference.mean() >= 0.9993


def test_the_cosine_in_the_manifest_equals_that_of_the_golden_vectors():
    stated = json.loads((MODEL / "manifest.json").read_text(encoding="utf-8"))["cosine_to_float32"]
    with np.load(GOLDEN / "vectors.npz", allow_pickle=False) as golden:
        measured = cosines(golden["built"], golden["reference"])
    assert stated["texts"] == len(measured)
    assert stated["min"] == pytest.approx(measured.min(), abs=1e-5)
    assert stated["mean"] == pytest.approx(measured.mean(), abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_a_vector_does_not_depend_on_batch_neighbours_or_padding(model, seed):
    random = np.random.default_rng(seed)
    lengths = random.choice([1, 2, 3, 8, 20, 60, 180, 254], size=7)
    rows = [[101, *map(int, random.integers(1000, 30000, length)), 102] for length in lengths]
    alone = np.concatenate([model.vectors([row]) for row in rows])
    together = model.vectors(rows, padded_to=int(random.integers(2, 257)))
    # A last bit may move an activation by one step here too: 0.99991 on a processor with AVX only.
    assert cosines(alone, together).min() >= 0.9995


def test_no_two_neighbouring_weights_can_overflow_the_16_bits_of_older_processors():
    graph = onnx.load(MODEL / "model.onnx").graph
    int8 = [value for value in graph.initializer if value.data_type == onnx.TensorProto.INT8]
    assert len(int8) == 4 * 6
    for value in int8:
        integers = numpy_helper.to_array(value).astype(np.int32)
        same_sign = integers[0::2] * integers[1::2] > 0
        assert np.abs(integers[0::2] + integers[1::2])[same_sign].max() <= PAIR_LIMIT
        assert np.abs(integers).max() <= 127


def test_quantised_columns_are_within_half_a_step_of_the_weights():
    weight = np.random.default_rng(0).normal(size=(64, 10)).astype(np.float32)
    weight[:, 3] = 0
    integers, scales = quantised_weight(weight)
    assert (np.abs(integers * scales - weight) <= scales / 2 + 1e-6).all()


# --- the graph, against the reference, on weights that any machine can make ---------------------------------------

TINY = Architecture(layers=2, heads=2, epsilon=1e-12)
TINY_OUTLIERS = Outliers(hidden=(5, 40), intermediate=((3, 7), ()))


TINY_PROJECTION = TokenProjection(
    np.linspace(-1, 1, 64, dtype=np.float32),
    np.random.default_rng(3).normal(size=(64, 8)).astype(np.float32),
)


def tiny_graph(weights: Weights) -> EncoderGraph:
    return EncoderGraph(weights, TINY, TINY_OUTLIERS, 16, TINY_PROJECTION)


@pytest.fixture(scope="module")
def tiny_weights() -> Weights:
    """A small BERT with random weights, and hidden channels 5 and 40 as large as in the real one."""
    random = np.random.default_rng(7)
    dim, wide, words, positions = 64, 128, 50, 16

    def matrix(*shape: int) -> NDArray[np.float32]:
        return random.normal(0, 0.15, shape).astype(np.float32)

    def norm() -> dict[str, NDArray[np.float32]]:
        scale = 1 + matrix(dim)
        scale[[5, 40]] = 12
        return {"weight": scale, "bias": matrix(dim)}

    parts = {
        "embeddings.word_embeddings": {"weight": matrix(words, dim)},
        "embeddings.position_embeddings": {"weight": matrix(positions, dim)},
        "embeddings.token_type_embeddings": {"weight": matrix(2, dim)},
        "embeddings.LayerNorm": norm(),
    }
    for layer in range(TINY.layers):
        prefix = f"encoder.layer.{layer}"
        for name in ("query", "key", "value"):
            parts[f"{prefix}.attention.self.{name}"] = {"weight": matrix(dim, dim), "bias": matrix(dim)}
        parts[f"{prefix}.attention.output.dense"] = {"weight": matrix(dim, dim), "bias": matrix(dim)}
        parts[f"{prefix}.attention.output.LayerNorm"] = norm()
        parts[f"{prefix}.intermediate.dense"] = {"weight": matrix(wide, dim), "bias": matrix(wide)}
        parts[f"{prefix}.output.dense"] = {"weight": matrix(dim, wide), "bias": matrix(dim)}
        parts[f"{prefix}.output.LayerNorm"] = norm()
    return {f"{name}.{kind}": values for name, part in parts.items() for kind, values in part.items()}


def test_the_graph_equals_the_reference(tiny_weights):
    model = Model(tiny_graph(tiny_weights).model().SerializeToString())
    rows = [[1, 2], [1, 30, 31, 32, 33, 2], [1, *range(10, 24), 2], [49]]
    reference = np.stack([encode(tiny_weights, TINY, row) for row in rows])
    assert cosines(model.vectors(rows), reference).min() >= 0.999


def test_token_vectors_are_projected_from_the_reference_at_any_padding(tiny_weights):
    model = Model(tiny_graph(tiny_weights).model().SerializeToString())
    rows = [[1, 30, 31, 32, 33, 2], [1, *range(10, 24), 2]]
    for row, found in zip(rows, model.vectors(rows, output=TOKEN_OUTPUT), strict=True):
        own = encode_tokens(tiny_weights, TINY, row)
        expected = np.asarray((own - TINY_PROJECTION.mean) @ TINY_PROJECTION.matrix, dtype=np.float32)
        assert np.linalg.norm(found[: len(row)], axis=1) == pytest.approx(1, abs=1e-5)
        assert cosines(found[: len(row)], expected).min() >= 0.998


def test_the_same_weights_give_the_same_bytes(tiny_weights):
    first, second = (
        tiny_graph(dict(weights)).model().SerializeToString(deterministic=True)
        for weights in (tiny_weights, dict(reversed(tiny_weights.items())))
    )
    assert first == second
