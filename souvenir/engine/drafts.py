"""Passages of memories with their facts, from one batch of embeddings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from souvenir.passages import PreparedPassage
from souvenir.store.transaction import FactsNotPrepared
from souvenir.types import Memory, MemoryDraft, MemoryPatch

T = TypeVar("T")

Prepare: TypeAlias = Callable[[Sequence[str]], Sequence[Sequence[PreparedPassage]]]


def prepared_drafts(prepare: Prepare, drafts: Sequence[MemoryDraft]) -> list[list[PreparedPassage]]:
    """The passages of each draft: its text's, then its facts' but for one that says just what the text says."""
    new_facts = [_to_prepare(draft.facts, draft.text) for draft in drafts]
    texts = [text for draft, facts in zip(drafts, new_facts, strict=True) for text in (draft.text, *facts)]
    prepared = iter(prepare(texts))
    return [[*next(prepared), *_of_facts(facts, prepared)] for facts in new_facts]


def prepared_patches(
    prepare: Prepare, patches: Sequence[MemoryPatch], present: Sequence[Memory]
) -> list[list[PreparedPassage]]:
    """What each patch says anew of its memory as it is; for a write that makes sure that it still is so."""
    # A fact that says just what the text says has no passages that could stay.
    known = [{fact.text for fact in memory.facts if fact.text != memory.text} for memory in present]
    new_facts = [_to_prepare(patch.facts or (), None, of_it) for patch, of_it in zip(patches, known, strict=True)]
    new_texts = [() if patch.text is None else (patch.text,) for patch in patches]
    texts = [text for of_each in zip(new_texts, new_facts, strict=True) for part in of_each for text in part]
    prepared = iter(prepare(texts) if texts else ())
    return [
        [*(one for _ in of_text for one in next(prepared)), *_of_facts(facts, prepared)]
        for of_text, facts in zip(new_texts, new_facts, strict=True)
    ]


def write_patch(
    prepare: Prepare,
    patch: MemoryPatch,
    present: Memory | None,
    write: Callable[[Sequence[PreparedPassage]], T],
) -> T:
    """Prepare what a patch says anew of a memory, and write it.

    :param present: The memory as it was just now: facts that stay need nothing. Should one have gone since, all are
        prepared.
    """
    known = () if present is None else [fact.text for fact in present.facts]
    try:
        return write(_prepared_patch(prepare, patch, known))
    except FactsNotPrepared:
        return write(_prepared_patch(prepare, patch, ()))


def _prepared_patch(prepare: Prepare, patch: MemoryPatch, known: Collection[str]) -> list[PreparedPassage]:
    facts = _to_prepare(patch.facts or (), None, known)
    texts = [*facts] if patch.text is None else [patch.text, *facts]
    prepared = iter(prepare(texts) if texts else ())
    return [*(() if patch.text is None else next(prepared)), *_of_facts(facts, prepared)]


def _to_prepare(facts: Sequence[str], text: str | None, known: Collection[str] = ()) -> list[str]:
    return [fact for fact in dict.fromkeys(facts) if fact != text and fact not in known]


def _of_facts(facts: Sequence[str], prepared: Iterator[Sequence[PreparedPassage]]) -> Iterator[PreparedPassage]:
    for fact in facts:
        yield from (replace(one, fact=fact) for one in next(prepared))
