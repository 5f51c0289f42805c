"""Writes made while a model runs survive, and concurrent extractions keep their order and limits."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock
from typing import Any

import pytest

from souvenir.core.types import MemoryDraft, MemoryPatch
from souvenir.learning.extraction import ExtractionRequest
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.prompts import Prompt
from souvenir.store.admin.jobs import JobStatus
from tests.learning.conftest import Remember
from tests.learning.ledgers import ANN, PATIENCE_S, SOURCE, living
from tests.learning.pipeline import OpenExtraction
from tests.learning.scripted_model import about, add_all, every_line, model
from tests.memories.engine.verbs import stored

INFLIGHT, JOBS, SOURCES = 2, 20, 3

ELSEWHERE = "Ann lives in Tromso now"

Write = Callable[[MemoryEngine, int], Any]
WRITES: dict[str, Write] = {
    "patch": lambda engine, one: engine.update(ANN, one, MemoryPatch(text=ELSEWHERE)),
    "supersede": lambda engine, one: engine.supersede(ANN, one, text=ELSEWHERE),
    "add": lambda engine, one: engine.add(ANN, MemoryDraft(ELSEWHERE, SOURCE)),
    "archive": lambda engine, one: engine.archive(ANN, [one]),
    "delete": lambda engine, one: engine.delete(ANN, one),
}


class Held:
    """A decision that is not given before it is let, the first time."""

    def __init__(self, decide: Callable[[Prompt], Any]) -> None:
        self.reached, self.let, self.asked = Event(), Event(), 0
        self._decide = decide

    def __call__(self, prompt: Prompt) -> Any:
        said = self._decide(prompt)
        self.asked += 1
        if self.asked == 1:
            self.reached.set()
            assert self.let.wait(PATIENCE_S)
        return said


@pytest.mark.parametrize("verdict", ["UPDATE", "DELETE"])
@pytest.mark.parametrize("write", WRITES)
def test_writes_during_a_slow_answer_survive(
    open_extraction: OpenExtraction, engine: MemoryEngine, remember: Remember, write: str, verdict: str
):
    old = remember("Ann lives in Oslo now")
    held = Held(about(verdict))
    learning = open_extraction(model(decide=held))
    job = learning.submit(ANN, ExtractionRequest("user: Ann lives in Bergen now", SOURCE))
    assert held.reached.wait(PATIENCE_S)
    WRITES[write](engine, old)
    held.let.set()
    assert learning.jobs.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
    texts = [one.text for one in stored(engine, ANN)]
    if write in ("patch", "supersede", "add"):
        assert ELSEWHERE in texts
    if write in ("patch", "supersede"):
        assert held.asked > 1, "it is asked again"
    if write == "archive":
        assert living(engine) == ["Ann lives in Bergen now"]
    if write == "delete":
        assert texts == []


def test_extractions_keep_the_order_of_each_source_and_the_concurrency_limit(
    open_extraction: OpenExtraction, engine: MemoryEngine
):
    lock, enough, order = Lock(), Event(), []
    together = most = 0

    def propose(prompt: Prompt) -> dict[str, Any]:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
            if together == INFLIGHT:
                enough.set()
        assert enough.wait(PATIENCE_S)
        said = every_line(prompt)
        with lock:
            together -= 1
            order.append(said["facts"][0]["text"])
        return said

    learning = open_extraction(model(propose, add_all), extract_max_inflight=INFLIGHT, start=False)
    said = [f"Number {number} of the talks was about topic{number} and word{number * 7}" for number in range(JOBS)]
    jobs = [
        learning.submit(ANN, ExtractionRequest(f"user: {text}", f"source{number % SOURCES}"))
        for number, text in enumerate(said)
    ]
    learning.start()
    assert {learning.jobs.wait(job.id, PATIENCE_S).status for job in jobs} == {JobStatus.COMPLETED}
    assert most == INFLIGHT
    for source in range(SOURCES):
        of_source = [text for text in order if said.index(text) % SOURCES == source]
        assert of_source == said[source::SOURCES]
    assert sorted(living(engine)) == sorted(said)
