"""The hand-labelled texts and pairs of names in benchmarks/labels/concepts; guidelines.md there describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.labelled import rows
from benchmarks.retrieval.data_sets import entries
from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.spelling import key_of, singular

THING = ConceptKind.PHRASE
"""Labelled as `thing`."""


@dataclass(frozen=True, slots=True)
class LabelledConcept:
    """:param keys: Of its form and of those that are as acceptable."""

    form: str
    kind: ConceptKind
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class LabelledText:
    """:param judged: The kind of mentions that are no labelled concept, by key; None if they are no concept at all."""

    source: str
    id: str
    language: str
    text: str
    concepts: Sequence[LabelledConcept]
    judged: Mapping[str, ConceptKind | None]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two names in one conversation. :param context: Sentences with both."""

    one: str
    other: str
    context: str
    same: bool


def form_key(form: str) -> str:
    """Return the key of a form, with its last word in the singular."""
    *words, last = key_of(form).split() or [""]
    return " ".join([*words, singular(last)])


def read_texts(data: Path | None, *, aside: bool) -> list[LabelledText]:
    """Return the labelled texts; those of data sets that may not be copied only if their folder is given."""
    copies = _texts_of(data) if data is not None else {}
    found = []
    for entry in rows("concepts/texts", aside=aside):
        text = entry.get("text") or copies.get((entry["source"], entry["id"]))
        if text is not None:
            concepts = [_concept(one) for one in entry["concepts"]]
            judged = {form_key(form): kind and _kind(kind) for form, kind in entry.get("judged", {}).items()}
            found.append(LabelledText(entry["source"], entry["id"], entry["language"], text, concepts, judged))
    return found


def read_pairs(*, aside: bool) -> list[Pair]:
    return [Pair(row["one"], row["other"], row["context"], row["same"]) for row in rows("concepts/pairs", aside=aside)]


def _concept(entry: Mapping[str, Any]) -> LabelledConcept:
    forms = (entry["form"], *entry.get("also", ()))
    return LabelledConcept(entry["form"], _kind(entry["type"]), frozenset(map(form_key, forms)))


def _kind(name: str) -> ConceptKind:
    return THING if name == "thing" else ConceptKind(name)


def _texts_of(data: Path) -> dict[tuple[str, str], str]:
    """Return the texts of the sets by name and id, as they are labelled: without the speaker and image captions."""
    found = {}
    for name in ("locomo_turns", "beam_chat"):
        path = data / name / "docs.jsonl"
        for entry in entries(path) if path.exists() else ():
            text = entry["text"].removeprefix(f"{entry['meta'].get('speaker') or ''}: ")
            found[name, entry["id"]] = text.split(" [image")[0]
    return found
