"""The verdicts of `verify` with a reader that knows the labels, with one that always says yes, and with a broken one.

    python -m benchmarks.evidence.reader --data FOLDER

FOLDER holds the set plain_questions: short memories, and questions that they answer or not. Each scope is stored as an
agent and searched through the engine with the real model; the question and the ten best memories go to the reader over
a loopback port, in the wire format of OpenAI. No language model is measured, only what lies around one: how many
questions have the verdict that their labels and results require, and whether every quote is in a result.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.extraction.replay import Asked, Reply, listening
from benchmarks.report import RESULTS_DIR, Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.retrieval.data_sets import DataSet, Question, agent_name, entries, read_data_set
from benchmarks.retrieval.own import opened, store
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.conversations.verification import Answered, Verdict, Verification, passages_of
from souvenir.core.settings import ExtractProvider, Settings
from souvenir.core.types import EvidenceLevel, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of
from souvenir.models.llm.provider import LLMProvider
from souvenir.models.llm.remote import RemoteLLM
from souvenir.models.providers.endpoints import LLMEndpoint

SET = "plain_questions"
TOP_K = 10


Script = Callable[[str, str], Mapping[str, Any]]
"""Returns the answer of a reader to a question and the passages in its prompt."""


class LabelReader:
    """Answers `yes` if a memory that the labels name is among the passages, and quotes it.

    :param answering: The texts that answer a question, by its text.
    """

    def __init__(self, answering: Mapping[str, Sequence[str]]) -> None:
        self._answering = answering

    def __call__(self, question: str, passages: str) -> Mapping[str, Any]:
        shown = _single_blanks(passages)
        for text in self._answering.get(question, ()):
            if _single_blanks(text) in shown:
                return {"quote": text, "answered": "yes"}
        return {"quote": "", "answered": "no"}


def invents(question: str, _: str) -> Mapping[str, Any]:
    """Answers `yes` to everything, with a quote of its own."""
    return {"quote": f"Yes, the answer to {question.rstrip('?')} is well known.", "answered": "yes"}


def babbles(_: str, __: str) -> Mapping[str, Any]:
    """Answers with JSON of another shape."""
    return {"verdict": ["maybe"]}


@dataclass(frozen=True, slots=True)
class Model:
    """A script on OpenAI's wire."""

    script: Script

    def answer(self, asked: Asked) -> Reply:
        prompt = next(message["content"] for message in asked.body["messages"] if message["role"] == "user")
        question = prompt.partition("<question>\n")[2].partition("\n</question>")[0]
        passages = prompt.partition("<transcript>\n")[2].partition("\n</transcript>")[0]
        message = {"role": "assistant", "content": json.dumps(self.script(question, passages)), "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "script", "choices": [choice]}
        return Reply(200, {**body, "usage": usage})


@dataclass(frozen=True, slots=True)
class Read:
    """:param found: Whether a memory that answers is among the results. :param quoted: Whether the quote is in one.

    :param took_s: The reader's time, without the search.
    """

    category: str
    evidence: EvidenceLevel
    found: bool
    verdict: Verdict
    quoted: bool
    took_s: float


def read_all(
    questions: Sequence[Question], engine: MemoryEngine, names: Mapping[int, str], provider: LLMProvider
) -> Iterator[Read]:
    verification = Verification(engine, provider, None, candidates=TOP_K)
    for question in questions:
        scope = Scope(question.scope)
        result = engine.search(scope, SearchQuery(question.text, TOP_K))
        began = perf_counter()
        verdict = verification.read(scope, question.text, passages_of(result.hits), degraded=result.degraded)
        took_s = perf_counter() - began
        yield Read(
            question.category,
            result.evidence,
            any(names[hit.memory.id] in question.relevant for hit in result.hits),
            verdict,
            verdict.quote is not None and any(verdict.quote in hit.memory.text for hit in result.hits),
            took_s,
        )


def run(folder: Path) -> bool:
    data_set, questions = read_data_set(folder / SET), read_questions(folder / SET)
    embedder = CachedEmbedder(embedder_of(Settings()), RESULTS_DIR)
    scripts: dict[str, Script] = {
        "labels": LabelReader(answering(data_set, questions)),
        "invents": invents,
        "babbles": babbles,
    }
    progress(f"{SET}: {len(data_set)} texts of {len(data_set.documents)} agents, {len(questions)} questions")
    found: dict[str, list[Read]] = {}
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as data_dir, opened(Path(data_dir), embedder) as engine:
        names = store(data_set, engine)
        for name, script in scripts.items():
            with listening(Model(script)) as origin, closing(_provider(origin)) as provider:
                found[name] = list(read_all(questions, engine, names, provider))
    embedder.save()
    for name, reads in found.items():
        print(f"\n{name}: p50 {percentile_ms([one.took_s for one in reads], 50):.1f} ms")
        print(table(("category", "questions", "evidence strong", "none", "yes", "no", "unknown"), list(_rows(reads))))
    targets = list(_targets(found))
    print_targets(targets)
    kept = {name: {row[0]: row[1:] for row in _rows(reads)} for name, reads in found.items()}
    print(f"\n{write_results('reader', kept, targets)}")
    return all(target.met for target in targets)


def read_questions(folder: Path) -> list[Question]:
    """All questions, including those that nothing answers."""
    return [
        Question(entry["text"], agent_name(entry["scope"]), entry["category"], entry["relevant"])
        for entry in entries(folder / "queries.jsonl")
    ]


def answering(data_set: DataSet, questions: Sequence[Question]) -> Mapping[str, Sequence[str]]:
    """The texts that answer each question."""
    texts = {document.id: document.text for documents in data_set.documents.values() for document in documents}
    found: defaultdict[str, list[str]] = defaultdict(list)
    for question in questions:
        found[question.text] += [texts[id_] for id_ in question.relevant]
    return found


def _provider(origin: str) -> RemoteLLM:
    settings = Settings(extract_base_url=f"{origin}/v1", extract_model="script")
    return RemoteLLM(LLMEndpoint.of(settings, ExtractProvider.OPENAI))


def _rows(reads: Sequence[Read]) -> Iterator[Sequence[str]]:
    by_category: defaultdict[str, list[Read]] = defaultdict(list)
    for one in reads:
        by_category[one.category].append(one)
    for category, those in by_category.items():
        levels = Counter(one.evidence for one in those)
        verdicts = Counter(one.verdict.answered for one in those)
        shares = [levels[EvidenceLevel.STRONG], levels[EvidenceLevel.NONE], *(verdicts[one] for one in Answered)]
        yield category, str(len(those)), *(f"{share / len(those):.2f}" for share in shares)


def _targets(found: Mapping[str, Sequence[Read]]) -> Iterator[Target]:
    known = found["labels"]
    right = [one.verdict.answered is (Answered.YES if one.found else Answered.NO) for one in known]
    said_yes = [one for one in known if one.verdict.answered is Answered.YES]
    unanswered = [one for one in known if one.category in ("never_said", "off_topic")]
    yield Target("labels: verdict as the results require", sum(right) / len(right), 1.0, at_least=True)
    yield Target("labels: yes with a quote of a result", _share(said_yes, [one.quoted for one in said_yes]), 1.0, True)
    no = [one.verdict.answered is Answered.NO for one in unanswered]
    yield Target("labels: never_said and off_topic are no", _share(unanswered, no), 1.0, at_least=True)
    for name in ("invents", "babbles"):
        unknown = [one.verdict.answered is Answered.UNKNOWN for one in found[name]]
        yield Target(f"{name}: unknown", _share(found[name], unknown), 1.0, at_least=True)


def _share(reads: Sequence[Read], true: Sequence[bool]) -> float:
    return sum(true) / len(reads) if reads else float("nan")


def _single_blanks(text: str) -> str:
    return " ".join(text.split())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the set plain_questions")
    return 0 if run(parser.parse_args().data) else 1


if __name__ == "__main__":
    sys.exit(main())
