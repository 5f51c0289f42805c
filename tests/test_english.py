"""The pages are plain engineering English, without the phrases that CONTRIBUTING.md replaces.

tests/api/test_openapi.py checks the texts of the OpenAPI document in the same way; docs/cli.md has those of the
commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.cases import for_all

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (ROOT, ROOT / "docs", ROOT / "client", ROOT / "client-js")
PAGES = [ROOT / ".env.example", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")))]

WORDS = (
    r"beside|anew|whoever|whomever|whom|somebody|in the place of|told of|(?:is|are|was|were|be) told|to be had|"
    r"a room of|what came of|in whatever case"
)
FORBIDDEN = re.compile(rf"\b(?:{WORDS})\b", re.IGNORECASE)
OPENING = re.compile(r"(?:^|(?<=[.:;!?] )|(?<=\| ))(?:What |Whether |Whom |Of (?:a|the) )(?![^.?!]*\?)")
GLOSSARY = re.compile(r"\n## English\n.*?(?=\n## )", re.DOTALL)


def prose(page: str) -> str:
    """A page without its code and without the glossary that quotes the phrases."""
    page = GLOSSARY.sub("", page)
    page = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"^    .*$", "", page, flags=re.MULTILINE)
    return re.sub(r"`[^`\n]*`|\"[^\"\n]*\"", "``", page)


def violations(text: str) -> Iterator[str]:
    for pattern in (FORBIDDEN, OPENING):
        for found in pattern.finditer(text):
            yield text[max(0, found.start() - 40) : found.end() + 40].replace("\n", " ")


@for_all("page", PAGES)
def test_a_page_has_none_of_the_phrases(page):
    text = re.sub(r"\n(?=[^\n|#>-])", " ", prose(page.read_text(encoding="utf-8")))
    assert list(violations(text)) == []
