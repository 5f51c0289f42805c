"""Every view against WCAG 2.2 A and AA, in light and dark, on wide and narrow windows."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.browsing import NARROW, WIDE
from tests.page.requirements import HAS_NODE_MODULES, INSTALL_NODE_MODULES
from tests.page.samples import add_samples
from tests.page.steps import accessibility_violations, drawer, open_page, results, search, show_view, views_of

pytestmark = [
    pytest.mark.skipif(not HAS_NODE_MODULES, reason=INSTALL_NODE_MODULES),
    pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"]),
    pytest.mark.parametrize("theme", ["light", "dark"]),
]


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


def test_every_view_meets_wcag(page, origin):
    open_page(page, origin)
    views = views_of(page)
    assert views
    violations = {}
    for name, address in views.items():
        show_view(page, address)
        violations[name] = accessibility_violations(page)
    assert violations == {name: [] for name in views}


def test_results_and_the_details_of_one_meet_wcag(page, origin):
    open_page(page, origin)
    search(page, "the user's beagle")
    results(page).first.click()
    expect(drawer(page)).to_contain_text("beagle")
    assert accessibility_violations(page) == []


@pytest.mark.parametrize("key", ["?", "Control+k"])
def test_dialogs_meet_wcag(page, origin, key):
    open_page(page, origin)
    page.keyboard.press(key)
    expect(page.get_by_role("dialog")).to_be_visible()
    assert accessibility_violations(page) == []


def test_nothing_is_wider_than_the_window(page, origin):
    open_page(page, origin)
    for address in views_of(page).values():
        show_view(page, address)
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], address
