"""The view that erases: what will go is counted, its name is typed, and a receipt says what went."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.requirements import HAS_NODE_MODULES
from tests.page.samples import MEMORIES, add_samples
from tests.page.steps import accessibility_violations, open_page, results, settle


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)
    api("POST", "/memory/add", {"text": "The assistant knows Porto.", "source": "notes/porto"}, namespace="assistant")


def will_go(page: Page) -> Locator:
    return page.get_by_role("region", name="What will go")


def receipt(page: Page) -> Locator:
    return page.get_by_role("status", name="Receipt")


def removed(page: Page, name: str) -> Locator:
    return receipt(page).get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True))


def confirm(page: Page, word: str) -> None:
    will_go(page).get_by_role("button", name="Forget …").click()
    dialog = page.get_by_role("dialog", name="Forget for good")
    expect(dialog.get_by_role("button", name="Forget for good")).to_be_disabled()
    dialog.get_by_role("textbox").fill(word)
    dialog.get_by_role("button", name="Forget for good").click()


def downloaded(page: Page) -> dict[str, Any]:
    with page.expect_download() as saving:
        receipt(page).get_by_role("button", name="Download the receipt").click()
    saved: dict[str, Any] = json.loads(saving.value.path().read_text(encoding="utf-8"))
    return saved


def test_a_source_is_erased_after_its_name_was_typed(page, origin, api):
    open_page(page, origin, "/#/forget?kind=source")
    page.get_by_label("Source, such as").fill("claude-code/billing")
    page.get_by_role("button", name="Show what will go").click()
    count = sum(source == "claude-code/billing" for _, source, _ in MEMORIES)
    expect(will_go(page)).to_contain_text(f"{count} memories")
    confirm(page, "claude-code/billing")
    expect(removed(page, "memories")).to_contain_text(str(count))
    assert api("GET", "/memories/count")["count"] == len(MEMORIES) - count
    assert api("GET", "/memories/count?source=claude-code/billing")["count"] == 0


def test_one_memory_shows_its_text_before_it_goes(page, origin, api):
    added = api("POST", "/memory/add", {"text": "The code of the gate is 4711.", "source": "notes/gate"})
    open_page(page, origin, f"/#/forget?kind=memory_id&value={added['id']}")
    expect(will_go(page)).to_contain_text("The code of the gate is 4711.")
    confirm(page, str(added["id"]))
    expect(receipt(page)).to_contain_text("no longer contain it")
    assert all("4711" not in each["text"] for each in api("GET", "/memories?limit=100")["memories"])


def test_results_of_searches_are_chosen_and_erased_at_once_and_the_receipt_stays(page, origin, api, watch):
    texts = ["Falcon is the project's secret name.", "The falcon launches in June.", "Tea is drunk at four."]
    for text in texts:
        api("POST", "/memory/add", {"text": text, "source": "plans/secret"}, namespace="pilot")
    turns = [{"role": "user", "content": "Never say falcon.", "session_id": "hangar"}]
    api("POST", "/messages/batch", {"agent_name": "pilot", "messages": turns})
    api("POST", "/backup")
    open_page(page, origin, "/#/forget?in=pilot")
    page.get_by_label("Question or words").fill("secret falcon")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("checkbox", name="Falcon is the project").check()
    expect(page.get_by_role("checkbox", name="All")).to_have_count(0)
    page.get_by_role("checkbox", name="Never say falcon").check()
    settle(page)
    page.get_by_label("Question or words").fill("when does it launch")
    page.get_by_label("In the source").fill("plans")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("checkbox", name="The falcon launches").check()
    expect(page.get_by_text("2 memories and 1 message chosen")).to_be_visible()
    page.reload()
    expect(page.get_by_role("checkbox", name="The falcon launches")).to_be_checked()
    for line in ("2 memories", "1 message", "in 1 backup that contains it"):
        expect(will_go(page)).to_contain_text(line)
    assert not HAS_NODE_MODULES or accessibility_violations(page) == []
    confirm(page, "forget 3")
    expect(removed(page, "memories")).to_contain_text("2")
    expect(removed(page, "messages")).to_contain_text("1")
    expect(receipt(page)).to_contain_text("Backups rewritten without it")
    assert not HAS_NODE_MODULES or accessibility_violations(page) == []
    assert [each["text"] for each in api("GET", "/memories", namespace="pilot")["memories"]] == [texts[2]]
    assert api("GET", "/messages/pilot") == []
    [job] = api("GET", "/jobs?kind=erase", namespace="pilot")["jobs"]
    assert page.url.endswith(f"#/forget?in=pilot&job={job['id']}")
    page.reload()
    expect(removed(page, "memories")).to_contain_text("2")
    saved = downloaded(page)
    assert (saved["job_id"], saved["namespace"], saved["actor"]) == (job["id"], "pilot", job["actor"])
    assert saved["result"] == job["result"]
    assert len(saved["chosen"]["memory_ids"]) == 2
    assert saved["finished_at"] == job["finished_at"]
    api("POST", "/restore", {"backup_name": api("GET", "/backups")["backups"][-1]["name"]})
    watch.expect("status of 404")
    page.reload()
    expect(page.get_by_text("no longer has this erasure")).to_be_visible()
    assert downloaded(page) == saved


def test_an_agent_is_erased_whole_and_nothing_else(page, context, origin, api):
    before = api("GET", "/memories/count")["count"]
    open_page(page, origin, "/#/forget?kind=agent&in=assistant")
    for line in ("1 memory", "3 messages", "1 block"):
        expect(will_go(page)).to_contain_text(line)
    # The service answers 202, and the receipt comes to the job in the address.
    page.route("**/erase?wait_s=*", lambda route: route.continue_(url=f"{origin}/erase?wait_s=0"))
    confirm(page, "assistant")
    expect(removed(page, "messages")).to_contain_text("3")
    assert "assistant" not in [each["name"] for each in api("GET", "/agents")["agents"]]
    assert api("GET", "/memories/count")["count"] == before


def test_a_user_is_picked_and_erased_with_their_messages(page, origin, api):
    turns = [
        {"role": "user", "content": "I live in Porto.", "user": "ann", "session_id": "own"},
        {"role": "user", "content": "I do not.", "user": "ben", "session_id": "other"},
    ]
    api("POST", "/messages/batch", {"agent_name": "concierge", "messages": turns})
    api("POST", "/memory/add", {"text": "Ann likes tea.", "source": "notes"}, namespace="concierge")
    open_page(page, origin, "/#/forget?kind=user&in=concierge")
    page.get_by_role("list", name="Pick one").get_by_role("link", name="ann").click()
    for line in ("1 user", "1 session", "1 message"):
        expect(will_go(page)).to_contain_text(line)
    stays = "What stays: 1 memory and 0 blocks"
    expect(will_go(page)).to_contain_text(stays)
    confirm(page, "ann")
    expect(removed(page, "sessions")).to_contain_text("1")
    expect(receipt(page)).to_contain_text(stays)
    assert "ann" not in page.url
    receipt(page).get_by_role("link", name="Forget by search").click()
    expect(page.get_by_label("Question or words")).to_have_value("ann")
    assert [each["content"] for each in api("GET", "/messages/concierge")] == ["I do not."]


def test_a_source_that_nothing_has_cannot_be_erased(page, origin, watch):
    watch.expect("status of 404")
    open_page(page, origin, "/#/forget?kind=source&value=nowhere")
    expect(will_go(page)).to_contain_text("Nothing is stored under this name")
    expect(will_go(page).get_by_role("button", name="Forget …")).to_be_disabled()


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
