"""Tables of the results of a run and of its targets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from benchmarks.conversation.turns import (
    ADD,
    AGENT_CONTEXT,
    CONTEXT,
    GET,
    PEER_ALL,
    PEER_NEWEST,
    RECALL,
    SEARCH,
    Durations,
)
from benchmarks.report import Target, table

TARGETS_MS: Mapping[str, float] = MappingProxyType(
    {ADD: 10, GET: 10, SEARCH: 100, RECALL: 500, CONTEXT: 600, AGENT_CONTEXT: 600}
)
"""Of the system that the three tiers come from."""

SPARE = 5.0
"""How many times as fast as its targets it is wanted to be."""


def print_figures(messages: int, durations: Durations) -> None:
    print(f"\nMilliseconds at {messages:,} messages; embedding the query is part of every search\n")
    rows = [_row(verb, durations, TARGETS_MS.get(verb)) for verb in (*TARGETS_MS, PEER_NEWEST, PEER_ALL)]
    print(table(("", "p50", "p95", "p99", "target", "target / p50", "target / p95", "measured"), rows))


def targets_of(durations: Durations) -> list[Target]:
    wanted = [
        Target(f"{verb}, target / p{percent}", target_ms / durations.ms(verb, percent), SPARE, at_least=True)
        for verb, target_ms in TARGETS_MS.items()
        for percent in (50, 95)
    ]
    peers = [
        Target(
            f"history search, times as fast as the {name} (p50)",
            durations.ms(name, 50) / durations.ms(SEARCH, 50),
            1.0,
            True,
        )
        for name in (PEER_NEWEST, PEER_ALL)
    ]
    return [*wanted, *peers]


def _row(verb: str, durations: Durations, target_ms: float | None) -> tuple[str, ...]:
    times = [f"{durations.ms(verb, percent):.2f}" for percent in (50, 95, 99)]
    ratios = ["", "", ""]
    if target_ms is not None:
        ratios = [f"{target_ms:g}", *(f"{target_ms / durations.ms(verb, percent):.1f}" for percent in (50, 95))]
    return verb, *times, *ratios, f"{len(durations.of(verb))}×"
