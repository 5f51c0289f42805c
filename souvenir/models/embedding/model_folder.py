"""Files of a local model: a folder, or the cached snapshot of a Hugging Face id. Loads no model.

Every model has an ONNX file, tokenizer.json and optional small JSON files. Embedding models have the layout of
sentence-transformers: modules.json, 1_Pooling/config.json, sentence_bert_config.json,
config_sentence_transformers.json, each optional. Two optional files are our own: manifest.json, written by
scripts/build_model.py, and souvenir.json (docs/models.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from souvenir.core.errors import EmbeddingUnavailable, Unavailable
from souvenir.core.files import resource
from souvenir.core.types import MAX_PASSAGE_TOKEN_VECTORS, TOKEN_SCALE

ONNX_FILES = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
"""Looked up in this order. Weights too large for one file are next to it, as `<name>_data`."""

DOWNLOADED = ("*.json", *ONNX_FILES, *(f"{name}_data" for name in ONNX_FILES))

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_DEFAULT_MAX_LENGTH = 512
_UNLIMITED = 1_000_000
"""tokenizer_config.json contains 1e30 if a tokenizer has no limit of its own."""


@dataclass(frozen=True, slots=True)
class ModelUse:
    """Use of a model, for error messages.

    :param setting: The setting with the model; `revision_setting` is the one with its commit or tag.
    :param failure: The error raised if the model cannot be used.
    """

    name: str
    setting: str
    revision_setting: str
    failure: type[Unavailable]


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """The files of a model on disk. `commit` is the commit of a Hugging Face model, None for a local folder."""

    use: ModelUse
    name: str
    path: Path
    onnx_path: Path
    commit: str | None

    @classmethod
    def find(cls, use: ModelUse, model: str, revision: str | None, cache_dir: Path | None) -> ModelFolder:
        """Find a folder (see `resource` for relative ones), or else a Hugging Face id, downloaded if necessary.

        A model that was downloaded before is used without asking the network for a newer one.

        :raises Unavailable: `use.failure`; the message says what to do.
        """
        path = resource(Path(model).expanduser())
        if path.is_dir():
            return cls._of(use, path.name, path, None)
        if not _HUB_ID.fullmatch(model):
            raise use.failure(
                f"The {use.name} {model!r} is neither a folder nor a Hugging Face id; correct {use.setting}"
            )
        snapshot = _snapshot(use, model, revision, cache_dir)
        return cls._of(use, model, snapshot, snapshot.name)

    @classmethod
    def _of(cls, use: ModelUse, name: str, path: Path, commit: str | None) -> ModelFolder:
        onnx_path = next((path / file for file in ONNX_FILES if (path / file).is_file()), None)
        if onnx_path is None or not (path / "tokenizer.json").is_file():
            raise use.failure(
                f"The {use.name} in {path} has no {' or '.join(ONNX_FILES)} with a tokenizer.json; "
                f"take a model that is exported to ONNX, or correct {use.setting}"
            )
        return cls(use, name, path, onnx_path, commit)

    @property
    def tokenizer_path(self) -> Path:
        return self.path / "tokenizer.json"

    @property
    def max_length(self) -> int:
        """Maximum number of tokens, including special ones; the first file that specifies it is used."""
        sentence_config = self.read_json("sentence_bert_config.json", {})
        tokenizer_config = self.read_json("tokenizer_config.json", {})
        for length in (sentence_config.get("max_seq_length"), tokenizer_config.get("model_max_length")):
            if length and length < _UNLIMITED:
                return int(length)
        return _DEFAULT_MAX_LENGTH

    @property
    def pad_id(self) -> int:
        return self.read_json("config.json", {}).get("pad_token_id") or 0

    def read_json(self, name: str, default: Any) -> Any:
        """The content of a JSON file of the folder, or the default if it is missing."""
        path = self.path / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return default
        except (OSError, ValueError) as error:
            raise self.use.failure(
                f"{path} cannot be read; restore it or set {self.use.setting} to another model"
            ) from error

    def onnx_sha256(self) -> str:
        """Return the sha256 of the ONNX file and of separate weights, if any."""
        digest = hashlib.sha256()
        for path in (self.onnx_path, self.onnx_path.with_name(f"{self.onnx_path.name}_data")):
            if path.is_file():
                with path.open("rb") as file:
                    while block := file.read(1 << 20):
                        digest.update(block)
        return digest.hexdigest()


def _snapshot(use: ModelUse, model: str, revision: str | None, cache_dir: Path | None) -> Path:
    """Return the folder of a Hugging Face model in the local cache, named after its commit."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    def snapshot(*, local_files_only: bool) -> Path:
        return Path(
            snapshot_download(
                model,
                revision=revision,
                cache_dir=cache_dir,
                allow_patterns=list(DOWNLOADED),
                local_files_only=local_files_only,
            )
        )

    try:
        with suppress(LocalEntryNotFoundError):
            return snapshot(local_files_only=True)
        return snapshot(local_files_only=False)
    except Exception as error:
        # The client's errors have no common base.
        at = f" at revision {revision!r}" if revision else ""
        raise use.failure(
            f"The {use.name} {model!r} is not a folder here and could not be downloaded from Hugging Face{at}; "
            f"correct {use.setting} or {use.revision_setting}, or allow the network for the first start"
        ) from error


SETTINGS_FILE = "souvenir.json"

EMBEDDING = ModelUse("embedding model", "EMBED_MODEL", "EMBED_REVISION", EmbeddingUnavailable)

_E5 = re.compile(r"(^|[/_-])e5[_-](?!.*instruct)", re.IGNORECASE)


class Pooling(StrEnum):
    """Pooling of token vectors; named as in sentence-transformers' `pooling_mode`."""

    MEAN = "mean"
    CLS = "cls"
    MAX = "max"
    LAST_TOKEN = "lasttoken"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """How to use a model, according to its own files. `max_length` includes special tokens."""

    pooling: Pooling
    max_length: int
    query_prefix: str
    document_prefix: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest that scripts/build_model.py writes."""

    name: str
    dim: int
    weights_sha256: str
    onnx_sha256: str


@dataclass(frozen=True, slots=True)
class TokenOutput:
    """The output of the graph with a unit vector of each token, (batch, length, d).

    :param name: Its name in the graph. :param projection: Identifies how the vectors are made from the model's own, for
        example the hash of a projection. :param stop_words: Tokens whose vectors are not kept.
    """

    name: str
    projection: str
    stop_words: frozenset[str]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of an embedding model on disk."""

    folder: ModelFolder
    config: ModelConfig
    manifest: Manifest | None
    token_output: TokenOutput | None

    @classmethod
    def find(cls, model: str, revision: str | None, cache_dir: Path | None) -> ModelFiles:
        """Find a model like `ModelFolder.find`.

        :raises EmbeddingUnavailable: The message says what to do.
        """
        folder = ModelFolder.find(EMBEDDING, model, revision, cache_dir)
        return cls(folder, _read_config(folder), _read_manifest(folder), _read_token_output(folder))

    def model_id(self) -> str:
        """Return the id of the vector space: the model's name with its source weights, commit, or ONNX file's hash."""
        if self.manifest is not None:
            return f"{self.manifest.name}@{self.manifest.weights_sha256[:12]}"
        return f"{self.folder.name}@{(self.folder.commit or self.folder.onnx_sha256())[:12]}"

    def token_space(self) -> str | None:
        """Return the id of the space of the token vectors, in 8 hex digits; None without token output."""
        if self.token_output is None:
            return None
        stop_words = " ".join(sorted(self.token_output.stop_words))
        parts = self.model_id(), self.token_output.projection, stop_words, TOKEN_SCALE, MAX_PASSAGE_TOKEN_VECTORS
        return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:8]

    def check_manifest(self) -> None:
        """:raises EmbeddingUnavailable: If the ONNX file is not the one of the manifest."""
        if self.manifest is not None and self.folder.onnx_sha256() != self.manifest.onnx_sha256:
            raise EmbeddingUnavailable(
                f"{self.folder.onnx_path} is damaged: its sha256 is not the one in manifest.json; "
                "restore it from the repository, or build it again with `make model`"
            )


def _read_config(folder: ModelFolder) -> ModelConfig:
    modules = folder.read_json("modules.json", [])
    kinds = {str(module["type"]).rpartition(".")[2]: Path(str(module["path"])) for module in modules}
    if unknown := kinds.keys() - {"Transformer", "Pooling", "Normalize"}:
        raise EmbeddingUnavailable(
            f"The embedding model {folder.name!r} has a step that its ONNX file leaves out "
            f"({', '.join(sorted(unknown))}); set EMBED_MODEL to another model"
        )
    pooling = folder.read_json(str(kinds.get("Pooling", Path("1_Pooling")) / "config.json"), {})
    prompts = folder.read_json("config_sentence_transformers.json", {}).get("prompts") or {}
    if not any(prompts.values()) and _E5.search(folder.name):
        # The e5 models were trained with these, but their configuration rarely contains them.
        prompts = {"query": "query: ", "passage": "passage: "}
    return ModelConfig(
        pooling=_pooling(folder.name, pooling),
        max_length=folder.max_length,
        query_prefix=prompts.get("query") or "",
        document_prefix=prompts.get("document") or prompts.get("passage") or "",
    )


def _pooling(name: str, config: Mapping[str, Any]) -> Pooling:
    """Return the pooling mode in a Pooling module's config.json, in its older or newer form."""
    flags = {
        "pooling_mode_mean_tokens": "mean",
        # A sum divided by any power of the length has the direction of the mean.
        "pooling_mode_mean_sqrt_len_tokens": "mean",
        "pooling_mode_cls_token": "cls",
        "pooling_mode_max_tokens": "max",
        "pooling_mode_lasttoken": "lasttoken",
        "pooling_mode_weightedmean_tokens": "weightedmean",
    }
    named = config.get("pooling_mode") or [mode for flag, mode in flags.items() if config.get(flag)] or ["mean"]
    modes = [named] if isinstance(named, str) else list(named)
    if len(modes) != 1 or modes[0] not in list(Pooling):
        raise EmbeddingUnavailable(
            f"The embedding model {name!r} pools its tokens by {' and '.join(modes)}, which is not known here; "
            "set EMBED_MODEL to another model"
        )
    return Pooling(modes[0])


def _read_manifest(folder: ModelFolder) -> Manifest | None:
    content = folder.read_json("manifest.json", None)
    if content is None:
        return None
    try:
        return Manifest(
            name=content["name"],
            dim=content["dim"],
            weights_sha256=content["source"]["weights_sha256"],
            onnx_sha256=content["onnx"]["sha256"],
        )
    except (KeyError, TypeError) as error:
        raise EmbeddingUnavailable(
            f"{folder.path / 'manifest.json'} is not one that scripts/build_model.py writes; restore it or remove it"
        ) from error


def _read_token_output(folder: ModelFolder) -> TokenOutput | None:
    content = folder.read_json(SETTINGS_FILE, {}).get("token_vectors")
    if content is None:
        return None
    try:
        return TokenOutput(content["output"], content["projection"], frozenset(content["stop_words"].split()))
    except (KeyError, TypeError, AttributeError) as error:
        raise EmbeddingUnavailable(
            f"token_vectors in {folder.path / SETTINGS_FILE} needs the texts output, projection and stop_words"
        ) from error
