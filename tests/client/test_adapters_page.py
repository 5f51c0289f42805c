"""The examples of docs/adapters.md run as printed, against the real service and the real frameworks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.client.running import RunningService

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters.md"
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
MODULES = [re.findall(r"adapters\.(\w+) import", code)[0] for code, _ in EXAMPLES]


def test_every_example_of_the_page_is_run():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("```python") == len(EXAMPLES)
    assert sorted(MODULES) == sorted(re.findall(r"\| `adapters\.(\w+)` \|", page))


@pytest.mark.parametrize(("code", "printed"), EXAMPLES, ids=MODULES)
def test_an_example_prints_what_the_page_says(
    service: RunningService,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: str,
    printed: str,
):
    monkeypatch.setenv("SOUVENIR_URL", service.url)
    exec(compile(code, PAGE.name, "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == printed
