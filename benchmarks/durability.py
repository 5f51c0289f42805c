"""Verifies that acknowledged writes survive `kill -9`, with a client that keeps a ledger on its side of HTTP.

A round: start the service, let threads add, change and delete memories, end the service at a random moment (SIGKILL;
every fifth round SIGTERM, so that index snapshots are written and later found stale), check the folder as
`python app.py check` does, start again, and compare every memory with the ledger. A request that was under way when the
service died may have been carried out or not, a batch wholly or not at all, and nothing else may differ.

    python -m benchmarks.durability --rounds 200
    python -m benchmarks.durability --rounds 50 --operate

With `--operate` the writers hold a key of their own source, and an operator beside them imports files and changes the
embedding model all the time, so that the kills fall into jobs: these must go on after the start, and every line be
stored once.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from benchmarks.operating import Operated, Operator, compare_imports, second_model, settle_jobs
from benchmarks.service import ROOT, Client, Service, ServiceFailed

THREADS = 8
REFUSED_PAUSE_S = 0.2
SOURCE = "durability"
DEFAULT_MODEL = ROOT / "models" / "all-MiniLM-L6-v2"
OWNED_MAX = 150
"""Memories that one thread keeps: above it deletes more than it adds, so that every round takes about as long."""
SEARCHED_PER_ROUND = 25
WORDS = (
    "amber birch cedar delta ember fjord grove harbor island jasper kettle lagoon meadow nectar orchid pebble".split()
)


@dataclass(slots=True)
class Ledger:
    """What one thread was told. `texts` holds what must be there, `deleted` what must not.

    `doubtful` maps an id to the texts of which one must be there (None: it may be gone); `doubtful_adds` are batches of
    texts that may be there once, under ids that nobody heard of.
    """

    texts: dict[int, str] = field(default_factory=dict)
    deleted: dict[int, str] = field(default_factory=dict)
    doubtful: dict[int, tuple[str | None, ...]] = field(default_factory=dict)
    doubtful_adds: list[list[str]] = field(default_factory=list)
    acknowledged: int = 0


@dataclass(slots=True)
class Totals:
    rounds: int = 0
    acknowledged: int = 0
    in_flight: int = 0
    lost: list[str] = field(default_factory=list)
    risen: list[str] = field(default_factory=list)
    unclean: list[str] = field(default_factory=list)
    jobs: dict[str, int] = field(default_factory=dict)
    jobs_resumed: dict[str, int] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)

    def new_problems(self) -> list[str]:
        """Those that no earlier call has returned."""
        problems = [one for one in (*self.lost, *self.risen, *self.unclean) if one not in self._reported]
        self._reported.update(problems)
        return problems


class Worker(threading.Thread):
    """Writes until the service dies or `stop` is set, and keeps its ledger."""

    def __init__(self, client: Client, ledger: Ledger, seed: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._client = client
        self._ledger = ledger
        self._random = random.Random(seed)
        self._stopping = stop
        self.failure: str | None = None

    def run(self) -> None:
        client = self._client
        try:
            while not self._stopping.is_set():
                self._step(client)
        except OSError:
            return  # the service is gone; what was under way is in the ledger
        except ServiceFailed as error:
            self.failure = str(error)
        finally:
            client.close()

    def _step(self, client: Client) -> None:
        known = list(self._ledger.texts)
        share = len(known) / OWNED_MAX
        draw = self._random.random()
        if not known or draw < 0.6 - 0.4 * share:
            self._store(client, 1 if draw < 0.3 else self._random.randint(2, 12))
        elif draw < 0.75:
            self._change(client, self._random.choice(known))
        else:
            self._forget(client, self._random.choice(known))

    def _text(self) -> str:
        """Some words and one that stands in no other text."""
        return " ".join([*self._random.choices(WORDS, k=12), f"mark{uuid.UUID(int=self._random.getrandbits(128)).hex}"])

    def _store(self, client: Client, count: int) -> None:
        texts = [self._text() for _ in range(count)]
        self._ledger.doubtful_adds.append(texts)
        if count == 1:
            answer = self._write(client, "POST", "/memory/add", {"text": texts[0], "source": SOURCE})
            ids = [answer["id"]]
        else:
            memories = [{"text": text, "source": SOURCE} for text in texts]
            ids = self._write(client, "POST", "/memory/add-batch", {"memories": memories})["ids"]
        self._ledger.doubtful_adds.remove(texts)
        self._ledger.texts.update(zip(ids, texts, strict=True))

    def _change(self, client: Client, memory_id: int) -> None:
        old, new = self._ledger.texts.pop(memory_id), self._text()
        self._ledger.doubtful[memory_id] = (old, new)
        self._write(client, "PATCH", f"/memory/{memory_id}", {"text": new})
        del self._ledger.doubtful[memory_id]
        self._ledger.texts[memory_id] = new

    def _forget(self, client: Client, memory_id: int) -> None:
        old = self._ledger.texts.pop(memory_id)
        self._ledger.doubtful[memory_id] = (old, None)
        self._write(client, "DELETE", f"/memory/{memory_id}")
        del self._ledger.doubtful[memory_id]
        self._ledger.deleted[memory_id] = old

    def _write(self, client: Client, method: str, path: str, body: object = None) -> Any:
        """Until it is let in: a machine that others use too may have no turn for it yet."""
        status, answer = client.call(method, path, body)
        while status == HTTPStatus.TOO_MANY_REQUESTS:
            self._stopping.wait(REFUSED_PAUSE_S)
            status, answer = client.call(method, path, body)
        if status != HTTPStatus.OK:
            raise ServiceFailed(f"a write was answered {status}: {answer}")
        self._ledger.acknowledged += 1
        return answer


def write_until_death(run: Run, dice: random.Random, *, graceful: bool) -> None:
    stop, service = threading.Event(), run.service
    workers: list[Worker | Operator] = [
        Worker(service.client(run.writer_key), ledger, dice.getrandbits(64), stop) for ledger in run.ledgers
    ]
    if run.operated is not None:
        client = service.client(run.admin_key)
        workers.append(Operator(client, run.operated, run.models, dice.getrandbits(64), stop))
    for worker in workers:
        worker.start()
    time.sleep(dice.uniform(0.05, 2.5))
    if graceful:
        service.stop()
    else:
        service.kill()
    stop.set()
    for worker in workers:
        worker.join(timeout=70)
    failures = [worker.failure for worker in workers if worker.failure and not graceful]
    if failures:
        raise ServiceFailed("; ".join(failures))


def compare(
    client: Client, ledgers: list[Ledger], operated: Operated | None, totals: Totals, dice: random.Random
) -> None:
    """Hold what the service says against the ledgers, and settle what was in doubt."""
    stored = all_memories(client)
    surplus = set(stored)
    if operated is not None:
        lost, doubled, imported = compare_imports(operated, stored)
        totals.lost += lost
        totals.unclean += doubled
        surplus -= imported
    for ledger in ledgers:
        totals.in_flight += len(ledger.doubtful) + len(ledger.doubtful_adds)
        for memory_id, text in ledger.texts.items():
            if stored.get(memory_id) != text:
                totals.lost.append(f"memory {memory_id} is {stored.get(memory_id)!r}, acknowledged was {text!r}")
        totals.risen += [f"memory {id_} came back" for id_ in ledger.deleted if id_ in stored]
        for memory_id, texts in ledger.doubtful.items():
            if stored.get(memory_id) not in texts:
                totals.lost.append(f"memory {memory_id} is {stored.get(memory_id)!r}, expected one of {texts!r}")
            settle(ledger, memory_id, texts, stored.get(memory_id))
        surplus -= set(ledger.texts)
        ledger.doubtful.clear()
    by_text = {stored[id_]: id_ for id_ in surplus}
    for ledger in ledgers:
        for batch in ledger.doubtful_adds:
            there = [text for text in batch if text in by_text]
            if there and there != batch:
                totals.unclean.append(f"{len(there)} of a batch of {len(batch)} are there")
            ledger.texts.update((by_text[text], text) for text in there)
            surplus -= {by_text[text] for text in there}
        ledger.doubtful_adds.clear()
    totals.risen += [f"memory {id_} was never asked for" for id_ in surplus]
    compare_search(client, ledgers, totals, dice)


def settle(ledger: Ledger, memory_id: int, texts: tuple[str | None, ...], now: str | None) -> None:
    if now is not None:
        ledger.texts[memory_id] = now
    elif texts[0] is not None:
        ledger.deleted[memory_id] = texts[0]


def compare_search(client: Client, ledgers: list[Ledger], totals: Totals, dice: random.Random) -> None:
    """A sample of what is there is found by its own word, and of what was deleted is not."""
    there = [item for ledger in ledgers for item in ledger.texts.items()]
    gone = [item for ledger in ledgers for item in ledger.deleted.items()]
    for memory_id, text in dice.sample(there, min(SEARCHED_PER_ROUND, len(there))):
        answer = found(client, text)
        if memory_id not in ids_of(answer):
            totals.lost.append(f"memory {memory_id} is stored and not found: {text!r} got {answer}")
    for memory_id, text in dice.sample(gone, min(SEARCHED_PER_ROUND, len(gone))):
        if memory_id in ids_of(found(client, text)):
            totals.risen.append(f"memory {memory_id} is deleted and found")


def found(client: Client, text: str) -> Any:
    """What a search by the text's own word finds.

    By words alone: to the model the word is noise, and of some thousand such texts one is ranked below three others.
    """
    query = {"query": text.rsplit(" ", 1)[1], "k": 3, "vector_weight": 0.0}
    return answered(client, "POST", "/search", query)


def ids_of(answer: Any) -> set[int]:
    return {hit["id"] for hit in answer["results"]}


def all_memories(client: Client) -> dict[int, str]:
    stored: dict[int, str] = {}
    while True:
        page = answered(client, "GET", f"/memories?limit=5000&offset={len(stored)}")
        stored |= {memory["id"]: memory["text"] for memory in page["memories"]}
        if len(stored) >= page["total"] or not page["memories"]:
            return stored


def answered(client: Client, method: str, path: str, body: Any = None) -> Any:
    status, answer = client.call(method, path, body)
    if status != 200:
        raise ServiceFailed(f"{method} {path} was answered {status}: {answer}")
    return answer


@dataclass(slots=True)
class Run:
    """One service over one folder, and who writes to it."""

    service: Service
    ledgers: list[Ledger] = field(default_factory=lambda: [Ledger() for _ in range(THREADS)])
    writer_key: str | None = None
    admin_key: str | None = None
    operated: Operated | None = None
    models: list[str] = field(default_factory=list)

    def operate(self, folder: Path) -> None:
        """Make the keys, and a second model to change to."""
        self.operated = Operated()
        self.models = [str(DEFAULT_MODEL), str(second_model(DEFAULT_MODEL, folder / "second-model"))]
        self.admin_key = self._new_key({"name": "operator", "role": "admin"})
        self.writer_key = self._new_key({"name": "writers", "role": "read-write", "prefixes": [SOURCE]})

    def _new_key(self, body: dict[str, Any]) -> str:
        client = self.service.client(self.admin_key)
        key = str(answered(client, "POST", "/api/keys", body)["key"])
        client.close()
        return key


def run(rounds: int, seed: int, data_dir: Path, *, operate: bool = False) -> Totals:
    """Play the rounds over one data folder; see the module's docstring."""
    dice = random.Random(seed)
    totals = Totals()
    playing = Run(Service(data_dir, SNAPSHOT_INTERVAL_S="0.3"))
    service = playing.service
    service.start()
    if operate:
        playing.operate(data_dir.parent)
    for number in range(1, rounds + 1):
        write_until_death(playing, dice, graceful=number % 5 == 0)
        totals.unclean += service.check()
        service.start()
        client = service.client(playing.admin_key)
        if playing.operated is not None:
            totals.unclean += settle_jobs(client, playing.operated, wait=number in (rounds, rounds // 2))
        compare(client, playing.ledgers, playing.operated, totals, dice)
        client.close()
        totals.rounds = number
        totals.acknowledged = sum(ledger.acknowledged for ledger in playing.ledgers)
        report_progress(totals, rounds)
    service.stop()
    if playing.operated is not None:
        totals.jobs = dict(playing.operated.completed)
        totals.jobs_resumed = dict(playing.operated.resumed)
    return totals


def report_progress(totals: Totals, rounds: int) -> None:
    for problem in totals.new_problems():
        print(f"round {totals.rounds}: {problem}", flush=True)
    print(
        f"round {totals.rounds}/{rounds}: {totals.acknowledged} acknowledged, {totals.in_flight} in flight at a kill, "
        f"{len(totals.lost)} lost, {len(totals.risen)} back, {len(totals.unclean)} problems",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--operate", action="store_true", help="with keys, imports and changes of the model beside")
    parser.add_argument("--seed", type=int, default=0, help="0 draws one")
    arguments = parser.parse_args()
    seed = arguments.seed or random.SystemRandom().getrandbits(32)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        totals = run(arguments.rounds, seed, Path(folder) / "data", operate=arguments.operate)
    if arguments.operate:
        print(f"jobs completed {totals.jobs}, of which were cut off and went on {totals.jobs_resumed}")
    clean = not (totals.lost or totals.risen or totals.unclean)
    print("clean" if clean else "NOT CLEAN")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
