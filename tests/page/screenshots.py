"""Writes docs/images/page-VIEW-THEME.png, a wide picture of each view with sample data, in light and dark.

python -m tests.page.screenshots

The views are those in the page's navigation; pictures of others are removed. A picture that would be larger than
150,000 bytes is an error.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import get_args

from playwright.sync_api import Page, expect

from benchmarks.service import Service
from tests.page.browsing import Theme, address_of, chromium, open_context
from tests.page.samples import add_samples, api_of
from tests.page.steps import open_page, results, search, settle, show_view, views_of

IMAGES = Path(__file__).resolve().parent.parent.parent / "docs" / "images"
MAX_BYTES = 150_000
QUESTION = "Which pet does the user have?"


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    written: set[Path] = set()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        service = Service(Path(folder) / "data", EVENT_STREAM_MAX_S="3600")
        service.start()
        try:
            add_samples(api_of(service))
            for theme in get_args(Theme):
                context = open_context(browser, theme=theme, motion="reduce")
                written |= pictures(context.new_page(), address_of(service), theme)
                context.close()
        finally:
            service.kill()
    for path in set(IMAGES.glob("page-*.png")) - written:
        path.unlink()


def pictures(page: Page, origin: str, theme: Theme) -> set[Path]:
    open_page(page, origin)
    written = set()
    for name, address in views_of(page).items():
        show_view(page, address)
        if name == "Search":
            search(page, QUESTION)
        if results(page).count():
            results(page).first.click()
            expect(page.get_by_role("complementary")).to_be_visible()
            settle(page)
        path = IMAGES / f"page-{name.split()[0].lower()}-{theme}.png"
        content = page.screenshot(animations="disabled", caret="hide")
        if len(content) > MAX_BYTES:
            raise ValueError(f"{path.name} has {len(content)} bytes; at most {MAX_BYTES} are allowed")
        path.write_bytes(content)
        print(f"{path.relative_to(IMAGES.parent.parent)}: {len(content)} bytes")
        written.add(path)
    return written


if __name__ == "__main__":
    main()
