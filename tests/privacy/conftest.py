"""The shipped rules, loaded once, and a way to load others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from souvenir.core.settings import Settings
from souvenir.privacy.rules import PrivacyRules

LoadRules = Callable[[str], PrivacyRules]


@pytest.fixture(scope="session")
def rules() -> PrivacyRules:
    return PrivacyRules.load(Settings().privacy_rules_path)


@pytest.fixture
def load_rules(tmp_path: Path) -> LoadRules:
    def load(text: str) -> PrivacyRules:
        path = tmp_path / "rules.yaml"
        path.write_text(text, encoding="utf-8")
        return PrivacyRules.load(path)

    return load


@pytest.fixture(scope="session")
def found_in(rules: PrivacyRules) -> Callable[[str], list[tuple[str, str]]]:
    """Kind and text of everything that the shipped rules find."""
    return lambda text: [(span.kind, text[span.start : span.end]) for span in rules.spans(text)]
