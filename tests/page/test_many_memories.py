"""The list of 100,000 memories, and changes of all of them, in a store that is written without the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count

import pytest
from playwright.sync_api import Page, Route, expect

from benchmarks.service import Service
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder
from tests.page.steps import drawer, open_page, results, settle, show_view, views_of

COUNT, SOURCES = 100_000, 5_000
MAX_TASK_MS = 200
MAX_ROWS_IN_DOCUMENT = 500


@contextmanager
def main_thread_tasks(page: Page) -> Iterator[list[float]]:
    """Collect the CPU time of each task of the tab's main thread, in ms: what other processes take is no part of it."""
    tasks: list[float] = []
    browser = page.context.browser
    assert browser
    browser.start_tracing(page=page, categories=["toplevel"])
    try:
        yield tasks
    finally:
        events = json.loads(browser.stop_tracing())["traceEvents"]
    mains = {event["tid"] for event in events if event.get("args", {}).get("name") == "CrRendererMain"}
    ran = (event for event in events if event["name"].endswith("RunTask") and event["tid"] in mains)
    # A task that runs when the tracing begins or ends has no time.
    tasks += [event["tdur"] / 1000 for event in ran if "tdur" in event]


@contextmanager
def never_held_up(page: Page) -> Iterator[None]:
    """:raises AssertionError: If a task inside takes longer than people notice."""
    with main_thread_tasks(page) as tasks:
        yield
    assert tasks
    assert max(tasks) <= MAX_TASK_MS, sorted(tasks)[-5:]


def copy_memories(connection):
    """Copy the only memory, as a list and the tree of sources read them: without passages, vectors and words."""
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(memories)") if name != "id"]
    made = {"text": "'Note ' || value", "source": f"printf('notes/%d/%d', value % 20, value % {SOURCES})"}
    connection.execute(
        f"WITH RECURSIVE places(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM places WHERE value < {COUNT - 1}) "
        f"INSERT INTO memories ({', '.join(columns)}) "
        f"SELECT {', '.join(made.get(name, name) for name in columns)} FROM memories, places WHERE id = 1"
    )


@pytest.fixture(scope="module")
def service(browser, tmp_path_factory):
    """In the place of the module's service with the model: the rows are made by the database, in seconds."""
    data_dir = tmp_path_factory.mktemp("many") / "data"
    with closing(MemoryEngine.open(Settings(data_dir=data_dir), FakeEmbedder())) as engine:
        engine.add(Scope(), MemoryDraft("Note 0", "notes/0/0"))
        engine.write_rows(copy_memories)
    service = Service(data_dir, command=("-m", "tests.page.fake_service"), EVENT_STREAM_MAX_S="3600")
    service.start()
    yield service
    service.kill()


@pytest.fixture
def many(page, origin):
    open_page(page, origin)
    show_view(page, views_of(page)["Memories"])
    expect(results(page).first).to_be_visible()
    return page


def test_scrolling_through_100000_memories_never_holds_up_the_page(page, origin):
    with never_held_up(page):
        open_page(page, origin, "/#/memories")
        listbox = page.get_by_role("listbox")
        listbox.hover()
        for _ in range(40):
            page.mouse.wheel(0, 3_000)
            page.evaluate("() => new Promise(requestAnimationFrame)")
        for share in (0.25, 0.9, 0.5, 1.0):
            listbox.evaluate("(element, share) => { element.scrollTop = element.scrollHeight * share; }", share)
            expect(results(page).filter(has_text="Note").last).to_be_visible()
            assert results(page).count() <= MAX_ROWS_IN_DOCUMENT


def test_the_end_of_100000_memories_can_be_reached_and_opened(many):
    many.get_by_role("listbox").evaluate("element => { element.scrollTop = element.scrollHeight; }")
    last = results(many).last
    expect(last).to_contain_text("Note 0")
    last.click()
    expect(drawer(many)).to_contain_text("Note 0")


def test_the_tree_of_thousands_of_sources_opens_level_by_level(many):
    with never_held_up(many):
        many.get_by_text("Filters").click()
        item = many.get_by_role("treeitem")
        item.first.focus()
        for _ in range(2):
            many.keyboard.press("ArrowRight")
            settle(many)
            many.keyboard.press("ArrowDown")
        expect(item.filter(has_text="50 more")).to_be_visible()
        many.keyboard.press("Enter")
        expect(results(many)).to_have_count(COUNT // SOURCES)


def test_a_change_of_all_100000_shows_its_progress_is_cancelled_and_undone(many, api):
    progress = re.compile(r"[1-9][0-9,]* of 100,000 · [0-9,]+ a second, [0-9,]+ seconds left")
    with never_held_up(many):
        many.get_by_role("button", name="Choose several").click()
        many.get_by_role("button", name="Choose all 100,000 that match").click()
        actions = many.get_by_role("group", name="Actions on several memories")
        actions.get_by_role("button", name="Pin", exact=True).click()
        expect(many.get_by_text(progress)).to_be_visible()
        many.get_by_role("button", name="Cancel").click()
        expect(many.get_by_text("memories pinned.")).to_be_visible()
        assert 0 < api("GET", "/memories?pinned=true&limit=1")["total"] < COUNT
        many.get_by_role("button", name="Undo").click()
        settle(many)
        expect(many.get_by_role("button", name="Cancel")).to_have_count(0)
    assert api("GET", "/memories?pinned=true&limit=1")["total"] == 0


def test_a_change_that_a_reload_interrupted_can_be_continued(many, context, api):
    requests = count()

    def hold_the_second(route: Route) -> None:
        if next(requests) != 1:
            route.continue_()

    many.route("**/memory/update-batch", hold_the_second)
    many.goto(many.url.split("?")[0] + "?source=notes%2F7&order=oldest")
    expect(many.get_by_text("5,000 memories")).to_be_visible()
    many.get_by_role("button", name="Choose several").click()
    many.get_by_role("button", name="Choose all 5,000 that match").click()
    many.get_by_label("Tag", exact=True).fill("seven")
    with many.expect_request("**/memory/update-batch"):
        many.get_by_role("button", name="Add the tag").click()
    expect(many.get_by_text("500 of 5,000")).to_be_visible()
    many.unroute_all()
    many.reload()
    many.get_by_role("button", name="Continue").click()
    expect(many.get_by_text(re.compile("The tag is added to 4,[05]00 memories"))).to_be_visible(timeout=60_000)
    assert api("GET", "/memories?tag=seven&limit=1")["total"] == COUNT // 20


def test_a_long_task_is_noticed(page):
    # Long enough in CPU time even if other processes get most of it.
    busy = "() => { const end = performance.now() + 1_500; while (performance.now() < end); }"
    with main_thread_tasks(page) as tasks:
        # Answered by a later task: one that still runs when the tracing stops has no time.
        page.evaluate(f"() => new Promise((done) => setTimeout(() => {{ ({busy})(); setTimeout(done); }}))")
    assert max(tasks) > MAX_TASK_MS
