"""What of scoring depends on the embedding model: `scoring` of its souvenir.json, over the constants in the code.

The constants in the code are measured with the default model. Those of another one are measured by
`python -m benchmarks.retrieval` and `python -m benchmarks.evidence`; docs/models.md describes the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import ValidationError

from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.passages import LATE_PROFILES
from souvenir.core.stored_json import StoredJson
from souvenir.core.types import Embedder, Profile
from souvenir.retrieval.probability import CALIBRATIONS, Arms, Calibration, Calibrations
from souvenir.retrieval.profiles import Constants, Late, Profiles
from souvenir.retrieval.relevance import COEFFICIENTS, Coefficients, Logistic

ProfileName = Literal["fact", "doc", "talk", "chat"]


@dataclass(frozen=True, slots=True)
class ProfileScoring:
    """Constants of a profile that replace those in the code; None: they do not."""

    dense: float | None = None
    late: Late | None = None

    def applied_to(self, constants: Constants) -> Constants:
        dense = constants.dense if self.dense is None else self.dense
        return replace(constants, dense=dense, late=self.late or constants.late)


@dataclass(frozen=True, slots=True)
class ModelScoring:
    """:param centred: Whether vectors are compared as directions from the namespace's mean vector.

    :param evidence: Functions of `Coefficients` that replace those in the code, by name.
    :param probability: Calibrations of results that replace those in the code.
    """

    centred: bool = True
    profiles: Mapping[ProfileName, ProfileScoring] = field(default_factory=dict)
    evidence: Mapping[str, Logistic] = field(default_factory=dict)
    probability: Mapping[Arms, Mapping[ProfileName, Calibration]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for profile, one in self.profiles.items():
            if one.late is not None and Profile[profile.upper()] not in LATE_PROFILES:
                raise ValueError(f"{profile} has no late interaction")
        for name, function in self.evidence.items():
            own = getattr(COEFFICIENTS, name, None)
            if not isinstance(own, Logistic):
                raise ValueError(f"there is no function {name!r} of evidence")
            if function.weights.keys() != own.weights.keys():
                raise ValueError(f"{name} needs a weight of each of {', '.join(own.weights) or 'nothing'}")


_SCORING_JSON = StoredJson(ModelScoring)


@dataclass(frozen=True, slots=True)
class Scoring:
    """The constants by which a search with a model is scored and judged."""

    profiles: Profiles
    centred: bool = True
    coefficients: Coefficients = COEFFICIENTS
    calibrations: Calibrations = field(default_factory=lambda: CALIBRATIONS)


def scoring_of(embedder: Embedder, profiles: Profiles) -> Scoring:
    """Return the constants for a model.

    :raises EmbeddingUnavailable: If those of its folder cannot be used; the message says what to correct.
    """
    found = _read(embedder.model_id, embedder.scoring)
    changed = dict(profiles)
    for name, one in found.profiles.items():
        profile = Profile[name.upper()]
        changed[profile] = one.applied_to(profiles[profile])
    calibrations = {
        arms: {**of_arms, **{Profile[name.upper()]: one for name, one in found.probability.get(arms, {}).items()}}
        for arms, of_arms in CALIBRATIONS.items()
    }
    return Scoring(changed, found.centred, replace(COEFFICIENTS, **found.evidence), calibrations)


def _read(model_id: str, scoring: Mapping[str, Any]) -> ModelScoring:
    try:
        return _SCORING_JSON.load(scoring)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, ("scoring", *first["loc"])))
        raise EmbeddingUnavailable(
            f"souvenir.json of {model_id} is not as docs/models.md describes it: {where}: {first['msg']}"
        ) from error
