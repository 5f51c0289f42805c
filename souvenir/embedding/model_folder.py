"""Where the files of a model in this process are: a local folder, or the cached snapshot of a Hugging Face id.

What every such model has, whatever it is for: an ONNX file, tokenizer.json, and small files of JSON that may be
missing. Loads no model.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from souvenir.errors import Unavailable
from souvenir.settings import ROOT

ONNX_FILES = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
"""Looked up in this order. Weights too large for one file lie beside it, as `<name>_data`."""

DOWNLOADED = ("*.json", *ONNX_FILES, *(f"{name}_data" for name in ONNX_FILES))

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_DEFAULT_MAX_LENGTH = 512
_UNLIMITED = 1_000_000
"""tokenizer_config.json writes 1e30 where a tokenizer has no limit of its own."""


@dataclass(frozen=True, slots=True)
class ModelUse:
    """What a model is for, as errors say it.

    :param setting: That names the model; `revision_setting` names its commit or tag.
    :param failure: The error that says that it cannot be used.
    """

    noun: str
    setting: str
    revision_setting: str
    failure: type[Unavailable]


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model that is on this disk. `commit` is the commit of a Hugging Face model, None for a local folder."""

    use: ModelUse
    name: str
    path: Path
    onnx_path: Path
    commit: str | None

    @classmethod
    def find(cls, use: ModelUse, model: str, revision: str | None, cache_dir: Path | None) -> ModelFolder:
        """A folder (relative ones from the repository's root), or else a Hugging Face id, downloaded if need be.

        A model that was downloaded before is used as it is, without asking the network for a newer one.

        :raises Unavailable: As `use.failure`; the sentence says what to do.
        """
        path = ROOT / Path(model).expanduser()
        if path.is_dir():
            return cls._of(use, path.name, path, None)
        if not _HUB_ID.fullmatch(model):
            raise use.failure(
                f"The {use.noun} {model!r} is neither a folder nor a Hugging Face id; correct {use.setting}"
            )
        snapshot = _snapshot(use, model, revision, cache_dir)
        return cls._of(use, model, snapshot, snapshot.name)

    @classmethod
    def _of(cls, use: ModelUse, name: str, path: Path, commit: str | None) -> ModelFolder:
        onnx_path = next((path / file for file in ONNX_FILES if (path / file).is_file()), None)
        if onnx_path is None or not (path / "tokenizer.json").is_file():
            raise use.failure(
                f"The {use.noun} in {path} has no {' or '.join(ONNX_FILES)} with a tokenizer.json; "
                f"take a model that is exported to ONNX, or correct {use.setting}"
            )
        return cls(use, name, path, onnx_path, commit)

    @property
    def tokenizer_path(self) -> Path:
        return self.path / "tokenizer.json"

    @property
    def max_length(self) -> int:
        """Tokens that the model was made for, special ones included; the first of its files that says so is right."""
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
        """What a file of the folder says, or the default if there is none."""
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
        """Of the ONNX file, or of it and its weights if they lie beside it."""
        digest = hashlib.sha256()
        for path in (self.onnx_path, self.onnx_path.with_name(f"{self.onnx_path.name}_data")):
            if path.is_file():
                with path.open("rb") as file:
                    while block := file.read(1 << 20):
                        digest.update(block)
        return digest.hexdigest()


def _snapshot(use: ModelUse, model: str, revision: str | None, cache_dir: Path | None) -> Path:
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
        raise use.failure(
            f"The {use.noun} {model!r} is not a folder here and could not be downloaded from Hugging Face{at}; "
            f"correct {use.setting} or {use.revision_setting}, or allow the network for the first start"
        ) from error
