"""Texts with labelled spans, read from files with one per line. docs/benchmarks.md describes them.

`KIND_OF_LABEL` says which labels are measured and as what. All others (people, organisations, places, dates, ages,
titles, and numbers without a form of their own) are not looked for by patterns; what is found in them is no error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EMAIL, PHONE, CARD, IBAN, SSN, IP = "e-mail", "phone", "card", "IBAN", "SSN", "IP"
ADDRESS, URL, SECRET = "postal address", "URL with credentials", "keys and passwords"
KINDS = (EMAIL, PHONE, CARD, IBAN, SSN, IP, ADDRESS, URL, SECRET)

KIND_OF_LABEL = {
    "EMAIL": EMAIL,
    "EMAIL_ADDRESS": EMAIL,
    "PHONE": PHONE,
    "PHONE_NUMBER": PHONE,
    "CREDIT_CARD": CARD,
    "IBAN": IBAN,
    "IBAN_CODE": IBAN,
    "SSN": SSN,
    "US_SSN": SSN,
    "IP_ADDRESS": IP,
    "STREET_ADDRESS": ADDRESS,
    "URL_CREDENTIALS": URL,
    "KEY": SECRET,
    "PASSWORD": SECRET,
}


@dataclass(frozen=True, slots=True)
class Label:
    """`kind` is None for personal data that is not measured."""

    start: int
    end: int
    kind: str | None


@dataclass(frozen=True, slots=True)
class LabelledText:
    text: str
    labels: Sequence[Label]


def read_texts(path: Path) -> list[LabelledText]:
    """Every line of a file of JSON objects with a text and spans."""
    return [
        LabelledText(
            entry["text"],
            [Label(span["start"], span["end"], KIND_OF_LABEL.get(span["type"])) for span in entry["spans"]],
        )
        for entry in _entries(path)
    ]


def _entries(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())
