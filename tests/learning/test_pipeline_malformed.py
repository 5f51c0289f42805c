"""Many malformed answers: every loss is reported, and no content is used unchecked."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from souvenir.core.errors import LLMOutputUnusable
from souvenir.core.ledger import DecidedBy, FactRow, FactStage
from souvenir.core.types import JsonObject
from souvenir.learning import extraction as llm_extract
from souvenir.learning.extraction import ExtractionRequest
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.parsing import Unreadable, value_of
from souvenir.models.llm.prompts import NO_USAGE, Generated, Prompt, Shape
from souvenir.store.admin.jobs import JobStatus
from tests.learning.damage import damaged
from tests.learning.pipeline import ANN, OpenExtraction, ledger, row_of, stored
from tests.learning.scripted_model import decision, every_line, shown
from tests.thoroughness import sampled

MALFORMED = sampled(200, 1_000)
ENDED = (FactStage.APPLIED, FactStage.SKIPPED, FactStage.FAILED)
MARK = re.compile(r"mark\d+x")
QUOTE = re.compile(r'"quote": "[^"]*"')
STAGES = {"propose": "extract", "decide": "audn"}


class Malformed:
    """Answers well, badly, or badly also when it is told so. `answers` are the last words of each question."""

    name = "malformed"
    model = "malformed-1"

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.count = 0
        self.answers: list[tuple[str, str]] = []

    def generate(self, prompt: Prompt, shape: type[Shape]) -> Generated[Shape]:
        good = every_line(prompt) if prompt.name == "propose" else self._decisions(prompt)
        raw, reason = "", ""
        for attempt in (1, 2):
            raw = damaged(self._rng, good)
            self.count += 1
            try:
                value = value_of(raw, shape)
            except Unreadable as unreadable:
                reason = unreadable.fault.reason
                continue
            self.answers.append((prompt.name, raw))
            return Generated(value, NO_USAGE, self.model, attempt, attempt > 1)
        self.answers.append((prompt.name, raw))
        raise LLMOutputUnusable(raw, reason)

    def _decisions(self, prompt: Prompt) -> dict[str, Any]:
        memories = list(shown(prompt, "memories"))
        verdicts = ("ADD", "ADD", "UPDATE", "DELETE", "NOOP", "CONFLICT") if memories else ("ADD", "NOOP")
        made = []
        for number in shown(prompt, "facts"):
            verdict = self._rng.choice(verdicts)
            memory = self._rng.choice(memories) if memories and verdict != "ADD" else None
            made.append(decision(number, verdict, memory, "Changed by the model" if verdict == "UPDATE" else None))
        return {"decisions": made}

    def status(self) -> str:
        return "healthy"

    def close(self) -> None:
        return None


def check_proposals(calls: list[JsonObject], rows: list[FactRow], answers: list[str]) -> None:
    """Each item is a row, and each fact that an answer spells out is in a row, or a row says that it cannot be read."""
    assert sum(call["items"] for call in calls) == len(rows)
    first = 0
    for call, raw in zip(calls, answers, strict=True):
        of_call = rows[first : first + call["items"]]
        first += call["items"]
        kept = {mark for row in of_call if row.fact for mark in MARK.findall(row.fact.text)}
        unread = [row for row in of_call if row.stage is FactStage.FAILED]
        assert set(MARK.findall(QUOTE.sub("", raw))) <= kept or unread, "a fact is lost"
        assert all(row.outcome["error"] for row in unread)


def check_decisions(calls: list[JsonObject]) -> None:
    """Each item of an answer decided a fact, or what was wrong with it is told."""
    for call in calls:
        assert call["items"] <= call["decided"] or call["faults"]


def check_ended(rows: list[FactRow]) -> None:
    for row in rows:
        assert row.stage in ENDED
        assert row.outcome["action"]
        assert row.stage is not FactStage.APPLIED or row.decision is not None
        if row.decision is not None and row.decision.by is DecidedBy.FALLBACK:
            assert "No usable decision came" in row.decision.reason


def test_no_item_of_many_malformed_answers_is_lost_silently(
    engine: MemoryEngine, open_extraction: OpenExtraction, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(llm_extract, "WINDOW_CHARS", 400)
    elsewhere = stored(engine, "mark0x stands in another source and never changes", source="other")
    pinned = stored(engine, "mark0x is pinned and never changes", source="chat0", pinned=True)
    provider = Malformed(Random(20261122))
    extraction = open_extraction(provider, extract_max_inflight=1)
    number, outcomes = 0, set()
    while provider.count < MALFORMED:
        number += 1
        provider.answers.clear()
        lines = [f"user: mark{number}{turn}x {'likes' * (turn + 1)} thing{number * turn}" for turn in range(12)]
        job = extraction.submit(ANN, ExtractionRequest("\n".join(lines), f"chat{number % 5}", debug=True))
        done = extraction.jobs.wait(job.id, 30)
        assert done.status is JobStatus.COMPLETED, done.error
        result = extraction.result_of(done)
        assert result is not None
        rows, calls = ledger(engine, job.id), list(row_of(engine, job.id).calls)
        said = {stage: [raw for name, raw in provider.answers if STAGES[name] == stage] for stage in STAGES.values()}
        failed = [call for call in calls if "error" in call]
        proposed = [call for call in calls if call["stage"] == "extract" and call not in failed]
        check_proposals(proposed, rows, said["extract"][: len(proposed)])
        check_decisions([call for call in calls if call["stage"] == "audn" and "items" in call])
        assert len(result["actions"]) == len(rows)
        if "error" in result:
            assert (result["error"], result["error_stage"]) == ("provider_runtime_failure", failed[0]["stage"])
            assert result["error_message"]
            assert not [row for row in rows if row.stage is FactStage.APPLIED]
        elif result.get("approval") != "required":
            check_ended(rows)
        outcomes |= {one["action"] for one in result["actions"]} | {result.get("error", "no error")}
    assert outcomes >= {"add", "update", "delete", "noop", "conflict", "fallback_add", "error", "no error"}
    assert "provider_runtime_failure" in outcomes
    kept = engine.get(ANN, [elsewhere, pinned])
    assert [(memory.archived, memory.superseded_by) for memory in kept.values()] == [(False, None)] * 2
