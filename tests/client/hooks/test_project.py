"""A project has one agent, from whichever of its folders the editor runs."""

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


def test_the_start_folder_of_claude_names_the_project(tmp_path):
    started = tmp_path / "notes"
    assert place(tmp_path / "other", CLAUDE_PROJECT_DIR=str(started)).project == "notes"


def test_the_agent_can_be_set_by_the_environment(tmp_path):
    named = place(tmp_path / "notes", SOUVENIR_AGENT=" my agent ")
    assert (named.agent, named.source) == ("my agent", "claude-code/notes")


@pytest.mark.parametrize(("session_id", "name"), [(".", "-"), ("..", "--"), ("...", "...")])
def test_dot_segments_are_not_session_names(tmp_path, session_id, name):
    assert Project.of(Event(session_id=session_id, cwd=str(tmp_path)), {}).session_id == name


@pytest.mark.parametrize(
    ("folder", "agent"),
    [("Müller & Söhne", "claude-code-Müller & Söhne"), ("tab\there", "claude-code-tab-here"), ("x" * 250, None)],
)
def test_a_folder_name_becomes_a_valid_agent_name(tmp_path, folder, agent):
    found = place(tmp_path / folder).agent
    assert found == (agent or ("claude-code-" + folder)[:200])
    assert found.isprintable()
