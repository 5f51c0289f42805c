"""The list of 100,000 memories, in a store that is written without the model."""

from __future__ import annotations

from contextlib import closing

import pytest
from playwright.sync_api import expect

from benchmarks.service import Service
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder
from tests.page.steps import drawer, open_page, results, show_view, views_of

COUNT, BATCH = 100_000, 500
MAX_TASK_MS = 200
MAX_ROWS_IN_DOCUMENT = 500

WATCH_TASKS = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.longTasks.push(entry.duration);
}).observe({type: "longtask", buffered: true});
"""


@pytest.fixture(scope="module")
def service(browser, tmp_path_factory):
    """In the place of the module's service with the model: texts are written by the engine, faster than over HTTP."""
    data_dir = tmp_path_factory.mktemp("many") / "data"
    with closing(MemoryEngine.open(Settings(data_dir=data_dir), FakeEmbedder())) as engine:
        for start in range(0, COUNT, BATCH):
            drafts = [MemoryDraft(f"Note {place}", f"notes/{place % 20}") for place in range(start, start + BATCH)]
            engine.add_batch(Scope(), drafts)
    service = Service(data_dir, command=("-m", "tests.page.fake_service"), EVENT_STREAM_MAX_S="3600")
    service.start()
    yield service
    service.kill()


@pytest.fixture
def many(page, origin):
    page.add_init_script(WATCH_TASKS)
    open_page(page, origin)
    show_view(page, views_of(page)["Memories"])
    expect(results(page).first).to_be_visible()
    return page


def test_scrolling_through_100000_memories_never_holds_up_the_page(many):
    listbox = many.get_by_role("listbox")
    listbox.hover()
    for _ in range(40):
        many.mouse.wheel(0, 3_000)
        many.evaluate("() => new Promise(requestAnimationFrame)")
    for share in (0.25, 0.9, 0.5, 1.0):
        listbox.evaluate("(element, share) => { element.scrollTop = element.scrollHeight * share; }", share)
        expect(results(many).filter(has_text="Note").last).to_be_visible()
        assert results(many).count() <= MAX_ROWS_IN_DOCUMENT
    tasks = many.evaluate("window.longTasks")
    assert max(tasks, default=0) <= MAX_TASK_MS, tasks


def test_the_end_of_100000_memories_can_be_reached_and_opened(many):
    many.get_by_role("listbox").evaluate("element => { element.scrollTop = element.scrollHeight; }")
    last = results(many).filter(has_text=f"Note {COUNT - 1}")
    expect(last).to_be_visible()
    last.click()
    expect(drawer(many)).to_contain_text(f"Note {COUNT - 1}")


def test_a_long_task_is_noticed(many):
    busy = "() => { const end = performance.now() + 300; while (performance.now() < end); }"
    many.evaluate(f"() => new Promise((done) => setTimeout(() => {{ ({busy})(); setTimeout(done, 100); }}))")
    assert max(many.evaluate("window.longTasks")) > MAX_TASK_MS
