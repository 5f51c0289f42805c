"""docs/importing.md and docs/graph.md: the examples run as printed, and the list of kinds is complete."""

from __future__ import annotations

import json
import re
from pathlib import Path

from souvenir_client import Souvenir
from souvenir_client.importing import Kind, detect, import_file
from tests.client.importing.files import claude_conversation, claude_message, json_file

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "importing.md").read_text(encoding="utf-8")
GRAPHS = (DOCS / "graph.md").read_text(encoding="utf-8")


def test_the_table_names_every_kind():
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE.partition("\n## ")[0], re.MULTILINE)) == set(Kind)


def test_the_example_runs_as_printed(service, tmp_path, monkeypatch, capsys):
    said = [claude_conversation([claude_message("human", "Hello", "m1"), claude_message("human", "", "m2")])]
    json_file(tmp_path / "conversations.json", said)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOUVENIR_URL", service.url)
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "docs/importing.md", "exec"), {})
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "1 new, 0 already stored",
        "1 it has no text ['conversation b7d3, message m2']",
    ]


def test_the_documented_graph_is_imported_and_answers_as_printed(service, tmp_path):
    [example] = re.findall(r"```json\n(.*?)```", GRAPHS, re.DOTALL)
    [body, printed] = re.findall(r"/graph -H \"\$JSON\" -d '(.*?)'\n    (\{.*?\})\n", GRAPHS, re.DOTALL)[0]
    path = tmp_path / "graph.json"
    path.write_text(example, encoding="utf-8")
    assert detect(path) is Kind.GRAPH
    with Souvenir(service.url) as client:
        report = import_file(client, path, agent="my_agent")
        service.app.state.service.graph.indexer.catch_up()
        stated = client.agents.state_concepts("my_agent", **json.loads(body))
        messages = client.sessions.messages("my_agent", "2025-04-02")
    assert (report.skipped, report.messages.imported, report.memories.imported) == ((), 2, 1)
    assert report.concepts.imported == 1
    assert [one.content for one in messages] == ["We moved the billing service to Redis.", "Redis it is."]
    # The description is there from the file.
    assert json.loads(printed)["stated"] == stated.stated + stated.unchanged == 3
    assert (stated.unknown, stated.unread) == ([], 0)
