"""Rerankers that are closed at the end of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from souvenir.models.reranking.onnx_reranker import OnnxReranker

Open = Callable[..., OnnxReranker]


@pytest.fixture
def open_reranker() -> Iterator[Open]:
    """Opens the model of a folder."""
    with ExitStack() as opened:

        def open_it(folder: Path, **options: Any) -> OnnxReranker:
            return opened.enter_context(closing(OnnxReranker(str(folder), **options)))

        yield open_it
