"""The cost of extraction, and a check that every item of a model's answers has an outcome.

Read from the answers of the jobs, with their trace of every question to the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.extraction.learners import Learned

OUTCOMES = frozenset({"add", "update", "delete", "noop", "conflict", "fallback_add", "skipped", "error"})
"""Actions that end a fact; every other one leaves it open."""

PROPOSING = "extract"
"""The stage of a call whose items are facts."""


@dataclass(frozen=True, slots=True)
class Account:
    """:param outcomes: Facts by what became of them.

    :param open: Facts of ended jobs without an outcome, those aside that wait for an approval.
    :param lost: Items of answers that proposed facts, for which there is no fact.
    :param failed: Jobs in which the model failed, so that nothing was applied.
    :param waiting: Jobs that want an approval before they delete so much.
    :param repeated: Requests that were sent beyond the first of a question.
    :param repaired: Questions that were answered after the model was told what was wrong.
    :param faulty: Questions whose answer held something that could not be used.
    :param cost_usd: Of the questions whose price is known; None if it is known of none.
    """

    jobs: int = 0
    seconds: float = 0.0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    open: int = 0
    lost: int = 0
    failed: int = 0
    waiting: int = 0
    calls: int = 0
    repeated: int = 0
    repaired: int = 0
    faulty: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None

    def lines(self) -> Mapping[str, str]:
        """For a table."""
        return {
            "jobs": f"{self.jobs:,}",
            "seconds": f"{self.seconds:,.1f}",
            "questions to the model": f"{self.calls:,}",
            "tokens in": f"{self.input_tokens:,}",
            "tokens out": f"{self.output_tokens:,}",
            "cost, $": "–" if self.cost_usd is None else f"{self.cost_usd:.4f}",
            "requests beyond the first of a question": str(self.repeated),
            "answers that were repaired": str(self.repaired),
            "answers of which something was unusable": str(self.faulty),
            "jobs in which the model failed": str(self.failed),
            "jobs that wait for an approval": str(self.waiting),
            **{f"facts: {name}": f"{self.outcomes.get(name, 0):,}" for name in sorted(OUTCOMES)},
            "facts without an outcome": str(self.open),
            "proposed facts that were lost": str(self.lost),
        }


def account_of(jobs: Iterable[Learned]) -> Account:
    jobs = list(jobs)
    results = [job.answer.get("result", {}) for job in jobs]
    calls = [call for result in results for call in _calls(result)]
    ended = [result for result in results if "error" not in result and "approval" not in result]
    actions = Counter(action["action"] for result in ended for action in result.get("actions", ()))
    costs = [call["cost_usd"] for call in calls if call.get("cost_usd") is not None]
    return Account(
        jobs=len(jobs),
        seconds=sum(job.seconds for job in jobs),
        outcomes={action: count for action, count in actions.items() if action in OUTCOMES},
        open=sum(count for action, count in actions.items() if action not in OUTCOMES),
        lost=sum(map(_lost, results)),
        failed=sum("error" in result for result in results),
        waiting=sum("approval" in result for result in results),
        calls=len(calls),
        repeated=sum(max(call.get("attempts", 1) - 1, 0) for call in calls),
        repaired=sum(bool(call.get("repaired")) for call in calls),
        faulty=sum(bool(call.get("faults")) for call in calls),
        input_tokens=sum(call.get("input_tokens", 0) for call in calls),
        output_tokens=sum(call.get("output_tokens", 0) for call in calls),
        cost_usd=sum(costs) if costs else None,
    )


def _lost(result: Mapping[str, Any]) -> int:
    proposed = [call["items"] for call in _calls(result) if call["stage"] == PROPOSING and "items" in call]
    return sum(proposed) - len(result["actions"]) if proposed else 0


def _calls(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    calls: Sequence[Mapping[str, Any]] = result.get("debug_trace", {}).get("calls", ())
    return calls
