"""Labelled conversations as texts, and the concepts of each."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from souvenir.core.types import ConceptKind, Mentioned
from souvenir.knowledge.concept_ranking import rarity
from souvenir.knowledge.recognition.extraction import mentioned

SETS = ("locomo_turns", "beam_chat")
OTHERS = ("cranfield", "med")
"""No conversations, and looked at by nobody while the rules were made; read as one conversation each."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """`asked` is what people ask about it, questions with their answers."""

    name: str
    texts: Sequence[str]
    asked: Sequence[str]


@dataclass(frozen=True, slots=True)
class Concept:
    """`owners` counts texts; `found` has what each of them calls it, by the text's place."""

    key: str
    kind: ConceptKind
    score: float
    found: Mapping[int, Mentioned]

    @property
    def owners(self) -> int:
        return len(self.found)


def read_conversations(data: Path, chosen: Sequence[str]) -> list[Conversation]:
    return [
        conversation
        for name in chosen
        if (data / name / "docs.jsonl").exists()
        for conversation in _conversations(data / name, name)
    ]


def _conversations(folder: Path, name: str) -> list[Conversation]:
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for entry in _entries(folder / "docs.jsonl"):
        speaker = entry["meta"].get("speaker") or ""
        texts[entry["meta"]["scope"]].append(entry["text"].removeprefix(f"{speaker}: "))
    asked: defaultdict[str, list[str]] = defaultdict(list)
    for entry in _entries(folder / "queries.jsonl"):
        asked[entry["scope"]].append(f"{entry['text']}\n{entry['meta'].get('answer', '')}")
    return [Conversation(f"{name}: {scope}", texts[scope], asked[scope]) for scope in texts]


def _entries(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def concepts_of(texts: Sequence[str]) -> list[Concept]:
    """By owners times rarity, best first; ties by key."""
    found: defaultdict[str, dict[int, Mentioned]] = defaultdict(dict)
    for place, text in enumerate(texts):
        for mention in mentioned(text):
            found[mention.key][place] = mention
    concepts = [
        Concept(
            key,
            Counter(mention.kind for mention in of_key.values()).most_common(1)[0][0],
            len(of_key) * rarity(len(of_key), len(texts)),
            of_key,
        )
        for key, of_key in found.items()
    ]
    return sorted(concepts, key=lambda concept: (-concept.score, concept.key))
