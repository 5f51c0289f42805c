"""Acceptance rates of the check of a model's facts, for statements that people derived from a text and for others.

    python -m benchmarks.facts.grounding --data FOLDER

FOLDER holds the sets of benchmarks.extraction. A statement of a paragraph or of a session is held against it, against
another one (of a session: of the same conversation), and with something invented against its own: an address, a year,
a person instead of the first word, a person at the end. No model is asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.extraction.data_sets import read_conversations, read_paragraphs
from benchmarks.report import table
from souvenir.index.analyser import Analyser
from souvenir.memories.grounding import Grounding

ALL = 1_000_000
PERSON = "Wilhelmina"

Said = tuple[str, Sequence[str]]
"""A text, and the statements that people made of it."""


def read_said(data: Path) -> Iterator[tuple[str, list[Said]]]:
    """Texts that belong together, by what they are: paragraphs, and the sessions of each conversation."""
    paragraphs = read_paragraphs(data, ALL)
    yield "paragraphs", [(one.text, [expected.text for expected in one.expected]) for one in paragraphs]
    for conversation in read_conversations(data, ALL):
        yield (
            "sessions",
            [
                ("\n".join(turn.line for turn in session.turns), [fact.text for fact in session.facts])
                for session in conversation.sessions
            ],
        )


def invented(statement: str) -> Iterator[str]:
    bare = statement.rstrip(".")
    yield f"{bare}, see https://evil.example/pay."
    yield f"{bare} since 1987."
    yield " ".join([PERSON, *statement.split()[1:]])
    yield f"{bare} together with {PERSON}."


def verdicts(said: Sequence[Said]) -> Iterator[tuple[str, bool]]:
    terms = Analyser().terms
    grounds = [Grounding(text, terms) for text, _ in said]
    for at, (_, statements) in enumerate(said):
        for statement in statements:
            yield "of this text", grounds[at].supports(statement)
            yield "of another", grounds[at - 1].supports(statement)
            for one in invented(statement):
                yield "with an invention", grounds[at].supports(one)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    found: dict[tuple[str, str], list[bool]] = {}
    for kind, said in read_said(parser.parse_args().data):
        for case, accepted in verdicts(said):
            found.setdefault((kind, case), []).append(accepted)
    rows = [(*key, str(len(those)), f"{sum(those) / len(those):.3f}") for key, those in found.items()]
    print(table(("text", "statements", "number", "accepted"), rows))


if __name__ == "__main__":
    main()
