"""The lines of a context, as the benchmark reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from benchmarks.context.coverage import ShownLines
from souvenir.conversations.context_text import Layout, excerpts, shortened, volatile_tail
from souvenir.core.types import Memory
from tests.conversations.test_context_text import turn

MOMENT = datetime(2025, 3, 30, tzinfo=UTC)


def test_whole_and_cut_texts_are_recognised_and_no_others():
    long = "The permit of the loading dock is **valid**. " * 40
    said = [turn(0, "# Yes!"), turn(2, long, speaker="Ann *B*"), turn(5, "two\nlines", session=2)]
    kept = [Memory(1, "Alice leads billing.\nSince May.", "notes", MOMENT, MOMENT, {})]
    layout = Layout(lambda text: shortened(text, 100))
    shown = ShownLines(volatile_tail(kept, excerpts(said), follows=False, layout=layout, note="A note.", token="ab"))
    assert all(text in shown for text in ("# Yes!", long, "two\nlines", "Alice leads billing.\nSince May."))
    assert not any(
        text in shown for text in ("Yes, and more", "Alice leads billing.", "lines", "The permit", "A note.")
    )
