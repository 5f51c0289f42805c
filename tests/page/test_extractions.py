"""Extractions on the page: proposals next to their words, chosen, committed, undone, rerun and compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.browsing import NARROW, WIDE
from tests.page.requirements import HAS_NODE_MODULES, INSTALL_NODE_MODULES
from tests.page.samples import Api
from tests.page.steps import accessibility_violations, drawer, navigation, open_page, themes_at
from tests.vendors.llm import LLMRequest, LLMVendor, says

OLD, GONE = "Billing runs on Postgres 15.", "Deployments are frozen in December."
NEW, ADDED = "Billing runs on Postgres 17.", "Ana is the owner of billing."
MOVED, OWNER, THAW = "We moved billing to Postgres 17", "Ana owns it now", "deployments are not frozen any more"
TALK = f"User: Good morning! {MOVED}. {OWNER}.\nAssistant: Noted.\nUser: And {THAW}."
OVER = "Deployments are not frozen."
FACTS = {NEW: MOVED, ADDED: OWNER, OVER: THAW}
STEP_MS, PATIENCE_STEPS = 100, 150


def corrects(request: LLMRequest) -> Any:
    """A model that updates one memory, deletes another one, and adds what is new."""
    if request.prompt != "decide":
        said = [(text, quote) for text, quote in FACTS.items() if quote in request.user]
        return {"facts": [{"category": "DETAIL", "text": text, "quote": quote, "when": None} for text, quote in said]}
    facts, _, memories = request.user.partition("</facts>")
    decisions: list[dict[str, Any]] = []
    for number, text in re.findall(r"^\[(\d+)\] \([^)]*\): (.*)$", facts, re.MULTILINE):
        verdict, old = {NEW: ("UPDATE", OLD), OVER: ("DELETE", GONE)}.get(text, ("ADD", None))
        shown = old and re.search(rf"^\[(\d+)\] [^:]*: {re.escape(old)}$", memories, re.MULTILINE)
        memory = int(shown[1]) if shown else None
        decision = {"fact": int(number), "verdict": verdict if memory or not old else "ADD", "memory": memory}
        decisions.append({**decision, "reason": "It was said so."})
    return {"decisions": decisions}


@pytest.fixture(scope="module")
def vendor() -> Iterator[LLMVendor]:
    model = LLMVendor()
    model.start()
    model.script(corrects)
    yield model
    model.stop()


@pytest.fixture(scope="module")
def service_settings(vendor: LLMVendor) -> dict[str, str]:
    chosen = vendor.settings("openai") | {"extract_max_deletes": 0}
    return {name.upper(): str(value) for name, value in chosen.items()}


@pytest.fixture
def namespace(request: pytest.FixtureRequest, api: Api) -> str:
    """An agent of its own with two memories."""
    name = f"agent-{abs(hash(request.node.nodeid))}"
    api("POST", "/agents", {"name": name})
    for text in (OLD, GONE):
        api("POST", "/memory/add", {"text": text, "source": "page"}, namespace=name)
    return name


def learned(page: Page, api: Api, namespace: str, **more: Any) -> str:
    """The id of an extraction, when it has ended."""
    body = {"messages": TALK, "source": "page", **more}
    job_id: str = api("POST", "/memory/extract", body, namespace=namespace)["job_id"]
    for _ in range(PATIENCE_STEPS):
        if "completed_at" in api("GET", f"/memory/extract/{job_id}", namespace=namespace):
            return job_id
        page.wait_for_timeout(STEP_MS)
    raise AssertionError(f"The extraction {job_id} has not ended")


def texts(api: Api, namespace: str) -> list[str]:
    return [memory["text"] for memory in api("GET", "/memories", namespace=namespace)["memories"]]


def extraction(page: Page) -> Locator:
    return page.get_by_role("region", name="Extraction", exact=True)


def findings(page: Page) -> Locator:
    return extraction(page).locator("li.proposal")


def test_proposals_are_chosen_reworded_committed_and_undone(page, origin, api, namespace):
    open_page(page, origin, f"/#/learning?in={namespace}")
    page.get_by_label("Conversation, with").fill(TALK)
    page.get_by_label("Also store the turns now").check()
    page.get_by_role("button", name="Show what would be learned").click()
    expect(findings(page)).to_have_count(3)
    update, added, deleted = findings(page).all()
    expect(update.locator("del")).to_have_text("15.")
    expect(update.locator("ins")).to_have_text("17.")
    expect(update.locator("mark")).to_have_text(MOVED)
    expect(added.locator("blockquote")).to_contain_text(f"{MOVED}. {OWNER}.")
    expect(deleted.get_by_role("checkbox")).not_to_be_checked()
    expect(deleted).to_contain_text(GONE)
    expect(page.get_by_role("button", name="Commit 2 of 3")).to_be_visible()
    added.get_by_role("button", name="Reword").click()
    added.get_by_role("textbox").fill("Ana and Bo own billing.")
    expect(added.locator("del").first).to_be_visible()
    update.get_by_role("checkbox").uncheck()
    expect(page.get_by_text("1 of 3 chosen")).to_be_visible()
    assert texts(api, namespace) == [OLD, GONE]
    page.get_by_role("button", name="Commit 1 of 3").click()
    expect(page.get_by_role("heading", name="Learned", exact=True)).to_be_visible()
    assert texts(api, namespace) == [OLD, GONE, "Ana and Bo own billing."]
    expect(findings(page).locator("mark")).to_have_text(OWNER)

    findings(page).get_by_role("link", name=re.compile(r"^memory \d+$")).click()
    turn = drawer(page).get_by_role("blockquote")
    expect(turn.locator("mark")).to_have_text(OWNER)
    turn.get_by_role("link", name="this turn of the session").click()
    expect(page.locator("article.wanted")).to_contain_text(OWNER)
    page.go_back()
    page.go_back()
    page.get_by_role("button", name="Undo all of it").click()
    expect(page.get_by_role("heading", name="Undone")).to_be_visible()
    assert texts(api, namespace) == [OLD, GONE]
    page.get_by_role("link", name="All extractions").click()
    page.get_by_role("link", name="Proposals").click()
    expect(page.get_by_role("button", name="Commit 1 of 3")).to_be_visible()
    findings(page).last.get_by_role("checkbox").check()
    page.get_by_role("button", name="Commit 2 of 3").click()
    expect(page.get_by_role("heading", name="Waits for approval")).to_be_visible()
    expect(page.get_by_text("Not applied yet")).to_be_visible()
    assert texts(api, namespace) == [OLD, GONE]


def test_an_extraction_appears_while_it_is_read_and_can_be_cancelled(page, origin, api, namespace, vendor):
    open_page(page, origin, f"/#/learning?in={namespace}")
    expect(page.get_by_text("● live")).to_be_visible()
    vendor.replies.append(says({"facts": []}, waits=True))
    api("POST", "/memory/extract", {"messages": TALK, "source": "page"}, namespace=namespace)
    page.get_by_role("link", name="Is being read").click()
    # The service has to know before the model answers.
    with page.expect_response(lambda response: response.request.method == "DELETE"):
        page.get_by_role("button", name="Cancel").click()
    vendor.go_on.set()
    expect(page.get_by_role("heading", name="Cancelled")).to_be_visible()
    page.get_by_role("link", name="All extractions").click()
    expect(page.get_by_role("link", name="Cancelled")).to_be_visible()


def test_an_extraction_that_waits_is_counted_and_approved_and_its_undo_names_what_blocks_it(
    page, origin, api, namespace, watch
):
    watch.expect("status of 409")
    job = learned(page, api, namespace)
    open_page(page, origin, f"/#/learning?in={namespace}")
    expect(navigation(page).get_by_role("link", name="Learning")).to_contain_text("1")
    page.get_by_role("link", name="Waits for approval").click()
    expect(page).to_have_url(re.compile(f"job={job}"))
    expect(page.get_by_text("would remove 1 memory")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Approve the whole extraction").click()
    expect(page.get_by_role("heading", name="Learned", exact=True)).to_be_visible()
    expect(navigation(page).get_by_role("link", name="Learning")).not_to_contain_text("1")
    changed = next(one for one in api("GET", "/memories", namespace=namespace)["memories"] if one["text"] == NEW)["id"]
    api("PATCH", f"/memory/{changed}", {"text": "Billing runs on Postgres 18."}, namespace=namespace)
    page.get_by_role("button", name="Undo all of it").click()
    expect(page.get_by_text("Changed since").get_by_role("link", name=f"memory {changed}")).to_be_visible()


def test_a_conversation_is_read_again_with_another_model_and_compared(page, origin, api, namespace, vendor):
    job = learned(page, api, namespace, dry_run=True)
    open_page(page, origin, f"/#/learning?in={namespace}&job={job}")
    page.get_by_label("Model").fill("scripted-2")
    vendor.replies.append({"facts": [{"category": "DETAIL", "text": ADDED, "quote": OWNER, "when": None}]})
    page.get_by_role("button", name="Rerun").click()
    expect(page.get_by_role("heading", name="Rerun: proposals")).to_be_visible()
    expect(extraction(page)).to_contain_text("by scripted-2")
    page.get_by_role("link", name="First reading by scripted-1").click()
    expect(page.get_by_role("heading", name="Agreed (1)")).to_be_visible()
    expect(page.get_by_role("heading", name="Only in the other reading (2)")).to_be_visible()


@pytest.mark.skipif(not HAS_NODE_MODULES, reason=INSTALL_NODE_MODULES)
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_an_opened_extraction_meets_wcag_and_fits_the_window(page, origin, api, namespace, size):
    job = learned(page, api, namespace, dry_run=True, store_messages=True, session="s1")
    open_page(page, origin, f"/#/learning?in={namespace}&job={job}")
    page.get_by_role("button", name="Reword proposal 2").click()
    assert accessibility_violations(page, themes_at(size[0])) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    open_page(page, origin, f"/#/learning?in={namespace}&job={job}&other={job}")
    expect(page.get_by_role("heading", name="Agreed (3)")).to_be_visible()
    assert accessibility_violations(page, themes_at(size[0])) == []
