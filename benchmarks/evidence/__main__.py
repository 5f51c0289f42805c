"""How well `relevance` and `evidence` separate answerable from unanswerable questions, and their fit.

    python -m benchmarks.evidence --data FOLDER

FOLDER holds the sets locomo_turns, beam_chat and locomo_facts (docs/benchmarks.md describes the files). Each
conversation is stored as an agent and asked through the engine with the real model, whose vectors are kept for the next
run. Nothing is judged by what was fitted on it: the coefficients that judge a conversation are fitted on all others.
Those of all together are printed last; they stand in `souvenir/retrieval/relevance.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from benchmarks.evidence.figures import Figures, figures_of, print_figures
from benchmarks.evidence.fitting import Answer, fitted
from benchmarks.evidence.questions import Kind, Question, read_questions
from benchmarks.report import RESULTS_DIR, Target, print_targets, progress, write_results
from benchmarks.retrieval.data_sets import DataSet, read_data_set
from benchmarks.retrieval.own import opened, store
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.settings import Settings
from souvenir.core.types import EvidenceLevel, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of
from souvenir.retrieval.relevance import COEFFICIENTS, judge

TALKS, FACTS = ("locomo_turns", "beam_chat"), ("locomo_facts",)
TOP_K = 5
LEAST_AUC, MOST_ERROR = 0.846, 0.05
FALSE_NONE_ALLOWED, FALSE_STRONG_ALLOWED = 0.05, 0.10


def ask(data_set: DataSet, questions: Mapping[str, Sequence[Question]], engine: MemoryEngine) -> Iterator[Answer]:
    """Store every conversation as an agent, and ask it everything."""
    store(data_set, engine)
    for scope in data_set.documents:
        for question in questions.get(scope, ()):
            found = engine.recall(Scope(scope), data_set.kind, SearchQuery(question.text, TOP_K))
            if found is None or found.degraded:
                raise RuntimeError(f"{scope}: an arm did not run: {None if found is None else found.degraded}")
            yield Answer(data_set.name, scope, question.kind, found.judgement)


def judged_by_others(answers: Sequence[Answer]) -> list[Answer]:
    """Each judged anew, by the coefficients of all other conversations: of no set the same one."""
    scopes = sorted({one.scope for one in answers})
    fits = {scope: fitted([one for one in answers if one.scope != scope], TALKS) for scope in scopes}
    return [replace(one, judgement=judge(one.signals, fits[one.scope])) for one in answers]


def run(folder: Path) -> bool:
    answers = list(_answers(folder))
    judged = judged_by_others(answers)
    found = {name: figures_of([one for one in judged if one.set_name == name]) for name in (*TALKS, *FACTS)}
    print_figures(found)
    coefficients = fitted(answers, TALKS)
    print("\n".join(f"    {one.name}={getattr(coefficients, one.name)}," for one in fields(coefficients)))
    print("These stand in the code." if coefficients == COEFFICIENTS else "The code has others.")
    targets = _targets(found)
    print_targets(targets)
    kept = {"sets": {name: asdict(one) for name, one in found.items()}, "coefficients": asdict(coefficients)}
    print(f"\n{write_results('evidence', kept, targets)}")
    return all(target.met for target in targets)


def _answers(folder: Path) -> Iterator[Answer]:
    embedder = CachedEmbedder(embedder_of(Settings()), RESULTS_DIR)
    questions = read_questions(folder, (*TALKS, *FACTS))
    for name in questions:
        data_set = read_data_set(folder / name)
        asked = sum(map(len, questions[name].values()))
        progress(f"{name}: {len(data_set)} texts of {len(data_set.documents)} agents, {asked} questions")
        with (
            tempfile.TemporaryDirectory(prefix="souvenir-bench-") as data_dir,
            opened(Path(data_dir), embedder) as engine,
        ):
            yield from ask(data_set, questions[name], engine)
        embedder.save()


def _targets(found: Mapping[str, Figures]) -> list[Target]:
    wrong_person = found["locomo_turns"].auc[Kind.UNANSWERED]
    targets = [Target("locomo_turns: AUC, about the wrong person", wrong_person, LEAST_AUC, at_least=True)]
    for name, figures in found.items():
        false_none = figures.levels[Kind.ANSWERED][EvidenceLevel.NONE]
        false_strong = figures.levels[Kind.OTHER_SCOPE][EvidenceLevel.STRONG]
        targets += [
            Target(f"{name}: calibration error, its own questions", figures.error_own, MOST_ERROR),
            Target(f"{name}: calibration error, others' too", figures.error_all, MOST_ERROR),
            Target(f"{name}: answered, evidence none", false_none, FALSE_NONE_ALLOWED),
            Target(f"{name}: of another conversation, strong", false_strong, FALSE_STRONG_ALLOWED),
        ]
    return targets


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    return 0 if run(parser.parse_args().data) else 1


if __name__ == "__main__":
    sys.exit(main())
