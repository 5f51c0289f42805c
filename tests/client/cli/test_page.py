"""docs/cli.md matches the command line: its reference, and its examples as printed."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from scripts.build_cli_docs import PAGE, commands, page
from souvenir_client.cli.root import souvenir
from tests.client.running import RunningService


def test_the_reference_on_the_page_is_current():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run python -m scripts.build_cli_docs"


def test_every_command_is_on_the_page():
    named = set(re.findall(r"^### `(souvenir [^`]+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    with click.Context(souvenir, info_name="souvenir") as context:
        assert named == {below.command_path for below in commands(context)}


def test_every_command_and_option_has_a_help_text():
    with click.Context(souvenir, info_name="souvenir") as context:
        below_root = list(commands(context))
        assert below_root
        for below in below_root:
            assert below.command.help, below.command_path
            for parameter in below.command.params:
                record = parameter.get_help_record(below)
                assert record is None or record[1].strip(), f"{below.command_path} {parameter.name}"


@pytest.fixture
def own_learner(tmp_path: Path) -> Iterator[RunningService]:
    service = RunningService(tmp_path / "data", extract_fallback_add=True)
    service.start()
    yield service
    service.stop()


MASKS = {
    r"Evidence: .*": "EVIDENCE",
    r"\d{4}-\d\d-\d\d \d\d:\d\d": "DATE",
    r"manual_\d{8}_\d{6}_\d{6}": "BACKUP",
    r"http://127\.0\.0\.1:\d+": "URL",
    r"\d+ ms": "N ms",
    r"\d\.\d MiB, vectors of .*": "SIZE",
}


def masked(text: str) -> str:
    for pattern, word in MASKS.items():
        text = re.sub(pattern, word, text)
    return text


def examples() -> list[tuple[str, str]]:
    """Every command of the page with what it prints."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [
        (command, said)
        for block in blocks
        for command, said in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]


def test_the_examples_print_the_documented_output(run, own_learner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(examples()) > 10
    for command, wanted in examples():
        seen, piped = "", None
        for part in command.split(" | "):
            if part.startswith("souvenir "):
                done = run(*shlex.split(part)[1:], stdin=piped, SOUVENIR_URL=own_learner.url)
                seen, piped = done.output, done.stdout
            else:
                seen = piped = subprocess.run(
                    ["bash", "-c", part], input=piped, capture_output=True, text=True, check=True
                ).stdout
        assert masked(seen) == masked(wanted), command
