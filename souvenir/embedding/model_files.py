"""Where an embedding model's files are and what its own configuration says; reads small files, loads no model.

A model is a folder with an ONNX file and tokenizer.json, as sentence-transformers lays it out: modules.json,
1_Pooling/config.json, sentence_bert_config.json, config_sentence_transformers.json. All but the first two may be
missing. manifest.json, which scripts/build_model.py writes, is ours.
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

from souvenir.errors import EmbeddingUnavailable
from souvenir.settings import ROOT

ONNX_FILES = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
"""Looked up in this order. Weights too large for one file lie beside it, as `<name>_data`."""

DOWNLOADED = ("*.json", *ONNX_FILES, *(f"{name}_data" for name in ONNX_FILES))

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_E5 = re.compile(r"(^|[/_-])e5[_-](?!.*instruct)", re.IGNORECASE)
_DEFAULT_MAX_LENGTH = 512
_UNLIMITED = 1_000_000
"""tokenizer_config.json writes 1e30 where a tokenizer has no limit of its own."""


class Pooling(StrEnum):
    """How token vectors become one; named as in sentence-transformers' `pooling_mode`."""

    MEAN = "mean"
    CLS = "cls"
    MAX = "max"
    LAST_TOKEN = "lasttoken"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What a model's own files say about its use. `max_length` counts special tokens too."""

    pooling: Pooling
    max_length: int
    pad_id: int
    query_prefix: str
    document_prefix: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What scripts/build_model.py noted of the model that it built."""

    name: str
    dim: int
    weights_sha256: str
    onnx_sha256: str


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model that is on this disk. `commit` is the commit of a Hugging Face model, None for a local folder."""

    name: str
    folder: Path
    onnx_path: Path
    config: ModelConfig
    manifest: Manifest | None
    commit: str | None

    @classmethod
    def find(cls, model: str, revision: str | None, cache_dir: Path | None) -> ModelFiles:
        """A folder (relative ones from the repository's root), or else a Hugging Face id, downloaded if need be.

        A model that was downloaded before is used as it is, without asking the network for a newer one.

        :raises EmbeddingUnavailable: The sentence says what to do.
        """
        folder = ROOT / Path(model).expanduser()
        if folder.is_dir():
            return cls._read(folder.name, folder, None)
        if not _HUB_ID.fullmatch(model):
            raise EmbeddingUnavailable(
                f"The embedding model {model!r} is neither a folder nor a Hugging Face id; correct EMBED_MODEL"
            )
        snapshot = _snapshot(model, revision, cache_dir)
        return cls._read(model, snapshot, snapshot.name)

    @classmethod
    def _read(cls, name: str, folder: Path, commit: str | None) -> ModelFiles:
        onnx_path = _onnx_path(folder)
        if onnx_path is None or not (folder / "tokenizer.json").is_file():
            raise EmbeddingUnavailable(
                f"The embedding model in {folder} has no {' or '.join(ONNX_FILES)} with a tokenizer.json; "
                "take a model that is exported to ONNX, or correct EMBED_MODEL"
            )
        return cls(name, folder, onnx_path, _read_config(name, folder), _read_manifest(folder), commit)

    @property
    def tokenizer_path(self) -> Path:
        return self.folder / "tokenizer.json"

    def model_id(self) -> str:
        """Names the vector space: name and source weights, commit, or the ONNX file's content (which is then read)."""
        if self.manifest is not None:
            return f"{self.manifest.name}@{self.manifest.weights_sha256[:12]}"
        return f"{self.name}@{(self.commit or self.onnx_sha256())[:12]}"

    def onnx_sha256(self) -> str:
        """Of the ONNX file, or of it and its weights if they lie beside it."""
        digest = hashlib.sha256()
        for path in (self.onnx_path, self.onnx_path.with_name(f"{self.onnx_path.name}_data")):
            if path.is_file():
                with path.open("rb") as file:
                    while block := file.read(1 << 20):
                        digest.update(block)
        return digest.hexdigest()

    def check_manifest(self) -> None:
        """:raises EmbeddingUnavailable: If the ONNX file is not the one that the manifest names."""
        if self.manifest is not None and self.onnx_sha256() != self.manifest.onnx_sha256:
            raise EmbeddingUnavailable(
                f"{self.onnx_path} is damaged: its sha256 is not the one in manifest.json; "
                "restore it from the repository, or build it again with `make model`"
            )


def _onnx_path(folder: Path) -> Path | None:
    return next((folder / name for name in ONNX_FILES if (folder / name).is_file()), None)


def _snapshot(model: str, revision: str | None, cache_dir: Path | None) -> Path:
    """The folder of a Hugging Face model in the local cache, named after its commit."""
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
        raise EmbeddingUnavailable(
            f"The embedding model {model!r} is not a folder here and could not be downloaded from Hugging Face{at}; "
            "correct EMBED_MODEL or EMBED_REVISION, or allow the network for the first start"
        ) from error


def _read_config(name: str, folder: Path) -> ModelConfig:
    modules = _read_json(folder / "modules.json", [])
    kinds = {str(module["type"]).rpartition(".")[2]: folder / str(module["path"]) for module in modules}
    if unknown := kinds.keys() - {"Transformer", "Pooling", "Normalize"}:
        raise EmbeddingUnavailable(
            f"The embedding model {name!r} has a step that its ONNX file leaves out ({', '.join(sorted(unknown))}); "
            "set EMBED_MODEL to another model"
        )
    pooling = _read_json(kinds.get("Pooling", folder / "1_Pooling") / "config.json", {})
    prompts = _read_json(folder / "config_sentence_transformers.json", {}).get("prompts") or {}
    if not any(prompts.values()) and _E5.search(name):
        # The e5 models were trained with these and seldom say so in their configuration.
        prompts = {"query": "query: ", "passage": "passage: "}
    return ModelConfig(
        pooling=_pooling(name, pooling),
        max_length=_max_length(folder),
        pad_id=_read_json(folder / "config.json", {}).get("pad_token_id") or 0,
        query_prefix=prompts.get("query") or "",
        document_prefix=prompts.get("document") or prompts.get("passage") or "",
    )


def _pooling(name: str, config: Mapping[str, Any]) -> Pooling:
    """The one pooling mode that a Pooling module's config.json names, in its older or its newer form."""
    flags = {
        "pooling_mode_mean_tokens": "mean",
        # A sum over any root of the length has the direction of the mean.
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


def _max_length(folder: Path) -> int:
    """Tokens that the model was made for; the first of its files that says so is right."""
    sentence_config = _read_json(folder / "sentence_bert_config.json", {})
    tokenizer_config = _read_json(folder / "tokenizer_config.json", {})
    for length in (sentence_config.get("max_seq_length"), tokenizer_config.get("model_max_length")):
        if length and length < _UNLIMITED:
            return int(length)
    return _DEFAULT_MAX_LENGTH


def _read_manifest(folder: Path) -> Manifest | None:
    content = _read_json(folder / "manifest.json", None)
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
            f"{folder / 'manifest.json'} is not one that scripts/build_model.py writes; restore it or remove it"
        ) from error


def _read_json(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as error:
        raise EmbeddingUnavailable(f"{path} cannot be read; restore it or set EMBED_MODEL to another model") from error
