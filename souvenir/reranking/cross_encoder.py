"""A cross-encoder: a question and passages in, a score of each passage out, in small runs that can be stopped.

Any model of sequences with one output (how well the passage answers) or two classes (no, yes) will do. A score is the
raw output, or the difference of the two; nothing is squashed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from souvenir.embedding.batching import BatchSize, fits_one_run
from souvenir.embedding.model_folder import ModelFolder, ModelUse
from souvenir.embedding.session import Stop, TextSession
from souvenir.errors import RerankingUnavailable
from souvenir.reranking.pairs import MAX_PAIR_TOKENS, Pair, PairTokenizer
from souvenir.types import FloatVector

RERANKING = ModelUse("cross-encoder", "RERANK_MODEL", "RERANK_REVISION", RerankingUnavailable)

WARM_UP_TEXT = "Hello " * MAX_PAIR_TOKENS
"""As long as a pair may be, so that a model which knows fewer positions than its files say fails at once."""


class GivenUp(Exception):
    """Nobody waits for the scores any more."""


class CrossEncoder:
    """Not for two threads at once.

    :param threads: Of one run; 0 takes half of the cores that the process may use, at least one.
    :raises RerankingUnavailable: If it cannot be loaded, or does not score a pair.
    """

    def __init__(self, folder: ModelFolder, threads: int) -> None:
        self._folder = folder
        self._tokenizer = PairTokenizer(folder)
        self._session = TextSession(folder, threads)
        outputs = self._session.outputs
        self._output = "logits" if "logits" in outputs else outputs[0]
        try:
            self.scores(WARM_UP_TEXT, [WARM_UP_TEXT], Stop())
        except RerankingUnavailable:
            raise
        except Exception as error:
            # ONNX Runtime's errors have no common base.
            raise RerankingUnavailable(
                f"{folder.onnx_path} fails when it runs; set RERANK_MODEL to another model"
            ) from error

    def scores(self, query: str, passages: Sequence[str], stop: Stop) -> list[float]:
        """A score a passage, in their order; higher is better.

        :raises GivenUp: If `stop` was set before a run; during one, ONNX Runtime raises.
        """
        pairs = self._tokenizer.pairs(query, passages)
        scores = np.empty(len(pairs), dtype=np.float32)
        for places in _runs(pairs):
            if stop.is_set:
                raise GivenUp
            chosen = [pairs[place] for place in places]
            found, _ = self._session.run(
                self._output, [pair.ids for pair in chosen], [pair.types for pair in chosen], stop
            )
            scores[places] = self._of_outputs(found)
        return [float(score) for score in scores]

    def _of_outputs(self, outputs: FloatVector) -> FloatVector:
        """One score a row of (n,), (n, 1) or (n, 2)."""
        found = outputs.reshape(len(outputs), -1)
        if found.shape[1] not in (1, 2) or not np.isfinite(found).all():
            raise RerankingUnavailable(
                f"{self._folder.onnx_path} says {found.shape[1]} numbers of a pair, or none that can be used; "
                "set RERANK_MODEL to a cross-encoder with one output or two classes"
            )
        return found[:, 0] if found.shape[1] == 1 else found[:, 1] - found[:, 0]


def _runs(pairs: Sequence[Pair]) -> Iterator[list[int]]:
    """The places of pairs that stand in one run each: those of about the same length, the longest first."""
    run: list[int] = []
    longest = tokens = 0
    for place in sorted(range(len(pairs)), key=lambda place: -len(pairs[place])):
        length = len(pairs[place])
        if run and not fits_one_run(BatchSize(len(run) + 1, tokens + length, longest)):
            yield run
            run, tokens = [], 0
        longest = length if not run else longest
        run.append(place)
        tokens += length
    if run:
        yield run
