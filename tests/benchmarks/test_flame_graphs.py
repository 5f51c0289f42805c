"""The samples of a flame graph: shares of files, and the page that is written."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest

from benchmarks import flame_graphs


def busy() -> None:
    until = perf_counter() + 0.005
    while perf_counter() < until:
        pass


def test_the_time_of_an_operation_is_that_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flame_graphs, "RESULTS_DIR", tmp_path)
    session = flame_graphs.sampled(busy, 20)
    shares = flame_graphs.shares_of(session)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["tests/benchmarks/test_flame_graphs.py"] > 0.9
    page = flame_graphs.write(session, "busy")
    assert "test_flame_graphs.py" in page.read_text(encoding="utf-8")
