"""Tables of the results of a run and of its targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.engine.rounds import VERBS, Durations
from benchmarks.engine.startup import Starts
from benchmarks.report import Target, percentile_ms, table

SMALL, MIDDLE, LARGE, HUGE = 1_000, 10_000, 100_000, 1_000_000


def print_figures(
    sizes: Sequence[int],
    durations: Durations,
    starts: Mapping[int, Starts],
    per_second: Mapping[int, float],
    folder_mb: Mapping[int, float],
) -> None:
    print("\nMilliseconds, p50 / p95; nothing is embedded\n")
    rows = [_speed_row(size, verb, durations) for size in sizes for verb in VERBS]
    print(table(("memories", "operation", "ours", "baseline", "baseline / ours", "FAISS alone", "ours / FAISS"), rows))
    print("\nOne process that starts on a full folder, with the real model\n")
    print(
        table(
            (
                "memories",
                "start without snapshot",
                "with",
                "behind",
                "first answer",
                "resident",
                "peak",
                "on disk",
                "stored in bulk",
            ),
            [_start_row(size, starts[size], per_second[size], folder_mb[size]) for size in sizes],
        )
    )


def _speed_row(size: int, verb: str, durations: Durations) -> tuple[str, ...]:
    ours, baseline, flat = (durations.of(size, store, verb) for store in ("ours", "baseline", "flat"))
    ours_ms = percentile_ms(ours, 50)
    return (
        f"{size:,}",
        verb,
        _p50_p95(ours),
        f"{_p50_p95(baseline)} ({len(baseline)}×)" if baseline else "",
        f"{percentile_ms(baseline, 50) / ours_ms:.1f}" if baseline else "",
        _p50_p95(flat) if flat else "",
        f"{ours_ms / percentile_ms(flat, 50):.2f}" if flat else "",
    )


def _p50_p95(seconds: Sequence[float]) -> str:
    return f"{percentile_ms(seconds, 50):.2f} / {percentile_ms(seconds, 95):.2f}"


def _start_row(size: int, starts: Starts, per_second: float, folder_mb: float) -> tuple[str, ...]:
    every = (starts.without, *starts.current, starts.behind)
    return (
        f"{size:,}",
        f"{starts.without.index_s:.2f} s",
        f"{median(start.index_s for start in starts.current):.2f} s",
        f"{starts.behind.index_s:.2f} s",
        f"{median(start.answer_s for start in starts.current):.2f} s",
        f"{max(start.resident_mb for start in every):.0f} MiB",
        f"{max(start.peak_mb for start in every):.0f} MiB",
        f"{folder_mb:.0f} MiB",
        f"{per_second:,.0f} a second",
    )


def targets_of(
    sizes: Sequence[int], durations: Durations, starts: Mapping[int, Starts], cut_recall: float
) -> list[Target]:
    """What was wanted, as far as the sizes of this run can say."""
    found: list[Target] = []
    if MIDDLE in sizes:
        for verb, limit in (("add", 50), ("delete", 50), ("search", 10)):
            ratio = durations.p50_ms(MIDDLE, "baseline", verb) / durations.p50_ms(MIDDLE, "ours", verb)
            found.append(Target(f"{verb} at 10k, times as fast as the baseline", ratio, limit, at_least=True))
    if LARGE in sizes:
        if SMALL in sizes:
            growth = durations.p50_ms(LARGE, "ours", "add") / durations.p50_ms(SMALL, "ours", "add")
            found.append(Target("our add at 100k / at 1k", growth, 1.5))
        scan = durations.p50_ms(LARGE, "ours", "search") / durations.p50_ms(LARGE, "flat", "search")
        of_large = starts[LARGE]
        found += [
            Target("our search at 100k / FAISS flat alone", scan, 1.6),
            Target("start at 100k with a snapshot, s", median(start.index_s for start in of_large.current), 4.0),
            Target("start at 100k without a snapshot, s", of_large.without.index_s, 25.0),
            Target("resident at 100k with the model, MiB", max(start.resident_mb for start in of_large.current), 700.0),
        ]
        if max(sizes) == LARGE:
            found.append(Target("candidate cut at 100k, recall of the full first ten", cut_recall, 0.99, at_least=True))
    if HUGE in sizes:
        if SMALL in sizes:
            growth = durations.p50_ms(HUGE, "ours", "add") / durations.p50_ms(SMALL, "ours", "add")
            found.append(Target("our add at 1M / at 1k", growth, 1.2))
        scan = durations.p50_ms(HUGE, "ours", "search") / durations.p50_ms(HUGE, "flat", "search")
        of_huge = starts[HUGE].current
        found += [
            Target("our search at 1M / FAISS flat alone", scan, 0.5),
            Target("start at 1M with a snapshot, s", median(start.index_s for start in of_huge), 6.0),
            Target("start at 1M with a snapshot that is behind, s", starts[HUGE].behind.index_s, 8.0),
            Target("resident at 1M with the model, MiB", max(start.resident_mb for start in of_huge), 1200.0),
            Target("candidate cut at 1M, recall of the full first ten", cut_recall, 0.99, at_least=True),
        ]
    return found
