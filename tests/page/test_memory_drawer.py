"""The memory drawer: what it shows of a memory, changes that can be undone, and edits by two at once."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Dialog, expect

from tests.page.requirements import HAS_NODE_MODULES
from tests.page.samples import add_samples
from tests.page.steps import accessibility_violations, drawer, open_page, settle


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
    expect(page.locator(".row.current")).to_contain_text("dogs")
    settle(page)
    assert set(api("GET", "/memory/1")["tags"]) == {"family", "pets", "dogs"}
    undo(page)
    expect(shown.get_by_role("button", name="Remove the tag dogs")).to_have_count(0)
    choose(shown, "Remove the tag pets")
    expect(page.get_by_text("Tag removed.")).to_be_visible()
    settle(page)
    assert api("GET", "/memory/1")["tags"] == ["family"]
    undo(page)
    expect(shown.get_by_role("button", name="Remove the tag pets")).to_be_visible()
    settle(page)
    assert set(api("GET", "/memory/1")["tags"]) == {"family", "pets"}


@pytest.mark.parametrize(("name", "done", "field"), [("Pin", "Pinned", "pinned"), ("Archive", "Archived", "archived")])
def test_pinning_and_archiving_can_be_undone(page, origin, api, name, done, field):
    shown = open_memory(page, origin, 2)
    choose(shown, name)
    expect(shown.get_by_role("button", name=done, exact=True)).to_have_attribute("aria-pressed", "true")
    settle(page)
    assert api("GET", "/memory/2")[field] is True
    undo(page)
    expect(shown.get_by_role("button", name=name, exact=True)).to_be_visible()
    settle(page)
    assert api("GET", "/memory/2")[field] is False


def test_an_edit_is_in_the_history_as_a_word_diff_and_can_be_undone(page, origin, api):
    before = api("GET", "/memory/3")["text"]
    shown = open_memory(page, origin, 3)
    choose(shown, "Edit")
    expect(shown).to_be_focused()
    expect(shown).to_contain_text("its history keeps the old text")
    shown.get_by_label("Text").fill(before.replace("17", "18"))
    choose(shown, "Save")
    expect(shown).to_be_focused()
    shown.get_by_text("History").click()
    expect(shown.locator(".history del")).to_have_text("17")
    expect(shown.locator(".history ins")).to_have_text("18")
    if HAS_NODE_MODULES:
        assert accessibility_violations(page) == []
    undo(page)
    expect(shown.locator(".memory-text").first).to_have_text(before)
    expect(page.get_by_text("Undone.")).to_be_visible()
    settle(page)
    assert api("GET", "/memory/3")["text"] == before


def test_a_text_that_was_changed_meanwhile_is_shown_and_not_overwritten(page, origin, api):
    shown = open_memory(page, origin, 6)
    choose(shown, "Edit")
    shown.get_by_label("Text").fill("The staging database runs in Dublin.")
    api("PATCH", "/memory/6", {"text": "The staging database runs in Paris."})
    choose(shown, "Save")
    expect(shown.get_by_text("was changed while you wrote")).to_be_visible()
    expect(shown.locator("ins")).to_have_text(["Paris.", "Dublin."])
    expect(shown.locator(".memory-text").first).to_have_text("The staging database runs in Frankfurt.")
    settle(page)
    assert api("GET", "/memory/6")["text"] == "The staging database runs in Paris."
    choose(shown, "Keep mine")
    expect(shown.get_by_label("Text")).to_have_count(0)
    settle(page)
    assert api("GET", "/memory/6")["text"] == "The staging database runs in Dublin."
    undo(page)
    expect(shown.locator(".memory-text").first).to_have_text("The staging database runs in Paris.")


def test_deleting_asks_for_a_word_and_says_that_it_is_final(page, origin, api):
    shown = open_memory(page, origin, 10)
    choose(shown, "Delete")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("cannot be brought back")
    expect(dialog.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    dialog.get_by_role("button", name="Cancel").click()
    expect(shown.get_by_role("button", name="Delete", exact=True)).to_be_focused()
    choose(shown, "Delete")
    dialog.get_by_role("textbox").fill("delete")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(shown).to_have_count(0)
    settle(page)
    assert 10 not in [memory["id"] for memory in api("GET", "/memories?limit=100&include_archived=true")["memories"]]


def test_facts_and_links_are_shown(page, origin, api):
    api("PATCH", "/memory/5", {"facts": ["Ana is allergic to peanuts."]})
    api("POST", "/memory/5/link", {"to_id": 8, "type": "related_to"})
    shown = open_memory(page, origin, 5)
    expect(shown.get_by_role("listitem")).to_contain_text(["Ana is allergic to peanuts.", "related to → memory 8"])
    expect(shown.get_by_role("listitem").last).to_contain_text("The user's sister Mira lives in Lisbon")
    shown.get_by_text("Raw JSON").click()
    assert json.loads(shown.locator("pre").inner_text())["id"] == 5
    shown.get_by_role("link", name="Memory 8").click()
    expect(shown.get_by_role("link", name="Memory 5")).to_be_visible()


def test_a_change_shows_at_once_and_goes_back_with_the_reason_if_it_is_refused(page, context, origin, api, watch):
    watch.expect("status of 422")
    added = api(
        "POST", "/memory/add", {"text": "Busy.", "source": "a", "tags": [f"tag {number}" for number in range(50)]}
    )
    held = []
    page.route(
        f"**/memory/{added['id']}",
        lambda route: held.append(route) if route.request.method == "PATCH" else route.continue_(),
    )
    shown = open_memory(page, origin, added["id"])
    shown.get_by_label("New tag").fill("one too many")
    choose(shown, "Add")
    expect(shown.get_by_role("button", name="Remove the tag one too many")).to_be_visible()
    expect(page.get_by_text("Tag added.")).to_be_visible()
    choose(shown, "Pin")
    expect(shown.get_by_role("button", name="Pinned")).to_be_visible()
    expect(page.get_by_role("listbox").get_by_role("option").first).to_contain_text("pinned")
    held.pop().continue_()
    expect(shown.get_by_role("alert")).to_contain_text("at most 50 tags")
    expect(shown.get_by_role("button", name="Remove the tag one too many")).to_have_count(0)
    expect(shown.get_by_label("New tag")).to_have_value("one too many")
    # What was changed meanwhile is sent after it, and holds.
    expect(shown.get_by_role("button", name="Pinned")).to_be_visible()
    with page.expect_response(f"**/memory/{added['id']}"):
        held.pop().continue_()
    settle(page)
    assert api("GET", f"/memory/{added['id']}")["pinned"] is True


def test_what_is_typed_stays_when_the_drawer_is_closed(page, context, origin):
    shown = open_memory(page, origin, 7)
    choose(shown, "Edit")
    shown.get_by_label("Text").fill("Half a thought")
    choose(shown, "Close")
    page.get_by_role("option").filter(has_text="Retries").click()
    expect(shown.get_by_label("Text")).to_have_value("Half a thought")
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", leave)
    page.reload()
    assert asked == ["beforeunload"]
    settle(page)
    page.reload()
    assert asked == ["beforeunload"]


def test_facts_are_edited_and_links_made_by_words_and_both_can_be_undone(page, origin, api):
    shown = open_memory(page, origin, 8)
    choose(shown, "Add facts")
    shown.get_by_label("Fact 1", exact=True).fill("Mira lives in Lisbon.")
    choose(shown, "Another fact")
    shown.get_by_label("Fact 2", exact=True).fill("Mira teaches chemistry.")
    choose(shown, "Save the facts")
    expect(page.get_by_text("Facts changed.")).to_be_visible()
    choose(shown, "Edit the facts")
    choose(shown, "Remove fact 2")
    api("PATCH", "/memory/8", {"facts": ["Mira is the user's sister."]})
    choose(shown, "Save the facts")
    expect(shown.get_by_role("alert")).to_contain_text("Mira is the user's sister.")
    choose(shown, "Save the facts")
    expect(page.get_by_text("Facts changed.")).to_be_visible()
    expect(shown.get_by_role("alert")).to_have_count(0)
    undo(page)
    expect(shown.locator(".facts li")).to_contain_text(["Mira is the user's sister."])
    settle(page)
    assert [fact["text"] for fact in api("GET", "/memory/8")["facts"]] == ["Mira is the user's sister."]
    shown.get_by_label("Kind of the link").select_option("reinforces")
    shown.get_by_label("Memory to link with").fill("window seats on long flights")
    choose(shown, "Link")
    choose(shown, "Link with memory 2")
    expect(page.get_by_text("Link added.")).to_be_visible()
    choose(shown, "Remove the link reinforces → Memory 2")
    expect(page.get_by_text("Link removed.")).to_be_visible()
    undo(page)
    expect(shown.get_by_role("button", name="Remove the link reinforces → Memory 2")).to_be_visible()
    settle(page)
    assert [link["type"] for link in api("GET", "/memory/8/links")["links"]] == ["reinforces"]


def test_a_replacement_keeps_the_old_text_as_a_version_and_can_be_undone(page, origin, api):
    first = api("POST", "/memory/add", {"text": "The office opens at 8.", "source": "office"})["id"]
    second = api("POST", f"/memory/{first}/supersede", {"text": "The office opens at 9."})["new_id"]
    shown = open_memory(page, origin, second)
    choose(shown, "Replace")
    shown.get_by_label("Text of the replacement").fill("The office opens at 10.")
    choose(shown, "Replace")
    expect(shown.get_by_role("heading", level=1)).to_have_text(f"Memory {second + 1}")
    shown.get_by_text("Versions", exact=True).click()
    expect(shown.locator(".history > li")).to_contain_text(["10.", "9.", "The office opens at 8."])
    expect(shown.locator(".history del")).to_have_text(["9.", "8."])
    if HAS_NODE_MODULES:
        assert accessibility_violations(page) == []
    undo(page)
    expect(shown.get_by_role("heading", level=1)).to_have_text(f"Memory {second}")
    expect(shown.get_by_role("button", name="Archive", exact=True)).to_be_visible()
    settle(page)
    assert [each["id"] for each in api("GET", "/memories?source=office")["memories"]] == [second]
    shown = open_memory(page, origin, first)
    shown.get_by_text("Replaced by").get_by_role("link").click()
    expect(shown.get_by_role("heading", level=1)).to_have_text(f"Memory {second}")


def test_all_of_a_very_long_text_is_shown_on_request(page, origin, api):
    # Words of which the model reads nothing: embedding is no part of this, and takes seconds for so much text.
    text = " ".join(f"{'w' * 110}word{number:03}" for number in range(250))[:25_000]
    added = api("POST", "/memory/add", {"text": text, "source": "long"})
    shown = open_memory(page, origin, added["id"])
    expect(shown.locator(".memory-text").first).to_contain_text("word150")
    expect(shown.locator(".memory-text").first).not_to_contain_text("word190")
    choose(shown, "Show all 25,000 characters")
    expect(shown.locator(".memory-text").first).to_have_text(text)
