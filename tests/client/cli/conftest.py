"""The command line in this process, connected to the service of the tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from souvenir_client.cli.root import souvenir
from tests.client.running import RunningService

Run = Callable[..., Result]
Answer = Callable[..., Any]


@pytest.fixture
def run(service: RunningService) -> Run:
    """Runs a command line; what it is given on stdin is `stdin`, and what it ended with is `exit_code`."""

    def run_it(*arguments: str, stdin: str | None = None, **environment: str) -> Result:
        return CliRunner(env={"SOUVENIR_URL": service.url, **environment}).invoke(souvenir, arguments, input=stdin)

    return run_it


@pytest.fixture
def answer(run: Run) -> Answer:
    """The JSON document that a command answers with `--json`; it has to end well."""

    def ask(*arguments: str, **more: Any) -> Any:
        done = run("--json", *arguments, **more)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return ask
