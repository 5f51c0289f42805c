"""The list of memories: the tree of sources, order, keys, changes of others, and actions on several with undo."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.samples import MEMORIES, add_samples
from tests.page.steps import accessibility_violations, drawer, open_page, results, settle


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


def bulk(page):
    return page.get_by_role("group", name="Actions on several memories")


def test_the_list_is_narrowed_by_source_and_tag_in_the_address(page, origin):
    open_page(page, origin, "/#/memories")
    expect(results(page)).to_have_count(len(MEMORIES))
    page.get_by_text("Filters").click()
    page.get_by_role("treeitem", name="claude-code/ 6").click()
    expect(results(page)).to_have_count(6)
    page.get_by_role("button", name="database", exact=True).click()
    expect(results(page)).to_have_count(2)
    shared = page.context.new_page()
    shared.goto(page.url)
    expect(results(shared)).to_have_count(2)
    shared.get_by_role("button", name="Clear filters").click()
    expect(results(shared)).to_have_count(len(MEMORIES))


def test_a_folder_that_no_filter_takes_is_opened_and_not_chosen(page, origin, api):
    for source in ("a/b", "a/", "a//c"):
        api("POST", "/memory/add", {"text": f"A letter of {source}.", "source": source}, namespace="slashes")
    open_page(page, origin, "/#/memories?in=slashes&source=a%2F%2Fc")
    expect(page.get_by_role("treeitem")).to_have_text(["▾a/ 3", "▾(no name)/ 2", "c 1", "b 1"])
    expect(results(page)).to_contain_text(["A letter of a//c."])
    page.get_by_role("treeitem", name="(no name)/ 2").click()
    expect(page.get_by_role("treeitem")).to_have_text(["▾a/ 3", "▸(no name)/ 2", "b 1"])
    expect(results(page)).to_have_count(1)
    assert page.get_by_role("treeitem", name="(no name)/ 2").get_attribute("aria-selected") is None
    assert accessibility_violations(page) == []


def test_the_tree_of_sources_is_opened_and_chosen_with_keys(page, origin, api):
    for source in ("letters/2026/may", "letters/2026/june", "/odd"):
        api("POST", "/memory/add", {"text": f"A letter of {source}.", "source": source}, namespace="tree")
    open_page(page, origin, "/#/memories?in=tree")
    page.get_by_text("Filters").click()
    page.get_by_role("treeitem").first.focus()
    page.keyboard.press("ArrowDown")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
        settle(page)
        page.keyboard.press("ArrowDown")
    expect(page.get_by_role("treeitem")).to_have_text(["▸/ 1", "▾letters/ 2", "▾2026/ 2", "june 1", "may 1"])
    page.keyboard.press("Enter")
    expect(results(page)).to_contain_text(["A letter of letters/2026/june."])
    assert "source=letters%2F2026%2Fjune" in page.url
    page.keyboard.press("ArrowLeft")
    page.keyboard.press(" ")
    expect(results(page)).to_have_count(2)
    page.reload()
    expect(page.get_by_role("treeitem", name="2026/")).to_have_attribute("aria-selected", "true")
    page.get_by_role("treeitem", name="/ 1", exact=True).click()
    expect(results(page)).to_contain_text(["A letter of /odd."])
    page.goto(f"{origin}/#/search?in=tree&q=letter&source=%2F")
    expect(results(page)).to_contain_text(["A letter of /odd."])


def test_the_list_is_moved_through_and_rows_are_chosen_with_keys(page, origin):
    open_page(page, origin, "/#/memories?order=oldest")
    expect(results(page).first).to_contain_text(MEMORIES[0][0])
    page.get_by_label("Order").select_option("newest first")
    expect(results(page).first).to_contain_text(MEMORIES[-1][0])
    page.get_by_role("listbox").focus()
    for key in ("j", "j", "k", " ", "Shift+J", "Shift+ArrowDown"):
        page.keyboard.press(key)
        settle(page)
    expect(bulk(page)).to_contain_text("3 memories chosen")
    page.keyboard.press("Enter")
    expect(drawer(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_focused()


def test_what_others_add_and_change_waits_behind_a_button(page, origin, api):
    def add(number):
        return api("POST", "/memory/add", {"text": f"Note {number}.", "source": "notes"}, namespace="live")["id"]

    old = [add(number) for number in range(3)]
    open_page(page, origin, "/#/memories?in=live&source=notes")
    expect(page.get_by_title("Changes are shown as they happen")).to_be_visible()
    results(page).nth(1).click()
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(results(page).nth(1)).to_contain_text("pinned")
    expect(page.get_by_text("Pinned: it is")).to_be_visible()
    new = add(3)
    add(4)
    api("POST", "/memory/add", {"text": "Elsewhere.", "source": "other"}, namespace="live")
    api("PATCH", f"/memory/{new}", {"pinned": True}, namespace="live")
    api("PATCH", f"/memory/{old[0]}", {"pinned": True}, namespace="live")
    waiting = page.get_by_role("button", name="2 new, 1 changed", exact=True)
    expect(waiting).to_be_visible()
    # A change of this page loads the list again, and moves nothing.
    drawer(page).get_by_role("button", name="Pinned").click()
    settle(page)
    expect(results(page)).to_contain_text([f"Note {number}." for number in (2, 1, 0)])
    waiting.click()
    expect(results(page)).to_contain_text([f"Note {number}." for number in (4, 3, 2, 1, 0)])
    expect(waiting).to_have_count(0)
    api("PATCH", f"/memory/{old[1]}", {"text": "Note 1, by another program."}, namespace="live")
    drawer(page).get_by_role("button", name="Show it as it is now").click()
    expect(drawer(page)).to_contain_text("by another program")


def test_several_are_archived_and_brought_back(page, origin, api):
    open_page(page, origin, "/#/memories")
    page.get_by_role("button", name="Choose several").click()
    results(page).nth(1).click()
    results(page).nth(3).click(modifiers=["Shift"])
    expect(bulk(page)).to_contain_text("3 memories chosen")
    bulk(page).get_by_role("button", name="Archive").click()
    expect(results(page)).to_have_count(len(MEMORIES) - 3)
    assert api("GET", "/memories/count")["count"] == len(MEMORIES) - 3
    page.get_by_role("button", name="Undo").click()
    expect(results(page)).to_have_count(len(MEMORIES))
    assert api("GET", "/memories/count")["count"] == len(MEMORIES)


def test_a_tag_is_added_to_several_and_taken_back(page, origin, api):
    open_page(page, origin, "/#/memories?tags=family")
    expect(results(page)).to_have_count(3)
    page.get_by_role("button", name="Choose several").click()
    for place in range(3):
        results(page).nth(place).click()
    bulk(page).get_by_label("Tag").fill("pets")
    bulk(page).get_by_role("button", name="Add the tag").click()
    expect(page.get_by_text("The tag is added to 2 memories.")).to_be_visible()
    assert api("GET", "/memories?tag=pets")["total"] == 3
    page.get_by_role("button", name="Undo").click()
    settle(page)
    assert api("GET", "/memories?tag=pets")["total"] == 1


def test_all_that_match_are_moved_and_go_back_to_where_each_was(page, origin, api):
    before = {each["id"]: each["source"] for each in api("GET", "/memories?limit=100")["memories"]}
    open_page(page, origin, "/#/memories?source=claude-code")
    page.get_by_role("button", name="Choose several").click()
    page.get_by_role("button", name="Choose all 6 that match").click()
    expect(bulk(page)).to_contain_text("6 memories chosen: all that match.")
    bulk(page).get_by_label("Source").fill("archive/code")
    bulk(page).get_by_role("button", name="Move", exact=True).click()
    expect(page.get_by_text("6 memories moved to archive/code.")).to_be_visible()
    assert api("GET", "/memories?source=archive/code")["total"] == 6
    page.get_by_role("button", name="Undo").click()
    settle(page)
    assert {each["id"]: each["source"] for each in api("GET", "/memories?limit=100")["memories"]} == before


def test_several_are_deleted_after_a_typed_confirmation(page, origin, api):
    added = [
        api("POST", "/memory/add", {"text": f"Draft number {n} of a letter.", "source": "drafts"}) for n in range(2)
    ]
    open_page(page, origin, "/#/memories?source=drafts")
    page.get_by_role("button", name="Choose several").click()
    for place in range(2):
        results(page).nth(place).click()
    bulk(page).get_by_role("button", name="Delete …").click()
    dialog = page.get_by_role("dialog", name="Delete 2 memories")
    expect(dialog.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    dialog.get_by_role("textbox").fill("delete 2")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(results(page)).to_have_count(0)
    kept = {each["id"] for each in api("GET", "/memories?limit=100&include_archived=true")["memories"]}
    assert kept.isdisjoint(each["id"] for each in added)
