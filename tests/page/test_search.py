"""The search view: filters in the address, why a result was found, and the same search as a command."""

from __future__ import annotations

import json
import shlex
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.page.samples import add_samples
from tests.page.steps import drawer, open_page, results, search


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


def test_a_result_says_why_it_was_found_and_its_parts_add_up(page, origin):
    open_page(page, origin)
    search(page, "where does the sister live")
    first = results(page).first
    expect(first).to_contain_text("Mira lives in Lisbon")
    expect(first).to_contain_text("Closest in meaning (cosine 0.49); it has “sister”, “live”;")
    expect(first.get_by_role("img")).to_have_accessible_name("Parts of the score: meaning 1.08, words 0.73")
    first.click()
    why = drawer(page).get_by_role("region", name="Why this result")
    expect(why).to_be_visible()
    rows = [row.inner_text().split() for row in why.get_by_role("row").all()]
    assert rows[-1][0] == "sum"
    assert sum(float(row[-1]) for row in rows[:-1]) == pytest.approx(float(rows[-1][-1]), abs=0.02)
    widths = [part.evaluate("each => each.getBoundingClientRect().width") for part in first.locator(".part").all()]
    assert widths[0] / widths[1] == pytest.approx(1.08 / 0.73, rel=0.1)


def test_the_keyboard_goes_from_the_question_to_a_result_and_its_details(page, origin):
    open_page(page, origin)
    page.keyboard.press("/")
    page.keyboard.type("the user's beagle")
    expect(results(page).first).to_contain_text("beagle")
    page.keyboard.press("Enter")
    expect(page.get_by_role("listbox", name="Results")).to_be_focused()
    page.keyboard.press("j")
    expect(drawer(page)).to_contain_text("Biscuit")
    page.keyboard.press("Enter")
    expect(drawer(page)).to_be_focused()


def test_a_change_shows_in_the_results(page, origin, api):
    added = api("POST", "/memory/add", {"text": "The zeppelin lands at noon.", "source": "air"}, namespace="air")
    open_page(page, origin, "/#/search?in=air&q=zeppelin")
    expect(page.get_by_text("● live")).to_be_visible()
    expect(results(page).first).to_contain_text("noon")
    api("PATCH", f"/memory/{added['id']}", {"text": "The zeppelin lands at ten."}, namespace="air")
    page.get_by_role("button", name="1 memory changed since").click()
    expect(results(page).first).to_contain_text("ten")


def test_a_namespace_may_have_any_letters(page, origin, api):
    for name in ("zo\u00eb", "\u0430\u043d\u043d\u0430 \U0001f436"):
        address = name.encode().decode("latin-1")
        api("POST", "/memory/add", {"text": f"Text of {name}", "source": "notes"}, namespace=address)
        open_page(page, origin, f"/#/search?in={quote(name)}")
        search(page, "text")
        expect(results(page).first).to_contain_text(f"Text of {name}")
        page.goto("about:blank")


def test_filters_narrow_the_results_and_are_in_the_address(page, origin):
    open_page(page, origin)
    search(page, "what was decided in May")
    page.get_by_text("Filters").click()
    page.get_by_role("button", name="family", exact=True).click()
    expect(results(page)).to_have_count(3)
    page.get_by_label("Source", exact=True).fill("notes/travel")
    page.get_by_label("Source", exact=True).blur()
    expect(page.get_by_text("Nothing fits")).to_be_visible()
    shared = page.context.new_page()
    shared.goto(page.url)
    expect(shared.get_by_text("Nothing fits")).to_be_visible()
    expect(shared.get_by_label("Source", exact=True)).to_have_value("notes/travel")
    shared.get_by_role("button", name="Clear filters").click()
    expect(results(shared)).to_have_count(10)


def test_dates_and_archived_memories_are_filtered(page, origin, api):
    added = api("POST", "/memory/add", {"text": "The old office was in Porto.", "source": "notes/office"})
    api("PATCH", f"/memory/{added['id']}", {"archived": True})
    open_page(page, origin, "/#/search?q=where+was+the+old+office")
    expect(results(page).first).to_be_visible()
    expect(results(page).filter(has_text="Porto")).to_have_count(0)
    page.get_by_text("Filters").click()
    page.get_by_label("Archived too").check()
    expect(results(page).filter(has_text="Porto")).to_contain_text("archived")
    page.get_by_label("Until").fill("2020-01-01")
    expect(page.get_by_text("Nothing fits")).to_be_visible()


def test_the_copied_command_is_the_same_search(page, origin, api):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, origin, "/#/search?q=the+user's+beagle&tags=family")
    expect(results(page).first).to_contain_text("beagle")
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    words = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert words[:3] == ["curl", f"{origin}/search", "--json"]
    found = api("POST", "/search", json.loads(words[3]))
    assert next(hit["text"] for hit in found["results"]) == "Biscuit, the user's beagle, turns five in May."
    assert len(found["results"]) == 3


def test_an_error_goes_with_its_question(page, context, origin, watch):
    watch.expect("status of 502")
    page.route("**/search/explain", lambda route: route.fulfill(status=502, content_type="text/html", body="<html>"))
    open_page(page, origin)
    page.get_by_role("searchbox").fill("the user's beagle")
    expect(page.get_by_role("alert")).to_contain_text("The answer cannot be read (status 502).")
    page.get_by_role("searchbox").fill("")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_the_evidence_is_said_in_plain_words(page, origin, api):
    words = {"strong": "Spoken of here", "weak": "Perhaps related", "none": "Nothing here is about this"}
    open_page(page, origin)
    seen = set()
    for question in ("where does the sister live", "zirconium"):
        seen.add(api("POST", "/search", {"query": question})["evidence"])
        search(page, question)
        expect(page.get_by_text(words[api("POST", "/search", {"query": question})["evidence"]])).to_be_visible()
    assert len(seen) == 2


def test_messages_and_memories_are_in_one_list_and_a_message_leads_to_its_turn(page, origin, api):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    api("POST", "/memory/add", {"text": "Mira is 31.", "source": "people"}, namespace="assistant")
    open_page(page, origin, "/#/search?in=assistant")
    search(page, "where does Mira live")
    expect(results(page)).to_have_count(4)
    expect(results(page).first).to_contain_text("moved from Porto to Lisbon")
    expect(results(page).first.locator("mark")).to_have_text(["Mira"])
    found = api("POST", "/agents/assistant/search", {"query": "where does Mira live", "limit": 20})
    texts = [(each["message"] or {}).get("content") or each["memory"]["text"] for each in found["results"]]
    shown = [row.locator(".memory-text").inner_text() for row in results(page).all()]
    assert shown == texts
    page.get_by_role("button", name="Copy as curl").click()
    words = shlex.split(page.evaluate("navigator.clipboard.readText()"))
    assert words[1] == f"{origin}/agents/assistant/search"
    again = api("POST", "/agents/assistant/search", json.loads(words[words.index("--json") + 1]))
    assert [each["score"] for each in again["results"]] == [each["score"] for each in found["results"]]
    page.get_by_role("button", name="Memories").click()
    expect(results(page)).to_have_count(1)
    page.get_by_role("button", name="Messages").click()
    expect(results(page)).to_have_count(3)
    results(page).first.click()
    expect(drawer(page)).to_contain_text("Why this result")
    shared = page.context.new_page()
    shared.goto(page.url)
    drawer(shared).get_by_role("link", name="Show this turn in its conversation").click()
    expect(shared.locator(".turn.wanted")).to_contain_text("moved from Porto to Lisbon")


def test_a_search_of_messages_outside_of_an_agent_leads_to_the_agents(page, origin):
    open_page(page, origin, "/#/search?kind=message&q=where+does+Mira+live")
    expect(results(page)).to_have_count(0)
    page.get_by_role("main").get_by_role("link", name="choose one").click()
    expect(page.get_by_role("main").get_by_role("link", name="assistant")).to_be_visible()


def test_words_are_marked_in_every_form_that_the_search_found(page, origin, api):
    text = "Happiness: two dogs lived in Málaga, without a doghouse."
    api("POST", "/memory/add", {"text": text, "source": "notes"}, namespace="forms")
    open_page(page, origin, "/#/search?in=forms&q=happy+dog+living+in+malaga")
    expect(results(page).first.locator("mark")).to_have_text(["Happiness", "dogs", "lived", "Málaga"])


def test_an_empty_namespace_offers_samples_that_are_removed_whole(page, origin, api):
    open_page(page, origin, "/#/search?in=empty")
    page.get_by_role("button", name="Try it with sample memories").click()
    expect(page.get_by_text("8 sample memories are stored")).to_be_visible()
    own = api("POST", "/memory/add", {"text": "A memory of my own.", "source": "sample"}, namespace="empty")
    search(page, "where does the sister live")
    expect(results(page).first).to_contain_text("Mira lives in Lisbon")
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="Remove the samples").click()
    expect(page.get_by_text("8 sample memories are removed")).to_be_visible()
    expect(page.get_by_role("button", name="Remove the samples")).to_have_count(0)
    assert [each["id"] for each in api("GET", "/memories", namespace="empty")["memories"]] == [own["id"]]
