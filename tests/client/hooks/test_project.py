"""A project is remembered by one agent, from wherever in it the editor runs."""

from __future__ import annotations

import subprocess

import pytest

from souvenir_client.hooks.events import Event
from souvenir_client.hooks.project import Project


def place(cwd, **environment):
    return Project.of(Event(session_id="s-1", cwd=str(cwd)), environment)


def test_without_git_the_folder_is_the_project(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    assert place(folder) == Project("notes", "claude-code-notes", "s-1", "claude-code/notes")


def test_every_folder_and_worktree_of_a_repository_is_the_same_project(tmp_path):
    repository = tmp_path / "billing"
    (repository / "src" / "deep").mkdir(parents=True)
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "elsewhere")], check=True)
    folders = (repository, repository / "src" / "deep", tmp_path / "elsewhere")
    assert {place(folder).agent for folder in folders} == {"claude-code-billing"}


def test_a_submodule_is_a_separate_project(tmp_path):
    folder = tmp_path / "billing" / "vendored"
    folder.mkdir(parents=True)
    (folder / ".git").write_text("gitdir: ../.git/modules/vendored\n", encoding="utf-8")
    assert place(folder).project == "vendored"


def test_the_folder_where_claude_was_started_counts_wherever_it_went(tmp_path):
    started = tmp_path / "notes"
    assert place(tmp_path / "other", CLAUDE_PROJECT_DIR=str(started)).project == "notes"


def test_an_agent_can_be_named(tmp_path):
    named = place(tmp_path / "notes", SOUVENIR_AGENT=" my agent ")
    assert (named.agent, named.source) == ("my agent", "claude-code/notes")


@pytest.mark.parametrize(("session_id", "name"), [(".", "-"), ("..", "--"), ("...", "...")])
def test_a_session_is_not_called_what_clients_take_out_of_paths(tmp_path, session_id, name):
    assert Project.of(Event(session_id=session_id, cwd=str(tmp_path)), {}).session_id == name


@pytest.mark.parametrize(
    ("folder", "agent"),
    [("Müller & Söhne", "claude-code-Müller & Söhne"), ("tab\there", "claude-code-tab-here"), ("x" * 250, None)],
)
def test_the_name_of_a_folder_becomes_one_that_the_service_takes(tmp_path, folder, agent):
    found = place(tmp_path / folder).agent
    assert found == (agent or ("claude-code-" + folder)[:200])
    assert found.isprintable()
