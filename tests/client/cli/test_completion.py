"""completion: the scripts complete commands and options."""

from __future__ import annotations

import subprocess

import pytest

from tests.client.cli.entry import COMMAND, environment, souvenir


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_ends_with_installation_instructions(run, answer, shell):
    script = run("completion", shell).stdout
    assert "_SOUVENIR_COMPLETE" in script
    assert script.rstrip().splitlines()[-1].startswith(f"#   souvenir completion {shell} > ")
    assert answer("completion", shell)["script"] in script


def test_the_zsh_script_starts_with_compdef(run):
    assert run("completion", "zsh").stdout.startswith("#compdef souvenir\n")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("souvenir back", {"backup"}),
        ("souvenir keys r", {"rotate", "revoke"}),
        ("souvenir search --so", {"--source"}),
        ("souvenir --json list --na", {"--namespace"}),
        ("souvenir completion f", {"fish"}),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_and_options_are_completed(run, shell, words, wanted):
    *_, incomplete = words.split()
    position = incomplete if shell == "fish" else str(len(words.split()) - 1)
    done = run(_SOUVENIR_COMPLETE=f"{shell}_complete", COMP_WORDS=words, COMP_CWORD=position)
    found = {"bash": lines_after_comma, "zsh": every_third, "fish": lines_after_comma}[shell](done.stdout)
    assert found == wanted


def lines_after_comma(said: str) -> set[str]:
    return {line.partition(",")[2].partition("\t")[0] for line in said.splitlines()}


def every_third(said: str) -> set[str]:
    return set(said.splitlines()[1::3])


def test_a_real_bash_completes_with_the_script(tmp_path):
    tool = tmp_path / "souvenir"
    tool.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    asked = f"""
        source <({tool} completion bash) 2>/dev/null
        COMP_WORDS=(souvenir chat h) COMP_CWORD=2
        _souvenir_completion {tool}
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", asked], env=environment(), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "history\n"


def test_help_of_the_real_entry_point_lists_the_commands():
    done = souvenir("--help")
    assert done.returncode == 0
    assert "doctor" in done.stdout
