"""The overhead of `learning()` per model call: the OpenAI SDK alone, with capture, and with context.

    PYTHONPATH=client python -m benchmarks.interception
    PYTHONPATH=client python -m benchmarks.interception --calls 200 --messages 500

A conversation of eight messages and a new question, each call another, to a vendor that answers at once from a process
of its own; so what is added stands out, which beside a real model it does not. The service has the real embedding model
and an agent with a history and two blocks, in a process of its own too. The SDK alone, with capture, with context, and
the service's context alone take turns in tens, in an order that changes; each ten calls are a block of `learning()`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import openai

from benchmarks.interception.vendor import MODEL, serving
from benchmarks.load.sentences import memories, questions
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Service
from souvenir_client import Souvenir, learning

AGENT = "agent"
CALLS_IN_TURN = 10
HISTORY = 8
BATCH = 200
BARE, CAPTURE, CONTEXT, SERVICE = "the SDK alone", "with capture", "with context", "the service's context alone"
ENTER = "enter and leave a block"
PLAIN, STREAMED, ASYNC = "plain", "streamed", "async"
MOST_CAPTURE_MS = 2.0
MOST_OF_SERVICE = 1.5
"""The rest is the way there, and what is stored at the same time."""

Seconds = defaultdict[str, list[float]]


def fill(url: str, count: int) -> None:
    """An agent with two blocks and a history of so many messages."""
    with Souvenir(url) as souvenir:
        souvenir.blocks.create(agent_name=AGENT, label="human", value="Name: Alma\nLocation: Bergen")
        souvenir.blocks.create(agent_name=AGENT, label="persona", value="I answer in one sentence.")
        texts = list(islice(memories(seed=0), count))
        for start in range(0, count, BATCH):
            said = [{"role": "user", "content": text} for text in texts[start : start + BATCH]]
            souvenir.messages.add_batch(agent_name=AGENT, session_id="before", messages=said)


def prompt(question: str) -> list[Any]:
    history = list(islice(memories(seed=1), HISTORY))
    turns = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(history)]
    return [{"role": "system", "content": "Answer in one sentence."}, *turns, {"role": "user", "content": question}]


def shapes(vendor_url: str, loop: asyncio.AbstractEventLoop) -> Iterator[tuple[str, Callable[[str], object]]]:
    """Each way of calling, by its name; the SDK's clients are open as long as this goes on."""
    access: dict[str, Any] = {"base_url": vendor_url, "api_key": "none", "max_retries": 0}
    client, async_client = openai.OpenAI(**access), openai.AsyncOpenAI(**access)

    def plain(question: str) -> object:
        return client.chat.completions.create(model=MODEL, messages=prompt(question))

    def streamed(question: str) -> object:
        return list(client.chat.completions.create(model=MODEL, messages=prompt(question), stream=True))

    def asynchronous(question: str) -> object:
        return loop.run_until_complete(async_client.chat.completions.create(model=MODEL, messages=prompt(question)))

    yield from ((PLAIN, plain), (STREAMED, streamed), (ASYNC, asynchronous))
    client.close()
    loop.run_until_complete(async_client.close())


def timed(verb: Callable[[str], object], asked: Iterator[str], count: int) -> list[float]:
    seconds = []
    for question in islice(asked, count):
        begin = time.perf_counter()
        verb(question)
        seconds.append(time.perf_counter() - begin)
    return seconds


def measure(url: str, ask: Callable[[str], object], asked: Iterator[str], calls: int) -> Seconds:
    """Seconds of calls by what they had; all take turns."""
    seconds: Seconds = defaultdict(list)
    with Souvenir(url) as souvenir:

        def build(question: str) -> object:
            return souvenir.context.build(AGENT, query=question)

        modes = [BARE, CAPTURE, CONTEXT, SERVICE]
        for verb in (ask, build):
            timed(verb, asked, CALLS_IN_TURN)
        for _ in range(calls // CALLS_IN_TURN):
            for mode in modes:
                if mode in (BARE, SERVICE):
                    seconds[mode] += timed(build if mode is SERVICE else ask, asked, CALLS_IN_TURN)
                    continue
                begin = time.perf_counter()
                with learning(AGENT, url, capture_only=mode is CAPTURE, timeout_s=30.0):
                    entered = time.perf_counter()
                    seconds[mode] += timed(ask, asked, CALLS_IN_TURN)
                    done = time.perf_counter()
                seconds[f"{ENTER}, {mode}"].append(entered - begin + time.perf_counter() - done)
            modes.append(modes.pop(0))
    return seconds


def report(figures: dict[str, dict[str, float]]) -> list[Target]:
    """Prints the table; figures are p50 in milliseconds."""
    rows, targets = [], []
    for shape, ms in figures.items():
        for mode in (CAPTURE, CONTEXT):
            ratio = f"{ms[mode] / ms[BARE]:.2f}"
            rows.append((shape, mode, f"{ms[BARE]:.2f}", f"{ms[mode]:.2f}", f"{ms[mode] - ms[BARE]:.2f}", ratio))
        adds = ms[CONTEXT] - ms[BARE]
        targets += [
            Target(f"{shape}: capture adds, p50 ms", ms[CAPTURE] - ms[BARE], MOST_CAPTURE_MS),
            Target(
                f"{shape}: context adds / the service's own time",
                adds / ms[SERVICE],
                MOST_OF_SERVICE,
            ),
        ]
    print("\n" + table(("call", "learning()", "alone, p50 ms", "p50 ms", "adds, ms", "ratio"), rows))
    others = [
        (shape, name, f"{ms[name]:.2f}")
        for shape, ms in figures.items()
        for name in ms
        if name not in (BARE, CAPTURE, CONTEXT)
    ]
    print("\n" + table(("run", "what", "p50 ms"), others))
    return targets


def run(calls: int, messages: int) -> bool:
    figures: dict[str, dict[str, float]] = {}
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder, serving() as vendor_url:
        service = Service(Path(folder) / "data")
        service.start()
        try:
            url = f"http://127.0.0.1:{service.port}"
            progress(f"an agent with {messages} messages")
            fill(url, messages)
            asked = questions(seed=2)
            for name, ask in shapes(vendor_url, loop):
                progress(f"{calls} calls of each kind, {name}")
                seconds = measure(url, ask, asked, calls)
                figures[name] = {kind: percentile_ms(of, 50) for kind, of in seconds.items()}
        finally:
            service.stop()
            loop.close()
    targets = report(figures)
    print_targets(targets)
    print(f"\n{write_results('interception', {'calls': calls, 'messages': messages, 'p50_ms': figures}, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=500, help="of each kind")
    parser.add_argument("--messages", type=int, default=2_000, help="that the agent has")
    given = parser.parse_args()
    return 0 if run(given.calls, given.messages) else 1


if __name__ == "__main__":
    sys.exit(main())
