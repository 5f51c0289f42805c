"""Fits the mean and the projection of the token vectors: python -m scripts.fit_token_projection.

Writes scripts/token_projection.npz, from which scripts/build_model.py builds the second output of the model. It is
committed, because the last bits of a fit differ between processors, and with them the space of the token vectors.

The tokens are those of two kinds of text: the short memories of scripts/projection_texts.txt, written for this project,
and word sequences drawn from the model's own vocabulary, in which stop words alternate with content words that are
drawn by Zipf's law (the ids of the vocabulary are in order of frequency). Only content tokens count. The projection
has the first principal directions of the centred token vectors, each scaled to length 1 first, since only cosines of
token vectors are used.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from scripts.build_model import MODEL_NAME, PROJECTION_PATH, ROOT
from scripts.encoder_graph import TokenProjection
from souvenir.index.analyser import STOP_WORDS
from souvenir.models.embedding.model_folder import ModelFiles
from souvenir.models.embedding.tokens import ModelTokenizer, TokenIds

TEXTS_PATH = ROOT / "scripts" / "projection_texts.txt"
MODEL_PATH = ROOT / "models" / MODEL_NAME

DIM = 64
"""96 dimensions gain less than .003 recall@10 on the development sets, and take half as much again."""

SEQUENCES = 3_000
PAIRS = 6
"""Pairs of a stop word and a content word in a sequence."""

ZIPF_OFFSET = 50
LEAST_LETTERS = 3
SEED = 5

Rows = NDArray[np.float32]


def main() -> None:
    files = ModelFiles.find(str(MODEL_PATH), None, None)
    tokenizer = ModelTokenizer(files)
    content = tokenizer.content_tokens(STOP_WORDS)
    vocabulary = tokenizer.vocabulary()
    texts = tokenizer.documents(TEXTS_PATH.read_text(encoding="utf-8").splitlines())
    sequences = drawn_sequences(vocabulary, content, texts[0])
    projection = fitted(content_vectors([*texts, *sequences], content))
    np.savez(PROJECTION_PATH, mean=projection.mean.astype(np.float16), matrix=projection.matrix.astype(np.float16))
    print(PROJECTION_PATH)


def drawn_sequences(vocabulary: Sequence[str], content: NDArray[np.bool_], example: TokenIds) -> list[TokenIds]:
    """Return sequences of token ids with the special tokens of an example."""
    stop_words = [place for place, word in enumerate(vocabulary) if word in STOP_WORDS]
    is_word = [word.isascii() and word.isalpha() and len(word) >= LEAST_LETTERS for word in vocabulary]
    words = np.flatnonzero(content & np.array(is_word))
    shares = 1 / (np.arange(len(words)) + ZIPF_OFFSET)
    random = np.random.default_rng(SEED)
    drawn = np.empty((SEQUENCES, 2 * PAIRS), dtype=np.int64)
    drawn[:, 0::2] = random.choice(stop_words, (SEQUENCES, PAIRS))
    drawn[:, 1::2] = random.choice(words, (SEQUENCES, PAIRS), p=shares / shares.sum())
    full_stop = vocabulary.index(".")
    return [[example[0], *row, full_stop, example[-1]] for row in drawn.tolist()]


def content_vectors(rows: Sequence[TokenIds], content: NDArray[np.bool_]) -> Rows:
    """Return the encoder's own vectors of all content tokens, (n, dim), each row run by itself."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    model = onnx.load(MODEL_PATH / "model.onnx")
    [order] = [numpy_helper.to_array(one) for one in model.graph.initializer if one.name == "order_back"]
    model.graph.output.append(helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ["batch", "length", "dim"]))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = []
    for row in rows:
        ids = np.array([row])
        [tokens] = session.run(["tokens"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        found.append(tokens[0][content[ids[0]]][:, order])
    return np.concatenate(found)


def fitted(vectors: Rows) -> TokenProjection:
    mean = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors - mean
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    _, directions = np.linalg.eigh(centred.T @ centred)
    # From the smallest to the largest eigenvalue.
    return TokenProjection(mean.astype(np.float32), directions[:, : -DIM - 1 : -1].astype(np.float32))


if __name__ == "__main__":
    main()
