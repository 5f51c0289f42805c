"""Many replicas: which share of requests finds its namespace loaded, by how the balancer chooses the replica.

    python -m benchmarks.scaling                        10, 100 and 1,000 replicas: half a minute
    python -m benchmarks.scaling --replicas 3 --memory-mb 512

This is a simulation; no service runs. Namespaces have sizes by Zipf's law, and the largest is requested most often, by
Zipf's law with another exponent. Each replica loads the index of a namespace when a request finds it missing, and
evicts the least recently used ones beyond its memory. The balancer chooses a replica

- at random;
- by rendezvous hashing of the namespace, as deploy/Caddyfile does;
- by rendezvous hashing of the namespace and a random number below 2, so that each namespace has two replicas;
- by rendezvous hashing with bounded loads: a replica with more than 1.25 times the average load passes requests on to
  the namespace's next replica (as a flow: Mirrokni et al. 2018, "Consistent hashing with bounded loads").

Every replica begins empty, as one that replaces a lost one does, and as the others do for the requests of a lost one.
The first columns are measured in the second half of the requests, "after" (an arrow) and "s until warm" at their begin.
Evictions on the replicas that take over the requests of a lost one are left out.
"""

from __future__ import annotations

import argparse
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.report import table, write_results

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NAMESPACES, MEMORIES = 100_000, 10_000_000
SIZE_EXPONENT, REQUEST_EXPONENT = 0.6, 0.9
"""With these the largest namespace has 40,000 memories and gets 4.5 % of the requests."""
REPLICAS = (10, 100, 1_000)
MEMORY_MB, RATE = 2_048, 50.0
NAMESPACE_MB, MEMORY_KB = 0.8, 2.4
"""Index memory per namespace and per memory: a namespace of 100 takes 1.1 MB (docs/benchmarks.md, "Thousands
of namespaces"), 100,000 memories take 207 MiB more than 10,000 do (docs/operations.md, "Sizing")."""
NAMESPACE_MS, MEMORY_MS = 18.0, 0.004
"""To load an index from its snapshot: the p50 of a first search in a cold namespace of 100 memories without the 5.6 ms
of a warm one ("Thousands of namespaces"), and the 4 s of a start with 1,000,000 memories (README.md). Without a
snapshot, as after a loss, the first search of that table took 45 ms instead of 24. All were measured with SQLite."""
REQUESTS, SAMPLED = 60_000, 50
"""Requests per simulated replica, and the number of replicas that are simulated."""
WINDOW, WARM_SHARE = 500, 0.9
LOAD_BOUND = 1.25
PREFERRED, SPLIT = 8, 1_000
"""Replicas in the order of a namespace that are kept; the most requested namespaces have the whole order."""


@dataclass(frozen=True, slots=True)
class Workload:
    """:param rates: Requests of each namespace, as shares of all.

    :param sizes_mb: Of their indexes. :param loads_ms: To load them.
    """

    rates: Floats
    sizes_mb: Floats
    loads_ms: Floats


@dataclass(frozen=True, slots=True)
class Placement:
    """Parallel arrays: a namespace sends this share of all requests to this replica."""

    namespaces: Ints
    replicas: Ints
    rates: Floats


@dataclass(frozen=True, slots=True)
class Run:
    """One replica: of each request, whether it was cold; and what it held at the end."""

    cold: npt.NDArray[np.bool_]
    held_mb: float


@dataclass(frozen=True, slots=True)
class Figures:
    replicas: int
    balancing: str
    warm: float
    busiest: float
    cold_per_s: float
    loading_ms: float
    memory_gb: float
    moved: float
    lost_cold: float
    usual_cold: float
    warm_after_s: float

    def row(self) -> list[str]:
        return [
            f"{self.replicas:,}",
            self.balancing,
            f"{self.warm:.1%}".replace("%", " %"),
            f"{self.busiest:.1f}",
            f"{self.cold_per_s:,.1f}",
            f"{self.loading_ms:.2f}",
            f"{self.memory_gb:,.0f}",
            f"{self.moved:.1%}".replace("%", " %"),
            f"{self.usual_cold:,.0f} → {self.lost_cold:,.0f}",
            f"{self.warm_after_s:,.0f}",
        ]


HEADER = (
    "replicas",
    "balancing",
    "warm",
    "busiest / average",
    "cold loads/s",
    "loading, ms a request",
    "indexes, GiB",
    "moved by a loss",
    "its cold loads a minute",
    "s until warm",
)


def workload(namespaces: int, memories: int, size_exponent: float, request_exponent: float) -> Workload:
    ranks = np.arange(1, namespaces + 1, dtype=np.float64)
    sizes, rates = ranks**-size_exponent, ranks**-request_exponent
    sizes *= memories / sizes.sum()
    return Workload(rates / rates.sum(), NAMESPACE_MB + sizes * MEMORY_KB / 1024, NAMESPACE_MS + sizes * MEMORY_MS)


def scores(namespaces: Ints, replicas: int, salt: int = 0) -> npt.NDArray[np.uint64]:
    """Hashes of each namespace with each replica (splitmix64), for rendezvous hashing: the highest is chosen."""
    mixed = np.zeros((len(namespaces), replicas), dtype=np.uint64)
    mixed += namespaces.astype(np.uint64)[:, None]
    mixed *= np.uint64(2**20)
    mixed += np.arange(salt + 1, salt + 1 + replicas, dtype=np.uint64)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


def first_choices(namespaces: int, replicas: int, salt: int = 0) -> Ints:
    chunks = np.array_split(np.arange(namespaces), max(1, namespaces * replicas // 1_000_000))
    return np.concatenate([scores(chunk, replicas, salt).argmax(axis=1) for chunk in chunks])


def at_random(load: Workload, replicas: int) -> Placement:
    """Place all namespaces on each of a few replicas, since all replicas are alike."""
    alike = min(replicas, 3)
    everything = np.arange(len(load.rates))
    return Placement(
        np.tile(everything, alike), np.repeat(np.arange(alike), len(everything)), np.tile(load.rates / replicas, alike)
    )


def hashed(load: Workload, replicas: int) -> Placement:
    return Placement(np.arange(len(load.rates)), first_choices(len(load.rates), replicas), load.rates)


def hashed_twice(load: Workload, replicas: int) -> Placement:
    count = len(load.rates)
    chosen = [first_choices(count, replicas, salt) for salt in (0, 1)]
    return Placement(np.tile(np.arange(count), 2), np.concatenate(chosen), np.tile(load.rates / 2, 2))


def bounded(load: Workload, replicas: int, bound: float = LOAD_BOUND) -> Placement:
    """Fill replicas in the order of each namespace, the most requested namespace first, up to the bound."""
    room = np.full(replicas, bound / replicas)
    parts: list[tuple[int, int, float]] = []
    for chunk in np.array_split(np.arange(len(load.rates)), max(1, len(load.rates) // 1_000)):
        kept = replicas if chunk[0] < SPLIT else min(replicas, PREFERRED)
        order = np.argsort(scores(chunk, replicas), axis=1)[:, ::-1][:, :kept]
        for namespace, preferred in zip(chunk.tolist(), order.tolist(), strict=True):
            left = float(load.rates[namespace])
            for replica in preferred:
                part = min(left, float(room[replica]))
                if part > 0:
                    room[replica] -= part
                    left -= part
                    parts.append((namespace, replica, part))
                if left <= 0:
                    break
            else:
                parts.append((namespace, int(room.argmax()), left))
    namespaces, chosen, rates = zip(*parts, strict=True)
    return Placement(np.array(namespaces), np.array(chosen), np.array(rates))


BALANCING: Mapping[str, Callable[[Workload, int], Placement]] = {
    "random": at_random,
    "hashed": hashed,
    "hashed, two each": hashed_twice,
    "hashed, bounded loads": bounded,
}


def serve(requests: Sequence[int], sizes_mb: Sequence[float], memory_mb: float) -> Run:
    """Serve the requests with an empty replica that evicts the least recently used indexes beyond its memory."""
    held: OrderedDict[int, float] = OrderedDict()
    used = 0.0
    cold = np.zeros(len(requests), dtype=np.bool_)
    for place, namespace in enumerate(requests):
        if namespace in held:
            held.move_to_end(namespace)
            continue
        cold[place] = True
        held[namespace] = size = sizes_mb[namespace]
        used += size
        # One index is always held, however large it is.
        while used > memory_mb and len(held) > 1:
            used -= held.popitem(last=False)[1]
    return Run(cold, used)


def requests_until_warm(cold: npt.NDArray[np.bool_]) -> int:
    """Return the end of the first window that is nearly as warm as the second half is."""
    wanted = WARM_SHARE * (1 - cold[len(cold) // 2 :].mean())
    windows = 1 - cold[: len(cold) // WINDOW * WINDOW].reshape(-1, WINDOW).mean(axis=1)
    return (int(np.argmax(windows >= wanted)) + 1) * WINDOW


def sample_of(loads: Floats) -> Ints:
    """Return replicas that are evenly spread over the loads."""
    order = np.argsort(loads, kind="stable")
    count = min(SAMPLED, len(loads))
    return order[((np.arange(count) + 0.5) * len(loads) / count).astype(np.int64)]


def simulate(load: Workload, balancing: str, replicas: int, memory_mb: float, rate: float) -> Figures:
    """:param rate: Requests a second that a replica gets on average."""
    dice = np.random.default_rng(0)
    placement = BALANCING[balancing](load, replicas)
    loads: Floats = np.bincount(placement.replicas, weights=placement.rates).astype(np.float64)
    sampled = sample_of(loads)
    sizes_mb = load.sizes_mb.tolist()
    rows = []
    for replica in sampled:
        mine = placement.replicas == replica
        shares = placement.rates[mine].cumsum()
        drawn = placement.namespaces[mine][np.searchsorted(shares, dice.random(REQUESTS) * shares[-1], side="right")]
        run = serve(drawn.tolist(), sizes_mb, memory_mb)
        later = run.cold[REQUESTS // 2 :]
        per_s = rate * float(loads[replica]) * replicas
        minute = min(REQUESTS // 2, round(60 * per_s))
        rows.append(
            (
                later.mean(),
                load.loads_ms[drawn[REQUESTS // 2 :]][later].sum() / later.size,
                run.held_mb,
                later.mean() * minute,
                run.cold[:minute].sum(),
                requests_until_warm(run.cold) / per_s,
            )
        )
    cold, loading_ms, held_mb, usual, lost, seconds = np.array(rows, dtype=np.float64).T
    share_cold = float(np.average(cold, weights=loads[sampled]))
    return Figures(
        replicas=replicas,
        balancing=balancing,
        warm=1 - share_cold,
        busiest=float(loads.max() * replicas),
        cold_per_s=share_cold * rate * replicas,
        loading_ms=float(np.average(loading_ms, weights=loads[sampled])),
        memory_gb=float(held_mb.mean()) * replicas / 1024,
        moved=0.0 if balancing == "random" else 1 / replicas,
        lost_cold=float(np.median(lost)),
        usual_cold=float(np.median(usual)),
        warm_after_s=float(np.median(seconds)),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, nargs="+", default=REPLICAS)
    parser.add_argument("--namespaces", type=int, default=NAMESPACES)
    parser.add_argument("--memories", type=int, default=MEMORIES, help="of all namespaces together")
    parser.add_argument("--size-exponent", type=float, default=SIZE_EXPONENT, help="of Zipf's law, for memories")
    parser.add_argument("--request-exponent", type=float, default=REQUEST_EXPONENT, help="the same for requests")
    parser.add_argument("--memory-mb", type=float, default=MEMORY_MB, help="INDEX_MEMORY_MB of each replica")
    parser.add_argument("--rate", type=float, default=RATE, help="requests a second for each replica")
    chosen = parser.parse_args()
    load = workload(chosen.namespaces, chosen.memories, chosen.size_exponent, chosen.request_exponent)
    found = [
        simulate(load, balancing, replicas, chosen.memory_mb, chosen.rate)
        for replicas in chosen.replicas
        for balancing in BALANCING
    ]
    print(
        f"\n{chosen.namespaces:,} namespaces of {chosen.memories:,} memories, {load.sizes_mb.sum() / 1024:,.0f} GiB of"
        f" indexes; INDEX_MEMORY_MB={chosen.memory_mb:g}, {chosen.rate:g} requests a second and replica\n"
    )
    print(table(HEADER, [figures.row() for figures in found]))
    print(f"\n{write_results('scaling', {'parameters': vars(chosen), 'figures': [asdict(one) for one in found]})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
