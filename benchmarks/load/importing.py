"""An import, and searches by another client meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

from benchmarks.load.callers import OK, SOURCE
from benchmarks.load.sentences import memories, questions
from benchmarks.service import Client, ServiceFailed

BODY_MEMORIES = 250
WARM_UP_S = 2.0
SEARCH_INTERVAL_S = 0.1


@dataclass(slots=True)
class Import:
    """`acknowledged` maps the ids of the imported memories to their texts; `search_s`: of the searches meanwhile."""

    seconds: float = 0.0
    stored: int = 0
    acknowledged: dict[int, str] = field(default_factory=dict)
    search_s: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return self.stored / self.seconds


def import_and_search(port: int, seconds: float) -> Import:
    """Post bodies of memories one after the other; from `WARM_UP_S` on, search ten times a second and count."""
    found, texts, ended = Import(), memories(seed=-2), threading.Event()
    failures: list[BaseException] = []

    def post() -> None:
        try:
            with closing(Client(port)) as client:
                while not ended.is_set():
                    _post(client, texts, found)
        except Exception as error:  # noqa: BLE001 - a thread's boundary: the caller raises it
            failures.append(error)

    importer = threading.Thread(target=post)
    importer.start()
    try:
        time.sleep(WARM_UP_S)
        before, begin = len(found.acknowledged), time.perf_counter()
        _search(port, begin + seconds, found)
        found.seconds, found.stored = time.perf_counter() - begin, len(found.acknowledged) - before
    finally:
        ended.set()
        importer.join()
    if failures:
        raise failures[0]
    return found


def _post(client: Client, texts: Iterator[str], found: Import) -> None:
    chosen = list(islice(texts, BODY_MEMORIES))
    body = {"memories": [{"text": text, "source": SOURCE} for text in chosen]}
    status, answer = client.call("POST", "/memory/add-batch", body)
    if status != OK:
        raise ServiceFailed(f"an import was answered {status}: {answer}")
    found.acknowledged.update(zip(answer["ids"], chosen, strict=True))


def _search(port: int, until: float, found: Import) -> None:
    queries = questions(seed=-2)
    with closing(Client(port)) as client:
        while (begin := time.perf_counter()) < until:
            status, answer = client.call("POST", "/search", {"query": next(queries)})
            if status != OK:
                raise ServiceFailed(f"a search was answered {status}: {answer}")
            found.search_s.append(time.perf_counter() - begin)
            time.sleep(SEARCH_INTERVAL_S)
