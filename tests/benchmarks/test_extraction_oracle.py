"""The oracle of the extraction benchmark, and what is counted of the answers of jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.extraction.accounts import account_of
from benchmarks.extraction.data_sets import Conversation, Pair, PairKind, ReferenceFact, Session, Statement, Turn
from benchmarks.extraction.learners import Learned
from benchmarks.extraction.oracle import Known, Noise, Oracle, known_of, numbered
from benchmarks.extraction.replay import Asked, Reply

KNOWN = (
    Known("Ann keeps newts.", ["I keep two newts"]),
    Known("The gecko is green.", ["My gecko is green"]),
    Known("The gecko is blue.", ["It is blue"], corrects="The gecko is green.", kind=PairKind.UPDATE),
    Known("The gecko never was green.", ["Never"], corrects="The gecko is green.", kind=PairKind.CONTRADICTION),
)
TRANSCRIPT = "<transcript>\n[0] 2025-01-01 Ann (user): I keep\n  two newts.\n</transcript>"
DECIDE = """<facts>
[1] (DETAIL, 2025-01-01): The gecko is blue.
[2] (DETAIL): The gecko never was green.
[3] (DETAIL): Ann keeps newts.
[4] (DETAIL): Bo sings.
</facts>

<memories>
[1] 2024-01-01: Ann keeps newts.
[2] 2024-01-01: The gecko is green.
</memories>
"""


def asked(prompt: str, user: str) -> Asked:
    schema = {"title": prompt, "properties": {}}
    messages = [{"role": "system", "content": "..."}, {"role": "user", "content": user}]
    return Asked("/v1/chat/completions", {}, {"messages": messages, "response_format": {"schema": schema}})


def content_of(reply: Reply) -> str:
    return str(reply.body["choices"][0]["message"]["content"])


NO_NOISE = Noise()


def answer(prompt: str, user: str, noise: Noise = NO_NOISE) -> Any:
    return json.loads(content_of(Oracle(KNOWN, noise, seed=1).answer(asked(prompt, user))))


def test_it_proposes_the_facts_whose_evidence_it_is_shown_however_lines_are_broken():
    [fact] = answer("propose", TRANSCRIPT)["facts"]
    assert (fact["text"], fact["quote"]) == ("Ann keeps newts.", "I keep two newts")
    assert answer("propose", "<transcript>\n</transcript>") == {"facts": []}


def test_it_decides_as_the_labels_say():
    decided = [(one["fact"], one["verdict"], one["memory"]) for one in answer("decide", DECIDE)["decisions"]]
    assert decided == [(1, "UPDATE", 2), (2, "CONFLICT", 2), (3, "NOOP", 1), (4, "ADD", None)]


def test_without_memories_everything_is_new():
    nothing_yet = DECIDE.partition("<memories>")[0] + "<memories>\nThere are none yet.\n</memories>"
    assert {one["verdict"] for one in answer("decide", nothing_yet)["decisions"]} == {"ADD"}


def test_full_noise_leaves_out_every_fact_and_names_memories_that_were_not_shown():
    assert answer("propose", TRANSCRIPT, Noise(missing=1.0)) == {"facts": []}
    decisions = answer("decide", DECIDE, Noise(wrong_numbers=1.0))["decisions"]
    assert [one["memory"] for one in decisions] == [3, 3, 3, 3]
    with pytest.raises(json.JSONDecodeError):
        answer("propose", TRANSCRIPT, Noise(malformed=1.0))


def test_noise_depends_on_the_seed_and_the_question_only():
    noise = Noise(missing=0.5, wrong_numbers=0.5)
    questions = [asked("decide", DECIDE), asked("propose", TRANSCRIPT)]
    one, other = (Oracle(KNOWN, noise, seed=1) for _ in range(2))
    assert [one.answer(question) for question in questions] == [
        other.answer(question) for question in reversed(questions)
    ][::-1]
    of_other_seeds = {content_of(Oracle(KNOWN, noise, seed=seed).answer(questions[0])) for seed in range(5)}
    assert len(of_other_seeds) > 1


def test_its_tokens_are_characters_divided_by_four():
    reply = Oracle(KNOWN, Noise(), seed=1).answer(asked("propose", "12345"))
    assert reply.body["usage"]["prompt_tokens"] == len("...12345") // 4
    assert reply.body["usage"]["completion_tokens"] == len('{"facts": []}') // 4


def test_numbers_of_one_frame_are_not_taken_for_those_of_the_other():
    assert numbered(DECIDE, "memories") == {1: "Ann keeps newts.", 2: "The gecko is green."}
    assert list(numbered(DECIDE, "facts")) == [1, 2, 3, 4]


def test_a_pair_is_known_by_the_sentence_nearest_to_its_question():
    first = Statement(["Hello there. My gecko is green.\nWhat now?"], None)
    second = Statement(["My gecko is blue now! Thanks."], None)
    pair = Pair("p", PairKind.UPDATE, "s", first, second, "Which colour is the gecko?", "blue")
    older, newer = known_of([], [pair], [])
    assert (older.statement, newer.statement) == ("My gecko is green.", "My gecko is blue now!")
    assert (older.corrects, newer.corrects) == (None, "My gecko is green.")


def test_a_fact_without_evidence_is_not_known():
    turns = [Turn("t1", "Ann", "I keep two newts")]
    references = [ReferenceFact("Newts.", frozenset({"t1"})), ReferenceFact("Cats.", frozenset({"t9"}))]
    conversation = Conversation("c", [Session("s", None, turns, references)])
    assert [one.statement for one in known_of([conversation], [], [])] == ["Newts."]


def learned(actions: list[str], calls: list[dict[str, Any]], **more: Any) -> Learned:
    result = {"actions": [{"action": action} for action in actions], "debug_trace": {"calls": calls}, **more}
    return Learned((), 2.0, {"result": result})


def test_every_item_of_an_answer_is_a_fact_with_an_outcome_or_is_counted():
    calls = [{"stage": "extract", "items": 4}, {"stage": "audn", "items": 9}]
    account = account_of([learned(["add", "noop", "proposed"], calls)])
    assert (account.outcomes, account.open, account.lost) == ({"add": 1, "noop": 1}, 1, 1)


def test_facts_of_jobs_that_failed_or_wait_are_not_open():
    calls = [{"stage": "extract", "items": 1}]
    failed = learned(["proposed"], [*calls, {"stage": "audn", "error": "llm_failed"}], error="provider_runtime_failure")
    waiting = learned(["delete"], calls, approval="required")
    account = account_of([failed, waiting])
    assert (account.failed, account.waiting, account.open, account.lost) == (1, 1, 0, 0)


def test_tokens_and_repairs_add_up_and_a_cost_is_that_of_the_calls_whose_price_is_known():
    calls = [
        {"stage": "extract", "items": 0, "input_tokens": 10, "output_tokens": 1, "cost_usd": 0.5, "attempts": 3},
        {"stage": "audn", "items": 0, "input_tokens": 5, "output_tokens": 2, "cost_usd": None, "repaired": True},
        {"stage": "audn", "items": 0, "faults": ["..."]},
    ]
    account = account_of([learned([], calls), learned([], [])])
    assert (account.jobs, account.seconds, account.calls) == (2, 4.0, 3)
    assert (account.input_tokens, account.output_tokens, account.cost_usd) == (15, 3, 0.5)
    assert (account.repeated, account.repaired, account.faulty) == (2, 1, 1)
    assert account_of([learned([], [])]).cost_usd is None


def test_a_system_without_jobs_has_nothing_to_account_for():
    assert account_of([Learned((), 1.0)]).lost == 0
