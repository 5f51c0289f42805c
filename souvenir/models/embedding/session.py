"""Sessions of ONNX Runtime: padded token ids in, the outputs of the graph out. Threads may run one at the same time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.types import FloatVector
from souvenir.models.embedding.model_folder import ModelFiles, ModelFolder
from souvenir.models.embedding.model_settings import SETTINGS_FILE
from souvenir.models.embedding.specs import Pooling
from souvenir.models.embedding.tokens import TokenIds

NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
"""ONNX Runtime's official builds send usage data unless this is set before they are imported."""

if TYPE_CHECKING:
    import onnxruntime

SENTENCE_OUTPUT = "sentence_embedding"
"""Name that exports give to the pooled output, after all steps of the model."""

_KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


class Stop:
    """Ends a run from any thread; that run then raises."""

    def __init__(self) -> None:
        os.environ.setdefault(NO_TELEMETRY, "1")
        import onnxruntime

        self.options = onnxruntime.RunOptions()
        # A stopped run is expected; keep it out of standard error.
        self.options.log_severity_level = 4

    def set(self) -> None:
        self.options.terminate = True

    @property
    def is_set(self) -> bool:
        return bool(self.options.terminate)


class TextSession:
    """A graph whose input is text as token ids.

    :param threads: Threads of one run; 0 means half of the cores that the process may use, at least one.
    :raises Unavailable: `folder.use.failure`, if the graph cannot be loaded or has other inputs.
    """

    def __init__(self, folder: ModelFolder, threads: int) -> None:
        self.threads = threads or max(1, available_cores() // 2)
        try:
            self._session = _open(folder, self.threads)
        except Exception as error:
            # ONNX Runtime's errors have no common base.
            raise folder.use.failure(
                f"ONNX Runtime cannot load {folder.onnx_path}; restore it or set {folder.use.setting} to another model"
            ) from error
        self._input_types = {
            value.name: np.int32 if "int32" in value.type else np.int64 for value in self._session.get_inputs()
        }
        if unknown := self._input_types.keys() - _KNOWN_INPUTS:
            raise folder.use.failure(
                f"{folder.onnx_path} wants {', '.join(sorted(unknown))}, which a reader of texts has no use for; "
                f"set {folder.use.setting} to another model"
            )
        self._pad_id = folder.pad_id
        self.outputs = [value.name for value in self._session.get_outputs()]

    def run(
        self,
        outputs: Sequence[str],
        rows: Sequence[TokenIds],
        types: Sequence[TokenIds] | None = None,
        stop: Stop | None = None,
    ) -> tuple[list[FloatVector], NDArray[np.bool_]]:
        """Return outputs of the model for token ids, and the attention mask (n, length).

        :param types: Segment of each token; 0 for all by default.
        """
        lengths = np.array([len(row) for row in rows])
        mask = np.arange(lengths.max()) < lengths[:, None]
        values = {
            "input_ids": _padded(rows, mask, self._pad_id),
            "attention_mask": mask,
            "token_type_ids": np.zeros(mask.shape, dtype=np.int64) if types is None else _padded(types, mask, 0),
        }
        feed = {name: values[name].astype(kind, copy=False) for name, kind in self._input_types.items()}
        found = self._session.run(list(outputs), feed, None if stop is None else stop.options)
        return [np.asarray(values, dtype=np.float32) for values in found], mask


@dataclass(frozen=True, slots=True)
class EncodedText:
    """:param vector: Unit vector, (dim,).

    :param tokens: Unit vectors of all tokens, also of special ones, (length, d); None: the graph has no such output.
    """

    vector: FloatVector
    tokens: FloatVector | None


class EncoderSession:
    """:ivar threads: Threads of one run.

    :raises EmbeddingUnavailable: If the model cannot be loaded, or its output is no vector.
    """

    def __init__(self, files: ModelFiles, threads: int) -> None:
        files.check_manifest()
        self._pooling = files.config.pooling
        self._session = TextSession(files.folder, threads)
        self.threads = self._session.threads
        self._dim = files.config.dim
        outputs = self._session.outputs
        self._outputs = [SENTENCE_OUTPUT if SENTENCE_OUTPUT in outputs else outputs[0]]
        if files.config.other_steps and SENTENCE_OUTPUT not in outputs:
            raise EmbeddingUnavailable(
                f"The embedding model {files.folder.name!r} has a step that its ONNX file leaves out "
                f"({', '.join(files.config.other_steps)}); set EMBED_MODEL to another model"
            )
        if (token_output := files.settings.token_vectors) is not None:
            if token_output.output not in outputs:
                raise EmbeddingUnavailable(
                    f"{files.folder.onnx_path} has no output {token_output.output!r}, which {SETTINGS_FILE} names"
                )
            self._outputs.append(token_output.output)

    def encode(self, rows: Sequence[TokenIds]) -> list[EncodedText]:
        """Encode token ids with their special tokens; padded to the longest row."""
        (vectors, *others), mask = self._session.run(self._outputs, rows)
        if vectors.ndim == 3:
            vectors = pooled(vectors, mask, self._pooling)
        if self._dim is not None and self._dim > vectors.shape[1]:
            raise EmbeddingUnavailable(
                f"{SETTINGS_FILE} asks for {self._dim} dimensions of a vector that has {vectors.shape[1]}; correct dim"
            )
        vectors = vectors[:, : self._dim]
        norms: FloatVector = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(norms) & (norms > 0)).all():
            raise EmbeddingUnavailable(
                "The embedding model made no usable vector of a text; set EMBED_MODEL to another model"
            )
        tokens = (
            [found[: len(row)] for row, found in zip(rows, others[0], strict=True)] if others else [None] * len(rows)
        )
        return list(map(EncodedText, vectors / norms, tokens))


def pooled(tokens: FloatVector, mask: NDArray[np.bool_], pooling: Pooling) -> FloatVector:
    """Pool token vectors (n, length, dim) to one vector per text (n, dim); padding, on the right, is ignored."""
    vectors: FloatVector
    match pooling:
        case Pooling.CLS:
            vectors = tokens[:, 0]
        case Pooling.LAST_TOKEN:
            vectors = tokens[np.arange(len(tokens)), mask.sum(axis=1) - 1]
        case Pooling.MAX:
            vectors = np.where(mask[..., None], tokens, np.float32(-np.inf)).max(axis=1)
        case Pooling.MEAN:
            vectors = tokens.sum(axis=1, where=mask[..., None]) / mask.sum(axis=1, keepdims=True, dtype=np.float32)
    return vectors


def _padded(rows: Sequence[TokenIds], mask: NDArray[np.bool_], pad_id: int) -> NDArray[np.int64]:
    ids = np.full(mask.shape, pad_id, dtype=np.int64)
    ids[mask] = np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])
    return ids


def _open(folder: ModelFolder, threads: int) -> onnxruntime.InferenceSession:
    os.environ.setdefault(NO_TELEMETRY, "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Batches differ in shape, so the memory plan of one batch is useless for the next.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    # Spinning threads would take the cores from other work.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(folder.onnx_path, options, providers=["CPUExecutionProvider"])


def available_cores() -> int:
    """Return the cores that this process may use; fewer than the machine has, in a container or under taskset."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
