"""OnnxReranker: a cross-encoder in this process, for one search at a time and within a time that the caller gives.

A thread of its own runs the model. A search that is not through in time leaves the queue, or the run that is under way
for it is stopped: nothing is worked on that nobody waits for. One that would hardly be through, by what searches took
lately and by how many go before it, is refused at once; else under load all would be begun and none finished.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from time import monotonic

from souvenir.embedding.model_folder import ModelFolder
from souvenir.embedding.session import Stop
from souvenir.errors import RerankingUnavailable, ServiceClosing, SouvenirError
from souvenir.observation.instruments import Instruments
from souvenir.reranking.cross_encoder import RERANKING, CrossEncoder
from souvenir.settings import Settings

MAX_WAITING = 8
"""Searches at the model and before it, at most."""

NEWEST_SHARE = 0.2
"""Of the last search in the estimate of what one takes."""


class OnnxReranker:
    """Loaded when it is made. Safe to call from many threads.

    :param model: A folder (relative ones from the repository's root) or a Hugging Face id, ``org/name``.
    :param revision: Commit, tag or branch of a Hugging Face model.
    :param threads: Threads of one run; 0 takes half of the cores that the process may use, at least one.
    :param cache_dir: Where Hugging Face models are kept; None takes the client's own place (`HF_HOME`).
    :param instruments: Where its queue is seen.
    :raises RerankingUnavailable: If the model cannot be used; the sentence says what to do.
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
        self._under_way: dict[Future[list[float]], Stop] = {}
        self._changing = Lock()
        self._expected_s = 0.0
        self._closed = False
        watched = instruments or Instruments()
        self._forget_queue = watched.watch_queue("reranking", lambda: len(self._under_way), capacity=MAX_WAITING)

    def scores(self, query: str, passages: Sequence[str], *, timeout_s: float) -> Sequence[float]:
        """The model's raw scores; see `souvenir.reranking.cross_encoder`.

        :raises TimeoutError: If not all are scored in that time, or would hardly be.
        :raises RerankingUnavailable: If the model fails on them.
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
        """Stop the run that is under way, fail the searches that wait, and end the thread."""
        with self._changing:
            self._closed = True
            for stop in self._under_way.values():
                stop.set()
        self._worker.shutdown(cancel_futures=True)
        self._forget_queue()

    def _begun(self, query: str, passages: Sequence[str], stop: Stop, timeout_s: float) -> Future[list[float]]:
        with self._changing:
            if self._closed:
                raise ServiceClosing
            # Alone it is always tried, so that an estimate which is too high does not stay.
            before = len(self._under_way)
            if before >= MAX_WAITING or (before and (before + 1) * self._expected_s > timeout_s):
                raise TimeoutError(f"{before} searches go before this one")
            found = self._worker.submit(self._run, query, passages, stop)
            self._under_way[found] = stop
        found.add_done_callback(self._forget)
        return found

    def _run(self, query: str, passages: Sequence[str], stop: Stop) -> list[float]:
        began = monotonic()
        try:
            return self._encoder.scores(query, passages, stop)
        finally:
            self._note(monotonic() - began, ended=not stop.is_set)

    def _note(self, took_s: float, *, ended: bool) -> None:
        """Let a search count in what one takes; a run that was stopped says only that it takes longer."""
        with self._changing:
            if ended:
                share = NEWEST_SHARE if self._expected_s else 1.0
                self._expected_s += share * (took_s - self._expected_s)
            else:
                self._expected_s = max(self._expected_s, took_s)

    def _forget(self, found: Future[list[float]]) -> None:
        with self._changing:
            del self._under_way[found]


def reranker_of(settings: Settings, instruments: Instruments | None = None) -> OnnxReranker | None:
    """The one that the settings name, loaded; None if they name none. The caller closes it.

    :raises RerankingUnavailable: If it cannot be used; the sentence says what to do.
    """
    if settings.rerank_model is None:
        return None
    return OnnxReranker(
        settings.rerank_model,
        revision=settings.rerank_revision,
        threads=settings.embed_threads,
        instruments=instruments,
    )
