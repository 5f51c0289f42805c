"""Every example of the client's README prints its documented output, with the real service and a scripted vendor."""

from __future__ import annotations

import gc
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise
from pathlib import Path

import pytest

from tests.client.running import RunningService
from tests.conversations.talk import without_tokens
from tests.vendors.llm import LLMRequest, LLMVendor

CLIENT = Path(__file__).resolve().parents[2] / "client"
BLOCKS = re.findall(r"```(python|sh|text)\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
EXAMPLES = [
    pytest.param(source, shown if kind == "text" else None, id=str(at))
    for at, ((language, source), (kind, shown)) in enumerate(pairwise([*BLOCKS, ("", "")]))
    if language == "python"
]
COMMANDS = [
    line.partition("#")[0].strip()
    for language, source in BLOCKS
    if language == "sh"
    for line in source.splitlines()
    if line.startswith("souvenir ")
]


def knows_what_it_is_shown(request: LLMRequest) -> str:
    """A model that has read nothing but this request."""
    return "Your name is Alice." if "My name is Alice" in str(request.body) else "I do not know."


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """As it starts without a setting."""
    service = RunningService(tmp_path_factory.mktemp("service") / "data")
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.script(knows_what_it_is_shown)
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, service: RunningService, vendor: LLMVendor) -> None:
    for name, value in {
        "SOUVENIR_URL": service.url,
        "OPENAI_BASE_URL": f"{vendor.url}/v1",
        "OPENAI_API_KEY": "sk-scripted",
        "ANTHROPIC_BASE_URL": vendor.url,
        "ANTHROPIC_API_KEY": "sk-scripted",
    }.items():
        monkeypatch.setenv(name, value)


def test_the_readme_has_examples_of_all_parts():
    assert len(EXAMPLES) >= 7
    assert len(COMMANDS) >= 3


@pytest.mark.parametrize(("source", "shown"), EXAMPLES)
def test_an_example_prints_its_documented_output(source: str, shown: str | None):
    assert shown is not None, "show what it prints in a block of text"
    printed = StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        # Examples leave the vendor's client open, as programs do that end then.
        warnings.simplefilter("ignore", ResourceWarning)
        exec(compile(source, "README.md", "exec"), {"__name__": "example"})
        gc.collect()
    assert without_tokens(printed.getvalue()) == without_tokens(shown)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_works(command: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(CLIENT))
    program = "import sys; from souvenir_client.command import main; sys.exit(main())"
    arguments = [sys.executable, "-c", program, *shlex.split(command)[1:]]
    done = subprocess.run(arguments, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout
