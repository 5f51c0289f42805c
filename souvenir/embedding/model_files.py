"""What an embedding model's own configuration says of its use; reads small files, loads no model.

The folder is laid out as sentence-transformers does it: modules.json, 1_Pooling/config.json, sentence_bert_config.json,
config_sentence_transformers.json, any of which may be missing. manifest.json, which scripts/build_model.py writes, is
ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from souvenir.embedding.model_folder import ModelFolder, ModelUse
from souvenir.errors import EmbeddingUnavailable

EMBEDDING = ModelUse("embedding model", "EMBED_MODEL", "EMBED_REVISION", EmbeddingUnavailable)

_E5 = re.compile(r"(^|[/_-])e5[_-](?!.*instruct)", re.IGNORECASE)


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
    """An embedding model that is on this disk."""

    folder: ModelFolder
    config: ModelConfig
    manifest: Manifest | None

    @classmethod
    def find(cls, model: str, revision: str | None, cache_dir: Path | None) -> ModelFiles:
        """As `ModelFolder.find` finds it.

        :raises EmbeddingUnavailable: The sentence says what to do.
        """
        folder = ModelFolder.find(EMBEDDING, model, revision, cache_dir)
        return cls(folder, _read_config(folder), _read_manifest(folder))

    def model_id(self) -> str:
        """Names the vector space: name and source weights, commit, or the ONNX file's content (which is then read)."""
        if self.manifest is not None:
            return f"{self.manifest.name}@{self.manifest.weights_sha256[:12]}"
        return f"{self.folder.name}@{(self.folder.commit or self.folder.onnx_sha256())[:12]}"

    def check_manifest(self) -> None:
        """:raises EmbeddingUnavailable: If the ONNX file is not the one that the manifest names."""
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
        # The e5 models were trained with these and seldom say so in their configuration.
        prompts = {"query": "query: ", "passage": "passage: "}
    return ModelConfig(
        pooling=_pooling(folder.name, pooling),
        max_length=folder.max_length,
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
