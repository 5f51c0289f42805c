"""The memory drawer: what it shows of a memory, changes with undo, and edits by two at once."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.page.requirements import HAS_NODE_MODULES
from tests.page.samples import add_samples
from tests.page.steps import accessibility_violations, drawer, open_page


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


def open_memory(page, origin, memory_id):
    open_page(page, origin, f"/#/memories?memory={memory_id}")
    shown = drawer(page)
    expect(shown.get_by_role("button", name="Copy as curl")).to_be_visible()
    return shown


def choose(shown, name):
    shown.get_by_role("button", name=name, exact=True).click()


def undo(page):
    page.get_by_role("button", name="Undo").click()


def test_tags_are_added_and_removed_and_both_can_be_undone(page, origin, api):
    shown = open_memory(page, origin, 1)
    shown.get_by_label("New tag").fill("dogs")
    choose(shown, "Add")
    expect(page.get_by_text("Tag added.")).to_be_visible()
    assert set(api("GET", "/memory/1")["tags"]) == {"family", "pets", "dogs"}
    undo(page)
    expect(shown.get_by_role("button", name="Remove the tag dogs")).to_have_count(0)
    choose(shown, "Remove the tag pets")
    expect(page.get_by_text("Tag removed.")).to_be_visible()
    assert api("GET", "/memory/1")["tags"] == ["family"]
    undo(page)
    expect(shown.get_by_role("button", name="Remove the tag pets")).to_be_visible()
    assert set(api("GET", "/memory/1")["tags"]) == {"family", "pets"}


@pytest.mark.parametrize(("name", "done", "field"), [("Pin", "Pinned", "pinned"), ("Archive", "Archived", "archived")])
def test_pinning_and_archiving_can_be_undone(page, origin, api, name, done, field):
    shown = open_memory(page, origin, 2)
    choose(shown, name)
    expect(shown.get_by_role("button", name=done, exact=True)).to_have_attribute("aria-pressed", "true")
    assert api("GET", "/memory/2")[field] is True
    undo(page)
    expect(shown.get_by_role("button", name=name, exact=True)).to_be_visible()
    assert api("GET", "/memory/2")[field] is False


def test_an_edit_is_in_the_history_as_a_word_diff_and_can_be_undone(page, origin, api):
    before = api("GET", "/memory/3")["text"]
    shown = open_memory(page, origin, 3)
    choose(shown, "Edit")
    shown.get_by_label("Text").fill(before.replace("17", "18"))
    choose(shown, "Save")
    shown.get_by_text("History").click()
    expect(shown.locator(".history del")).to_have_text("17")
    expect(shown.locator(".history ins")).to_have_text("18")
    if HAS_NODE_MODULES:
        assert accessibility_violations(page) == []
    undo(page)
    expect(shown.locator(".memory-text").first).to_have_text(before)
    assert api("GET", "/memory/3")["text"] == before


def test_a_text_that_was_changed_meanwhile_is_shown_and_not_overwritten(page, origin, api):
    shown = open_memory(page, origin, 6)
    choose(shown, "Edit")
    shown.get_by_label("Text").fill("The staging database runs in Dublin.")
    api("PATCH", "/memory/6", {"text": "The staging database runs in Paris."})
    choose(shown, "Save")
    expect(shown.get_by_text("was changed while you wrote")).to_be_visible()
    expect(shown.locator("ins")).to_have_text(["Paris.", "Dublin."])
    assert api("GET", "/memory/6")["text"] == "The staging database runs in Paris."
    choose(shown, "Keep mine")
    expect(shown.get_by_label("Text")).to_have_count(0)
    assert api("GET", "/memory/6")["text"] == "The staging database runs in Dublin."
    undo(page)
    expect(shown.locator(".memory-text").first).to_have_text("The staging database runs in Paris.")


def test_deleting_asks_for_a_word_and_says_that_it_is_final(page, origin, api):
    shown = open_memory(page, origin, 10)
    choose(shown, "Delete")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("cannot be brought back")
    expect(dialog.get_by_role("button", name="Delete for good")).to_be_disabled()
    dialog.get_by_role("textbox").fill("delete")
    dialog.get_by_role("button", name="Delete for good").click()
    expect(shown).to_have_count(0)
    assert 10 not in [memory["id"] for memory in api("GET", "/memories?limit=100&include_archived=true")["memories"]]


def test_facts_links_and_what_a_memory_replaced_are_shown(page, origin, api):
    api("PATCH", "/memory/5", {"facts": ["Ana is allergic to peanuts."]})
    api("POST", "/memory/5/link", {"to_id": 8, "type": "related_to"})
    api("POST", "/memory/4/supersede", {"text": "Deployments are frozen between 20 December and 7 January."})
    shown = open_memory(page, origin, 5)
    expect(shown.get_by_role("listitem")).to_contain_text(["Ana is allergic to peanuts.", "related to → Memory 8"])
    shown.get_by_text("Raw JSON").click()
    assert json.loads(shown.locator("pre").inner_text())["id"] == 5
    shown.get_by_role("link", name="Memory 8").click()
    expect(shown.get_by_role("link", name="Memory 5")).to_be_visible()
    shown = open_memory(page, origin, 4)
    shown.get_by_text("Replaced by").get_by_role("link").click()
    expect(shown.get_by_role("heading", level=1)).to_have_text("Memory 11")
    expect(shown.get_by_role("link", name="Memory 4")).to_be_visible()
