"""Addresses, keys and motion in every view."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.page.samples import add_samples
from tests.page.steps import drawer, navigation, open_page, results, search, show_view, views_of


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


def test_the_address_of_every_view_opens_it_again(page, origin):
    open_page(page, origin)
    for name, address in views_of(page).items():
        show_view(page, address)
        heading = page.get_by_role("heading", level=1).first.inner_text()
        page.reload()
        expect(navigation(page).locator("[aria-current=page]")).to_have_text(re.compile(rf"^{name}"))
        expect(page.get_by_role("heading", level=1).first).to_have_text(heading)


def test_a_search_and_its_opened_result_are_in_the_address(page, origin):
    open_page(page, origin)
    search(page, "where does the sister live")
    results(page).first.click()
    expect(drawer(page)).to_contain_text("Mira lives in Lisbon")
    shared = page.context.new_page()
    shared.goto(page.url)
    expect(drawer(shared)).to_contain_text("Mira lives in Lisbon")
    expect(shared.get_by_role("searchbox")).to_have_value("where does the sister live")


def test_back_and_forward_go_through_the_views(page, origin):
    open_page(page, origin)
    current = navigation(page).locator("[aria-current=page]")
    names = []
    for address in views_of(page).values():
        show_view(page, address)
        names.append(current.inner_text())
    for name in reversed(names[:-1]):
        page.go_back()
        expect(current).to_have_text(name)
    for name in names[1:]:
        page.go_forward()
        expect(current).to_have_text(name)


def test_going_back_closes_an_opened_memory(page, origin):
    open_page(page, origin)
    show_view(page, views_of(page)["Memories"])
    results(page).first.click()
    expect(drawer(page)).to_be_visible()
    page.go_back()
    expect(drawer(page)).to_have_count(0)
    expect(navigation(page).locator("[aria-current=page]")).to_have_text("Memories")
    page.go_forward()
    expect(drawer(page)).to_be_visible()


def test_the_slash_moves_to_the_search_and_is_typed_in_a_field(page, origin):
    open_page(page, origin, "/#/memories")
    page.keyboard.press("/")
    box = page.get_by_role("searchbox")
    expect(box).to_be_focused()
    page.keyboard.type("a/b")
    expect(box).to_have_value("a/b")


def test_j_and_k_move_through_the_list_and_escape_closes_the_details(page, origin):
    open_page(page, origin)
    show_view(page, views_of(page)["Memories"])
    selected = page.locator("[role=option][aria-selected=true]")
    expect(results(page).nth(1)).to_be_visible()
    page.keyboard.press("j")
    expect(drawer(page)).to_contain_text("design documents")
    page.keyboard.press("j")
    expect(drawer(page)).to_contain_text("Invoices")
    page.keyboard.press("k")
    expect(drawer(page)).to_contain_text("design documents")
    expect(selected).to_have_count(1)
    page.keyboard.press("Escape")
    expect(drawer(page)).to_have_count(0)
    expect(selected).to_have_count(0)


def test_the_palette_finds_a_view(page, origin):
    open_page(page, origin)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.type("memor")
    page.keyboard.press("Enter")
    expect(navigation(page).locator("[aria-current=page]")).to_have_text("Memories")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_palette_finds_an_agent_a_source_and_a_search(page, origin):
    open_page(page, origin)
    commands = page.get_by_role("dialog").get_by_role("option")

    def find(text):
        page.keyboard.press("Control+k")
        page.get_by_label("Find a command").fill(text)

    find("assis")
    expect(commands).to_have_text(["assistant agent", "assis search for it"])
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Agent assistant")
    page.goto(f"{origin}/#/search")
    find("not")
    expect(commands.filter(has_text="notes/")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(results(page)).to_have_count(4)
    find("window seats")
    page.keyboard.press("Enter")
    expect(results(page).first).to_contain_text("window seats")


def test_the_question_mark_lists_the_keys_and_escape_closes_them(page, origin):
    open_page(page, origin)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Esc")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_first_stop_of_the_keyboard_skips_to_the_content(page, origin):
    open_page(page, origin)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


MOTION = """() => {
  const moving = (element) => {
    const style = getComputedStyle(element);
    const longest = (value) => Math.max(...value.split(",").map(parseFloat));
    const durations = [style.animationDuration, style.transitionDuration];
    return durations.some((value) => longest(value) > 0.01) || style.scrollBehavior === "smooth";
  };
  return [...document.querySelectorAll("*")].filter(moving).map((element) => element.outerHTML.slice(0, 80));
}"""


@pytest.mark.parametrize("motion", ["reduce"])
def test_nothing_moves_where_reduced_motion_is_preferred(page, origin):
    open_page(page, origin)
    for address in views_of(page).values():
        show_view(page, address)
        assert page.evaluate(MOTION) == [], address
