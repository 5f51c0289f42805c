"""Accuracy of the shipped privacy rules on labelled texts, per character, and their speed.

    python -m benchmarks.privacy --data FOLDER
    python -m benchmarks.privacy --data FOLDER --outside

FOLDER holds files of labelled texts (`*.jsonl`); docs/benchmarks.md describes them and where they come from. A set that
is generated is measured beside them. Presidio takes part where it is installed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.privacy import speed
from benchmarks.privacy.data_sets import KINDS, read_texts
from benchmarks.privacy.finders import Finder, finders
from benchmarks.privacy.scoring import ALL, Score, halves, outside, score
from benchmarks.privacy.synthetic import synthetic_texts
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from souvenir.core.settings import Settings
from souvenir.privacy.rules import PrivacyRules

RECALL, PRECISION = 0.97, 0.95
ORDINARY_MS = 150.0
HOSTILE_S = 2.0
SCREENING_S = 0.5
ROUNDS = 5


def run(folder: Path, *, show_outside: bool) -> bool:
    rules = PrivacyRules.load(Settings().privacy_rules_path)
    found = finders(rules)
    sets = {path.stem: read_texts(path) for path in sorted(folder.glob("*.jsonl"))}
    if not sets:
        raise SystemExit(f"There is no *.jsonl in {folder}; docs/benchmarks.md says what belongs there")
    texts = [text for name in sets for text in sets[name]]
    developed, others = halves(sets.values())
    progress(f"{len(texts)} texts in {len(sets)} files: {', '.join(sets)}")
    parts = {"all": texts, "developed on": developed, "the other half": others, "synthetic": synthetic_texts()}
    scores = {finder.name: {part: score(finder, parts[part]) for part in parts} for finder in found}
    for title, columns in (("data", ("all", "developed on", "the other half")), ("synthetic", ("synthetic",))):
        print(f"\n{title}\n\n{_table(scores, columns)}")
    if show_outside:
        print("\n" + "\n".join(line for part in ("all", "synthetic") for line in outside(found[0], parts[part])))
    times = _times(found)
    screening = {piece: speed.screening_seconds(rules, piece) for piece in speed.SCREENED_PIECES}
    targets = [
        *_targets(scores[found[0].name]),
        *_speed_targets(times[found[0].name]),
        Target("50,000 characters redacted under the strictest policy, s of CPU", max(screening.values()), SCREENING_S),
    ]
    print_targets(targets)
    figures = {
        "sets": {name: len(sets[name]) for name in sets},
        "scores": {name: {part: _figures(scores[name][part]) for part in parts} for name in scores},
        "seconds": times,
        "screening_seconds": screening,
    }
    print(f"\n{write_results('privacy', figures, targets)}")
    return all(target.met for target in targets)


def _table(scores: Mapping[str, Mapping[str, Score]], parts: Sequence[str]) -> str:
    """A row a kind: characters, then recall and precision of everybody on every part."""
    columns = [(name, part) for name in scores for part in parts]
    header = ["kind", "characters", *(f"{name}, {part}" if len(parts) > 1 else name for name, part in columns)]
    labelled = next(iter(scores.values()))[parts[0]].labelled
    rows = [
        [kind, str(labelled[kind]), *(_pair(scores[name][part], kind) for name, part in columns)]
        for kind in (*KINDS, ALL)
        if labelled[kind]
    ]
    return table(header, rows)


def _pair(found: Score, kind: str) -> str:
    return f"{_share(found.recall(kind))} / {_share(found.precision(kind))}"


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _figures(found: Score) -> dict[str, dict[str, float | None]]:
    return {
        kind: {
            "characters": found.labelled[kind],
            "recall": None if math.isnan(found.recall(kind)) else found.recall(kind),
            "precision": None if math.isnan(found.precision(kind)) else found.precision(kind),
        }
        for kind in (*KINDS, ALL)
    }


def _times(found: Sequence[Finder]) -> dict[str, dict[str, float]]:
    """CPU seconds for 1 MB. Ours are medians; the others, whose take a minute, and texts made to take long run once."""
    texts = {speed.PROSE: speed.prose(), speed.LOG: speed.log()}
    times = {finder.name: {name: speed.cpu_seconds(finder, texts[name]) for name in texts} for finder in found}
    for name, text in texts.items():
        rounds = [speed.cpu_seconds(found[0], text) for _ in range(ROUNDS)]
        times[found[0].name][name] = percentile_ms(rounds, 50) / 1e3
    for piece in (*speed.EMPTY_PIECES, *speed.FULL_PIECES):
        times[found[0].name][repr(piece)] = speed.cpu_seconds(found[0], speed.repeated(piece))
    rows = [
        (finder, text, f"{seconds * 1e3:.0f}") for finder, by_text in times.items() for text, seconds in by_text.items()
    ]
    print("\n" + table(("", "1 MB of", "ms of CPU"), rows))
    return times


def _targets(scores: Mapping[str, Score]) -> list[Target]:
    return [
        target
        for part in ("all", "synthetic")
        for target in (
            Target(f"{part}: recall by character", scores[part].recall(ALL), RECALL, at_least=True),
            Target(f"{part}: precision by character", scores[part].precision(ALL), PRECISION, at_least=True),
        )
    ]


def _speed_targets(times: Mapping[str, float]) -> list[Target]:
    slowest = max(times[repr(piece)] for piece in speed.EMPTY_PIECES)
    return [
        Target("1 MB of prose, ms of CPU", times[speed.PROSE] * 1e3, ORDINARY_MS),
        Target("1 MB of a log, ms of CPU", times[speed.LOG] * 1e3, ORDINARY_MS),
        Target("1 MB of the worst piece that is nothing, s of CPU", slowest, HOSTILE_S),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with *.jsonl files of labelled texts")
    parser.add_argument("--outside", action="store_true", help="print what was found outside of every label")
    arguments = parser.parse_args()
    return 0 if run(arguments.data, show_outside=arguments.outside) else 1


if __name__ == "__main__":
    sys.exit(main())
