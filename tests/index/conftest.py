"""Fixtures of the tests of indexes."""

from __future__ import annotations

import pytest

from souvenir.index import registry


@pytest.fixture
def unsampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that count the analysed texts: the cross-check of a loaded snapshot analyses none."""
    monkeypatch.setattr(registry, "sample_of", lambda *_: [])
