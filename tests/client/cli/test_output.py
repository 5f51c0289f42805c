"""Output is safe: stored texts cannot control the terminal, and JSON stays valid."""

from __future__ import annotations

import json

import pytest

EVIL = "\x1b]0;owned\x07 \x1b[31mred\x1b[0m [bold red]loud[/] \x9b31m \u202ereversed\r\nnext\rover \x7f"
ACTING = "\x1b\x07\x9b\u202e\r\x7f"


@pytest.fixture
def evil(answer):
    """A namespace with a memory, a message and a session whose texts would act on a terminal."""
    made = answer("add", EVIL, "--source", "so\x1b[7murce", "--metadata", f"note={EVIL}", "--namespace", "evil")["id"]
    return str(made)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("command", ["get", "list", "search", "export"])
def test_stored_text_cannot_control_the_terminal(run, evil, command, as_json):
    arguments = {"get": [evil], "search": ["loud"]}.get(command, [])
    printed = run(command, *arguments, "--namespace", "evil", *(["--json"] if as_json else [])).stdout
    assert "loud" in printed
    assert not set(printed) & set(ACTING)


def test_markup_is_printed_literally(run, evil):
    assert "[bold red]loud[/]" in run("get", evil, "--namespace", "evil").stdout
    assert "[bold red]loud[/]" in run("list", "--namespace", "evil").stdout


def test_json_has_the_text_as_stored(answer, evil):
    memory = answer("get", evil, "--namespace", "evil")
    assert (memory["text"], memory["note"]) == (EVIL, EVIL)


def test_names_given_by_the_caller_cannot_control_the_terminal(run):
    done = run("agents", "show", "no\x1b[31mbody")
    assert done.exit_code == 1
    assert "\x1b" not in done.output


def test_json_survives_a_stdout_that_is_not_unicode(service, answer):
    from tests.client.cli.entry import COMMAND, environment, run_in

    made = answer("add", "Grüße 😀", "--namespace", "latin")["id"]
    done = run_in(
        [*COMMAND, "get", str(made), "--namespace", "latin", "--json"],
        environment(SOUVENIR_URL=service.url, PYTHONIOENCODING="ascii"),
    )
    assert json.loads(done.stdout)["text"] == "Grüße 😀"
