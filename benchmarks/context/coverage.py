"""How much of the labelled evidence stands in the text of a context, by token budget.

A message or memory counts as shown if its line is in the text, whatever part of it the line has. The text alone is
read, as a model reads it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.retrieval.data_sets import DataSet, Document, agent_name, entries
from souvenir.conversations.context import DOUBTS, Context, ContextQuery, Contexts
from souvenir.core.types import Scope

OFF_TOPIC = "off_topic"
ALL = "all"

MIN_CUT_CHARS = 40
"""Length of the shortest line that counts as a part of a longer text."""

_LINE = re.compile(r"^(?:- \d{4}-\d{2}-\d{2}: |\*\*(?:\\.|[^\\*])+\*\*: )", re.MULTILINE)
_END = re.compile(r"\n+(?:…|</recalled_memory\b.*|#{2,3} .*)(?=\n|\Z)")
_WORD = re.compile(r"\w+")


class ShownLines:
    """The lines of a context, by their words: what the service escapes is no word."""

    def __init__(self, text: str) -> None:
        bodies = [_END.split(line)[0] for line in _LINE.split(text)[1:]]
        self._whole = {_words(body) for body in bodies}
        self._cut = [words for body in bodies if "…" in body and len(words := _words(body)) >= MIN_CUT_CHARS]

    def __contains__(self, text: str) -> bool:
        words = _words(text)
        return words in self._whole or any(cut in words for cut in self._cut)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of one set at one budget.

    :param shares: The mean share of the relevant documents that are shown, of all questions and by category.
    :param tokens: The mean length of a text.
    """

    shares: Mapping[str, float]
    tokens: float


def coverage(contexts: Contexts, data_set: DataSet, max_tokens: int) -> Coverage:
    texts = {document.id: _said(document.text, document.speaker) for document in _documents(data_set)}
    shares: defaultdict[str, list[float]] = defaultdict(list)
    tokens: list[int] = []
    for question in data_set.questions:
        context = built(contexts, question.scope, question.text, max_tokens)
        shown = ShownLines(context.text)
        share = fmean(texts[id_] in shown for id_ in question.relevant)
        for category in (ALL, question.category):
            shares[category].append(share)
        tokens.append(context.tokens)
    return Coverage({category: fmean(found) for category, found in shares.items()}, fmean(tokens))


def empty_or_doubted(contexts: Contexts, folder: Path, max_tokens: int) -> tuple[float, float]:
    """The shares of off-topic questions whose context is empty, and whose context is empty or says so."""
    asked = [entry for entry in entries(folder / "queries.jsonl") if entry["category"] == OFF_TOPIC]
    texts = [built(contexts, agent_name(one["scope"]), one["text"], max_tokens).text for one in asked]
    doubts = tuple(DOUBTS.values())
    return fmean(not text for text in texts), fmean(not text or any(one in text for one in doubts) for text in texts)


def built(contexts: Contexts, scope: str, text: str, max_tokens: int) -> Context:
    """:raises RuntimeError: If a part is missing."""
    context = contexts.build(Scope(scope), ContextQuery(text, max_tokens=max_tokens, agent_may_be_new=True))
    if context.degraded:
        raise RuntimeError(f"{scope}: the context is not whole: {', '.join(context.degraded)}")
    return context


def _documents(data_set: DataSet) -> Iterator[Document]:
    for documents in data_set.documents.values():
        yield from documents


def _said(text: str, speaker: str | None) -> str:
    return text.removeprefix(f"{speaker}: ")


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text))
