"""Signing in with a key, and what a role is not offered."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.page.samples import add_samples
from tests.page.steps import drawer, navigation, results, search, show_view, views_of

ADMIN_KEY = "an-admin-key-for-tests"
REFUSED = "status of 401"


@pytest.fixture(scope="module")
def service_settings():
    return {"API_KEY": ADMIN_KEY}


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


@pytest.fixture(autouse=True)
def _refusals_are_printed(watch):
    watch.expect(REFUSED)


def sign_in(page: Page, origin: str, key: str) -> None:
    page.goto(origin)
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")


def test_a_key_is_asked_for_and_kept_for_the_tab_only(page, context, origin):
    sign_in(page, origin, ADMIN_KEY)
    expect(navigation(page)).to_be_visible()
    page.reload()
    expect(navigation(page)).to_be_visible()
    assert page.evaluate("localStorage.length") == 0
    assert context.cookies() == []
    other = context.new_page()
    other.goto(origin)
    expect(other.get_by_label("API key")).to_be_visible()


def test_the_key_is_in_no_address(page, context, origin):
    addresses = []
    context.on("request", lambda request: addresses.append(request.url))
    sign_in(page, origin, ADMIN_KEY)
    for address in views_of_signed_in(page).values():
        show_view(page, address)
    addresses.append(page.url)
    assert [address for address in addresses if ADMIN_KEY in address] == []
    assert len(addresses) > 3


def test_a_wrong_key_is_refused_with_a_sentence(page, origin):
    sign_in(page, origin, "wrong")
    expect(page.get_by_role("alert")).to_contain_text("does not accept this key")
    expect(page.get_by_label("API key")).to_be_visible()
    assert page.evaluate("JSON.stringify(sessionStorage)").count("wrong") == 0


def test_a_revoked_key_leads_back_to_the_sign_in(page, origin, api):
    made = api("POST", "/api/keys", {"name": "short-lived", "role": "read-write", "prefixes": ["notes/*"]})
    sign_in(page, origin, made["key"])
    address = views_of_signed_in(page)["Memories"]
    api("DELETE", f"/api/keys/{made['id']}")
    # Not by its link: a page that has noticed it meanwhile, by its events, shows none.
    page.evaluate("address => { location.hash = address; }", address)
    expect(page.get_by_label("API key")).to_be_visible()
    sign_in_again(page)
    expect(navigation(page).locator("[aria-current=page]")).to_have_text("Memories")


def test_a_key_that_is_revoked_while_nothing_is_asked_leads_back_to_the_sign_in(page, origin, api):
    made = api("POST", "/api/keys", {"name": "idle", "role": "read-only", "prefixes": ["notes/*"]})
    sign_in(page, origin, made["key"])
    expect(page.get_by_text("● live")).to_be_visible()
    api("DELETE", f"/api/keys/{made['id']}")
    expect(page.get_by_label("API key")).to_be_visible(timeout=30_000)
    expect(page.get_by_role("alert")).to_contain_text("does not accept this key")


def test_signing_out_leaves_nothing_of_one_key_to_the_next(page, origin):
    sign_in(page, origin, ADMIN_KEY)
    show_view(page, views_of_signed_in(page)["Memories"])
    results(page).first.click()
    drawer(page).get_by_role("button", name="Edit").click()
    drawer(page).get_by_label("Text", exact=True).fill("A secret that was never saved.")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    assert page.evaluate("Object.keys(sessionStorage)") == ["souvenir-signed-out"]
    sign_in_again(page)
    expect(drawer(page)).to_contain_text("design documents")
    expect(drawer(page).get_by_label("Text", exact=True)).to_have_count(0)
    assert page.evaluate("Object.keys(sessionStorage)") == ["souvenir-key"]


def test_a_role_that_only_reads_is_offered_no_changes(page, origin, api):
    offers = {}
    for role in ("read-only", "read-write"):
        made = api("POST", "/api/keys", {"name": role, "role": role, "prefixes": ["notes/*"]})
        tab = page.context.new_page()
        sign_in(tab, origin, made["key"])
        show_view(tab, views_of_signed_in(tab)["Memories"])
        results(tab).last.click()
        expect(drawer(tab)).to_contain_text("Biscuit")
        offers[role] = {button.inner_text() for button in tab.get_by_role("button").all()}
    assert "Edit" in offers["read-write"]
    assert {"Edit", "Delete", "Forget", "Archive", "Pin"} & offers["read-only"] == set()


def test_a_role_that_only_reads_can_search_memories_and_messages(page, origin, api):
    api("POST", "/messages", {"agent_name": "reader", "role": "user", "content": "I play the cello on Sundays."})
    api("POST", "/memory/add", {"text": "The cello was made in Cremona.", "source": "things"}, namespace="reader")
    made = api("POST", "/api/keys", {"name": "reads", "role": "read-only", "namespace": "reader"})
    sign_in(page, origin, made["key"])
    expect(navigation(page)).to_be_visible()
    search(page, "cello")
    expect(results(page)).to_have_count(2)
    results(page).first.click()
    expect(drawer(page)).to_contain_text("An admin key sees the parts of the score.")
    show_view(page, views_of_signed_in(page)["Learning"])
    expect(page.get_by_text("Only the extractions of this key are listed")).to_be_visible()
    show_view(page, views_of_signed_in(page)["Forget"])
    expect(page.get_by_role("main")).to_contain_text("Only an admin key can forget data")
    expect(page.get_by_role("main")).not_to_contain_text("delete")


def test_a_deep_link_survives_the_sign_in(page, origin):
    page.goto(f"{origin}/#/memories")
    sign_in_again(page)
    expect(navigation(page).locator("[aria-current=page]")).to_have_text("Memories")


def sign_in_again(page: Page) -> None:
    page.get_by_label("API key").fill(ADMIN_KEY)
    page.keyboard.press("Enter")


def views_of_signed_in(page: Page) -> dict[str, str]:
    expect(navigation(page)).to_be_visible()
    return views_of(page)
