"""Recognisers of personal data: ours, and Presidio's that need no language model.

Presidio is no requirement of this project. Where it is installed (`pip install presidio-analyzer`), it takes part.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

from benchmarks.privacy.data_sets import ADDRESS, CARD, EMAIL, IBAN, IP, PHONE, SECRET, SSN, URL
from souvenir.privacy.rules import PrivacyRules

KIND_OF_RULE = {
    "email": EMAIL,
    "phone": PHONE,
    "credit_card": CARD,
    "iban": IBAN,
    "ssn": SSN,
    "ip_address": IP,
    "address": ADDRESS,
    "url_credentials": URL,
}
"""Of the shipped rules; every other one is for keys and passwords."""

RECOGNIZERS = {
    "EmailRecognizer": EMAIL,
    "PhoneRecognizer": PHONE,
    "CreditCardRecognizer": CARD,
    "IbanRecognizer": IBAN,
    "UsSsnRecognizer": SSN,
    "IpRecognizer": IP,
}


class Finding(NamedTuple):
    start: int
    end: int
    kind: str


class Finder(Protocol):
    @property
    def name(self) -> str: ...

    def find(self, text: str) -> list[Finding]: ...


class Ours:
    name = "ours"

    def __init__(self, rules: PrivacyRules) -> None:
        self._rules = rules

    def find(self, text: str) -> list[Finding]:
        return [Finding(span.start, span.end, KIND_OF_RULE.get(span.kind, SECRET)) for span in self._rules.spans(text)]


class Presidio:
    """Each recogniser by itself, as it comes, with every score that it gives: no model, and no words around."""

    name = "Presidio"

    def __init__(self) -> None:
        module = import_module("presidio_analyzer.predefined_recognizers")
        self._recognizers: list[tuple[Any, str]] = [
            (getattr(module, name)(), kind) for name, kind in RECOGNIZERS.items()
        ]

    def find(self, text: str) -> list[Finding]:
        return [
            Finding(result.start, result.end, kind)
            for recognizer, kind in self._recognizers
            for result in recognizer.analyze(text, recognizer.supported_entities, None)
        ]


def finders(rules: PrivacyRules) -> list[Finder]:
    ours: list[Finder] = [Ours(rules)]
    return [*ours, Presidio()] if find_spec("presidio_analyzer") else ours
