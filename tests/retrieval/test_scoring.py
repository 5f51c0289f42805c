"""Constants of scoring from an embedding model's folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.settings import Settings
from souvenir.core.types import EvidenceLevel, Profile, SearchQuery, SearchResult
from souvenir.memories.engine import MemoryEngine
from souvenir.retrieval.probability import CALIBRATIONS, Arms, Calibration
from souvenir.retrieval.profiles import PROFILES, Late
from souvenir.retrieval.relevance import COEFFICIENTS
from souvenir.retrieval.scoring import Scoring, scoring_of
from tests.fake_embedder import FakeEmbedder
from tests.memories.engine.verbs import DEFAULT, add

FUNCTIONS = {one.name: getattr(COEFFICIENTS, one.name) for one in fields(COEFFICIENTS)}


LATE = {"weight": 2.0, "unrelated": 0.1, "lexical": 0.5, "dense": 0.3}


class Tuned(FakeEmbedder):
    def __init__(self, **scoring: Any) -> None:
        self._scoring = scoring

    @property
    def scoring(self) -> Mapping[str, Any]:
        return self._scoring


def asked(data_dir: Path, embedder: FakeEmbedder) -> SearchResult:
    with closing(MemoryEngine.open(Settings(data_dir=data_dir), embedder)) as engine:
        add(engine, "the cellist owns a boat")
        add(engine, "rye bread is baked on Sunday")
        return engine.search(DEFAULT, SearchQuery("who owns the boat", explain=True))


def test_a_model_without_constants_has_those_of_the_code():
    assert scoring_of(FakeEmbedder(), PROFILES) == Scoring(dict(PROFILES), centred=True, coefficients=COEFFICIENTS)


def test_constants_of_a_model_replace_those_of_the_code(tmp_path: Path):
    tuned = Tuned(centred=False, profiles={"fact": {"dense": 0.5, "late": LATE}})
    scoring = scoring_of(tuned, PROFILES)
    assert (scoring.profiles[Profile.FACT].dense, scoring.profiles[Profile.FACT].late) == (0.5, Late(**LATE))
    assert scoring.profiles[Profile.FACT].spread == PROFILES[Profile.FACT].spread
    assert scoring.profiles[Profile.TALK] == PROFILES[Profile.TALK]
    plain, own = (asked(tmp_path / name, one).hits[0].parts for name, one in (("a", FakeEmbedder()), ("b", tuned)))
    assert plain.dense != pytest.approx(plain.similarity)
    assert own.dense == pytest.approx(own.similarity)
    assert own.parts["dense"] == pytest.approx(0.5 * own.dense)


def test_probabilities_of_a_model_replace_those_of_the_code(tmp_path: Path):
    certain = {"temperature": 1.0, "bias": 100.0, "lead": 0.0, "relevance": 0.0}
    tuned = Tuned(probability={"without_late": {"fact": certain}})
    calibrations = scoring_of(tuned, PROFILES).calibrations
    assert calibrations[Arms.WITHOUT_LATE][Profile.FACT] == Calibration(**certain)
    assert calibrations[Arms.WITHOUT_LATE][Profile.DOC] == CALIBRATIONS[Arms.WITHOUT_LATE][Profile.DOC]
    assert calibrations[Arms.WORDS] == CALIBRATIONS[Arms.WORDS]
    assert {hit.score for hit in asked(tmp_path, tuned).hits} == {1.0}


def test_evidence_is_judged_by_the_coefficients_of_the_model(tmp_path: Path):
    never = {name: {"bias": -9.0, "weights": dict.fromkeys(one.weights, 0.0)} for name, one in FUNCTIONS.items()}
    assert asked(tmp_path / "plain", FakeEmbedder()).evidence is not EvidenceLevel.NONE
    assert asked(tmp_path / "own", Tuned(evidence=never)).evidence is EvidenceLevel.NONE


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ({"centered": True}, "scoring.centered: Unexpected keyword argument"),
        ({"profiles": {"talks": {}}}, "scoring.profiles.talks.[key]: Input should be 'fact', 'doc', 'talk' or 'chat'"),
        ({"profiles": {"chat": {"late": LATE}}}, "chat has no late interaction"),
        ({"evidence": {"said": {"bias": 0.0}}}, "there is no function 'said' of evidence"),
        ({"evidence": {"spoken_of": {"bias": 0.0}}}, "spoken_of needs a weight of each of cosine, unheard"),
    ],
)
def test_wrong_constants_are_refused_when_the_store_is_opened(tmp_path: Path, scoring: Any, message: str):
    with pytest.raises(EmbeddingUnavailable, match=re.escape(message)):
        MemoryEngine.open(Settings(data_dir=tmp_path), Tuned(**scoring))
