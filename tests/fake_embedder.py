"""The embedder of most tests, which the benchmarks of faults use too."""

from __future__ import annotations

from benchmarks.fake_embedder import FakeEmbedder, FakeTokenEmbedder, fake_of

__all__ = ["FakeEmbedder", "FakeTokenEmbedder", "fake_of"]
