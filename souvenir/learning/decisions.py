"""Second stage of an extraction: decide what to do with each proposed fact, in steps that are saved one by one.

Up to `FACTS_AT_ONCE` facts are decided together. Facts whose part of an answer is unusable are asked about once more; a
fact that still has no decision is added if it is novel. Invariant: after a step each of its facts is either decided or
proposed with the fault of its answer, and a number in an answer is accepted only if that memory was shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from souvenir.core.errors import LLMOutputUnusable
from souvenir.core.ledger import DecidedBy, Decision, FactRow, FactStage, LedgerFact, Verdict
from souvenir.core.text import fenced
from souvenir.core.types import JsonObject, Scope
from souvenir.learning.guards import Guidance, skipped
from souvenir.learning.novelty import Shown, candidates, decided_without_model
from souvenir.learning.proposals import shortened
from souvenir.learning.questions import AUDN, DECIDE, Decisions, MadeDecision, ask, label, prompt, spent
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.prompts import Prompt
from souvenir.models.llm.provider import LLMProvider
from souvenir.models.llm.salvage import Broken

FACTS_AT_ONCE = 30
"""With five candidates each, about 15,000 characters of memories, and answers that fit EXTRACT_MAX_TOKENS."""

MAX_REASON_CHARS = 300

FAULT = "fault"
"""Key in the outcome of a proposed fact: why its decision was unusable. Such a fact has been asked about once."""

_CHANGES = (Verdict.UPDATE, Verdict.DELETE)
_NEEDS_MEMORY = (*_CHANGES, Verdict.CONFLICT)


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """The changed rows, and the model calls that produced them."""

    rows: tuple[FactRow, ...]
    calls: tuple[JsonObject, ...] = ()


def decide_next(
    engine: MemoryEngine, provider: LLMProvider, scope: Scope, guidance: Guidance, ledger: Sequence[FactRow]
) -> DecisionStep | None:
    """Decide some of the proposed facts; None if there are none.

    :raises LLMError: If there is no usable answer.
    """
    waiting = [row for row in ledger if row.stage is FactStage.PROPOSED and row.fact is not None]
    fresh = [row for row in waiting if FAULT not in row.outcome]
    changed = {
        row.decision.target.memory_id
        for row in ledger
        if row.decision is not None and row.decision.target is not None and row.decision.verdict in _CHANGES
    }
    if fresh:
        return _decide(engine, provider, scope, guidance, fresh[:FACTS_AT_ONCE], changed)
    if not waiting:
        return None
    try:
        step = _decide(engine, provider, scope, guidance, waiting[:FACTS_AT_ONCE], changed)
    except LLMOutputUnusable as error:
        call = {"stage": AUDN, "prompt": DECIDE, "model": provider.model, **spent(error), "faults": [error.reason]}
        step = DecisionStep(tuple(waiting[:FACTS_AT_ONCE]), (call,))
    return replace(step, rows=tuple(_without_model(row) for row in step.rows))


def decide_again(
    engine: MemoryEngine, provider: LLMProvider, scope: Scope, guidance: Guidance, rows: Sequence[FactRow]
) -> DecisionStep:
    """Decide facts again whose memories have changed; a fact without a usable decision is added if it is novel.

    :raises LLMError: If there is no usable answer.
    """
    asked = {row.ordinal: 1 if row.decision is None else row.decision.asked + 1 for row in rows}
    step = _decide(engine, provider, scope, guidance, rows, set())
    decided = [_without_model(row) for row in step.rows]
    counted = [
        row if row.decision is None else replace(row, decision=replace(row.decision, asked=asked[row.ordinal]))
        for row in decided
    ]
    return DecisionStep(tuple(counted), step.calls)


def _without_model(row: FactRow) -> FactRow:
    if row.stage is FactStage.DECIDED:
        return row
    if row.fact is None or row.fact.span is None:
        # The fact has no quote in the transcript, and no model confirmed it.
        return replace(row, stage=FactStage.SKIPPED, outcome=skipped("unfounded", error=row.outcome.get(FAULT)))
    return decided_without_model(row, f"No usable decision came: {row.outcome.get(FAULT, 'the answer cannot be read')}")


def _decide(
    engine: MemoryEngine,
    provider: LLMProvider,
    scope: Scope,
    guidance: Guidance,
    rows: Sequence[FactRow],
    changed: set[int],
) -> DecisionStep:
    """:param changed: Memories that other facts of the job already change."""
    facts = {row.ordinal: row.fact for row in rows if row.fact is not None}
    shown = candidates(engine, scope, {ordinal: fact.text for ordinal, fact in facts.items()})
    numbers = dict(enumerate(facts, start=1))
    wrong = {row.ordinal: row.outcome[FAULT] for row in rows if FAULT in row.outcome}
    question = prompt(DECIDE, _question(numbers, facts, shown, guidance) + _correction(numbers, wrong))
    asked = ask(provider, AUDN, question, Decisions, "decisions", MadeDecision)
    read = _AnswerReader(numbers, shown, changed)
    for item in asked.items:
        read.take(item)
    for broken in asked.broken:
        read.take_broken(broken)
    policy = engine.screening.applied(scope, refuse=False)

    def text_of(item: MadeDecision) -> str | None:
        text = " ".join((item.text or "").split()) if item.verdict is Verdict.UPDATE else ""
        return shortened(policy.text(text), guidance.max_fact_chars) if text else None

    decided: list[FactRow] = []
    by_ordinal = {row.ordinal: row for row in rows}
    for number, ordinal in numbers.items():
        row, fault = by_ordinal[ordinal], read.fault_of(number)
        if fault is not None:
            decided.append(replace(row, stage=FactStage.PROPOSED, decision=None, outcome={**row.outcome, FAULT: fault}))
            continue
        item = read.made[number]
        made = _decision(item, text_of(item), shown, ordinal, question, asked.model)
        made = replace(made, reason=shortened(policy.text(made.reason), MAX_REASON_CHARS))
        decided.append(replace(row, stage=FactStage.DECIDED, decision=made, outcome=_without_fault(row.outcome)))
    faulty = [f"fact {row.ordinal}: {row.outcome[FAULT]}" for row in decided if row.stage is FactStage.PROPOSED]
    faults = [*asked.call.get("faults", ()), *read.stray, *faulty]
    call = {**asked.call, "decided": len(decided) - len(faulty), **({"faults": faults} if faults else {})}
    return DecisionStep(tuple(decided), (call,))


def _decision(
    item: MadeDecision, text: str | None, shown: Shown, ordinal: int, question: Prompt, model: str
) -> Decision:
    target = None if item.memory is None or item.verdict is Verdict.ADD else shown.seen(item.memory)
    shown_with = shown.candidates_of(ordinal)
    return Decision(
        item.verdict,
        DecidedBy.MODEL,
        " ".join(item.reason.split()),
        target=target,
        text=text,
        candidates=shown_with if target is None or target in shown_with else (*shown_with, target),
        prompt=label(question),
        model=model,
    )


def _without_fault(outcome: JsonObject) -> JsonObject:
    return {key: value for key, value in outcome.items() if key != FAULT}


def _question(numbers: Mapping[int, int], facts: Mapping[int, LedgerFact], shown: Shown, guidance: Guidance) -> str:
    lines = []
    for number, ordinal in numbers.items():
        fact = facts[ordinal]
        day = "" if fact.event_at is None else f", {fact.event_at.date().isoformat()}"
        lines.append(f"[{number}] ({fact.category.value}{day}): {fact.text}")
    stored = [
        f"[{number}] {memory.occurred_at.date().isoformat()}: "
        + shortened(" ".join(memory.text.split()), guidance.similar_text_chars)
        for number, memory in shown.memories.items()
    ]
    given = "\n".join(stored) if stored else "There are none yet."
    return fenced("\n".join(lines), name="facts") + "\n" + fenced(given, name="memories")


def _correction(numbers: Mapping[int, int], wrong: Mapping[int, str]) -> str:
    """Return the corrections to append: the same question at temperature 0 would get the same answer."""
    corrections = [f"[{number}] {wrong[ordinal]}" for number, ordinal in numbers.items() if ordinal in wrong]
    return (
        "\nThese facts were decided before, and that cannot be used:\n" + "\n".join(corrections) if corrections else ""
    )


class _AnswerReader:
    """Assigns the items of an answer to facts, and collects their faults."""

    def __init__(self, numbers: Mapping[int, int], shown: Shown, changed: set[int]) -> None:
        self._numbers = numbers
        self._shown = shown
        self._changed = changed
        self._faults: dict[int, str] = {}
        self.made: dict[int, MadeDecision] = {}
        self.stray: list[str] = []

    def take(self, item: MadeDecision) -> None:
        number = item.fact
        if number not in self._numbers:
            self.stray.append("a decision names a fact that was not shown")
            return
        earlier = self.made.get(number)
        if earlier is not None:
            if _differ(earlier, item):
                self._faults[number] = "it was decided in two ways"
            else:
                self.stray.append("a decision came twice")
            return
        self.made[number] = item
        for fault in self._faults_in(item):
            self._faults.setdefault(number, fault)

    def take_broken(self, broken: Broken) -> None:
        """Record a malformed item as the fault of the fact that it names, if it names one."""
        value = broken.value
        number = value.get("fact") if isinstance(value, dict) else None
        if type(number) is int and number in self._numbers:
            self._faults.setdefault(number, broken.reason)

    def fault_of(self, number: int) -> str | None:
        if number in self._faults:
            return self._faults[number]
        return None if number in self.made else "no decision came for it"

    def _faults_in(self, item: MadeDecision) -> Iterator[str]:
        if item.memory is not None and item.memory not in self._shown.memories:
            yield "the memory that it names was not shown"
        elif item.verdict in _NEEDS_MEMORY and item.memory is None:
            yield f"{item.verdict.value} names no memory"
        elif item.verdict in _CHANGES and item.memory is not None:
            memory_id = self._shown.memories[item.memory].id
            if memory_id in self._changed:
                yield "another fact changes the same memory"
            self._changed.add(memory_id)


def _differ(one: MadeDecision, other: MadeDecision) -> bool:
    return (one.verdict, one.memory, one.text) != (other.verdict, other.memory, other.text)
