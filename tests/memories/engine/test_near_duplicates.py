"""Adding near duplicates."""

from __future__ import annotations

import pytest

from souvenir.core.types import AddAction, MemoryDraft, OnDuplicate, SkipReason
from souvenir.memories.engine import MemoryEngine
from tests.memories.engine.verbs import DEFAULT, add, memory, stored, texts

# Twenty words; with one more of its own, two texts have the cosine 20/21, which is a duplicate and not identical.
STEM = " ".join(f"common{number}" for number in range(20))

NEW_TEXTS = {"other": "an entirely different statement", "near": STEM + " changed", "same": STEM + " first"}


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize(
    ("mode", "text", "action", "reason"),
    [
        (None, "same", AddAction.ADDED, None),
        (OnDuplicate.ADD, "same", AddAction.ADDED, None),
        (OnDuplicate.SKIP, "other", AddAction.ADDED, None),
        (OnDuplicate.SKIP, "near", AddAction.SKIPPED, SkipReason.DUPLICATE),
        (OnDuplicate.SKIP, "same", AddAction.SKIPPED, SkipReason.IDENTICAL),
        (OnDuplicate.SUPERSEDE, "other", AddAction.ADDED, None),
        (OnDuplicate.SUPERSEDE, "near", AddAction.SUPERSEDED, None),
        (OnDuplicate.SUPERSEDE, "same", AddAction.SKIPPED, SkipReason.IDENTICAL),
    ],
)
def test_an_add_of_a_near_duplicate_follows_on_duplicate(
    engine: MemoryEngine,
    mode: OnDuplicate | None,
    text: str,
    action: AddAction,
    reason: SkipReason | None,
    pinned: bool,
):
    if pinned and action is AddAction.SUPERSEDED:
        action, reason = AddAction.SKIPPED, SkipReason.PINNED_BLOCKER
    held = add(engine, STEM + " first", "elsewhere", pinned=pinned)
    outcome = engine.add(DEFAULT, MemoryDraft(NEW_TEXTS[text], "notes"), on_duplicate=mode)
    assert (outcome.action, outcome.reason) == (action, reason)
    living = [found.text for found in stored(engine) if not found.archived]
    if action is AddAction.ADDED:
        assert (outcome.blocker, outcome.similarity) == (None, None)
        assert living == [STEM + " first", NEW_TEXTS[text]]
        return
    assert outcome.blocker is not None
    assert outcome.blocker.id == held
    assert outcome.similarity == pytest.approx(1.0 if text == "same" else 20 / 21, abs=1e-5)
    if action is AddAction.SUPERSEDED:
        assert outcome.id is not None
        assert living == [NEW_TEXTS[text]]
        assert memory(engine, outcome.id).previous_text == STEM + " first"
        assert memory(engine, held).superseded_by == outcome.id
    else:
        assert outcome.id is None
        assert living == [STEM + " first"]
    assert list(engine.check()) == []


def test_archived_memories_are_not_duplicates(engine: MemoryEngine):
    add(engine, STEM, archived=True)
    assert engine.add(DEFAULT, MemoryDraft(STEM, "notes"), on_duplicate=OnDuplicate.SKIP).action is AddAction.ADDED


def test_a_long_text_collides_only_with_a_memory_that_contains_all_of_it(engine: MemoryEngine):
    """The blocker equals the first of two passages; then the text itself is stored."""
    half, other = (" ".join(f"{word}{number}." for number in range(100)) for word in ("left", "right"))
    add(engine, half)
    draft = MemoryDraft(f"{half} {other}", "notes")
    assert engine.add(DEFAULT, draft, on_duplicate=OnDuplicate.SKIP).action is AddAction.ADDED
    assert engine.add(DEFAULT, draft, on_duplicate=OnDuplicate.SKIP).reason is SkipReason.IDENTICAL


def test_a_batch_is_compared_with_stored_memories_and_not_with_itself(engine: MemoryEngine):
    add(engine, STEM)
    drafts = [MemoryDraft(text, "notes") for text in ("new statement", STEM + " x", "new statement")]
    ids = engine.add_batch(DEFAULT, drafts, deduplicate=True)
    assert texts(engine) == [STEM, "new statement", "new statement"]
    assert [found.id for found in stored(engine)][1:] == ids
    assert engine.add_batch(DEFAULT, drafts, deduplicate=True) == []
    assert engine.add_batch(DEFAULT, [], deduplicate=True) == []


@pytest.mark.parametrize(("text", "action"), [("A B c!", AddAction.SKIPPED), ("c b a", AddAction.SUPERSEDED)])
def test_only_the_same_words_in_the_same_order_are_identical(engine: MemoryEngine, text: str, action: AddAction):
    """A corrected number has a cosine as high as a repeated text, and must not be dropped."""
    engine.add(DEFAULT, MemoryDraft("a b c", "s"))
    assert engine.add(DEFAULT, MemoryDraft(text, "s"), on_duplicate=OnDuplicate.SUPERSEDE).action is action
