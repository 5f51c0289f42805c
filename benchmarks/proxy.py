"""The overhead of the proxy per model call: the vendor alone, through the proxy, and the service's context alone.

    PYTHONPATH=client python -m benchmarks.proxy
    PYTHONPATH=client python -m benchmarks.proxy --calls 50 --messages 500

The conversation, the vendor, the agent and the turns are those of `benchmarks.interception`. The context alone is asked
for by the Python client, so it includes a request of its own. Both sides of a call are on disk before its answer ends;
the commit of the answer cannot begin before the vendor has sent it, so a commit of 4 KiB, to a database in the same
folder, is measured too. All take turns, one call each, in random order. They are some time apart, as a model takes
longer than this vendor: messages are embedded after their call, and would slow the next one. p10 is the figure of the
calls that other programs of the machine disturb least.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

import apsw
import openai

from benchmarks.interception.__main__ import AGENT, fill, prompt
from benchmarks.interception.vendor import MODEL, serving
from benchmarks.load.sentences import questions
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Service
from souvenir_client import Souvenir

DIRECT, PROXIED, CONTEXT = "the vendor alone", "through the proxy", "the context alone"
COMMIT, BEYOND = "a commit alone", "adds beyond the context"
PLAIN, STREAMED = "plain", "streamed"
WARM_UP = 5
APART_S = 0.5
COMMITTED_BYTES = 4096
MOST_MORE_MS = 5.0
"""Beyond the context."""

Way = tuple[str, str]
"""The kind of a call, and what it goes through."""


def asking(client: openai.OpenAI, *, stream: bool) -> Callable[[str], object]:
    def ask(question: str) -> object:
        answer = client.chat.completions.create(model=MODEL, messages=prompt(question), stream=stream)
        return list(answer) if stream else answer

    return ask


def committing(folder: Path) -> Callable[[str], object]:
    """Return a function that commits a row durably, as the service does."""
    connection = apsw.Connection(str(folder / "commits.db"))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "FULL")
    connection.execute("CREATE TABLE texts (text TEXT)")
    return lambda question: connection.execute("INSERT INTO texts VALUES (?)", (question.ljust(COMMITTED_BYTES),))


def measure(
    direct: openai.OpenAI, proxied: openai.OpenAI, souvenir: Souvenir, folder: Path, calls: int
) -> Mapping[Way, Sequence[float]]:
    """Return the seconds of the calls by their kind and what they went through; all take turns."""
    context = partial(souvenir.context.build, AGENT)
    ways: dict[Way, Callable[[str], object]] = {("", COMMIT): committing(folder)}
    for shape in (PLAIN, STREAMED):
        ways[shape, DIRECT] = asking(direct, stream=shape is STREAMED)
        ways[shape, PROXIED] = asking(proxied, stream=shape is STREAMED)
    ways["", CONTEXT] = lambda question: context(query=question)
    progress(f"{calls} calls of each kind")
    return in_turns(ways, questions(seed=2), calls)


def in_turns(
    ways: Mapping[Way, Callable[[str], object]], asked: Iterator[str], calls: int
) -> Mapping[Way, Sequence[float]]:
    seconds: defaultdict[Way, list[float]] = defaultdict(list)
    order, drawn = list(ways), Random(0)
    for turn in range(WARM_UP + calls):
        for name in order:
            question = next(asked)
            time.sleep(APART_S)
            begin = time.perf_counter()
            ways[name](question)
            if turn >= WARM_UP:
                seconds[name].append(time.perf_counter() - begin)
        # One that always followed the same other one would be measured in the state which that one leaves behind.
        drawn.shuffle(order)
    return seconds


def figures_of(seconds: Mapping[Way, Sequence[float]], percent: float) -> dict[str, dict[str, float]]:
    """Return a percentile in milliseconds, by the kind of call; its last column is the target's."""
    figures = {}
    for shape in (PLAIN, STREAMED):
        keys = ((shape, DIRECT), (shape, PROXIED), ("", CONTEXT), ("", COMMIT))
        ms = {name: percentile_ms(seconds[at, name], percent) for at, name in keys}
        figures[shape] = {**ms, BEYOND: ms[PROXIED] - ms[DIRECT] - ms[CONTEXT]}
    return figures


def run(calls: int, messages: int) -> bool:
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder, serving() as vendor_url:
        service = Service(Path(folder) / "data", OPENAI_BASE_URL=vendor_url)
        service.start()
        try:
            url = f"http://127.0.0.1:{service.port}"
            progress(f"an agent with {messages} messages")
            fill(url, messages)
            with (
                openai.OpenAI(base_url=vendor_url, api_key="none", max_retries=0) as direct,
                openai.OpenAI(
                    base_url=f"{url}/v1", api_key="none", max_retries=0, default_headers={"X-Souvenir-Agent": AGENT}
                ) as proxied,
                Souvenir(url) as souvenir,
            ):
                seconds = measure(direct, proxied, souvenir, Path(folder), calls)
        finally:
            service.stop()
    figures = {percent: figures_of(seconds, percent) for percent in (10, 50)}
    for percent, of in figures.items():
        rows = [(shape, *(f"{value:.2f}" for value in ms.values())) for shape, ms in of.items()]
        print("\n" + table((f"call, p{percent} ms", DIRECT, PROXIED, CONTEXT, COMMIT, BEYOND), rows))
    targets = [
        Target(f"{shape}: the proxy adds beyond the context, p50 ms", ms[BEYOND], MOST_MORE_MS)
        for shape, ms in figures[50].items()
    ]
    print_targets(targets)
    print(f"\n{write_results('proxy', {'calls': calls, 'messages': messages, 'ms': figures}, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100, help="of each kind")
    parser.add_argument("--messages", type=int, default=2_000, help="that the agent has")
    given = parser.parse_args()
    return 0 if run(given.calls, given.messages) else 1


if __name__ == "__main__":
    sys.exit(main())
