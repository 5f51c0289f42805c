"""The view of agents: contexts as the model gets them, blocks with versions, and conversations."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.samples import MESSAGES, add_samples
from tests.page.steps import open_page


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


def unmarked(text: str) -> str:
    """The text without the random ids of its fences."""
    return re.sub(r' id="[0-9a-f]+"', "", text)


def block(page: Page, label: str = "human"):
    return page.get_by_role("region", name=f"Block {label}")


def test_an_agent_is_chosen_from_the_list(page, origin):
    open_page(page, origin, "/#/agents")
    page.get_by_role("main").get_by_role("link", name="assistant").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Agent assistant")
    expect(page.get_by_role("main")).to_contain_text("3 messages · 1 session")
    assert "in=assistant" in page.url


def test_the_context_is_the_text_that_the_model_gets(page, origin, api):
    open_page(page, origin, "/#/agents?in=assistant")
    page.get_by_label("Question that the model").fill("Where does Mira live?")
    page.get_by_role("button", name="Show the context").click()
    shown = page.locator(".context-text")
    expect(shown).to_contain_text("Lisbon")
    answer = api("POST", "/context/assistant", {"query": "Where does Mira live?", "max_tokens": 2000})
    assert unmarked(shown.evaluate("each => each.textContent")) == unmarked(answer["text"])
    assert shown.locator(".stable").evaluate("each => each.textContent") == answer["stable_prefix"]
    context = page.get_by_role("region", name="Context")
    # The random ids of the fences take a few tokens more or less.
    tokens = re.search(r"(\d+) of 2,000 tokens", context.inner_text())
    assert tokens
    assert int(tokens.group(1)) == pytest.approx(answer["tokens"], abs=20)
    percentage = round(answer["relevant_messages"][0]["score"] * 100)
    expect(context.get_by_role("row").filter(has_text="moved from Porto")).to_contain_text(f"{percentage} %")


def test_a_small_budget_says_what_was_left_out(page, origin, api):
    turns = [
        {"role": "user", "content": f"On day {day} I ran {day + 3} kilometres along the river."} for day in range(40)
    ]
    api("POST", "/messages/batch", {"agent_name": "runner", "messages": turns})
    open_page(page, origin, "/#/agents?in=runner&ask=how+far+did+I+run&tokens=250")
    dropped = api("POST", "/context/runner", {"query": "how far did I run", "max_tokens": 250})["dropped"]
    assert dropped["messages"] > 0
    expect(page.get_by_text(f"used up: {dropped['messages']} messages and 0 memories")).to_be_visible()


def test_a_block_is_edited_undone_and_has_a_history(page, origin, api):
    open_page(page, origin, "/#/agents?in=assistant&show=blocks")
    block(page).get_by_role("button", name="Edit human").click()
    block(page).get_by_label("Value").fill("Speaks English and Dutch.")
    block(page).get_by_role("button", name="Save").click()
    expect(block(page).locator(".block-value")).to_have_text("Speaks English and Dutch.")
    assert api("GET", "/memory-blocks/assistant/human")["value"] == "Speaks English and Dutch."
    block(page).get_by_role("button", name="History of human").click()
    newest = block(page).get_by_role("listitem").first
    expect(newest.locator("ins")).to_have_text("Dutch.")
    expect(newest.locator("del")).to_have_text("Portuguese.")
    page.get_by_role("button", name="Undo").click()
    expect(block(page).locator(".block-value")).to_have_text("Speaks English and Portuguese.")
    block(page).get_by_role("button", name="Restore version 2").click()
    expect(block(page).locator(".block-value")).to_have_text("Speaks English and Dutch.")
    assert api("GET", "/memory-blocks/assistant/human")["version"] == 4


def test_two_tabs_that_edit_one_block_never_overwrite_each_other(page, context, origin, api, watch):
    watch.expect("status of 412")
    api("POST", "/memory-blocks", {"agent_name": "shared", "label": "team", "value": "Ana leads."})
    other = context.new_page()
    for tab in (page, other):
        open_page(tab, origin, "/#/agents?in=shared&show=blocks")
        block(tab, "team").get_by_role("button", name="Edit team").click()
    block(page, "team").get_by_label("Value").fill("Ana leads the team.")
    block(page, "team").get_by_role("button", name="Save").click()
    expect(block(page, "team").locator(".block-value")).to_have_text("Ana leads the team.")
    block(other, "team").get_by_label("Value").fill("Ana leads and plans.")
    block(other, "team").get_by_role("button", name="Save").click()
    conflict = other.get_by_role("alert")
    expect(conflict).to_contain_text("changed in the meantime, to version 2")
    expect(conflict).to_contain_text("Their change")
    assert conflict.locator("ins").all_inner_texts()[0].strip() == "leads"
    expect(conflict).to_contain_text("team.")
    assert api("GET", "/memory-blocks/shared/team")["value"] == "Ana leads the team."
    block(other, "team").get_by_role("button", name="Keep editing mine").click()
    block(other, "team").get_by_label("Value").fill("Ana leads the team and plans.")
    block(other, "team").get_by_role("button", name="Save").click()
    expect(block(other, "team").locator(".block-value")).to_have_text("Ana leads the team and plans.")
    assert api("GET", "/memory-blocks/shared/team")["version"] == 3


def test_a_conversation_is_read_in_its_order(page, origin):
    open_page(page, origin, "/#/agents?in=assistant&show=conversations")
    page.get_by_role("main").get_by_role("row").nth(1).get_by_role("link").click()
    turns = page.get_by_role("article")
    expect(turns).to_have_count(len(MESSAGES))
    for place, (role, content) in enumerate(MESSAGES):
        expect(turns.nth(place)).to_contain_text(role)
        expect(turns.nth(place)).to_contain_text(content)
