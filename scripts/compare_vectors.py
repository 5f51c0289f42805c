"""Prints how close the vectors of this processor are to the golden ones: python -m scripts.compare_vectors.

tests/golden/vectors.npz holds, for each held-out text of texts.json, the vector of the float32 reference and that of
the model when it was built. CONTRIBUTING.md lists the figures of several processors.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "models" / "all-MiniLM-L6-v2"
GOLDEN = ROOT / "tests" / "golden"


class Model:
    """The ONNX file alone, without an embedder."""

    def __init__(self, model: str | bytes) -> None:
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def vectors(
        self, rows: list[list[int]], *, padded_to: int = 0, output: str = "sentence_embedding"
    ) -> NDArray[np.float32]:
        length = max(padded_to, *map(len, rows))
        ids = np.array([row + [0] * (length - len(row)) for row in rows])
        mask = np.array([[1] * len(row) + [0] * (length - len(row)) for row in rows])
        found: NDArray[np.float32] = self._session.run([output], {"input_ids": ids, "attention_mask": mask})[0]
        return found


def golden_rows() -> list[list[int]]:
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    texts = json.loads((GOLDEN / "texts.json").read_text(encoding="utf-8"))["held_out"]
    return [encoding.ids for encoding in tokenizer.encode_batch(texts)]


def cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    result: NDArray[np.float32] = (left * right).sum(axis=1) / norms
    return result


def main() -> None:
    model = Model(str(MODEL / "model.onnx"))
    ours = np.concatenate([model.vectors([row]) for row in golden_rows()])
    print(platform.machine(), f"{len(ours)} texts")
    with np.load(GOLDEN / "vectors.npz", allow_pickle=False) as golden:
        for name in ("built", "reference"):
            similar = cosines(ours, golden[name])
            print(f"cosine to {name}: min {similar.min():.5f} mean {similar.mean():.5f}")


if __name__ == "__main__":
    main()
