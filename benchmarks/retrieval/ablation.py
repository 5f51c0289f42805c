"""The contribution of each part of the score: the same engine with the constants of that part disabled."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.retrieval.data_sets import DataSet
from benchmarks.retrieval.own import EngineSearcher, opened
from benchmarks.retrieval.rankings import Rankings, ask
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.settings import Settings
from souvenir.retrieval.profiles import NO_SPREAD, PROFILES, Constants, Profiles

USUAL_B = 0.75
"""What b is where nobody chose it."""

PARTS: Mapping[str, Callable[[Constants], Constants]] = {
    "spread over neighbours": partial(replace, spread=NO_SPREAD),
    "speaker": partial(replace, speaker=0.0),
    "period and day": partial(replace, period=0.0, day=0.0),
    "form asked for": partial(replace, time_word=0.0, number=0.0, name=0.0),
    "question mark and length": partial(replace, question=0.0, length=0.0),
    "role": partial(replace, role=0.0),
    "chunks": partial(replace, chunk_tokens=None),
    "vector arm and late interaction": partial(replace, dense=0.0, late=None),
    "late interaction": partial(replace, late=None),
    "less trust in words where none match well": partial(replace, doubt_below=0.0),
    f"b ({USUAL_B} instead)": partial(replace, b=USUAL_B),
}


def without(part: str) -> Profiles:
    return {profile: PARTS[part](constants) for profile, constants in PROFILES.items()}


def measure_ablation(
    data_set: DataSet, embedder: CachedEmbedder, data_dir: Path, names: Mapping[int, str], ours: Rankings
) -> Iterator[Rankings]:
    """The answers without each part in turn; a part that changes none of them is left out."""
    for part in PARTS:
        # A snapshot of an index does not say by which constants its passages were analysed.
        shutil.rmtree(Settings(data_dir=data_dir).index_dir)
        with opened(data_dir, embedder, profiles=without(part)) as engine:
            found = ask(f"without {part}", EngineSearcher(engine, data_set.kind, names), data_set)
        if found.found != ours.found:
            yield found
