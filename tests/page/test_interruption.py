"""The service is killed while the page is open, and started again."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.samples import add_samples
from tests.page.steps import drawer, open_page, results, search, settle, show_view, views_of

UNREACHABLE = "cannot be reached"
# What only the bar says, which goes when the service is back; a notice stays for its 8 seconds.
RETRYING = "Trying again"


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


@pytest.fixture(autouse=True)
def _broken_connections_are_printed(watch):
    watch.expect(r"net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)")


def test_the_page_says_that_the_service_is_gone_and_recovers_by_itself(page, origin, service):
    open_page(page, origin)
    service.kill()
    page.get_by_role("searchbox").fill("the user's beagle")
    gone = page.get_by_text(UNREACHABLE)
    expect(gone).to_be_visible()
    service.start()
    expect(gone).to_have_count(0)
    expect(page.get_by_role("searchbox")).to_have_value("the user's beagle")
    expect(results(page).first).to_contain_text("Biscuit")


def test_a_text_that_is_edited_meanwhile_is_not_lost(page, origin, service, api):
    open_page(page, origin)
    show_view(page, views_of(page)["Memories"])
    results(page).last.click()
    drawer(page).get_by_role("button", name="Edit").click()
    text = drawer(page).get_by_label("Text")
    text.fill("Biscuit turns six in May.")
    service.kill()
    save = drawer(page).get_by_role("button", name="Save")
    save.click()
    expect(page.get_by_text(UNREACHABLE).first).to_be_visible()
    expect(text).to_have_value("Biscuit turns six in May.")
    service.start()
    expect(page.get_by_text(RETRYING)).to_have_count(0)
    expect(text).to_have_value("Biscuit turns six in May.")
    save.click()
    expect(text).to_have_count(0)
    settle(page)
    assert api("GET", "/memory/1")["text"] == "Biscuit turns six in May."
    expect(drawer(page)).to_contain_text("turns six")


def test_a_page_that_is_loaded_shows_its_other_views_again_after_an_interruption(page, origin, service):
    open_page(page, origin)
    memories = views_of(page)["Memories"]
    service.kill()
    page.locator(f'nav a[href="{memories}"]').click()
    expect(page.get_by_text(UNREACHABLE)).to_be_visible()
    service.start()
    expect(results(page).last).to_contain_text("Biscuit")
    search(page, "window seats")
