"""How well `relevance` and `evidence` separate answerable from unanswerable questions, and their fit.

    python -m benchmarks.evidence --data FOLDER

FOLDER holds the sets locomo_turns, beam_chat, locomo_facts, plain_questions, cranfield and med (docs/benchmarks.md).
Each conversation is stored as an agent and asked through the engine with the real model, whose vectors are kept for the
next run; the facts are also stored in smaller parts, since the weight of a word that nobody used depends on the size.
Every question is searched for as usual, without late interaction, and by words and meaning alone. Nothing is judged by
what was fitted on it: the constants that judge a conversation are fitted on all others. Those of all together are
printed last: those of the default model stand in `souvenir/retrieval/relevance.py` and
`souvenir/retrieval/probability.py`, those of another one belong in its souvenir.json.
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
from benchmarks.evidence.fitting import DOCUMENTS, Answer, fitted
from benchmarks.evidence.probabilities import (
    Likely,
    by_others,
    calibrations,
    errors_of,
    print_calibrations,
    print_errors,
    print_kept,
)
from benchmarks.evidence.questions import Kind, Question, Questions, Stores, cut, read_questions, whole
from benchmarks.report import RESULTS_DIR, Target, print_targets, progress, write_results
from benchmarks.retrieval.data_sets import read_data_set
from benchmarks.retrieval.own import opened, store
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.settings import Settings
from souvenir.core.types import EvidenceLevel, Profile, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of
from souvenir.retrieval.probability import COMPARED, Arms
from souvenir.retrieval.profiles import PROFILES
from souvenir.retrieval.relevance import judge
from souvenir.retrieval.scoring import scoring_of

TALKS, FACTS, PLAIN = ("locomo_turns", "beam_chat"), "locomo_facts", "plain_questions"
SETS = (*TALKS, FACTS, PLAIN, *DOCUMENTS)
SIZES = (45, 94)
"""Memories in each part of the facts, which are stored in parts too; plain_questions has 25 to 44 memories an agent."""

WITH_LATE, WITHOUT_LATE = (Arms.ALL, Arms.WORDS, Arms.MEANING), (Arms.WITHOUT_LATE,)
NO_LATE = {profile: replace(constants, late=None) for profile, constants in PROFILES.items()}

LEAST_AUC, MOST_ERROR = 0.846, 0.05
FALSE_NONE_ALLOWED, FALSE_STRONG_ALLOWED = 0.05, 0.10
FALSE_NONE_ALLOWED_OF_A_RIGHT_HIT = 0.04


def ask(stores: Stores, engine: MemoryEngine, names: Mapping[int, str], ways: Sequence[Arms]) -> Iterator[Answer]:
    """Ask every agent everything in some ways.

    :param names: The document of each message or memory.
    """
    data_set = stores.data_set
    for scope in data_set.documents:
        for question in stores.questions.get(scope, ()):
            for arms in ways:
                found = engine.recall(Scope(scope), data_set.kind, _query(question, arms))
                if found is None or found.degraded:
                    raise RuntimeError(f"{scope}: an arm did not run: {None if found is None else found.degraded}")
                answers = question.relevant if question.kind is Kind.ANSWERED else frozenset[str]()
                best = found.ranked[0].at if found.ranked else None
                yield Answer(
                    data_set.name,
                    scope,
                    stores.conversation_of[scope],
                    question.kind,
                    question.category,
                    arms,
                    found.judgement,
                    Profile.DOC if best is None else Profile(int(found.candidates.profiles[best])),
                    tuple(one.score for one in found.ranked),
                    tuple(names[one.owner_id] in answers for one in found.ranked),
                    stores.weight,
                )


def _query(question: Question, arms: Arms) -> SearchQuery:
    return SearchQuery(question.text, COMPARED, hybrid=arms is not Arms.MEANING, words_only=arms is Arms.WORDS)


def judged_by_others(answers: Sequence[Answer]) -> list[Answer]:
    """Each judged anew, by the coefficients of all other conversations: of no set the same one."""
    conversations = dict.fromkeys(one.conversation for one in answers)
    fits = {name: fitted([one for one in answers if one.conversation != name]) for name in conversations}
    return [replace(one, judgement=judge(one.signals, fits[one.conversation])) for one in answers]


def run(folder: Path) -> bool:
    embedder = CachedEmbedder(embedder_of(Settings()), RESULTS_DIR)
    answers = list(_answers(folder, embedder))
    judged = judged_by_others(answers)
    found = {
        arms: {
            name: figures_of([one for one in judged if one.set_name == name and one.arms is arms])
            for name in dict.fromkeys(one.set_name for one in judged)
            if name not in DOCUMENTS
        }
        for arms in Arms
    }
    print_figures(found[Arms.ALL])
    print_ways(found)
    likely = by_others(judged)
    print_errors(likely)
    print_kept([one for one in likely if one.answer.set_name not in DOCUMENTS])
    coefficients, of_hits = fitted(answers), calibrations(judged)
    print("\n" + "\n".join(f"    {one.name}={getattr(coefficients, one.name)}," for one in fields(coefficients)))
    print_calibrations(of_hits)
    used = scoring_of(embedder, PROFILES)
    same = coefficients == used.coefficients and of_hits == used.calibrations
    probability = {
        arms: {profile.name.lower(): asdict(one) for profile, one in of_arms.items()}
        for arms, of_arms in of_hits.items()
    }
    print("\nThese are in use." if same else "\nOthers are in use. As souvenir.json has them:")
    print(json.dumps({"scoring": {"evidence": asdict(coefficients), "probability": probability}}))
    targets = [*_targets(found[Arms.ALL]), *_targets_of_hits(likely)]
    print_targets(targets)
    kept = {
        "sets": {arms: {name: asdict(one) for name, one in of_arms.items()} for arms, of_arms in found.items()},
        "model": embedder.model_id,
        "coefficients": asdict(coefficients),
        "probability": probability,
    }
    print(f"\n{write_results('evidence', kept, targets)}")
    return all(target.met for target in targets)


def _answers(folder: Path, embedder: CachedEmbedder) -> Iterator[Answer]:
    questions = read_questions(folder, SETS)
    for stores in _stores(folder, questions):
        data_set = stores.data_set
        asked = sum(map(len, stores.questions.values()))
        progress(f"{data_set.name}: {len(data_set)} texts of {len(data_set.documents)} agents, {asked} questions")
        with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as data_dir:
            with opened(Path(data_dir), embedder) as engine:
                names = store(data_set, engine)
                yield from ask(stores, engine, names, WITH_LATE)
            with opened(Path(data_dir), embedder, profiles=NO_LATE) as engine:
                yield from ask(stores, engine, names, WITHOUT_LATE)
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


def _targets_of_hits(found: Sequence[Likely]) -> Iterator[Target]:
    for name in (*TALKS, FACTS, PLAIN):
        of_set = [one for one in found if one.answer.set_name == name and one.answer.arms is Arms.ALL]
        yield Target(f"{name}: calibration error, first ten hits", errors_of(of_set).hits, MOST_ERROR)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    return 0 if run(parser.parse_args().data) else 1


if __name__ == "__main__":
    sys.exit(main())
