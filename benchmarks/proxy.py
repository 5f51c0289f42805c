"""The overhead of the proxy per model call: the vendor alone, through the proxy, and the service's context alone.

    PYTHONPATH=client python -m benchmarks.proxy
    PYTHONPATH=client python -m benchmarks.proxy --calls 50 --messages 500

The conversation, the vendor, the agent and the turns are those of `benchmarks.interception`. The context alone is asked
for by the Python client, so it includes a request of its own. Calls of all kinds are some time apart, as a model takes
longer than this vendor: messages are embedded after their call, and would slow the next one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import openai

from benchmarks.interception.__main__ import AGENT, CALLS_IN_TURN, fill, prompt
from benchmarks.interception.vendor import MODEL, serving
from benchmarks.load.sentences import questions
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Service
from souvenir_client import Souvenir

DIRECT, PROXIED, CONTEXT = "the vendor alone", "through the proxy", "the context alone"
PLAIN, STREAMED = "plain", "streamed"
APART_S = 0.5
MOST_MORE_MS = 5.0
"""Beyond the context."""


def asking(client: openai.OpenAI, *, stream: bool) -> Callable[[str], object]:
    def ask(question: str) -> object:
        answer = client.chat.completions.create(model=MODEL, messages=prompt(question), stream=stream)
        return list(answer) if stream else answer

    return ask


def timed(ask: Callable[[str], object], asked: Iterator[str], count: int) -> list[float]:
    seconds = []
    for question in islice(asked, count):
        time.sleep(APART_S)
        begin = time.perf_counter()
        ask(question)
        seconds.append(time.perf_counter() - begin)
    return seconds


def measure(
    direct: openai.OpenAI, proxied: openai.OpenAI, souvenir: Souvenir, calls: int
) -> dict[str, dict[str, float]]:
    """Return p50 in milliseconds by the kind of call and what it went through; all take turns."""
    asked = questions(seed=2)
    figures = {}
    for shape in (PLAIN, STREAMED):
        progress(f"{calls} calls of each kind, {shape}")
        ways = {
            DIRECT: asking(direct, stream=shape is STREAMED),
            PROXIED: asking(proxied, stream=shape is STREAMED),
            CONTEXT: lambda question: souvenir.context.build(AGENT, query=question),
        }
        figures[shape] = in_turns(ways, asked, calls)
    return figures


def in_turns(ways: dict[str, Callable[[str], object]], asked: Iterator[str], calls: int) -> dict[str, float]:
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for ask in ways.values():
        timed(ask, asked, CALLS_IN_TURN)
    order = list(ways)
    for _ in range(calls // CALLS_IN_TURN):
        for name in order:
            seconds[name] += timed(ways[name], asked, CALLS_IN_TURN)
        order.append(order.pop(0))
    return {name: percentile_ms(of, 50) for name, of in seconds.items()}


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
                figures = measure(direct, proxied, souvenir, calls)
        finally:
            service.stop()
    rows, targets = [], []
    for shape, ms in figures.items():
        adds = ms[PROXIED] - ms[DIRECT]
        rows.append((shape, *(f"{ms[name]:.2f}" for name in (DIRECT, PROXIED, CONTEXT)), f"{adds - ms[CONTEXT]:.2f}"))
        targets.append(Target(f"{shape}: the proxy adds beyond the context, p50 ms", adds - ms[CONTEXT], MOST_MORE_MS))
    print("\n" + table(("call", f"{DIRECT}, p50 ms", PROXIED, CONTEXT, "adds beyond it"), rows))
    print_targets(targets)
    print(f"\n{write_results('proxy', {'calls': calls, 'messages': messages, 'p50_ms': figures}, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100, help="of each kind")
    parser.add_argument("--messages", type=int, default=2_000, help="that the agent has")
    given = parser.parse_args()
    return 0 if run(given.calls, given.messages) else 1


if __name__ == "__main__":
    sys.exit(main())
