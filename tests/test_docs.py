"""What the documents say is so: the settings, the links, the commands, and the first example of the README."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.service import Service
from scripts.build_config_docs import PAGE, page
from tests.cases import for_all

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("client*/*.md")])


def code_blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)


def test_the_table_of_settings_is_what_the_settings_are():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run python -m scripts.build_config_docs"


@for_all("document", DOCUMENTS)
def test_every_local_link_leads_to_a_file(document):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


@for_all("document", DOCUMENTS)
def test_every_link_to_a_heading_leads_to_one(document):
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", document.read_text(encoding="utf-8"))
    assert [
        (page, anchor)
        for page, anchor in links
        if anchor not in anchors_of(document.parent / page if page else document)
    ] == []


def anchors_of(page: Path) -> set[str]:
    """The names that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@for_all("document", DOCUMENTS)
def test_every_source_file_that_is_named_exists(document):
    named = re.findall(r"`(souvenir/[\w/]+\.\w+)`", document.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


@for_all("document", DOCUMENTS)
def test_every_make_target_that_is_named_exists(document):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = re.findall(r"(?:^\s*|`)make ([a-z][a-z-]*)", document.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) <= targets


def test_the_first_example_of_the_readme_works_as_printed(tmp_path):
    store, ask, *_ = code_blocks(ROOT / "README.md", "sh")
    stored, answered, *_ = code_blocks(ROOT / "README.md", "json")
    service = Service(tmp_path / "data")
    service.start()
    try:
        # The printed address is that of a service of one's own, perhaps in use: curl is led to the test's instead.
        (tmp_path / ".curlrc").write_text(f"connect-to = 127.0.0.1:8900:127.0.0.1:{service.port}\n", encoding="utf-8")
        assert run_as_printed(store, tmp_path) == json.loads(stored)
        hit, shown = run_as_printed(ask, tmp_path), json.loads(answered)
    finally:
        service.stop()
    assert hit.keys() == shown.keys()
    [found], [printed] = hit["results"], shown["results"]
    assert found.keys() == printed.keys()
    assert found["text"] == printed["text"]
    assert found["score"] == pytest.approx(printed["score"], abs=0.05)


def test_the_route_that_contributors_are_shown_is_one_of_the_service():
    [route] = code_blocks(ROOT / "CONTRIBUTING.md", "python")
    assert route in (ROOT / "souvenir" / "api" / "tags.py").read_text(encoding="utf-8")


def run_as_printed(command: str, home: Path) -> dict[str, Any]:
    environment = {**os.environ, "CURL_HOME": str(home), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
