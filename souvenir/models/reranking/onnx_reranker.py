"""OnnxReranker: a cross-encoder in this process, for one search at a time and within the caller's deadline.

A cross-encoder scores passages for a question, in small runs that can be stopped. Any sequence model with one output
(relevance of the passage) or two classes (no, yes) works. A score is the raw output, or the difference of the two
classes, without a sigmoid.

One thread runs the model. A search that misses its deadline leaves the queue, or its run is stopped. A search that
would probably miss it, estimated from recent durations and the queue, is rejected immediately; otherwise under load
every search would start and none would finish.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import monotonic

import numpy as np

from souvenir.core.errors import RerankingUnavailable, ServiceClosing, SouvenirError
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments
from souvenir.core.types import FloatVector
from souvenir.models.embedding.batching import BatchSize, fits_one_run
from souvenir.models.embedding.model_folder import ModelFolder, ModelUse
from souvenir.models.embedding.session import Stop, TextSession
from souvenir.models.embedding.tokens import TokenIds, open_tokenizer

MAX_PAIR_TOKENS = 512
"""Limit of a pair even if the model has a longer window: the length used in training, and a bound on the cost."""

MAX_QUERY_SHARE = 0.5
"""Share of the window for the question; the rest is for the passage."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Token ids with special tokens, and the segment of each token: 0 for the question, 1 for the passage."""

    ids: TokenIds
    types: TokenIds

    def __len__(self) -> int:
        return len(self.ids)


class PairTokenizer:
    """:raises RerankingUnavailable: If the model's tokenizer cannot be read."""

    def __init__(self, folder: ModelFolder) -> None:
        self._tokenizer = open_tokenizer(folder)
        window = min(folder.max_length or MAX_PAIR_TOKENS, MAX_PAIR_TOKENS)
        self._max_tokens = window - self._tokenizer.num_special_tokens_to_add(is_pair=True)
        self._max_query_tokens = int(self._max_tokens * MAX_QUERY_SHARE)

    def pairs(self, query: str, passages: Sequence[str]) -> list[Pair]:
        """Return the question with each passage, each truncated at its end if it exceeds its share."""
        asked = self._tokenizer.encode(query, add_special_tokens=False)
        asked.truncate(self._max_query_tokens)
        found = []
        for passage in self._tokenizer.encode_batch(list(passages), add_special_tokens=False):
            passage.truncate(self._max_tokens - len(asked))
            joined = self._tokenizer.post_process(asked, passage)
            found.append(Pair(joined.ids, joined.type_ids))
        return found


RERANKING = ModelUse("cross-encoder", "RERANK_MODEL", "RERANK_REVISION", RerankingUnavailable)

WARM_UP_TEXT = "Hello " * MAX_PAIR_TOKENS
"""A pair of maximum length, so that a model with fewer positions than its files specify fails at once."""


class GivenUp(Exception):
    """The search that requested the scores has ended."""


class CrossEncoder:
    """Not thread-safe.

    :param threads: Threads of one run; 0 means half of the cores that the process may use, at least one.
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
        """Return one score per passage, in order; higher is better.

        :raises GivenUp: If `stop` was set before a run; during one, ONNX Runtime raises.
        """
        pairs = self._tokenizer.pairs(query, passages)
        scores = np.empty(len(pairs), dtype=np.float32)
        for places in _runs(pairs):
            if stop.is_set:
                raise GivenUp
            chosen = [pairs[place] for place in places]
            [found], _ = self._session.run(
                [self._output], [pair.ids for pair in chosen], [pair.types for pair in chosen], stop
            )
            scores[places] = self._of_outputs(found)
        return [float(score) for score in scores]

    def _of_outputs(self, outputs: FloatVector) -> FloatVector:
        """Return one score per row of (n,), (n, 1) or (n, 2)."""
        found = outputs.reshape(len(outputs), -1)
        if found.shape[1] not in (1, 2) or not np.isfinite(found).all():
            raise RerankingUnavailable(
                f"{self._folder.onnx_path} says {found.shape[1]} numbers of a pair, or none that can be used; "
                "set RERANK_MODEL to a cross-encoder with one output or two classes"
            )
        return found[:, 0] if found.shape[1] == 1 else found[:, 1] - found[:, 0]


def _runs(pairs: Sequence[Pair]) -> Iterator[list[int]]:
    """Group the indices of pairs into runs of similar length, longest first."""
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


MAX_WAITING = 8
"""Maximum number of running and waiting searches."""

NEWEST_SHARE = 0.2
"""Weight of the last search in the estimated duration of a search."""


class OnnxReranker:
    """Loaded when it is created. Thread-safe.

    :param model: A folder (`souvenir.core.files.resource` finds relative ones) or a Hugging Face id, ``org/name``.
    :param revision: Commit, tag or branch of a Hugging Face model.
    :param threads: Threads of one run; 0 means half of the cores that the process may use, at least one.
    :param cache_dir: Folder for Hugging Face models; None for the client's default (`HF_HOME`).
    :param instruments: Receives metrics of its queue.
    :raises RerankingUnavailable: If the model cannot be used; the message says what to do.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        threads: int = 0,
        cache_dir: Path | None = None,
        instruments: Instruments | None = None,
    ) -> None:
        self._encoder = CrossEncoder(ModelFolder.find(RERANKING, model, revision, cache_dir), threads)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="souvenir-reranking")
        self._active: dict[Future[list[float]], Stop] = {}
        self._changing = Lock()
        self._expected_s = 0.0
        self._closed = False
        watched = instruments or Instruments()
        self._unwatch_queue = watched.watch_queue("reranking", lambda: len(self._active), capacity=MAX_WAITING)

    def scores(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Sequence[float]:
        """Return the model's raw scores; see `souvenir.models.reranking.onnx_reranker`.

        :raises TimeoutError: If they are not complete within the timeout, or probably would not be.
        :raises RerankingUnavailable: If the model fails.
        :raises ServiceClosing: If it was closed.
        """
        stop = Stop()
        found = self._begun(query, passages, stop, timeout_s)
        try:
            return found.result(timeout_s)
        except CancelledError as error:
            raise ServiceClosing from error
        except (SouvenirError, TimeoutError):
            raise
        except Exception as error:
            # ONNX Runtime's errors have no common base.
            raise RerankingUnavailable("The cross-encoder failed on these passages; see the log") from error
        finally:
            stop.set()
            found.cancel()

    def close(self) -> None:
        """Stop the active run, fail waiting searches, and end the thread."""
        with self._changing:
            self._closed = True
        # Waiting searches first: otherwise the thread would begin the next one as soon as the active run stops.
        self._worker.shutdown(wait=False, cancel_futures=True)
        with self._changing:
            for stop in self._active.values():
                stop.set()
        self._worker.shutdown()
        self._unwatch_queue()

    def _begun(self, query: str, passages: Sequence[str], stop: Stop, timeout_s: float) -> Future[list[float]]:
        with self._changing:
            if self._closed:
                raise ServiceClosing
            # A single search is always tried, so that an estimate that is too high gets corrected.
            before = len(self._active)
            if before >= MAX_WAITING or (before and (before + 1) * self._expected_s > timeout_s):
                raise TimeoutError(f"{before} searches go before this one")
            found = self._worker.submit(self._run, query, passages, stop)
            self._active[found] = stop
        found.add_done_callback(self._forget)
        return found

    def _run(self, query: str, passages: Sequence[str], stop: Stop) -> list[float]:
        began = monotonic()
        try:
            return self._encoder.scores(query, passages, stop)
        finally:
            self._note(monotonic() - began, ended=not stop.is_set)

    def _note(self, took_s: float, *, ended: bool) -> None:
        """Update the estimated duration; a stopped run only provides a lower bound."""
        with self._changing:
            if ended:
                share = NEWEST_SHARE if self._expected_s else 1.0
                self._expected_s += share * (took_s - self._expected_s)
            else:
                self._expected_s = max(self._expected_s, took_s)

    def _forget(self, found: Future[list[float]]) -> None:
        with self._changing:
            del self._active[found]


def reranker_of(settings: Settings, instruments: Instruments | None = None) -> OnnxReranker | None:
    """Return the loaded re-ranker of the settings; None if they name none. The caller closes it.

    :raises RerankingUnavailable: If it cannot be used; the message says what to do.
    """
    if settings.rerank_model is None:
        return None
    return OnnxReranker(
        settings.rerank_model,
        revision=settings.rerank_revision,
        threads=settings.embed_threads,
        instruments=instruments,
    )
