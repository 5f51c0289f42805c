"""Fixtures of `tests/jobs`."""

from __future__ import annotations

from tests.jobs.conftest import open_jobs

__all__ = ["open_jobs"]
