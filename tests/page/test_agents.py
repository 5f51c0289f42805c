"""The view of agents: contexts as the model gets them, blocks with versions, and conversations."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.page.requirements import HAS_NODE_MODULES
from tests.page.samples import MESSAGES, add_samples
from tests.page.steps import open_page

CLIENT = Path(__file__).resolve().parent.parent.parent / "client"
PATIENCE_S = 30


@pytest.fixture(scope="module")
def service_settings() -> dict[str, str]:
    return {"EXTRACT_FALLBACK_ADD": "true"}


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


def test_the_context_follows_the_question_and_the_budget_and_is_the_text_that_the_model_gets(page, origin, api):
    open_page(page, origin, "/#/agents?in=assistant")
    page.get_by_label("Question that the model").fill("Where does Mira live?")
    context = page.get_by_role("region", name="Context")
    expect(context.locator(".context-text")).to_contain_text("Lisbon")
    assert "ask=Where" in page.url
    answer = api("POST", "/context/assistant", {"query": "Where does Mira live?", "explain": True})
    assert unmarked(text_of(page)) == unmarked(answer["text"])
    assert unmarked(text_of(page, ".stable ")) == unmarked(answer["stable_prefix"])
    # The random ids of the fences take a few tokens more or less.
    tokens = re.search(r"(\d+) of 2,000 tokens", context.inner_text())
    assert tokens
    assert int(tokens.group(1)) == pytest.approx(answer["tokens"], abs=20)
    best = answer["relevant_messages"][0]
    line = context.locator(".segment").filter(has_text=best["content"])
    expect(line.get_by_role("link")).to_have_text(f"{round(best['score'] * 100)} %")
    expect(context).to_contain_text("Spoken of here")
    slider = page.get_by_role("slider")
    slider.focus()
    slider.press("Home")
    expect(context).to_contain_text("of 250 tokens")
    assert "tokens=250" in page.url
    slider.press("End")
    expect(context).to_contain_text("of 16,000 tokens")
    page.get_by_label("Question that the model").fill("How do I sharpen a chainsaw?")
    expect(context).to_contain_text("Nothing here is about this")
    line = context.locator(".segment").filter(has_text=best["content"])
    line.or_(context.get_by_role("region", name="Left out").get_by_role("link", name="message").first).first.wait_for()
    page.get_by_label("Question that the model").fill("Where does Mira live?")
    context.locator(".segment").filter(has_text=best["content"]).get_by_role("link").click()
    expect(page.locator(".turn.wanted")).to_contain_text(best["content"])


def text_of(page: Page, part: str = "") -> str:
    """The text of a context, or of the segments of a class, without the margin."""
    texts: list[str] = page.locator(f"{part}.words").evaluate_all("all => all.map(each => each.textContent)")
    return "".join(texts)


def test_a_small_budget_lists_what_was_left_out_with_the_reason(page, origin, api):
    turns = [
        {"role": "user", "content": f"On day {day} I ran {day + 3} kilometres along the river."} for day in range(40)
    ]
    turns.append({"role": "user", "content": "Thursday is rubbish day."})
    api("POST", "/messages/batch", {"agent_name": "runner", "messages": turns})
    body = {"query": "how far did I run", "max_tokens": 250, "explain": True}
    before = None
    # The graph is filled in the background, and what it knows takes tokens of the context.
    while (dropped := api("POST", "/context/runner", body)["dropped"]) != before:
        before = dropped
        time.sleep(1)
    assert dropped["messages"] > 0
    open_page(page, origin, "/#/agents?in=runner&ask=how+far+did+I+run&tokens=250")
    left_out = page.get_by_role("region", name="Left out")
    expect(left_out).to_contain_text(f"before {dropped['messages']} messages and 0 memories")
    expect(left_out.get_by_role("listitem")).to_have_count(len(dropped["results"]))
    expect(left_out.get_by_role("listitem").first).to_contain_text("does not fit the budget")
    first = left_out.get_by_role("listitem").first.locator("bdi").inner_text()
    assert first not in text_of(page)
    page.get_by_role("link", name=re.compile("left out$")).click()
    expect(left_out).to_be_focused()
    left_out.get_by_role("link").first.click()
    expect(page.locator(".turn.wanted")).to_contain_text(first)


def output(command: list[str], env: dict[str, str] | None = None) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout


def test_the_copied_calls_give_the_context_of_the_page(page, origin, api, tmp_path):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    asked = """where's "Mira" & the school?"""
    body = {"query": asked, "max_tokens": 700, "user": "nobody", "shape": "excerpts", "session_id": "now"}
    wanted = unmarked(api("POST", "/context/assistant", body)["text"])
    address = urlencode({"in": "assistant", "ask": asked, "tokens": 700, "user": "nobody"})
    open_page(page, origin, f"/#/agents?{address}")
    page.get_by_label("Session of the question").fill("now")
    page.get_by_label("Shape").select_option("excerpts")
    expect(page.locator(".words").first).to_be_visible()

    def copied(name: str) -> str:
        page.evaluate("navigator.clipboard.writeText('')")
        page.get_by_role("button", name=name).click()
        page.wait_for_function("() => navigator.clipboard.readText()")
        text: str = page.evaluate("navigator.clipboard.readText()")
        return text

    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENT)}
    assert unmarked(output([sys.executable, "-c", copied("Python")], env=environment)) == wanted + "\n"
    assert unmarked(json.loads(output(["sh", "-c", f"{copied('curl')} -s"]))["text"]) == wanted
    assert unmarked(copied("the text")) == wanted
    assert unmarked(json.loads(copied("JSON"))["text"]) == wanted
    script = copied("TypeScript").replace(": { text: string; tokens: number; evidence: string }", "")
    if HAS_NODE_MODULES:
        (tmp_path / "call.mjs").write_text(script)
        assert unmarked(output(["node", str(tmp_path / "call.mjs")])) == wanted + "\n"


def test_preferences_are_set_changed_and_deleted_with_undo(page, origin, api):
    open_page(page, origin, "/#/agents?in=assistant&show=preferences")
    expect(page.get_by_role("main")).to_contain_text("No preference yet")
    page.get_by_role("textbox", name="Key").fill("tone")
    page.get_by_role("textbox", name="Value").fill("short answers")
    page.get_by_role("button", name="Set").click()
    row = page.get_by_role("row").filter(has_text="tone")
    expect(row).to_contain_text("short answers")
    page.get_by_role("button", name="Edit tone").click()
    page.get_by_label("Value of tone").fill("long answers")
    page.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("long answers")
    page.get_by_role("button", name="Undo").click()
    expect(row).to_contain_text("short answers")
    page.get_by_role("button", name="Delete tone").click()
    expect(row).to_have_count(0)
    assert api("GET", "/preferences/assistant")["preferences"] == {}
    page.get_by_role("button", name="Undo").click()
    expect(row).to_contain_text("short answers")
    assert api("GET", "/preferences/assistant")["preferences"] == {"tone": "short answers"}


def test_a_block_is_made_within_its_limit_protected_and_deleted(page, origin, api):
    api("POST", "/agents", {"name": "crew"})
    open_page(page, origin, "/#/agents?in=crew&show=blocks")
    form = page.get_by_role("form", name="New block")
    form.get_by_label("Label of a new block").fill("ship")
    form.get_by_label("Limit").fill("12")
    form.get_by_label("Text").fill("The Heron of Bremen")
    expect(form).to_contain_text("19 of 12 characters: 7 too many")
    form.get_by_label("Text").fill("The Heron 🚢")
    expect(form).to_contain_text("11 of 12 characters")
    form.get_by_role("button", name="Add").click()
    ship = block(page, "ship")
    expect(ship).to_contain_text("The Heron 🚢")
    ship.get_by_role("button", name="Edit ship").click()
    ship.get_by_label("Value").fill("The Heron of Bremen")
    expect(ship).to_contain_text("7 too many")
    expect(ship.get_by_role("button", name="Save")).to_be_disabled()
    ship.get_by_role("button", name="Cancel").click()
    ship.get_by_role("button", name="Make read-only").click()
    expect(ship.get_by_role("button", name="Edit ship")).to_have_count(0)
    assert api("GET", "/memory-blocks/crew/ship")["read_only"] is True
    ship.get_by_role("button", name="Delete ship").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Type ship to confirm").fill("ship")
    dialog.get_by_role("button", name="Delete").click()
    expect(ship).to_have_count(0)
    assert api("GET", "/memory-blocks/crew") == []


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


def test_two_tabs_that_edit_one_block_never_overwrite_each_other(page, origin, api, watch):
    watch.expect("status of 412")
    api("POST", "/memory-blocks", {"agent_name": "shared", "label": "team", "value": "Ana leads."})
    other = page.context.new_page()
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


@pytest.fixture(scope="module")
def long_session(api) -> list[dict[str, Any]]:
    """500 messages of a day, one with a tool call."""
    began = datetime(2026, 3, 1, tzinfo=UTC)
    turns: list[dict[str, Any]] = [
        {
            "role": "assistant" if number % 2 else "user",
            "content": f"Reading number {number} of the gauge.",
            "created_at": (began + timedelta(minutes=number)).isoformat(),
        }
        for number in range(500)
    ]
    call = {"name": "read_gauge", "arguments": '{"pier": 7}'}
    turns[301] |= {"content": "The zeppelin landed.", "name": "Otto", "metadata": {"tool_calls": [call], "cost": 3}}
    body = {"agent_name": "gauge", "session_id": "long", "messages": turns}
    stored: list[dict[str, Any]] = api("POST", "/messages/batch", body)["messages"]
    return stored


def test_a_hit_in_the_middle_of_a_long_session_opens_at_its_turn(page, origin, long_session):
    open_page(page, origin, "/#/agents?in=gauge&show=conversations")
    page.get_by_label("Search all conversations").fill("zeppelin")
    page.get_by_role("list", name="Found messages").get_by_role("link").first.click()
    wanted = page.locator(".turn.wanted")
    expect(wanted).to_contain_text("The zeppelin landed.")
    expect(wanted).to_be_in_viewport()
    expect(wanted).to_contain_text("Otto")
    expect(page.get_by_role("article")).to_have_count(100)
    expect(page.get_by_role("main")).to_contain_text("shown: 252 to 351")
    wanted.get_by_text("Tool call read_gauge").click()
    expect(wanted).to_contain_text('"pier": 7')
    wanted.get_by_text("Metadata: cost").click()
    expect(wanted.get_by_role("definition")).to_have_text("3")
    page.get_by_role("button", name="Earlier").click()
    expect(page.get_by_role("article")).to_have_count(200)
    expect(page.get_by_role("article").first).to_contain_text("number 151 ")
    page.get_by_role("button", name="Later").click()
    expect(page.get_by_role("article")).to_have_count(300)
    expect(page.get_by_role("heading", level=3).first).to_have_text("Sunday, March 1, 2026")
    page.get_by_role("button", name="To the end").click()
    expect(page.get_by_role("article").last).to_contain_text("number 499 ")
    page.get_by_role("article").last.get_by_title("Link to this turn").click()
    expect(wanted).to_contain_text("number 499 ")
    assert long_session[-1]["id"] in page.url
    page.reload()
    expect(wanted).to_be_in_viewport()
    expect(wanted).to_contain_text("number 499 ")


def test_new_turns_of_others_wait_behind_a_button(page, origin, api):
    api("POST", "/messages", {"agent_name": "chat", "session_id": "s", "role": "user", "content": "Hello?"})
    open_page(page, origin, "/#/agents?in=chat&show=conversations&session=s")
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_text("● live")).to_be_visible()
    api("POST", "/messages", {"agent_name": "chat", "session_id": "s", "role": "assistant", "content": "Hi there."})
    page.get_by_role("button", name="Show 1 new").click()
    expect(page.get_by_role("article").last).to_contain_text("Hi there.")


def test_a_message_is_edited_undone_and_deleted_and_so_is_its_session(page, origin, api):
    said = {"agent_name": "notes", "session_id": "s", "role": "user", "content": "The key is under the mat."}
    message = api("POST", "/messages", said)
    api("POST", "/messages", said | {"content": "The cat is in the garden."})
    path = f"/messages/notes/{message['id']}"
    open_page(page, origin, f"/#/agents?in=notes&show=conversations&session=s&message={message['id']}")
    turn = page.get_by_role("article").first
    turn.get_by_role("button", name="Edit").click()
    turn.get_by_label("Text of the message").fill("The key is under the pot.")
    api("PATCH", path, {"content": "The key is on the mat."})
    turn.get_by_role("button", name="Save").click()
    expect(turn.get_by_role("alert")).to_contain_text("changed while you wrote")
    expect(turn.locator("ins").first).to_have_text("on")
    assert api("GET", path)["content"] == "The key is on the mat."
    turn.get_by_role("button", name="Keep mine").click()
    expect(turn.locator(".memory-text:not(.diff)")).to_have_text("The key is under the pot.")
    assert api("GET", path)["content"] == "The key is under the pot."
    page.get_by_role("button", name="Undo").click()
    expect(turn.locator(".memory-text:not(.diff)")).to_have_text("The key is on the mat.")
    turn.get_by_role("button", name="Delete …").click()
    page.get_by_label("Type delete to confirm").fill("delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_role("article")).to_contain_text("The cat is in the garden.")
    assert api("GET", "/agents/notes/stats")["messages"] == 1
    page.get_by_role("button", name="Delete the conversation").click()
    page.get_by_label("Type s to confirm").fill("s")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No conversation was stored yet.")).to_be_visible()
    assert api("GET", "/agents/notes/stats")["sessions"] == 0


def test_memories_learned_from_a_session_are_listed_with_it(page, origin, api):
    body = {"messages": "User: We decided to use Redis for sessions.", "store_messages": True, "session": "talk"}
    api("POST", "/memory/extract", body, namespace="pilot")
    deadline = time.monotonic() + PATIENCE_S
    while not api("GET", "/sessions/pilot/talk/memories")["total"]:
        assert time.monotonic() < deadline, "Nothing was learned in time"
        page.wait_for_timeout(100)
    open_page(page, origin, "/#/agents?in=pilot&show=conversations&session=talk")
    page.get_by_text("learned from this conversation").click()
    page.get_by_role("listitem").filter(has_text="Redis").get_by_role("link").click()
    expect(page.get_by_role("complementary")).to_contain_text("Redis for sessions")
