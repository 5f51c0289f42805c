"""A substitute model that knows the reference: it measures the pipeline around a model, not a model.

It proposes every reference fact whose evidence it is shown, with the evidence as its quote, and decides as the labels
say: what it proposed before is known, the second statement of an update replaces the first, that of a contradiction
conflicts with it, everything else is new. What is then missing was lost on the way. With noise, a share of its answers
breaks off, a share of its facts is left out, and a share of its decisions names a memory that it was not shown; which
ones depends on the seed and the question only, so that a run can be repeated. It speaks OpenAI's chat completions; its
tokens are characters divided by four.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.extraction.data_sets import Conversation, Pair, PairKind, Paragraph, Statement
from benchmarks.extraction.replay import Asked, Reply
from benchmarks.extraction.types import CATEGORIES
from souvenir.core.ledger import Category, Verdict
from souvenir.index.analyser import Analyser
from souvenir.learning.questions import DECIDE

NAME = "oracle"
CHARS_PER_TOKEN = 4
MAX_STATEMENT_CHARS = 240
"""Fewer than the service shows of a memory."""

_NUMBERED = re.compile(r"^\[(\d+)\] (?:\([^()]*\)|\d{4}-\d{2}-\d{2}): (.+)$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_VERDICTS = {PairKind.UPDATE: Verdict.UPDATE, PairKind.CONTRADICTION: Verdict.CONFLICT}


@dataclass(frozen=True, slots=True)
class Noise:
    """Shares in [0, 1]: of answers that break off, of facts left out, of decisions with a number that was not shown."""

    malformed: float = 0.0
    missing: float = 0.0
    wrong_numbers: float = 0.0


@dataclass(frozen=True, slots=True)
class Known:
    """A statement of the reference.

    :param evidence: The texts that say it.
    :param corrects: The statement that it replaces or contradicts, as `kind` says.
    """

    statement: str
    evidence: Sequence[str]
    category: Category = Category.DETAIL
    corrects: str | None = None
    kind: PairKind | None = None


class Oracle:
    """Safe to call from many threads."""

    def __init__(self, known: Sequence[Known], noise: Noise, seed: int) -> None:
        self._known = [(one, [_single_blanks(text) for text in one.evidence]) for one in known]
        self._corrects = {_single_blanks(one.statement): one for one in known if one.corrects is not None}
        self._noise = noise
        self._seed = seed

    def answer(self, asked: Asked) -> Reply:
        messages = asked.body["messages"]
        question = next(message["content"] for message in messages if message["role"] == "user")
        chance = Random(f"{self._seed} {asked.digest}")
        answer = self._decisions(question, chance) if asked.prompt == DECIDE else self._proposals(question, chance)
        content = json.dumps(answer, ensure_ascii=False)
        if chance.random() < self._noise.malformed:
            content = content[: len(content) // 2]
        return Reply(200, _completion(content, sum(len(message["content"]) for message in messages)))

    def _proposals(self, question: str, chance: Random) -> dict[str, Any]:
        shown = _single_blanks(question)
        facts = [
            {"category": one.category.value, "text": one.statement, "quote": one.evidence[0], "when": None}
            for one, evidence in self._known
            if all(text in shown for text in evidence) and chance.random() >= self._noise.missing
        ]
        return {"facts": facts}

    def _decisions(self, question: str, chance: Random) -> dict[str, Any]:
        facts, memories = numbered(question, "facts"), numbered(question, "memories")
        return {"decisions": [self._decision(number, fact, memories, chance) for number, fact in facts.items()]}

    def _decision(self, number: int, fact: str, memories: Mapping[int, str], chance: Random) -> dict[str, Any]:
        verdict, memory = Verdict.ADD, None
        known = self._corrects.get(fact)
        for shown, text in memories.items():
            if text == fact:
                verdict, memory = Verdict.NOOP, shown
            elif known is not None and known.kind is not None and text == _single_blanks(known.corrects or ""):
                verdict, memory = _VERDICTS[known.kind], shown
                break
        if chance.random() < self._noise.wrong_numbers:
            verdict, memory = Verdict.UPDATE, len(memories) + 1
        return {"fact": number, "verdict": verdict.value, "memory": memory, "text": None, "reason": "as labelled"}


def numbered(question: str, name: str) -> dict[int, str]:
    """The texts of a frame by their numbers; what stands before them (a date, a category) is left out."""
    _, _, behind = question.partition(f"<{name}>")
    framed, _, _ = behind.partition(f"</{name}>")
    return {int(number): _single_blanks(text) for number, text in _NUMBERED.findall(framed)}


def known_of(
    conversations: Sequence[Conversation], pairs: Sequence[Pair], paragraphs: Sequence[Paragraph]
) -> list[Known]:
    """What the labels say, as statements with their evidence. Of a pair's message its sentence nearest the question."""
    return [*_of_conversations(conversations), *_of_pairs(pairs), *_of_paragraphs(paragraphs)]


def _of_conversations(conversations: Sequence[Conversation]) -> Iterator[Known]:
    for session in (session for conversation in conversations for session in conversation.sessions):
        turns = {turn.id: turn.text for turn in session.turns}
        for fact in session.facts:
            if evidence := [turns[id_] for id_ in sorted(fact.evidence) if id_ in turns]:
                yield Known(fact.text, evidence)


def _of_pairs(pairs: Sequence[Pair]) -> Iterator[Known]:
    analyser = Analyser()
    for pair in pairs:
        wanted = frozenset(analyser.terms(f"{pair.question} {pair.answer}"))
        older, newer = (_nearest_sentence(side, wanted, analyser) for side in (pair.first, pair.second))
        yield Known(older, [older])
        yield Known(newer, [newer], corrects=older, kind=pair.kind)


def _of_paragraphs(paragraphs: Sequence[Paragraph]) -> Iterator[Known]:
    for paragraph in paragraphs:
        for expected in paragraph.expected:
            yield Known(expected.text, [paragraph.text], Category(min(CATEGORIES[expected.type])))


def _nearest_sentence(statement: Statement, wanted: frozenset[str], analyser: Analyser) -> str:
    """The first of those that share the most terms with what is asked."""
    sentences = [sentence for text in statement.texts for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    nearest = max(sentences, key=lambda sentence: len(wanted & frozenset(analyser.terms(sentence))))
    return _single_blanks(nearest)[:MAX_STATEMENT_CHARS].strip()


def _single_blanks(text: str) -> str:
    return " ".join(text.split())


def _completion(content: str, question_chars: int) -> dict[str, Any]:
    usage = {
        "prompt_tokens": question_chars // CHARS_PER_TOKEN,
        "completion_tokens": len(content) // CHARS_PER_TOKEN,
        "total_tokens": (question_chars + len(content)) // CHARS_PER_TOKEN,
    }
    message = {"role": "assistant", "content": content, "refusal": None}
    return {
        "id": "chatcmpl-oracle",
        "object": "chat.completion",
        "created": 0,
        "model": NAME,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": usage,
    }
