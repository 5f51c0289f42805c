"""The examples of docs/adapters.md run as printed, against the real service and the real frameworks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.running import RunningService
from tests.vendors.llm import LLMVendor

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TEXT, re.DOTALL)
MODULES = [re.findall(r"adapters\.(\w+) import", code)[0] for code, _ in EXAMPLES]


@pytest.fixture
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    yield vendor
    vendor.stop()


def test_every_example_of_the_page_is_run():
    assert TEXT.count("```python") == len(EXAMPLES)
    assert sorted(MODULES) == sorted(re.findall(r"\| `adapters\.(\w+)` \|", TEXT))


@pytest.mark.parametrize(("code", "printed"), EXAMPLES, ids=MODULES)
def test_an_example_prints_what_the_page_says(service: RunningService, vendor: LLMVendor, code: str, printed: str):
    vendor.replies.append("Hello Alice!")
    environment = {
        "PYTHONPATH": str(ROOT / "client"),
        "SOUVENIR_URL": service.url,
        "OPENAI_BASE_URL": f"{vendor.url}/v1",
        "OPENAI_API_KEY": "sk-scripted",
        # The SDK sends traces to OpenAI unless it is told not to.
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }
    # A process of its own: frameworks leave connections and event loops open.
    ran = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.stdout, ran.returncode) == (printed, 0), ran.stderr
