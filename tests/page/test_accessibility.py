"""Every view against WCAG 2.2 A and AA, in light and dark, on wide and narrow windows.

The sample checks light on wide windows and dark on narrow ones, and the long form each with each.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browsing import NARROW, WIDE, Watch, open_context
from tests.page.requirements import HAS_NODE_MODULES, INSTALL_NODE_MODULES
from tests.page.samples import add_samples
from tests.page.steps import accessibility_violations, open_page, show_view, themes_at, views_of

pytestmark = pytest.mark.skipif(not HAS_NODE_MODULES, reason=INSTALL_NODE_MODULES)
SIZES = (WIDE, NARROW)
opened_at_each_size = pytest.mark.parametrize("size", SIZES, ids=["wide", "narrow"])


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


@pytest.fixture(scope="module")
def tab(browser: Browser, origin: str) -> Iterator[Page]:
    """A tab that keeps the page and axe-core from one address to the next."""
    watch, context = Watch(origin), open_context(browser)
    with watch.over(context):
        yield context.new_page()
        context.close()
    assert watch.faults == []


@opened_at_each_size
def test_every_view_meets_wcag_and_fits_the_window(page, origin, size):
    open_page(page, origin)
    views = views_of(page)
    assert views
    faults = {}
    for name, address in views.items():
        show_view(page, address)
        faults[name] = accessibility_violations(page, themes_at(size[0]))
        if page.evaluate("document.documentElement.scrollWidth") > page.viewport_size["width"]:
            faults[name].append("wider than the window")
    assert faults == {name: [] for name in views}


@pytest.mark.parametrize(
    "address",
    [
        "/#/search?q=the+user's+beagle&memory=1",
        "/#/memories?source=claude-code%2Fbilling&order=oldest&memory=3",
        "/#/agents?in=assistant&ask=where+does+Mira+live",
        "/#/agents?in=assistant&ask=who+plays+the+violin&tokens=250&user=ann",
        "/#/agents?in=assistant&show=blocks",
        "/#/agents?in=assistant&show=preferences",
        "/#/agents?in=assistant&show=conversations&find=Lisbon",
        "/#/knowledge?in=assistant",
        "/#/knowledge?in=assistant&show=concepts",
        "/#/knowledge?in=assistant&show=graph",
        "/#/operations?show=keys",
        "/#/operations?show=audit",
        "/#/forget?kind=search&q=database&memories=1",
        "/#/knowledge?in=assistant&show=entities",
    ],
)
def test_what_is_opened_in_a_view_meets_wcag(tab, origin, address):
    tab.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    open_page(tab, origin, address)
    expect(tab.get_by_role("heading", level=1).first).to_be_visible()
    for width, height in SIZES:
        tab.set_viewport_size({"width": width, "height": height})
        assert accessibility_violations(tab, themes_at(width)) == []


@opened_at_each_size
def test_dialogs_meet_wcag(page, origin, size):
    open_page(page, origin)
    for key in ("?", "Control+k"):
        page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_be_visible()
        assert accessibility_violations(page, themes_at(size[0])) == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
