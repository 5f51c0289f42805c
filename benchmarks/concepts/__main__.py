"""Precision and recall of concepts and of joined names, on hand-labelled texts.

    python -m benchmarks.concepts                    # the texts that are part of this repository
    python -m benchmarks.concepts --data FOLDER      # and those of locomo_turns and beam_chat
    python -m benchmarks.concepts --aside            # the fifth that was set aside before tuning
    python -m benchmarks.concepts --show             # list the errors

A mention is right if it is a labelled concept, or one that a second reader judged to be one. FOLDER is that of
benchmarks.retrieval (docs/ranking.md); benchmarks/labels/concepts/guidelines.md says how the labels were made.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.concepts.labels import LabelledConcept, LabelledText, Pair, form_key, read_pairs, read_texts
from benchmarks.labelled import parser
from benchmarks.report import Target, conclude, table
from souvenir.core.concept_kinds import CONFIDENCE
from souvenir.core.types import ConceptKind, Mentioned
from souvenir.knowledge.concept_similarity import may_match
from souvenir.knowledge.recognition.extraction import mentioned
from souvenir.knowledge.recognition.short_names import is_short_for, longest
from souvenir.knowledge.recognition.spelling import key_of

JUDGED = frozenset(CONFIDENCE)
"""Kinds of mentions that are labelled; hashtags and code have a fixed form."""

WANTED = (ConceptKind.PERSON, ConceptKind.PLACE, ConceptKind.ORGANISATION, ConceptKind.PRODUCT)
PRECISION, RECALL, WRONG_JOINS = 0.9, 0.9, 0.02
MESSAGES_PER_SECOND = 1000.0
REPEATS = 20
HOSTILE = ("a", "-", "中1", "a.b", "A of ", "1,", "a_", "[A", "```\n", "May ", "Anna ", "王")
HOSTILE_BYTES = 1_000_000


@dataclass(slots=True)
class Counts:
    """:ivar by_kind: Of mentions of a kind: how many, right ones, and right ones of this kind.

    :ivar found: Of labelled concepts of a kind: how many, found ones, and found ones with this kind.
    :ivar unjudged: Mentions that are no labelled concept, and that no reader has judged.
    """

    by_kind: dict[ConceptKind, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    found: dict[ConceptKind, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    by_language: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    errors: list[str] = field(default_factory=list)
    unjudged: list[tuple[str, str, Mentioned]] = field(default_factory=list)

    def add(self, text: LabelledText) -> None:
        concepts = {key: concept for concept in text.concepts for key in concept.keys}
        found: dict[LabelledConcept, ConceptKind] = {}
        for mention in mentioned(text.text):
            if mention.kind not in JUDGED:
                continue
            key = form_key(mention.form)
            concept = concepts.get(key)
            if concept is not None:
                found[concept] = mention.kind
            kind = concept.kind if concept is not None else text.judged.get(key)
            self._count(text, mention, kind)
            if concept is None and key not in text.judged:
                self.unjudged.append((text.source, text.id, mention))
        for concept in text.concepts:
            tally = self.found[concept.kind]
            tally["all"] += 1
            tally["found"] += concept in found
            tally["with its kind"] += found.get(concept) is concept.kind
            if concept not in found:
                self.errors.append(f"not found: {concept.form} ({concept.kind}) in {text.source} {text.id}")

    def _count(self, text: LabelledText, mention: Mentioned, kind: ConceptKind | None) -> None:
        for tally in (self.by_kind[mention.kind], self.by_language[text.language]):
            tally["all"] += 1
            tally["right"] += kind is not None
            tally["with its kind"] += _agrees(mention.kind, kind)
        if not _agrees(mention.kind, kind):
            self.errors.append(f"{mention.form} ({mention.kind}) is {kind or 'no concept'}: {text.source} {text.id}")

    def share(self, of: Mapping[Any, Counter[str]], what: str, only: Sequence[Any] = ()) -> float:
        tallies = [tally for key, tally in of.items() if not only or key in only]
        return sum(tally[what] for tally in tallies) / max(1, sum(tally["all"] for tally in tallies))


def _agrees(found: ConceptKind, labelled: ConceptKind | None) -> bool:
    """Return True if a mention has the labelled kind; a name of an unknown kind may be of any but a thing."""
    return labelled is found or (found is ConceptKind.NAME and labelled not in (None, ConceptKind.PHRASE))


def print_counts(counts: Counts) -> None:
    rows = [
        (*row, f"{CONFIDENCE[kind]:.2f}")
        for kind, row in zip(sorted(counts.by_kind), _rows(counts.by_kind, "right", "with its kind"), strict=True)
    ]
    print(table(("mentions", "", "right", "of this kind", "confidence"), rows))
    print("\n" + table(("language", "mentions", "right"), _rows(counts.by_language, "right")))
    print("\n" + table(("labelled", "", "found", "found with its kind"), _rows(counts.found, "found", "with its kind")))
    print(f"\n{len(counts.unjudged)} mentions that no reader has judged count as wrong")


def _rows(tallies: Mapping[Any, Counter[str]], *shares: str) -> list[tuple[str, ...]]:
    return [
        (
            str(name),
            f"{tally['all']}",
            *(f"{tally[what] / tally['all']:.3f}" if tally["all"] else "–" for what in shares),
        )
        for name, tally in sorted(tallies.items())
    ]


def is_joined(pair: Pair) -> bool:
    """Return True if both names become one concept, given the names of their context."""
    by_form = {mention.form: mention.key for mention in mentioned(pair.context)}
    one, other = (by_form.get(name, key_of(name)) for name in (pair.one, pair.other))
    if one == other or form_key(pair.one) == form_key(pair.other) or may_match(one, other):
        return True
    known = {one, other, *by_form.values()}
    return any(
        is_short_for(short, long) and longest([name for name in known if is_short_for(short, name)]) is not None
        for short, long in ((one, other), (other, one))
    )


def print_joins(pairs: Mapping[Pair, bool]) -> tuple[float, float]:
    """Return the share of wrong joins, and the share of pairs of one thing that are joined.

    :param pairs: Whether each is joined.
    """
    joined = [pair for pair, is_one in pairs.items() if is_one]
    same = [pair for pair in pairs if pair.same]
    wrong = sum(not pair.same for pair in joined) / max(1, len(joined))
    found = sum(pairs[pair] for pair in same) / max(1, len(same))
    print(f"\n{len(same)} pairs of one thing, {found:.3f} joined; of {len(joined)} joined pairs {wrong:.3f} are wrong")
    return wrong, found


def speed(texts: Sequence[LabelledText]) -> float:
    """Return texts a second of CPU."""
    mentioned("汉语 warms the segmenter up")
    begin = time.process_time()
    for _ in range(REPEATS):
        for text in texts:
            mentioned(text.text)
    return REPEATS * len(texts) / (time.process_time() - begin)


def slowest() -> float:
    """Return the seconds of CPU for 1 MB of the worst of HOSTILE."""
    seconds = []
    for piece in HOSTILE:
        text = piece * (HOSTILE_BYTES // len(piece.encode()))
        begin = time.process_time()
        mentioned(text)
        seconds.append(time.process_time() - begin)
    return max(seconds)


def run(data: Path | None, *, aside: bool, show: bool) -> int:
    texts, counts = read_texts(data, aside=aside), Counts()
    for text in texts:
        counts.add(text)
    pairs = {pair: is_joined(pair) for pair in read_pairs(aside=aside)}
    print(f"{len(texts)} texts, {'set aside' if aside else 'for development'}\n")
    print_counts(counts)
    wrong, found = print_joins(pairs)
    if show:
        print("\n" + "\n".join(counts.errors))
        print("\n".join(f"{pair} is {is_one}" for pair, is_one in pairs.items() if is_one is not pair.same))
    targets = [
        Target("precision of mentions", counts.share(counts.by_kind, "right"), PRECISION, at_least=True),
        *(
            Target(f"recall: {kind}", counts.share(counts.found, "found", [kind]), RECALL, at_least=True)
            for kind in WANTED
        ),
        Target("share of wrong joins", wrong, WRONG_JOINS),
        Target("texts a second of CPU", speed(texts), MESSAGES_PER_SECOND, at_least=True),
        Target("1 MB of the worst, s of CPU", slowest(), 1.0),
    ]
    figures = {
        "aside": aside,
        "texts": len(texts),
        "mentions": {kind.value: dict(tally) for kind, tally in counts.by_kind.items()},
        "labelled": {kind.value: dict(tally) for kind, tally in counts.found.items()},
        "languages": {name: dict(tally) for name, tally in counts.by_language.items()},
        "unjudged": [(source, id_, one.form, one.kind) for source, id_, one in counts.unjudged],
        "joined": found,
    }
    return conclude("concepts", figures, targets)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, help="folder with one folder a data set")
    options.add_argument("--show", action="store_true", help="list the errors")
    arguments = options.parse_args()
    return run(arguments.data, aside=arguments.aside, show=arguments.show)


if __name__ == "__main__":
    sys.exit(main())
