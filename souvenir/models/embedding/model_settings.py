"""souvenir.json: what the service has to know about an embedding model and its own files do not say.

The file is optional, in the model's folder, and so is each of its fields; docs/models.md describes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from souvenir.core.stored_json import StoredJson
from souvenir.models.embedding.specs import Pooling

SETTINGS_FILE = "souvenir.json"


@dataclass(frozen=True, slots=True)
class TokenOutput:
    """The output of the graph with a unit vector of each token, (batch, length, d).

    :param output: Its name in the graph.
    :param projection: Identifies how the vectors are made from the model's own, for example the hash of a projection.
    :param stop_words: Tokens whose vectors are not kept, separated by spaces.
    """

    output: str
    projection: str
    stop_words: str = ""

    @property
    def dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words.split())


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """None: as the model's own files say, or else as it is known here (`known_model`).

    :param pooling: Of an output with token vectors.
    :param max_length: Maximum number of tokens of a passage, including special tokens and the prefix.
    :param dim: Leading dimensions of a vector that are kept, for models trained for it (Matryoshka).
    :param scoring: Constants of scoring (`souvenir.retrieval.scoring`).
    """

    query_prefix: str | None = None
    document_prefix: str | None = None
    pooling: Pooling | None = None
    max_length: int | None = None
    dim: int | None = None
    token_vectors: TokenOutput | None = None
    scoring: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("max_length", 16), ("dim", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}")


SETTINGS_JSON = StoredJson(ModelSettings)
