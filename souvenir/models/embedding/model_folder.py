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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from souvenir.core.errors import EmbeddingUnavailable, Unavailable
from souvenir.core.files import resource
from souvenir.core.types import MAX_PASSAGE_TOKEN_VECTORS, TOKEN_SCALE
from souvenir.models.embedding.model_settings import SETTINGS_FILE, SETTINGS_JSON, ModelSettings
from souvenir.models.embedding.specs import Pooling, known_model

ONNX_FILES = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
"""Looked up in this order. Weights too large for one file are next to it, as `<name>_data`."""

DOWNLOADED = ("*.json", *ONNX_FILES, *(f"{name}_data" for name in ONNX_FILES))

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
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
    def max_length(self) -> int | None:
        """Maximum number of tokens, including special ones, by the first file that states it; None: none does."""
        sentence_config = self.read_json("sentence_bert_config.json", {})
        tokenizer_config = self.read_json("tokenizer_config.json", {})
        for length in (sentence_config.get("max_seq_length"), tokenizer_config.get("model_max_length")):
            if length and length < _UNLIMITED:
                return int(length)
        return None

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


EMBEDDING = ModelUse("embedding model", "EMBED_MODEL", "EMBED_REVISION", EmbeddingUnavailable)

MAX_PASSAGE_LENGTH = 512
"""Tokens of a passage, however long the model's window is, unless souvenir.json has another limit: a longer passage
contains too many statements for one vector, and the memory of a run grows with the square of the length."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """How to use a model. `max_length` includes special tokens.

    :param dim: Leading dimensions of a vector that are kept; None: all.
    :param other_steps: Steps after pooling; only a graph that contains them can be used.
    """

    pooling: Pooling
    max_length: int
    query_prefix: str
    document_prefix: str
    dim: int | None
    other_steps: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest that scripts/build_model.py writes."""

    name: str
    dim: int
    weights_sha256: str
    onnx_sha256: str


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of an embedding model on disk."""

    folder: ModelFolder
    config: ModelConfig
    manifest: Manifest | None
    settings: ModelSettings

    @classmethod
    def find(cls, model: str, revision: str | None, cache_dir: Path | None) -> ModelFiles:
        """Find a model like `ModelFolder.find`.

        :raises EmbeddingUnavailable: The message says what to do.
        """
        folder = ModelFolder.find(EMBEDDING, model, revision, cache_dir)
        settings = _read_settings(folder)
        return cls(folder, _read_config(folder, settings), _read_manifest(folder), settings)

    def model_id(self) -> str:
        """Return the id of the vector space: the model's name with its source weights, commit, or ONNX file's hash.

        Settings of souvenir.json that change the vectors of passages are part of it.
        """
        if self.manifest is not None:
            name = f"{self.manifest.name}@{self.manifest.weights_sha256[:12]}"
        else:
            name = f"{self.folder.name}@{(self.folder.commit or self.folder.onnx_sha256())[:12]}"
        changes = self.settings.pooling, self.settings.document_prefix, self.settings.dim
        return name if changes == (None, None, None) else f"{name}+{_short_hash(*changes)}"

    def token_space(self) -> str | None:
        """Return the id of the space of the token vectors, in 8 hex digits; None without token output."""
        output = self.settings.token_vectors
        if output is None:
            return None
        stop_words = " ".join(sorted(output.dropped))
        return _short_hash(self.model_id(), output.projection, stop_words, TOKEN_SCALE, MAX_PASSAGE_TOKEN_VECTORS)

    def check_manifest(self) -> None:
        """:raises EmbeddingUnavailable: If the ONNX file is not the one of the manifest."""
        if self.manifest is not None and self.folder.onnx_sha256() != self.manifest.onnx_sha256:
            raise EmbeddingUnavailable(
                f"{self.folder.onnx_path} is damaged: its sha256 is not the one in manifest.json; "
                "restore it from the repository, or build it again with `make model`"
            )


def _short_hash(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:8]


def _read_config(folder: ModelFolder, settings: ModelSettings) -> ModelConfig:
    """Take each value from souvenir.json, else from the model's own files, else from what is known of the model."""
    modules = folder.read_json("modules.json", [])
    kinds = {str(module["type"]).rpartition(".")[2]: Path(str(module["path"])) for module in modules}
    pooling = folder.read_json(str(kinds.get("Pooling", Path("1_Pooling")) / "config.json"), {})
    prompts = folder.read_json("config_sentence_transformers.json", {}).get("prompts") or {}
    known = known_model(folder.name)
    if not any(prompts.values()):
        prompts = {"query": known.query_prefix, "document": known.document_prefix}
    return ModelConfig(
        pooling=settings.pooling or _pooling(folder.name, pooling) or known.pooling or Pooling.MEAN,
        max_length=settings.max_length or min(MAX_PASSAGE_LENGTH, folder.max_length or known.window),
        query_prefix=_first(settings.query_prefix, prompts.get("query")),
        document_prefix=_first(settings.document_prefix, prompts.get("document") or prompts.get("passage")),
        dim=settings.dim,
        other_steps=sorted(kinds.keys() - {"Transformer", "Pooling", "Normalize"}),
    )


def _first(*prefixes: str | None) -> str:
    return next((prefix for prefix in prefixes if prefix is not None), "")


def _pooling(name: str, config: Mapping[str, Any]) -> Pooling | None:
    """Return the pooling mode in a Pooling module's config.json, in its older or newer form; None if it has none."""
    flags = {
        "pooling_mode_mean_tokens": "mean",
        # A sum divided by any power of the length has the direction of the mean.
        "pooling_mode_mean_sqrt_len_tokens": "mean",
        "pooling_mode_cls_token": "cls",
        "pooling_mode_max_tokens": "max",
        "pooling_mode_lasttoken": "lasttoken",
        "pooling_mode_weightedmean_tokens": "weightedmean",
    }
    named = config.get("pooling_mode") or [mode for flag, mode in flags.items() if config.get(flag)]
    if not named:
        return None
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


def _read_settings(folder: ModelFolder) -> ModelSettings:
    try:
        return SETTINGS_JSON.load(folder.read_json(SETTINGS_FILE, {}))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise EmbeddingUnavailable(
            f"{folder.path / SETTINGS_FILE} is not as docs/models.md describes it: {where}: {first['msg']}"
        ) from error
