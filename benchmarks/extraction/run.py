"""One run: each system with a separate service, on all three sets."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.extraction.accounts import account_of
from benchmarks.extraction.corrections import measure_pairs
from benchmarks.extraction.data_sets import Conversation, Pair, Paragraph
from benchmarks.extraction.facts import figures_of_talks, learn_talks
from benchmarks.extraction.learners import Extracting, Learner, Turns
from benchmarks.extraction.matching import COSINE, Likeness
from benchmarks.extraction.tables import Measured
from benchmarks.extraction.types import figures_of_paragraphs, learn_paragraphs
from benchmarks.service import Client, Service

FALLBACK = "fallback without a model"
REQUEST_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Sets:
    conversations: Sequence[Conversation]
    pairs: Sequence[Pair]
    paragraphs: Sequence[Paragraph]

    @property
    def bystanders(self) -> Sequence[str]:
        """Statements that have nothing to do with the pairs."""
        return [expected.text for paragraph in self.paragraphs for expected in paragraph.expected]


def measure_model(name: str, sets: Sets, measures: Mapping[str, Likeness], environment: Mapping[str, str]) -> Measured:
    """:param environment: Which model the service asks, beyond the settings of the one who runs this."""
    return _measure(lambda client: Extracting(name, client), sets, measures, environment)


def measure_peers(sets: Sets, measures: Mapping[str, Likeness]) -> list[Measured]:
    """What needs no model: the service's fallback, and a store of every turn."""
    fallback = {"EXTRACT_PROVIDER": "", "EXTRACT_FALLBACK_ADD": "true"}
    return [
        _measure(lambda client: Extracting(FALLBACK, client, mode="fallback_add"), sets, measures, fallback),
        _measure(Turns, sets, measures, {}),
    ]


def _measure(
    learner_of: Callable[[Client], Learner],
    sets: Sets,
    measures: Mapping[str, Likeness],
    environment: Mapping[str, str],
) -> Measured:
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        service = Service(Path(folder) / "data", REQUEST_TIMEOUT_S=str(REQUEST_TIMEOUT_S), **environment)
        service.start()
        try:
            with closing(Client(service.port, timeout_s=REQUEST_TIMEOUT_S)) as client:
                learner = learner_of(client)
                talks = learn_talks(learner, sets.conversations, client)
                pairs, of_pairs = measure_pairs(learner, sets.pairs, sets.bystanders, client)
                of_paragraphs = learn_paragraphs(learner, sets.paragraphs)
        finally:
            service.stop()
    of_talks = [session for talk in talks for session in talk.sessions]
    return Measured(
        learner.name,
        figures_of_talks(talks, measures),
        pairs,
        figures_of_paragraphs(sets.paragraphs, of_paragraphs, measures[COSINE]),
        account_of([*of_talks, *of_pairs, *of_paragraphs]),
    )
