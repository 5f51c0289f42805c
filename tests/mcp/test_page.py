"""Statements of docs/mcp.md: the list of tools, and the first example as printed."""

from __future__ import annotations

import re

from scripts.build_mcp_docs import PAGE, page
from souvenir.mcp.resources import TEMPLATES
from tests.mcp.conftest import Asking, asking


def test_the_tables_of_tools_match_the_tools():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run python -m scripts.build_mcp_docs"


def test_every_resource_and_prompt_is_in_the_page(ask: Asking):
    text = PAGE.read_text(encoding="utf-8")
    assert all(template.uri in text for template in TEMPLATES)
    prompts = ask.post(asking("prompts/list")).json()["result"]["prompts"]
    assert {one["name"] for one in prompts} <= set(re.findall(r"`([a-z_]+)`", text))


def test_the_first_example_works_as_printed(ask: Asking):
    """On our port; the headers and the body are those of the page."""
    [example, *_] = re.findall(r"```sh\n(curl.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    headers = dict(line.split(": ", 1) for line in re.findall(r'-H "([^"]+)"', example))
    [body] = re.findall(r"-d '(.*?)'", example, re.DOTALL)
    answer = ask.post(body, headers=headers)
    assert answer.json()["result"]["structuredContent"]["memories"] == []
