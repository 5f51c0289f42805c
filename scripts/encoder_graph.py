"""Writes a BERT encoder as an ONNX graph with 8-bit weights, mean pooling and normalisation inside.

A second output has a shorter unit vector of each token: a fixed mean is subtracted and the rest projected.

Every matrix product of the layers runs in integers: the rows of the left side are quantised one by one as they come
(each row has its own scale, so a vector never depends on its batch neighbours or on padding), the columns of the right
side were quantised here. Three things keep the result within a cosine of 0.999 of float32 on average:

- The few hidden channels with values far above the rest ("outliers", found by calibration) are multiplied in float32 in
  addition to the integer product (Dettmers et al. 2022, LLM.int8()). They are moved to the front of all hidden rows, so
  that taking them apart is a split; the last step puts the channels back in order.
- The same is done for the few intermediate channels that are as large, in the layers that have them.
- GELU is never below -0.17, so what follows it spends its 8 bits on the positive side.

Processors before VNNI add two neighbouring products in 16 bits and saturate. `quantised_weight` scales every column so
that this cannot happen; the integers, and so the vectors, are the same on every processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from scripts.reference_encoder import Architecture, Weights

MS = "com.microsoft"
IR_VERSION = 9
OPSET = 20
EMBEDDING_BLOCK = 32
"""Values of a word embedding that share one scale."""

ROW_ZERO = 128
GELU_ZERO = 28
"""The integer that represents 0 in a row after GELU: 28 steps below zero, 227 above."""

GELU_MINIMUM = -0.17
"""Just below the least value of GELU, -0.16997 at -0.7518."""

TOKEN_OUTPUT = "token_vectors"

PAIR_LIMIT = 128
"""Largest sum of two neighbouring weights: 255 * 128 = 32640 fits in 16 bits."""


@dataclass(frozen=True, slots=True)
class Outliers:
    """Channels that stay in float32: of the hidden rows, one list for all layers; of the intermediate, one a layer."""

    hidden: tuple[int, ...]
    intermediate: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class TokenProjection:
    """From a token vector t of the encoder to its shorter one, the direction of ``(t - mean) @ matrix``.

    :param mean: Shape (dim,). :param matrix: Shape (dim, shorter dim).
    """

    mean: NDArray[np.float32]
    matrix: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class QuantisedRows:
    """Names of the values that represent float32 rows: integers, a scale per row, and the channels kept in float32."""

    integers: str
    scales: str
    zero: str
    outliers: str | None


def quantised_weight(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Signed 8-bit columns of a matrix (inputs, outputs) and their scales; ``integers * scales`` is the matrix.

    Inputs 2i and 2i+1 are added in 16 bits by VPMADDUBSW, with a left side of up to 255: a column's scale is such that
    no pair of its integers with the same sign sums to more than `PAIR_LIMIT`.
    """
    even, odd = weight[0::2], weight[1::2]
    alone = np.maximum(np.abs(even), np.abs(odd))
    pairs = np.where(even * odd > 0, np.abs(even + odd), alone)
    # Half a step less than the limit, because each of the two may be rounded up by half a step and their sum by one.
    scales = np.maximum(alone.max(axis=0) / 127, pairs.max(axis=0) / (PAIR_LIMIT - 1))
    scales = np.where(scales == 0, 1, scales).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


class EncoderGraph:
    """Builds one graph: `EncoderGraph(...).model()`. Internal values are rows of tokens (batch * length, channels)."""

    def __init__(
        self,
        weights: Weights,
        architecture: Architecture,
        outliers: Outliers,
        max_length: int,
        projection: TokenProjection,
    ) -> None:
        self._weights = weights
        self._architecture = architecture
        self._outliers = outliers
        self._max_length = max_length
        self._projection = projection
        self._dim = int(weights["embeddings.LayerNorm.weight"].shape[0])
        rest = np.setdiff1d(np.arange(self._dim), np.array(outliers.hidden))
        self._order = np.concatenate([np.array(outliers.hidden, dtype=np.int64), rest])
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def model(self) -> onnx.ModelProto:
        """Return the graph: token ids and mask (batch, length), int64, to unit vectors, float32.

        The outputs are `sentence_embedding`, (batch, dim), and `token_vectors`, (batch, length, shorter dim); the token
        vectors of padding are meaningless.
        """
        self._shapes()
        rows = self._embedding()
        for layer in range(self._architecture.layers):
            rows = self._layer(layer, rows)
        self._pooling(rows)
        self._token_vectors(rows)
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
            for name in ("input_ids", "attention_mask")
        ]
        outputs = [
            helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", self._dim]),
            helper.make_tensor_value_info(
                TOKEN_OUTPUT, TensorProto.FLOAT, ["batch", "length", self._projection.matrix.shape[1]]
            ),
        ]
        graph = helper.make_graph(self._nodes, "encoder", inputs, outputs, list(self._constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MS, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="souvenir")

    # --- parts of the encoder ----------------------------------------------------------------------------------

    def _shapes(self) -> None:
        """Shared values: the mask in ORT's format, the shape (batch, length, dim) to restore, and zeros for rows."""
        self._node("Cast", ["attention_mask"], "mask_int32", to=TensorProto.INT32)
        self._node("Shape", ["input_ids"], "batch_and_length")
        self._node("Concat", ["batch_and_length", self._constant("dim", np.array([self._dim]))], "padded_shape", axis=0)
        self._node("Reshape", ["input_ids", self._constant("flat", np.array([-1]))], "flat_ids")
        self._node("Shape", ["flat_ids"], "row_count")
        for name, zero in (("row", ROW_ZERO), ("gelu", GELU_ZERO)):
            self._node(
                "Expand", [self._constant(f"{name}_zero", np.array(zero, np.uint8)), "row_count"], f"{name}_zeros"
            )

    def _embedding(self) -> str:
        words = self._weight("embeddings.word_embeddings.weight")[:, self._order]
        blocks = words.reshape(len(words), -1, EMBEDDING_BLOCK)
        scales = (np.abs(blocks).max(axis=-1) / 127).astype(np.float32)
        scales = np.where(scales == 0, 1, scales).astype(np.float32)
        integers = (np.rint(blocks / scales[..., None]) + 128).astype(np.uint8).reshape(words.shape)
        self._node(
            "GatherBlockQuantized",
            [self._constant("words", integers), "input_ids", self._constant("word_scales", scales)],
            "word_rows",
            domain=MS,
            bits=8,
            block_size=EMBEDDING_BLOCK,
            gather_axis=0,
            quantize_axis=1,
        )
        positions = self._weight("embeddings.position_embeddings.weight")[: self._max_length]
        positions = (positions + self._weight("embeddings.token_type_embeddings.weight")[0])[:, self._order]
        self._node("Shape", ["input_ids"], "length", start=1, end=2)
        self._node(
            "Slice", [self._constant("positions", positions), self._constant("start", np.array([0])), "length"], "here"
        )
        self._node("Add", ["word_rows", "here"], "embedded")
        self._node("Reshape", ["embedded", self._constant("as_rows", np.array([-1, self._dim]))], "embedded_rows")
        return self._normalised("embedded_rows", "embeddings.LayerNorm", "layer0_in")

    def _layer(self, layer: int, rows: str) -> str:
        here, source = f"layer{layer}", f"encoder.layer.{layer}"
        attended = self._attention(here, f"{source}.attention.self", rows)
        weight = self._weight(f"{source}.attention.output.dense.weight").T[:, self._order]
        projected = self._product(self._quantised(attended, split=False), weight, f"{here}_projected")
        middle = self._residual(projected, rows, f"{source}.attention.output", f"{here}_middle")
        narrowed = self._feed_forward(layer, middle)
        return self._residual(narrowed, middle, f"{source}.output", f"layer{layer + 1}_in")

    def _attention(self, here: str, source: str, rows: str) -> str:
        names = ("query", "key", "value")
        weight = np.concatenate([self._weight(f"{source}.{name}.weight").T for name in names], axis=1)[self._order]
        bias = np.concatenate([self._weight(f"{source}.{name}.bias") for name in names])
        together = self._product(self._quantised(rows, split=True), weight, f"{here}_qkv")
        flat = [f"{here}_{name}_rows" for name in names]
        self._node("Split", [together], *flat, axis=1, num_outputs=3)
        padded = [self._node("Reshape", [name, "padded_shape"], name.removesuffix("_rows")) for name in flat]
        inputs = [*padded, self._constant(f"{here}_qkv_bias", bias), "mask_int32"]
        self._node("MultiHeadAttention", inputs, f"{here}_heads", domain=MS, num_heads=self._architecture.heads)
        return self._node("Reshape", [f"{here}_heads", "as_rows"], f"{here}_attended")

    def _feed_forward(self, layer: int, rows: str) -> str:
        here, source = f"layer{layer}", f"encoder.layer.{layer}"
        widen = self._weight(f"{source}.intermediate.dense.weight").T[self._order].copy()
        bias = self._weight(f"{source}.intermediate.dense.bias").copy()
        narrow = self._weight(f"{source}.output.dense.weight").T[:, self._order].copy()
        kept = list(self._outliers.intermediate[layer])
        kept_widen, kept_bias, kept_narrow = widen[:, kept], bias[kept], narrow[kept]
        widen[:, kept], bias[kept], narrow[kept] = 0, 0, 0
        wide = self._product(self._quantised(rows, split=True), widen, f"{here}_wide")
        wide = self._gelu(wide, bias, f"{here}_intermediate")
        narrowed = self._product(self._quantised_after_gelu(wide), narrow, f"{here}_narrow")
        if not kept:
            return narrowed
        few = self._node("MatMul", [rows, self._constant(f"{here}_kept_widen", kept_widen)], f"{here}_kept_wide")
        few = self._gelu(few, kept_bias, f"{here}_kept")
        return self._node(
            "Gemm", [few, self._constant(f"{here}_kept_narrow", kept_narrow), narrowed], f"{here}_narrowed"
        )

    def _pooling(self, rows: str) -> None:
        """The mean over the tokens that the mask keeps, at length 1; a sum has the same direction as its mean."""
        self._node("Reshape", [rows, "padded_shape"], "tokens")
        self._node("Cast", ["attention_mask"], "mask_float", to=TensorProto.FLOAT)
        self._node("Unsqueeze", ["mask_float", self._constant("middle", np.array([1]))], "mask_row")
        self._node("MatMul", ["mask_row", "tokens"], "sums")
        self._node("Squeeze", ["sums", "middle"], "sum")
        self._node("Gather", ["sum", self._constant("order_back", np.argsort(self._order))], "sum_in_order", axis=1)
        self._node("LpNormalization", ["sum_in_order"], "sentence_embedding", axis=1, p=2)

    def _token_vectors(self, rows: str) -> None:
        matrix = self._projection.matrix[self._order]
        shift = self._constant("token_shift", -self._projection.mean @ self._projection.matrix)
        projected = self._node("Gemm", [rows, self._constant("token_projection", matrix), shift], "token_rows")
        self._node("LpNormalization", [projected], "token_unit_rows", axis=1, p=2)
        shape = self._constant("one_token_vector", np.array([matrix.shape[1]]))
        self._node("Concat", ["batch_and_length", shape], "token_shape", axis=0)
        self._node("Reshape", ["token_unit_rows", "token_shape"], TOKEN_OUTPUT)

    # --- rows and products -------------------------------------------------------------------------------------

    def _quantised(self, rows: str, *, split: bool) -> QuantisedRows:
        """Quantise each row with a separate scale, symmetric about zero; `split` separates outlier channels first."""
        kept = None
        if split:
            sizes = np.array([len(self._outliers.hidden), self._dim - len(self._outliers.hidden)])
            kept, rest = f"{rows}_kept", f"{rows}_rest"
            self._node("Split", [rows, self._constant("kept_and_rest", sizes)], kept, rest, axis=1)
            rows = rest
        self._node("Abs", [rows], f"{rows}_abs")
        self._node("ReduceMax", [f"{rows}_abs", self._constant("last", np.array([-1]))], f"{rows}_max", keepdims=0)
        step = self._constant("row_step", np.array(1 / (255 - ROW_ZERO), np.float32))
        return self._integers(rows, f"{rows}_max", step, "row_zero", kept)

    def _quantised_after_gelu(self, rows: str) -> QuantisedRows:
        self._node("ReduceMax", [rows, self._constant("last", np.array([-1]))], f"{rows}_largest", keepdims=0)
        # A row without large values still has to hold the least value of GELU.
        least = np.array(-GELU_MINIMUM / GELU_ZERO * (255 - GELU_ZERO), np.float32)
        self._node("Max", [f"{rows}_largest", self._constant("gelu_least_max", least)], f"{rows}_max")
        step = self._constant("gelu_step", np.array(1 / (255 - GELU_ZERO), np.float32))
        return self._integers(rows, f"{rows}_max", step, "gelu_zero", None)

    def _integers(self, rows: str, largest: str, step: str, zero: str, kept: str | None) -> QuantisedRows:
        self._node("Mul", [largest, step], f"{rows}_scale")
        self._node("QuantizeLinear", [rows, f"{rows}_scale", f"{zero}s"], f"{rows}_integers", axis=0)
        self._node("Unsqueeze", [f"{rows}_scale", self._constant("last", np.array([-1]))], f"{rows}_scales")
        return QuantisedRows(f"{rows}_integers", f"{rows}_scales", zero, kept)

    def _product(self, rows: QuantisedRows, weight: NDArray[np.float32], name: str) -> str:
        kept = len(self._outliers.hidden) if rows.outliers else 0
        integers, scales = quantised_weight(weight[kept:])
        inputs = [
            rows.integers,
            self._constant(f"{name}_weight", integers),
            self._constant("one", np.array(1, np.float32)),
        ]
        inputs += [self._constant(f"{name}_scales", scales), rows.zero]
        self._node("MatMulIntegerToFloat", inputs, f"{name}_per_row", domain=MS)
        product = self._node("Mul", [f"{name}_per_row", rows.scales], f"{name}_product")
        if rows.outliers is None:
            return product
        return self._node(
            "Gemm", [rows.outliers, self._constant(f"{name}_kept", weight[:kept]), product], f"{name}_sum"
        )

    def _residual(self, product: str, rows: str, source: str, name: str) -> str:
        """LayerNorm(product + bias + rows). SkipLayerNormalization is the same in one node, and 4 times as slow."""
        bias = self._constant(f"{name}_bias", self._weight(f"{source}.dense.bias")[self._order])
        self._node("Add", [product, bias], f"{name}_biased")
        self._node("Add", [f"{name}_biased", rows], f"{name}_sum")
        return self._normalised(f"{name}_sum", f"{source}.LayerNorm", name)

    def _normalised(self, rows: str, source: str, name: str) -> str:
        scale = self._constant(f"{name}_gamma", self._weight(f"{source}.weight")[self._order])
        shift = self._constant(f"{name}_beta", self._weight(f"{source}.bias")[self._order])
        return self._node("LayerNormalization", [rows, scale, shift], name, axis=-1, epsilon=self._architecture.epsilon)

    def _gelu(self, rows: str, bias: NDArray[np.float32], name: str) -> str:
        return self._node("BiasGelu", [rows, self._constant(f"{name}_bias", bias)], name, domain=MS)

    # --- the graph ---------------------------------------------------------------------------------------------

    def _node(self, operator: str, inputs: Sequence[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        node = helper.make_node(operator, list(inputs), list(outputs), name=outputs[0], domain=domain, **attributes)
        self._nodes.append(node)
        return outputs[0]

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def _weight(self, name: str) -> NDArray[np.float32]:
        return self._weights[name].astype(np.float32)
