"""Quality and cost of extraction on labelled conversations: facts, corrections and types.

    python -m benchmarks.extraction --data FOLDER
    python -m benchmarks.extraction --data FOLDER --record replies.jsonl
    python -m benchmarks.extraction --data FOLDER --replay replies.jsonl
    python -m benchmarks.extraction --data FOLDER --oracle --noise 0.1

FOLDER holds the sets (benchmarks/extraction/data_sets.py). Transcripts go through `POST /memory/extract` of the real
service, with the model that the EXTRACT_* settings name. `--record` keeps what it answers, `--replay` plays it again.
With `--oracle` an oracle answers from the reference instead: its figures measure the pipeline, not a model. Beside it
stand the service's fallback without a model and a store of every turn.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.extraction.data_sets import read_conversations, read_pairs, read_paragraphs
from benchmarks.extraction.matching import THRESHOLDS, measures
from benchmarks.extraction.oracle import NAME, Noise, Oracle, known_of
from benchmarks.extraction.replay import Answerer, Player, Recorder, Recording, listening, origin_of
from benchmarks.extraction.run import Sets, measure_model, measure_peers
from benchmarks.extraction.tables import Measured, figures, print_measured
from benchmarks.report import Target, print_targets, progress, write_results
from souvenir.core.settings import ExtractProvider, Settings
from souvenir.models.embedding.factory import embedder_of
from souvenir.models.providers.endpoints import LLMEndpoint

SEED = 6
ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run was asked for."""

    data: Path
    oracle: bool
    noise: float
    record: Path | None
    replay: Path | None
    conversations: int
    pairs: int
    paragraphs: int


def run(plan: Plan) -> bool:
    sets = Sets(
        read_conversations(plan.data, plan.conversations),
        read_pairs(plan.data, plan.pairs),
        read_paragraphs(plan.data, plan.paragraphs),
    )
    sessions = sum(len(conversation.sessions) for conversation in sets.conversations)
    said = f"{len(sets.conversations)} conversations ({sessions} sessions)"
    progress(f"{said}, {len(sets.pairs)} pairs, {len(sets.paragraphs)} paragraphs")
    settings = Settings(query_cache_size=0)
    likeness = measures(embedder_of(settings))
    with asked(plan, sets, settings) as (name, environment):
        model = measure_model(name, sets, likeness, environment)
    measured = [model, *measure_peers(sets, likeness)]
    print_measured(measured)
    targets = targets_of(model)
    print_targets(targets)
    found = {
        "asked": name,
        "noise": plan.noise if plan.oracle else None,
        "sets": {"sessions": sessions, "pairs": len(sets.pairs), "paragraphs": len(sets.paragraphs)},
        "thresholds": dict(THRESHOLDS),
        "measured": figures(measured),
    }
    print(f"\n{write_results('extraction', found, targets)}")
    return all(target.met for target in targets)


def targets_of(model: Measured) -> list[Target]:
    """What holds whatever a model answers."""
    account = model.account
    return [
        Target("facts without an outcome", account.open, 0),
        Target("proposed facts that were lost", account.lost, 0),
    ]


@contextmanager
def asked(plan: Plan, sets: Sets, settings: Settings) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Who answers, by a name for the tables, and the settings by which the service asks them."""
    oracle = _oracle(plan, sets) if plan.oracle else None
    if plan.replay is not None:
        recording = Recording.read(plan.replay)
        player = Player(recording, oracle)
        progress(f"{len(recording)} replies of {recording.model}")
        with _standing_in(player, recording.provider, recording.model) as environment:
            yield f"replayed: {recording.model}", environment
        progress(f"{player.missed} questions had no recorded reply")
    elif oracle is not None:
        with _standing_in(oracle, ExtractProvider.OPENAI, NAME) as environment:
            yield f"oracle (no model), noise {plan.noise:g}", environment
    elif settings.extract_provider is None:
        raise SystemExit("Set EXTRACT_PROVIDER and what it needs, or take --oracle or --replay.")
    elif plan.record is not None:
        endpoint = LLMEndpoint.of(settings, settings.extract_provider)
        with _recording(plan.record, endpoint) as environment:
            yield f"model: {endpoint.model}", environment
    else:
        yield f"model: {LLMEndpoint.of(settings, settings.extract_provider).model}", {}


def _oracle(plan: Plan, sets: Sets) -> Oracle:
    known = known_of(sets.conversations, sets.pairs, sets.paragraphs)
    return Oracle(known, Noise(plan.noise, plan.noise, plan.noise), SEED)


@contextmanager
def _standing_in(answerer: Answerer, provider: str, model: str) -> Iterator[Mapping[str, str]]:
    with listening(answerer) as origin:
        yield {
            "EXTRACT_PROVIDER": provider,
            "EXTRACT_MODEL": model,
            "EXTRACT_BASE_URL": f"{origin}/v1" if provider == ExtractProvider.OPENAI else origin,
            "EXTRACT_API_KEY": "none",
        }


@contextmanager
def _recording(path: Path, endpoint: LLMEndpoint) -> Iterator[Mapping[str, str]]:
    upstream, base_path = origin_of(endpoint.base_url)
    recorder = Recorder(
        path,
        provider=endpoint.provider.value,
        model=endpoint.model,
        origin=upstream,
        timeout_s=endpoint.timeout_s,
    )
    with listening(recorder) as origin:
        yield {
            "EXTRACT_PROVIDER": endpoint.provider.value,
            "EXTRACT_MODEL": endpoint.model,
            "EXTRACT_BASE_URL": origin + base_path,
            "EXTRACT_API_KEY": endpoint.api_key or "none",
        }
    recorder.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--oracle", action="store_true", help="ask an oracle that knows the reference, not a model")
    parser.add_argument(
        "--noise",
        type=float,
        default=0.0,
        help="share of the oracle's answers that break off, of its facts left out, of its wrong numbers (default: 0)",
    )
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--record", type=Path, help="keep the model's replies in this file; prices are unknown then")
    files.add_argument(
        "--replay", type=Path, help="answer from this file; what is not in it is refused, or with --oracle the oracle's"
    )
    parser.add_argument("--conversations", type=int, default=ALL, help="take the first so many (default: all)")
    parser.add_argument("--pairs", type=int, default=ALL, help="take the first so many (default: all)")
    parser.add_argument("--paragraphs", type=int, default=ALL, help="take the first so many (default: all)")
    arguments = parser.parse_args()
    if arguments.oracle and arguments.record:
        parser.error("--record keeps what a model answers, not an oracle")
    return 0 if run(Plan(**vars(arguments))) else 1


if __name__ == "__main__":
    sys.exit(main())
