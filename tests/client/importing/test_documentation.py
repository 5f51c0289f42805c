"""docs/importing.md: its example runs as printed, and its kinds are those that there are."""

from __future__ import annotations

import re
from pathlib import Path

from souvenir_client.importing import Kind
from tests.client.importing.files import claude_conversation, claude_message, json_file

PAGE = (Path(__file__).parents[3] / "docs" / "importing.md").read_text(encoding="utf-8")


def test_the_table_names_every_kind():
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE, re.MULTILINE)) == set(Kind)


def test_the_example_runs_as_printed(service, tmp_path, monkeypatch, capsys):
    said = [claude_conversation([claude_message("human", "Hello", "m1"), claude_message("human", "", "m2")])]
    json_file(tmp_path / "conversations.json", said)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOUVENIR_URL", service.url)
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "docs/importing.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "1 new, 0 there already",
        "1 it has no text ['conversation b7d3, message m2']",
    ]
