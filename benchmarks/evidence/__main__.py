"""How well `relevance` and `evidence` separate answerable from unanswerable questions, and their fit.

    python -m benchmarks.evidence --data FOLDER

FOLDER holds the sets locomo_turns, beam_chat, locomo_facts and plain_questions (docs/benchmarks.md describes them).
Each conversation is stored as an agent and asked through the engine with the real model, whose vectors are kept for the
next run; the facts are also stored in smaller parts, since the weight of a word that nobody used depends on the size.
Every question is searched for by words and meaning, and by each alone. Nothing is judged by what was fitted on it: the
coefficients that judge a conversation are fitted on all others. Those of all together are printed last: those of the
default model stand in `souvenir/retrieval/relevance.py`, those of another one belong in its souvenir.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

from benchmarks.evidence.figures import Figures, figures_of, print_figures, print_ways
from benchmarks.evidence.fitting import Answer, Way, fitted
from benchmarks.evidence.questions import Kind, Question, Questions, Stores, cut, read_questions, whole
from benchmarks.report import RESULTS_DIR, Target, print_targets, progress, write_results
from benchmarks.retrieval.data_sets import read_data_set
from benchmarks.retrieval.own import opened, store
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.settings import Settings
from souvenir.core.types import EvidenceLevel, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of
from souvenir.retrieval.profiles import PROFILES
from souvenir.retrieval.relevance import judge
from souvenir.retrieval.scoring import scoring_of

TALKS, FACTS, PLAIN = ("locomo_turns", "beam_chat"), "locomo_facts", "plain_questions"
SETS = (*TALKS, FACTS, PLAIN)
SIZES = (45, 94)
"""Of the parts that the facts are stored in too; plain_questions has 25 to 44 memories an agent."""

TOP_K = 5
LEAST_AUC, MOST_ERROR = 0.846, 0.05
FALSE_NONE_ALLOWED, FALSE_STRONG_ALLOWED = 0.05, 0.10
FALSE_NONE_ALLOWED_OF_A_RIGHT_HIT = 0.04


def ask(stores: Stores, engine: MemoryEngine) -> Iterator[Answer]:
    """Store every agent's documents, and ask it everything in every way."""
    data_set = stores.data_set
    names = store(data_set, engine)
    for scope in data_set.documents:
        for question in stores.questions.get(scope, ()):
            for way in Way:
                found = engine.recall(Scope(scope), data_set.kind, _query(question, way))
                if found is None or found.degraded:
                    raise RuntimeError(f"{scope}: an arm did not run: {None if found is None else found.degraded}")
                yield Answer(
                    data_set.name,
                    scope,
                    stores.conversation_of[scope],
                    question.kind,
                    question.category,
                    way,
                    found.judgement,
                    right=bool(found.ranked) and names[found.ranked[0].owner_id] in question.relevant,
                    weight=stores.weight,
                )


def _query(question: Question, way: Way) -> SearchQuery:
    return SearchQuery(question.text, TOP_K, hybrid=way is not Way.MEANING, words_only=way is Way.WORDS)


def judged_by_others(answers: Sequence[Answer]) -> list[Answer]:
    """Each judged anew, by the coefficients of all other conversations: of no set the same one."""
    conversations = sorted({one.conversation for one in answers})
    fits = {name: fitted([one for one in answers if one.conversation != name]) for name in conversations}
    return [replace(one, judgement=judge(one.signals, fits[one.conversation])) for one in answers]


def run(folder: Path) -> bool:
    embedder = CachedEmbedder(embedder_of(Settings()), RESULTS_DIR)
    answers = list(_answers(folder, embedder))
    judged = judged_by_others(answers)
    found = {
        way: {
            name: figures_of([one for one in judged if one.set_name == name and one.way is way])
            for name in dict.fromkeys(one.set_name for one in judged)
        }
        for way in Way
    }
    print_figures(found[Way.BOTH])
    print_ways(found)
    coefficients = fitted(answers)
    print("\n".join(f"    {one.name}={getattr(coefficients, one.name)}," for one in fields(coefficients)))
    used = scoring_of(embedder, PROFILES).coefficients
    print("\nThese are in use." if coefficients == used else "\nOthers are in use. As souvenir.json has them:")
    print(json.dumps({"scoring": {"evidence": asdict(coefficients)}}) + "\n")
    targets = _targets(found[Way.BOTH])
    print_targets(targets)
    kept = {
        "sets": {way: {name: asdict(one) for name, one in of_way.items()} for way, of_way in found.items()},
        "model": embedder.model_id,
        "coefficients": asdict(coefficients),
    }
    print(f"\n{write_results('evidence', kept, targets)}")
    return all(target.met for target in targets)


def _answers(folder: Path, embedder: CachedEmbedder) -> Iterator[Answer]:
    questions = read_questions(folder, SETS)
    for stores in _stores(folder, questions):
        data_set = stores.data_set
        asked = sum(map(len, stores.questions.values()))
        progress(f"{data_set.name}: {len(data_set)} texts of {len(data_set.documents)} agents, {asked} questions")
        with (
            tempfile.TemporaryDirectory(prefix="souvenir-bench-") as data_dir,
            opened(Path(data_dir), embedder) as engine,
        ):
            yield from ask(stores, engine)
        embedder.save()


def _stores(folder: Path, questions: Mapping[str, Questions]) -> Iterator[Stores]:
    for name in SETS:
        data_set = read_data_set(folder / name)
        sizes = SIZES if name == FACTS else ()
        weight = 1 / (1 + len(sizes))
        yield whole(data_set, questions[name], weight)
        yield from (cut(data_set, questions[name], size, weight) for size in sizes)


def _targets(found: Mapping[str, Figures]) -> list[Target]:
    wrong_person = found["locomo_turns"].auc[Kind.UNANSWERED]
    targets = [Target("locomo_turns: AUC, about the wrong person", wrong_person, LEAST_AUC, at_least=True)]
    for name in (*TALKS, FACTS):
        figures = found[name]
        false_none = figures.levels[Kind.ANSWERED][EvidenceLevel.NONE]
        false_strong = figures.levels[Kind.OTHER_SCOPE][EvidenceLevel.STRONG]
        targets += [
            Target(f"{name}: calibration error, its own questions", figures.error_own, MOST_ERROR),
            Target(f"{name}: calibration error, others' too", figures.error_all, MOST_ERROR),
            Target(f"{name}: answered, evidence none", false_none, FALSE_NONE_ALLOWED),
            Target(f"{name}: of another conversation, strong", false_strong, FALSE_STRONG_ALLOWED),
        ]
    plain = found[PLAIN]
    off_topic = plain.levels[Kind.OFF_TOPIC][EvidenceLevel.STRONG]
    right_none = plain.first_right[EvidenceLevel.NONE]
    return [
        *targets,
        Target(f"{PLAIN}: first hit right, evidence none", right_none, FALSE_NONE_ALLOWED_OF_A_RIGHT_HIT),
        Target(f"{PLAIN}: off topic, strong", off_topic, 0.0),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    return 0 if run(parser.parse_args().data) else 1


if __name__ == "__main__":
    sys.exit(main())
