"""OnnxReranker with tiny models of every supported kind, with unsupported ones, and with deadlines."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from souvenir.core.errors import RerankingUnavailable, ServiceClosing
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments
from souvenir.models.reranking.onnx_reranker import MAX_WAITING, OnnxReranker, reranker_of
from tests.hub_server import COMMIT, said_by_another_process, serving
from tests.models.reranking.conftest import Open
from tests.models.reranking.models import WORDS, write_cross_encoder

PATIENCE_S = 60.0
SLOW = "slow fish"


def until(happened: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not happened():
        assert monotonic() < deadline, "it did not happen in time"


# --- scores --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_score_is_the_only_output_or_the_difference_of_two_classes(open_reranker: Open, tmp_path: Path, outputs):
    reranker = open_reranker(write_cross_encoder(tmp_path, outputs=outputs))
    passages = ["the red fox sleeps", "a blue whale swims", "fox fox fox fox", ""]
    assert reranker.scores("what does the fox", passages, timeout_s=PATIENCE_S) == [0.0, -2.0, 2.0, -2.0]


def test_batched_passages_have_the_same_scores_as_single_ones(open_reranker: Open, tmp_path: Path):
    reranker = open_reranker(write_cross_encoder(tmp_path))
    passages = [" ".join(WORDS[4 + (place + step) % 8] for step in range(place * 7 % 60)) for place in range(50)]
    together = reranker.scores("red fox", passages, timeout_s=PATIENCE_S)
    alone = [reranker.scores("red fox", [passage], timeout_s=PATIENCE_S)[0] for passage in passages]
    assert together == alone
    assert len(set(together)) > 3


def test_a_passage_is_truncated_to_the_model_s_window(open_reranker: Open, tmp_path: Path):
    reranker = open_reranker(write_cross_encoder(tmp_path, {"tokenizer_config.json": {"model_max_length": 12}}))
    # Of 12 places 3 are special and 2 the question's.
    passages = ["a " * 6 + "fox", "a " * 7 + "fox"]
    assert reranker.scores("the fox", passages, timeout_s=PATIENCE_S) == [-1.0, -2.0]


def test_a_long_query_leaves_half_of_the_window_to_the_passage(open_reranker: Open, tmp_path: Path):
    reranker = open_reranker(write_cross_encoder(tmp_path, {"tokenizer_config.json": {"model_max_length": 13}}))
    question = "fox " * 5 + "whale " * 500
    assert reranker.scores(question, ["fox", "whale", "a a a a fox"], timeout_s=PATIENCE_S) == [3.0, -2.0, 3.0]


def test_an_unnecessarily_long_window_is_not_used(open_reranker: Open, tmp_path: Path):
    folder = write_cross_encoder(tmp_path, {"tokenizer_config.json": {"model_max_length": 8192}}, table=512)
    assert open_reranker(folder).scores("fox", ["a " * 9_000 + "fox"], timeout_s=PATIENCE_S) == [-2.0]


def test_a_failed_run_fails_only_its_own_call(open_reranker: Open, tmp_path: Path):
    reranker = open_reranker(write_cross_encoder(tmp_path))
    with pytest.raises(RerankingUnavailable, match="failed on these passages"):
        reranker.scores("fox", ["fox", "broken fox"], timeout_s=PATIENCE_S)
    assert reranker.scores("fox", ["fox"], timeout_s=PATIENCE_S) == [-1.0]


# --- in a hurry ----------------------------------------------------------------------------------------------------


def test_a_late_run_is_stopped_and_the_next_one_is_quick(open_reranker: Open, tmp_path: Path):
    reranker = open_reranker(write_cross_encoder(tmp_path))
    for _ in range(2):
        with pytest.raises(TimeoutError):
            reranker.scores("fox", ["fox", SLOW], timeout_s=0.05)
        assert reranker.scores("fox", ["fox"], timeout_s=PATIENCE_S) == [-1.0]


def test_a_call_that_waits_too_long_times_out(open_reranker: Open, tmp_path: Path):
    instruments = Instruments()
    reranker = open_reranker(write_cross_encoder(tmp_path), instruments=instruments)
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(reranker.scores, "fox", [SLOW], timeout_s=PATIENCE_S)
        until(lambda: depth(instruments) == 1)
        with pytest.raises(TimeoutError):
            reranker.scores("fox", ["fox"], timeout_s=0.05)
        assert not slow.done()
        reranker.close()
        assert isinstance(slow.exception(PATIENCE_S), RerankingUnavailable)


def test_a_full_queue_refuses_calls_and_closing_fails_waiting_ones(open_reranker: Open, tmp_path):
    instruments = Instruments()
    reranker = open_reranker(write_cross_encoder(tmp_path), instruments=instruments)
    with ThreadPoolExecutor(MAX_WAITING) as threads:
        waiting: list[Future[Any]] = [
            threads.submit(reranker.scores, "fox", [SLOW], timeout_s=PATIENCE_S) for _ in range(MAX_WAITING)
        ]
        until(lambda: depth(instruments) == MAX_WAITING)
        with pytest.raises(TimeoutError, match=f"{MAX_WAITING} searches go before this one"):
            reranker.scores("fox", ["fox"], timeout_s=PATIENCE_S)
        reranker.close()
        failures = [type(one.exception(PATIENCE_S)) for one in waiting]
    assert failures.count(ServiceClosing) == MAX_WAITING - 1
    assert failures.count(RerankingUnavailable) == 1
    with pytest.raises(ServiceClosing):
        reranker.scores("fox", ["fox"], timeout_s=PATIENCE_S)


def test_a_call_without_enough_time_is_refused_unless_the_model_is_idle(open_reranker: Open, tmp_path: Path):
    instruments = Instruments()
    reranker = open_reranker(write_cross_encoder(tmp_path), instruments=instruments)
    with pytest.raises(TimeoutError):
        reranker.scores("fox", [SLOW], timeout_s=1.5)
    until(lambda: depth(instruments) == 0)
    # Now a search is taken to take 1.5 s; the model is idle, so it is tried all the same.
    assert reranker.scores("fox", ["fox"], timeout_s=1.0) == [-1.0]
    with ThreadPoolExecutor(1) as threads:
        threads.submit(reranker.scores, "fox", [SLOW], timeout_s=PATIENCE_S)
        until(lambda: depth(instruments) == 1)
        with pytest.raises(TimeoutError, match="1 searches go before this one"):
            reranker.scores("fox", ["fox"], timeout_s=1.0)
        reranker.close()


def depth(instruments: Instruments) -> float | None:
    return instruments.registry.get_sample_value("souvenir_queue_depth", {"queue": "reranking"})


# --- models that cannot be used ------------------------------------------------------------------------------------


def test_a_missing_folder_names_the_setting_to_correct(tmp_path: Path):
    with pytest.raises(RerankingUnavailable, match=r"cross-encoder .* neither a folder .* correct RERANK_MODEL"):
        OnnxReranker(str(tmp_path / "nowhere"))


def test_a_folder_without_an_onnx_file_names_the_expected_files(tmp_path: Path):
    with pytest.raises(RerankingUnavailable, match=re.escape("onnx/model.onnx")):
        OnnxReranker(str(tmp_path))


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "tokenizer_config.json"])
def test_the_error_of_a_damaged_file_names_it(tmp_path: Path, name: str):
    folder = write_cross_encoder(tmp_path)
    (folder / name).write_bytes(b"\0damaged")
    with pytest.raises(RerankingUnavailable, match=re.escape(name)):
        OnnxReranker(str(folder))


def test_a_model_with_three_classes_is_refused(tmp_path: Path):
    with pytest.raises(RerankingUnavailable, match="says 3 numbers of a pair"):
        OnnxReranker(str(write_cross_encoder(tmp_path, outputs=3)))


def test_a_model_with_fewer_positions_than_declared_is_refused_at_the_start(tmp_path: Path):
    with pytest.raises(RerankingUnavailable, match="fails when it runs"):
        OnnxReranker(str(write_cross_encoder(tmp_path, table=100)))


# --- Hugging Face, settings ----------------------------------------------------------------------------------------


def test_a_hugging_face_id_is_downloaded_once(tmp_path: Path):
    folder = write_cross_encoder(tmp_path / "hub", onnx_name="onnx/model.onnx")
    script = (
        "from souvenir.models.reranking.onnx_reranker import reranker_of\n"
        "from souvenir.core.settings import Settings\n"
        "r = reranker_of(Settings(rerank_model='org/small', rerank_revision='v1'))\n"
        "print(r.scores('the fox', ['the red fox'], timeout_s=60))\n"
        "r.close()"
    )
    with pytest.MonkeyPatch.context() as patch, serving(folder) as hub:
        patch.setenv("HF_HOME", str(tmp_path / "cache"))
        assert said_by_another_process(script, hub.url) == "[0.0]"
        assert f"/org/small/resolve/{COMMIT}/onnx/model.onnx" in hub.asked
        hub.asked.clear()
        assert said_by_another_process(script, hub.url) == "[0.0]"
        assert hub.asked == []


def test_a_failed_download_is_reported(tmp_path: Path):
    with pytest.raises(RerankingUnavailable, match=r"at revision 'v2'; correct RERANK_MODEL or RERANK_REVISION"):
        OnnxReranker("org/elsewhere", revision="v2", cache_dir=tmp_path)


def test_without_the_setting_there_is_no_cross_encoder():
    assert reranker_of(Settings()) is None
