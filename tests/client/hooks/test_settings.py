"""Installing the hooks into Claude Code's settings preserves all other settings."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from souvenir_client.hooks.events import Hook
from souvenir_client.hooks.settings import SettingsUnusable, apply, command_of, plan, settings_path

PROGRAM = "/opt/my tools/bin/souvenir"

OTHERS: dict[str, Any] = {
    "model": "opus",
    "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check.sh", "timeout": 3}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "notify 'it is done'"}]}],
    },
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".claude" / "settings.json"


@pytest.fixture
def written(path):
    """What is in the file before."""

    def write(text):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        return text

    return write


def installed(path, program=PROGRAM):
    apply(plan(path, program))
    return json.loads(path.read_bytes())


def backups(path):
    return [file.read_bytes().decode() for file in path.parent.glob("settings.json.*.bak")]


def ours(settings):
    return {
        name: [entry["command"] for group in groups for entry in group["hooks"] if "souvenir" in entry["command"]]
        for name, groups in settings["hooks"].items()
    }


def test_missing_settings_are_created_readable_by_the_user_only(path):
    change = plan(path, PROGRAM)
    assert not path.exists()
    assert change.diff().startswith("--- /dev/null\n")
    assert apply(change) is None
    assert json.loads(path.read_bytes()) == {
        "hooks": {
            hook.event_name: [
                {
                    "hooks": [
                        {
                            "type": "command",
                            "command": f"'/opt/my tools/bin/souvenir' hook {hook.value}",
                            "timeout": 5 if hook in (Hook.SESSION_START, Hook.PROMPT) else 15,
                        }
                    ]
                }
            ]
            for hook in Hook
        }
    }
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("before", ["", "  \n", "{}", '{"hooks": {}}'])
def test_empty_settings_are_filled(path, written, before):
    written(before)
    assert ours(installed(path)) == {hook.event_name: [command_of(hook, PROGRAM)] for hook in Hook}


def test_other_settings_are_preserved_and_backed_up(path, written):
    before = written(json.dumps(OTHERS, indent=4))
    after = installed(path)
    assert after["model"] == "opus"
    assert after["permissions"] == OTHERS["permissions"]
    assert after["hooks"]["PreToolUse"] == OTHERS["hooks"]["PreToolUse"]
    assert after["hooks"]["Stop"][0] == OTHERS["hooks"]["Stop"][0]
    assert backups(path) == [before]


def test_the_diff_has_the_new_lines_and_no_others(path, written):
    written(json.dumps(OTHERS, indent=4) + "\n")
    lines = plan(path, PROGRAM).diff().splitlines()
    assert lines[0] == f"--- {path}"
    assert [line for line in lines[2:] if line.startswith("-")] == []
    assert sum("souvenir" in line for line in lines[2:]) == 4


def test_installing_twice_changes_nothing(path, written):
    written(json.dumps(OTHERS, indent=1))
    installed(path)
    before = path.read_bytes()
    change = plan(path, PROGRAM)
    assert not change.is_needed
    assert change.diff() == ""
    assert path.read_bytes() == before


def test_the_path_of_a_moved_program_is_updated_in_place(path, written):
    settings = json.loads(written(json.dumps(OTHERS)))
    old = {"type": "command", "command": "A=1 /old/souvenir hook stop", "once": 1}
    settings["hooks"]["Stop"].insert(0, {"hooks": [old]})
    written(json.dumps(settings))
    after = installed(path)
    assert ours(after)["Stop"] == [command_of(Hook.STOP, PROGRAM)]
    assert after["hooks"]["Stop"][0]["hooks"][0]["once"] == 1


def test_duplicate_entries_are_merged(path, written):
    one = {"hooks": [{"type": "command", "command": "souvenir hook prompt"}]}
    written(json.dumps({"hooks": {"UserPromptSubmit": [one, {"matcher": "", **one}]}}))
    assert ours(installed(path))["UserPromptSubmit"] == [command_of(Hook.PROMPT, PROGRAM)]
    assert len(json.loads(path.read_bytes())["hooks"]["UserPromptSubmit"]) == 1


@pytest.mark.parametrize("before", [OTHERS, {}, {"model": "opus"}, {"hooks": {"Stop": [{"hooks": ["odd"]}, "odder"]}}])
def test_removal_restores_the_previous_settings(path, written, before):
    text = written(json.dumps(before, indent=2) + "\n")
    installed(path)
    apply(plan(path, "", remove=True))
    assert json.loads(path.read_bytes()) == before
    assert path.read_bytes().decode() == text
    assert not plan(path, "", remove=True).is_needed


def test_removal_keeps_other_entries_of_the_group(path, written):
    neighbour, old = ({"type": "command", "command": f"{program} hook stop"} for program in ("souvenirs", "souvenir"))
    written(json.dumps({"hooks": {"Stop": [{"hooks": [neighbour, old]}]}}))
    apply(plan(path, "", remove=True))
    assert json.loads(path.read_bytes()) == {"hooks": {"Stop": [{"hooks": [neighbour]}]}}


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ('{\n  // mine\n  "model": "opus"\n}', "not plain JSON"),
        ('{"model": "opus",}', "not plain JSON"),
        ('\ufeff{"model": "opus"}', "not plain JSON"),
        ('{"model": "opus", "model": "haiku"}', "has a duplicate key"),
        ("[]", "not a JSON object"),
        ('{"hooks": []}', '"hooks" in'),
        ('{"hooks": {"Stop": {}}}', '"hooks.Stop" in'),
    ],
)
def test_unsupported_settings_are_refused_and_unchanged(path, written, before, sentence):
    written(before)
    with pytest.raises(SettingsUnusable, match=sentence):
        plan(path, PROGRAM)
    assert path.read_bytes() == before.encode()


def test_a_symbolic_link_is_followed_and_preserved(path, tmp_path):
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}", encoding="utf-8")
    path.parent.mkdir()
    path.symlink_to(real)
    installed(path)
    assert path.is_symlink()
    assert "hooks" in json.loads(real.read_bytes())
    assert len(list(real.parent.glob("claude.json.*.bak"))) == 1


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_the_file_mode_is_preserved_also_for_the_backup(path, written, mode):
    written("{}")
    path.chmod(mode)
    installed(path)
    modes = {file.name[-4:]: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == {"json": mode, ".bak": mode}


@pytest.mark.parametrize(
    "before",
    ['{\n\t"model": "Grüße"\n}\n', '{\r\n    "model": "x"\r\n}\r\n', '{\n "model": "caf\\u00e9"\n}'],
    ids=["tabs", "line ends of Windows", "escapes and no line end"],
)
def test_formatting_is_preserved(path, written, before):
    written(before)
    installed(path)
    after = path.read_bytes().decode()
    lines = before.splitlines(keepends=True)
    # Only the comma is new in the line of the model.
    assert after.startswith(lines[0] + lines[1].rstrip("\r\n") + "," + lines[1][len(lines[1].rstrip("\r\n")) :])
    assert after.endswith("\n") == before.endswith("\n")


def test_settings_changed_after_the_preview_are_not_overwritten(path, written):
    written("{}")
    change = plan(path, PROGRAM)
    written('{"model": "opus"}')
    with pytest.raises(SettingsUnusable, match="changed in the meantime"):
        apply(change)
    assert path.read_bytes() == b'{"model": "opus"}'


def test_only_settings_and_backup_remain_in_the_folder(path, written):
    written("{}")
    installed(path)
    assert len(os.listdir(path.parent)) == 2  # noqa: PTH208 - names are enough


def test_the_page_documents_the_manual_settings(path):
    document = (Path(__file__).resolve().parents[3] / "docs" / "editors.md").read_text(encoding="utf-8")
    by_hand, _ = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", document, re.DOTALL))
    assert by_hand == installed(path, "/path/to/souvenir")


def test_settings_are_at_the_paths_of_claude_code(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings_path({}) == tmp_path / ".claude" / "settings.json"
    assert settings_path({"CLAUDE_CONFIG_DIR": "/etc/mine"}).parts[-2:] == ("mine", "settings.json")
    assert settings_path({}, project=tmp_path / "p") == tmp_path / "p" / ".claude" / "settings.json"
