"""Writes docs/images/page-VIEW-THEME.png, a wide picture of each view with sample data, in light and dark.

python -m tests.page.screenshots [FOLDER]

With a folder, the pictures go there instead, also of a narrow window. The views are those in the page's navigation;
pictures of others are removed. A picture that would be larger than 200,000 bytes is an error.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from playwright.sync_api import Page, sync_playwright

from benchmarks.service import Service
from tests.page.browsing import NARROW, WIDE, Theme, address_of, chromium, open_context
from tests.page.samples import api_of
from tests.page.showcase import AGENT, add_showcase
from tests.page.steps import open_page, results, settle, views_of

IMAGES = Path(__file__).resolve().parent.parent.parent / "docs" / "images"
MAX_BYTES = 200_000
SEARCHES, PAUSE_MS = 60, 200
"""Searches to chart, and the pause after each."""
SHOWN = {
    "search": "q=when+does+the+dog+have+its+birthday",
    "memories": "source=work&memory=8",
    "agents": "ask=what+should+I+know+before+the+trip+to+Lisbon&tokens=1000",
    "knowledge": "show=graph",
    "learning": "",
    "forget": "kind=user&value=anna",
    "operations": "",
}
"""The query of the address of each view."""


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    (folder or IMAGES).mkdir(parents=True, exist_ok=True)
    sizes = {"": WIDE, "-narrow": NARROW} if folder else {"": WIDE}
    written: set[Path] = set()
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright, chromium(playwright) as browser:
        service = Service(Path(data) / "data", EVENT_STREAM_MAX_S="3600", EXTRACT_FALLBACK_ADD="true")
        service.start()
        try:
            add_showcase(api_of(service))
            for theme in get_args(Theme):
                for suffix, size in sizes.items():
                    context = open_context(browser, theme=theme, size=size, motion="reduce")
                    for name, content in pictures(context.new_page(), address_of(service)):
                        path = (folder or IMAGES) / f"page-{name}{suffix}-{theme}.png"
                        path.write_bytes(content)
                        written.add(path)
                        print(f"{path.name}: {len(content)} bytes")
                    context.close()
        finally:
            service.kill()
    for path in set(IMAGES.glob("page-*.png")) - written if folder is None else ():
        path.unlink()


def pictures(page: Page, origin: str) -> Iterator[tuple[str, bytes]]:
    """:raises ValueError: If a picture is too large."""
    open_page(page, origin)
    for name in (each.lower() for each in views_of(page)):
        page.goto(f"{origin}/#/{name}?in={AGENT}&{SHOWN[name]}")
        settle(page)
        match name:
            case "search":
                results(page).first.click()
            case "learning":
                page.get_by_role("link", name="Proposals").click()
            case "operations":
                for number in range(SEARCHES):
                    question = {"query": f"what happens in month {number}"}
                    page.request.post(f"{origin}/search", data=question, headers={"X-Namespace": AGENT})
                    page.wait_for_timeout(PAUSE_MS)
        settle(page)
        content = page.screenshot(animations="disabled", caret="hide")
        if len(content) > MAX_BYTES:
            raise ValueError(f"The picture of {name} has {len(content)} bytes; at most {MAX_BYTES} are allowed")
        yield name, content


if __name__ == "__main__":
    main()
