"""The list of memories: filters in the address, and actions on several with undo."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.samples import MEMORIES, add_samples
from tests.page.steps import open_page, results, settle


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


def bulk(page):
    return page.get_by_role("group", name="Actions on several memories")


def test_the_list_is_narrowed_by_source_and_tag_in_the_address(page, context, origin):
    open_page(page, origin, "/#/memories")
    expect(results(page)).to_have_count(len(MEMORIES))
    page.get_by_text("Filters").click()
    page.get_by_role("button", name="claude-code/ 6").click()
    expect(results(page)).to_have_count(6)
    page.get_by_role("button", name="database", exact=True).click()
    expect(results(page)).to_have_count(2)
    shared = context.new_page()
    shared.goto(page.url)
    expect(results(shared)).to_have_count(2)
    shared.get_by_role("button", name="Clear filters").click()
    expect(results(shared)).to_have_count(len(MEMORIES))


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
    bulk(page).get_by_label("Tag to add").fill("pets")
    bulk(page).get_by_role("button", name="Add the tag").click()
    expect(page.get_by_text("The tag is added to 2 memories.")).to_be_visible()
    assert api("GET", "/memories?tag=pets")["total"] == 3
    page.get_by_role("button", name="Undo").click()
    settle(page)
    assert api("GET", "/memories?tag=pets")["total"] == 1


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
    expect(dialog.get_by_role("button", name="Delete for good")).to_be_disabled()
    dialog.get_by_role("textbox").fill("delete 2")
    dialog.get_by_role("button", name="Delete for good").click()
    expect(results(page)).to_have_count(0)
    kept = {each["id"] for each in api("GET", "/memories?limit=100&include_archived=true")["memories"]}
    assert kept.isdisjoint(each["id"] for each in added)
