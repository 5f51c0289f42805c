"""Precision and recall of concepts on labelled conversations, judged by an independent tagger.

    python -m benchmarks.concepts --data FOLDER --judge en_core_web_sm
    python -m benchmarks.concepts --data FOLDER --sets locomo_turns --show 20

FOLDER holds `locomo_turns` and `beam_chat`, or some of them; docs/ranking.md describes their files. The judge is a
spaCy pipeline that you have installed beside; without one there is no precision, only the lists and the speed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.concepts.conversations import OTHERS, SETS, Concept, Conversation, concepts_of, read_conversations
from benchmarks.concepts.judging import NAMED, Judge, Reading, is_right
from benchmarks.report import Target, print_targets, progress, table, write_results
from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.extraction import mentioned
from souvenir.knowledge.recognition.spelling import key_of

TOP = 20
SEEN_BY_THE_JUDGE = 10
"""Texts that mention a concept, spread over the conversation; it is right if it is right in half of them."""

PRECISION, MENTION_PRECISION = 0.9, 0.9
MESSAGES_PER_SECOND = 1500.0
HOSTILE = ("a", "-", "中1", "a.b", "A of ", "1,", "a_", "[A", "```\n", "May ")
HOSTILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one conversation: the first concepts and whether each is right; else how many are right, and of how many."""

    top: Sequence[tuple[Concept, bool | None]]
    mentions: Mapping[ConceptKind, tuple[int, int]]
    entities: tuple[int, int]
    asked: tuple[int, int]

    @property
    def precision(self) -> tuple[int, int]:
        judged = [right for _, right in self.top if right is not None]
        return sum(judged), len(judged)


def judged(conversation: Conversation, concepts: Sequence[Concept], readings: Sequence[Reading]) -> Verdict:
    mentions: defaultdict[ConceptKind, list[bool]] = defaultdict(list)
    entities: list[bool] = []
    for text, reading in zip(conversation.texts, readings, strict=True):
        found = mentioned(text)
        for mention in found:
            right = is_right(mention, reading)
            if right is not None:
                mentions[mention.kind].append(right)
        keys = [mention.key for mention in found] if reading.text == text else None
        entities += _found_entities(reading, keys) if keys is not None else []
    top = [(concept, _concept_is_right(concept, readings)) for concept in concepts[:TOP]]
    return Verdict(
        top,
        {kind: (sum(rights), len(rights)) for kind, rights in mentions.items()},
        (sum(entities), len(entities)),
        asked_about(conversation, concepts),
    )


def _found_entities(reading: Reading, keys: Sequence[str]) -> list[bool]:
    """Whether each named entity of a text is one of its concepts, or part of one, or has one in it."""
    padded = [f" {key} " for key in keys]
    names = [f" {key_of(text)} " for text, label in reading.entities if label in NAMED]
    return [any(name in key or key in name for key in padded) for name in names]


def _concept_is_right(concept: Concept, readings: Sequence[Reading]) -> bool | None:
    verdicts: list[bool] = []
    places = list(concept.found)
    for place in places[:: max(1, len(places) // SEEN_BY_THE_JUDGE)]:
        right = is_right(concept.found[place], readings[place])
        if right is not None:
            verdicts.append(right)
    return 2 * sum(verdicts) >= len(verdicts) if verdicts else None


def asked_about(conversation: Conversation, concepts: Sequence[Concept]) -> tuple[int, int]:
    """How many of the first are mentioned in what people ask about the conversation."""
    asked = {mention.key for text in conversation.asked for mention in mentioned(text)}
    words = {word for key in asked for word in key.split()}
    return sum(concept.key in asked or set(concept.key.split()) <= words for concept in concepts[:TOP]), min(
        TOP, len(concepts)
    )


def speed(conversations: Sequence[Conversation]) -> float:
    """Texts a second of CPU."""
    texts = [text for conversation in conversations for text in conversation.texts]
    begin = time.process_time()
    for text in texts:
        mentioned(text)
    return len(texts) / (time.process_time() - begin)


def slowest() -> float:
    """Seconds of CPU for 1 MB of the worst of HOSTILE."""
    seconds = []
    for piece in HOSTILE:
        text = piece * (HOSTILE_BYTES // len(piece.encode()))
        begin = time.process_time()
        mentioned(text)
        seconds.append(time.process_time() - begin)
    return max(seconds)


def _share(right: int, judged_: int) -> str:
    return f"{right / judged_:.3f} ({right}/{judged_})" if judged_ else "–"


def _sum(pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(right for right, _ in pairs), sum(of for _, of in pairs)


def print_verdicts(verdicts: Mapping[str, Verdict]) -> None:
    rows = [
        (name, _share(*verdict.precision), _share(*_sum(list(verdict.mentions.values()))), _share(*verdict.entities),
         _share(*verdict.asked))
        for name, verdict in verdicts.items()
    ]  # fmt: skip
    print("\n" + table(("", f"first {TOP} right", "all mentions right", "named entities found", "asked about"), rows))
    kinds: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for verdict in verdicts.values():
        for kind, counts in verdict.mentions.items():
            kinds[kind.value].append(counts)
    print("\n" + table(("kind", "mentions right"), [(kind, _share(*_sum(of))) for kind, of in sorted(kinds.items())]))


def print_concepts(conversation: Conversation, concepts: Sequence[Concept], count: int) -> None:
    shown = ", ".join(f"{concept.key} ({concept.kind} {concept.owners})" for concept in concepts[:count])
    print(f"\n{conversation.name}: {len(conversation.texts)} texts, {len(concepts)} concepts\n  {shown}")


def figures_of(verdict: Verdict) -> dict[str, Any]:
    return {
        "top": [[concept.key, concept.kind, concept.owners, right] for concept, right in verdict.top],
        "precision": verdict.precision,
        "mentions": dict(verdict.mentions),
        "entities": verdict.entities,
        "asked": verdict.asked,
    }


def run(data: Path, sets: Sequence[str], pipeline: str | None, show: int) -> bool:
    conversations = read_conversations(data, sets)
    if not conversations:
        raise SystemExit(f"There is none of {', '.join(sets)} in {data}; docs/ranking.md says what belongs there")
    judge = Judge(pipeline) if pipeline else None
    verdicts: dict[str, Verdict] = {}
    for conversation in conversations:
        concepts = concepts_of(conversation.texts)
        print_concepts(conversation, concepts, show)
        if judge:
            verdicts[conversation.name] = judged(conversation, concepts, list(judge.read(conversation.texts)))
            progress(f"{conversation.name} is judged")
    targets = [Target("1 MB of the worst, s of CPU", slowest(), 1.0)]
    turns = [conversation for conversation in conversations if conversation.name.startswith("locomo")]
    if turns:
        targets.append(Target("LoCoMo turns a second of CPU", speed(turns), MESSAGES_PER_SECOND, at_least=True))
    if verdicts:
        print_verdicts(verdicts)
        right, of = _sum([verdict.precision for verdict in verdicts.values()])
        targets.append(Target(f"precision of the first {TOP}", right / max(of, 1), PRECISION, at_least=True))
        right, of = _sum([counts for verdict in verdicts.values() for counts in verdict.mentions.values()])
        targets.append(Target("precision of all mentions", right / max(of, 1), MENTION_PRECISION, at_least=True))
    print_targets(targets)
    figures = {"judge": pipeline, "conversations": {name: figures_of(verdict) for name, verdict in verdicts.items()}}
    print(f"\n{write_results('concepts', figures, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    parser.add_argument("--sets", nargs="+", default=SETS, help=f"names of sets, also {', '.join(OTHERS)}")
    parser.add_argument("--judge", help="an installed spaCy pipeline for English, such as en_core_web_sm")
    parser.add_argument("--show", type=int, default=TOP, help="how many concepts of each conversation to print")
    arguments = parser.parse_args()
    return 0 if run(arguments.data, arguments.sets, arguments.judge, arguments.show) else 1


if __name__ == "__main__":
    sys.exit(main())
