"""Fixtures of the tests of indexes."""

from __future__ import annotations

import pytest

from souvenir.index import cross_check


@pytest.fixture
def unsampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that count the analysed texts: the cross-check of a loaded snapshot analyses none."""
    monkeypatch.setattr(cross_check, "SAMPLED_ROWS", 0)
    monkeypatch.setattr(cross_check, "NEWEST_ROWS", 0)
