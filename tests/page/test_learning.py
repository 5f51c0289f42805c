"""The view of learning: changes as they happen, conflicts to decide, and learning from a conversation with undo."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.samples import add_samples
from tests.page.steps import navigation, open_page


@pytest.fixture(scope="module")
def service_settings():
    return {"EXTRACT_FALLBACK_ADD": "true"}


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


def changes(page):
    return page.get_by_role("list", name="Latest changes").get_by_role("listitem")


def test_a_change_of_another_program_appears_behind_a_button(page, origin, api):
    open_page(page, origin, "/#/learning")
    expect(page.get_by_text("● live")).to_be_visible()
    first = changes(page).first.inner_text()
    added = api("POST", "/memory/add", {"text": "The bakery opens at six.", "source": "notes/bakery"})
    page.get_by_role("button", name="1 new").click()
    expect(changes(page).first).not_to_have_text(first)
    expect(changes(page).first).to_contain_text(f"memory {added['id']} was added in notes/bakery")
    changes(page).first.get_by_role("link").click()
    expect(page.get_by_role("complementary")).to_contain_text("The bakery opens at six.")


def test_changes_are_filtered_by_kind(page, origin):
    open_page(page, origin, "/#/learning?in=assistant&kind=block")
    expect(changes(page)).to_have_count(1)
    expect(changes(page).first).to_contain_text("The block human was added")


def test_changes_during_a_restart_are_shown_after_it(page, origin, api, service, watch):
    watch.expect(r"net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)")
    open_page(page, origin, "/#/learning")
    expect(page.get_by_text("● live")).to_be_visible()
    service.kill()
    expect(page.get_by_text("not live")).to_be_visible()
    service.start()
    api("POST", "/memory/add", {"text": "The service was restarted.", "source": "notes"})
    expect(page.get_by_role("button", name="1 new")).to_be_visible(timeout=15_000)


def test_without_a_model_the_view_says_how_to_set_one_and_sentences_are_learned_and_undone(page, origin, api):
    before = api("GET", "/memories/count")["count"]
    open_page(page, origin, "/#/learning")
    expect(page.get_by_text("No language model is configured")).to_be_visible()
    expect(page.get_by_text("EXTRACT_PROVIDER=ollama")).to_be_visible()
    page.get_by_label("Conversation, with").fill(
        "User: We decided to use Redis for sessions.\nUser: I prefer short reports."
    )
    page.get_by_role("button", name="Show what would be learned").click()
    page.get_by_role("button", name="Commit 1 of 1").wait_for()
    expect(page.get_by_text("would be stored word for word")).to_be_visible()
    page.get_by_role("button", name="Reword").click()
    page.get_by_label("Text of proposal").fill("Sessions are kept in Redis.")
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_label("Text of proposal")).to_have_count(0)
    assert api("GET", "/memories/count")["count"] == before
    page.get_by_role("button", name="Commit 1 of 1").click()
    page.get_by_role("button", name="Undo all of it").wait_for()
    finding = page.get_by_role("region", name="Extraction", exact=True).locator("li.proposal")
    expect(finding).to_contain_text("Added, reworded")
    expect(finding).not_to_contain_text("as it was said")
    assert api("GET", "/memories/count")["count"] == before + 1
    page.get_by_role("button", name="Undo all of it").click()
    expect(page.get_by_role("heading", name="Undone")).to_be_visible()
    expect(finding).to_contain_text(", undone")
    expect(finding.get_by_role("link", name="memory")).to_have_count(0)
    assert api("GET", "/memories/count")["count"] == before


def test_a_conflict_is_decided_for_one_memory_or_for_both_with_undo(page, origin, api):
    rome, oslo = (
        api("POST", "/memory/add", {"text": f"The office is in {city} since spring.", "source": "office"})["id"]
        for city in ("Rome", "Oslo")
    )
    api("PUT", f"/memory/{oslo}/conflict/{rome}")
    open_page(page, origin, "/#/learning")
    conflict = page.get_by_role("group", name=f"Memory {rome} or memory {oslo}")
    expect(conflict.locator("mark")).to_have_text(["Rome", "Oslo"])
    expect(navigation(page).get_by_role("link", name="Learning")).to_contain_text("1")
    page.get_by_role("button", name="Keep both").click()
    expect(conflict).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    conflict.get_by_role("button", name=f"Keep memory {rome}").click()
    expect(conflict).to_have_count(0)
    assert [api("GET", f"/memory/{one}")["archived"] for one in (rome, oslo)] == [False, True]
    page.get_by_role("button", name="Undo").click()
    expect(conflict).to_be_visible()
    assert api("GET", f"/memory/{oslo}")["archived"] is False
