"""Steps that tests of several views take, and the accessibility check."""

from __future__ import annotations

from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from playwright.sync_api import Locator, Page, Request, expect

from tests.page.browsing import WIDE, Theme
from tests.page.requirements import NODE_MODULES
from tests.thoroughness import THOROUGH

AXE = NODE_MODULES / "axe-core" / "axe.min.js"
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
VIOLATIONS = """async (tags) => {
  const { violations } = await axe.run(document, {runOnly: tags, resultTypes: ["violations"]});
  return violations.map(({id, help, nodes}) => ({id, help, targets: nodes.map((node) => node.target[0])}));
}"""
THEMES: tuple[Theme, ...] = ("dark", "light")
"""A tab is left in light, as it is opened."""

_PENDING: WeakKeyDictionary[Page, set[Request]] = WeakKeyDictionary()
QUIET_CHECKS, PATIENCE_S = 2, 30


def _pending(page: Page) -> set[Request]:
    """The requests of a tab that are not answered yet, except of event streams, which do not end."""
    if page not in _PENDING:
        pending = _PENDING[page] = set()

        def note(request: Request) -> None:
            if request.is_navigation_request():
                # Nothing of the page before is answered any more.
                pending.clear()
            if "/events/stream" not in request.url:
                pending.add(request)

        def forget(request: Request) -> None:
            pending.discard(request)

        page.on("request", note)
        page.on("requestfinished", forget)
        page.on("requestfailed", forget)
    return _PENDING[page]


def settle(page: Page) -> None:
    """Wait until everything that the tab asked is answered, and it asks nothing more.

    The tab counts what it has not ended yet (unfinished_work.js).
    """
    pending, quiet_checks, end = _pending(page), 0, monotonic() + PATIENCE_S
    while quiet_checks < QUIET_CHECKS:
        unfinished = page.evaluate("unfinishedWork()")
        quiet_checks = 0 if pending or unfinished else quiet_checks + 1
        assert monotonic() < end, (unfinished, [request.url for request in pending])


def open_page(page: Page, origin: str, address: str = "") -> None:
    """Open the page and wait until it shows a view. :param address: What follows the origin, such as `/#/memories`."""
    _pending(page)
    page.goto(f"{origin}/{address.removeprefix('/')}")
    expect(navigation(page)).to_be_visible()
    settle(page)


def navigation(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Views")


def views_of(page: Page) -> dict[str, str]:
    """The name of each view in the navigation, and its address."""
    links = navigation(page).get_by_role("link").all()
    return {link.inner_text().strip(): link.get_attribute("href") or "" for link in links}


def show_view(page: Page, address: str) -> None:
    """Choose a view in the navigation, and wait until it has asked everything that it shows."""
    link = navigation(page).locator(f'a[href="{address}"]')
    link.click()
    expect(link).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
    settle(page)


def search(page: Page, question: str) -> None:
    """Type a question and wait for results."""
    page.get_by_role("searchbox").fill(question)
    expect(results(page).first).to_be_visible()


def results(page: Page) -> Locator:
    return page.get_by_role("listbox").get_by_role("option")


def drawer(page: Page) -> Locator:
    return page.get_by_role("complementary")


def themes_at(width: int) -> tuple[Theme, ...]:
    """Return the themes to check at a width where others are checked too: all in the long form, else one of them."""
    return THEMES if THOROUGH else ("light",) if width == WIDE[0] else ("dark",)


def accessibility_violations(page: Page, themes: tuple[Theme, ...] = THEMES) -> list[str]:
    """Each violation of WCAG 2.2 A and AA that axe-core finds in the tab, in dark and in light, with the elements.

    axe-core is evaluated through the browser's debugging protocol, to which the Content Security Policy does not apply.
    """
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text(encoding="utf-8"))
    return [violation for theme in themes for violation in _violations_in(page, theme)]


def _violations_in(page: Page, theme: Theme) -> list[str]:
    page.emulate_media(color_scheme=theme)
    # Of the result, which also has what passed, only what is reported leaves the browser.
    found: list[dict[str, Any]] = page.evaluate(VIOLATIONS, WCAG)
    return [f"{theme}: {each['id']} ({each['help']}): {each['targets']}" for each in found]
