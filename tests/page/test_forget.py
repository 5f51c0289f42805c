"""The view that erases: what will go is counted, its name is typed, and a receipt says what went."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.page.samples import MEMORIES, add_samples
from tests.page.steps import open_page, results


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)
    api("POST", "/memory/add", {"text": "The assistant knows Porto.", "source": "notes/porto"}, namespace="assistant")


def will_go(page: Page):
    return page.get_by_role("region", name="What will go")


def confirm(page: Page, word: str) -> None:
    will_go(page).get_by_role("button", name="Erase …").click()
    dialog = page.get_by_role("dialog", name="Erase for good")
    expect(dialog.get_by_role("button", name="Erase for good")).to_be_disabled()
    dialog.get_by_role("textbox").fill(word)
    dialog.get_by_role("button", name="Erase for good").click()


def test_a_source_is_erased_after_its_name_was_typed(page, origin, api):
    open_page(page, origin, "/#/forget")
    page.get_by_label("Source, such as").fill("claude-code/billing")
    page.get_by_role("button", name="Show what will go").click()
    count = sum(source == "claude-code/billing" for _, source, _ in MEMORIES)
    expect(will_go(page)).to_contain_text(f"{count} memories")
    confirm(page, "claude-code/billing")
    receipt = page.get_by_role("status", name="Receipt")
    expect(receipt.get_by_role("row", name="memories")).to_contain_text(str(count))
    assert api("GET", "/memories/count")["count"] == len(MEMORIES) - count
    assert api("GET", "/memories/count?source=claude-code/billing")["count"] == 0


def test_one_memory_shows_its_text_before_it_goes(page, origin, api):
    added = api("POST", "/memory/add", {"text": "The code of the gate is 4711.", "source": "notes/gate"})
    open_page(page, origin, f"/#/forget?kind=memory_id&value={added['id']}")
    expect(will_go(page)).to_contain_text("The code of the gate is 4711.")
    confirm(page, str(added["id"]))
    expect(page.get_by_role("status", name="Receipt")).to_contain_text("no longer contain it")
    assert all("4711" not in each["text"] for each in api("GET", "/memories?limit=100")["memories"])


def test_an_agent_is_erased_whole_and_nothing_else(page, origin, api):
    before = api("GET", "/memories/count")["count"]
    open_page(page, origin, "/#/forget?kind=agent&in=assistant")
    for line in ("1 memory", "3 messages", "1 block"):
        expect(will_go(page)).to_contain_text(line)
    confirm(page, "assistant")
    expect(page.get_by_role("status", name="Receipt").get_by_role("row", name="messages")).to_contain_text("3")
    assert api("GET", "/agents")["total"] == 0
    assert api("GET", "/memories/count")["count"] == before


def test_a_user_is_erased_with_their_messages(page, origin, api):
    turns = [
        {"role": "user", "content": "I live in Porto.", "user": "ann"},
        {"role": "user", "content": "I do not.", "user": "ben"},
    ]
    api("POST", "/messages/batch", {"agent_name": "concierge", "messages": turns})
    open_page(page, origin, "/#/forget?kind=user&value=ann&in=concierge")
    expect(will_go(page)).to_contain_text("1 message")
    confirm(page, "ann")
    expect(page.get_by_role("status", name="Receipt").get_by_role("row", name="messages")).to_contain_text("1")
    assert [each["content"] for each in api("GET", "/messages/concierge")] == ["I do not."]


def test_a_source_without_memories_cannot_be_erased(page, origin):
    open_page(page, origin, "/#/forget?kind=source&value=nowhere")
    expect(will_go(page)).to_contain_text("0 memories")
    expect(will_go(page).get_by_role("button", name="Erase …")).to_be_disabled()


def test_the_chosen_namespace_stays_in_the_address_of_every_view(page, origin, api):
    api("POST", "/memory/add", {"text": "Only the helper knows this.", "source": "notes"}, namespace="helper")
    open_page(page, origin, "/#/memories")
    page.get_by_label("Namespace or agent").fill("helper")
    page.keyboard.press("Enter")
    expect(results(page)).to_have_count(1)
    expect(results(page)).to_contain_text("Only the helper knows this.")
    page.get_by_role("link", name="Search").click()
    page.get_by_role("searchbox").fill("what does the helper know")
    expect(results(page)).to_have_count(1)
    assert "in=helper" in page.url
