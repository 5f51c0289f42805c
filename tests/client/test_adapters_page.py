"""The examples of docs/adapters.md run as printed, against the real service and the real frameworks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.running import RunningService
from tests.vendors.llm import LLMVendor

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adapters.md"
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
MODULES = [re.findall(r"adapters\.(\w+) import", code)[0] for code, _ in EXAMPLES]


def test_every_example_of_the_page_is_run():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("```python") == len(EXAMPLES)
    assert sorted(MODULES) == sorted(re.findall(r"\| `adapters\.(\w+)` \|", page))


@pytest.fixture
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.mark.parametrize(("code", "printed"), EXAMPLES, ids=MODULES)
def test_an_example_prints_what_the_page_says(
    service: RunningService,
    vendor: LLMVendor,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: str,
    printed: str,
):
    for name, value in {
        "SOUVENIR_URL": service.url,
        "OPENAI_BASE_URL": f"{vendor.url}/v1",
        "OPENAI_API_KEY": "sk-scripted",
        # The SDK sends traces to OpenAI unless it is told not to.
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }.items():
        monkeypatch.setenv(name, value)
    vendor.replies.append("Hello Alice!")
    exec(compile(code, PAGE.name, "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == printed
