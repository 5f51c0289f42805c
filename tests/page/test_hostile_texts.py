"""Stored texts are data wherever the page shows them: never markup, never followed, never too much."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.page.steps import drawer, open_page, results, search, show_view, views_of

MARK = "quokka"
TEXTS = {
    "script": f"<script>window.attacked = 1</script> {MARK}",
    "image": f'<img src=x onerror="window.attacked = 2"> {MARK}',
    "vector": f"<svg/onload=window.attacked=3><iframe srcdoc='<script>parent.attacked=4</script>'></iframe> {MARK}",
    "template": f"${{window.attacked = 5}} {{{{constructor.constructor('window.attacked=6')()}}}} {MARK}",
    "link": f"[{MARK}](javascript:window.attacked=7) javascript:window.attacked=8 http://other.example/{MARK}",
    "bidi": f"user \u202eecivres eht\u202c and \u2066unclosed {MARK} \u202e",
    "combining": f"{MARK} Z" + "\u0321\u034e\u0339" * 300,
}
SOURCE = '"><img src=x onerror="window.attacked = 9">/\u202ereversed'
TAG = '<b onclick="window.attacked = 10">tag</b>'
LONG = "w" * 1_000_000


@pytest.fixture(scope="module", autouse=True)
def _hostile(api):
    drafts = [{"text": text, "source": SOURCE, "tags": [TAG]} for text in TEXTS.values()]
    api("POST", "/memory/add-batch", {"memories": drafts})


def marked(text: str) -> str:
    """A text with the marks that the page shows instead of characters that change its direction."""
    for control, mark in {"\u202e": "⟨RLO⟩", "\u202c": "⟨PDF⟩", "\u2066": "⟨LRI⟩"}.items():
        text = text.replace(control, mark)
    return text


MARKUP = """() => {
  const hostile = "script, img, iframe, object, embed, b, [href^='javascript'], [href^='http'], [onerror], [onload]";
  return [...document.querySelectorAll(`:is(main, aside) :is(${hostile})`)].map((element) => element.outerHTML);
}"""


def assert_harmless(page: Page) -> None:
    assert page.evaluate("window.attacked ?? null") is None
    assert page.evaluate(MARKUP) == []


def test_every_view_shows_hostile_texts_as_texts(page, origin):
    open_page(page, origin)
    for address in views_of(page).values():
        show_view(page, address)
        assert_harmless(page)


def test_results_and_details_show_every_character_of_a_hostile_text(page, origin):
    open_page(page, origin)
    search(page, MARK)
    expect(results(page)).to_have_count(len(TEXTS))
    for place in range(len(TEXTS)):
        open_memory = drawer(page).get_by_role("heading", level=1).inner_text() if place else ""
        results(page).nth(place).click()
        expect(drawer(page).get_by_role("heading", level=1)).not_to_have_text(open_memory)
        expect(drawer(page)).to_contain_text(MARK)
        expect(drawer(page)).to_contain_text(SOURCE)
        expect(drawer(page)).to_contain_text(TAG)
        assert any(marked(text).strip() in drawer(page).inner_text() for text in TEXTS.values())
        assert_harmless(page)


def test_an_override_of_the_direction_ends_with_its_text(page, origin):
    """Each stored text is in an element that isolates its direction, so that what stands next to it keeps its own."""
    open_page(page, origin)
    show_view(page, views_of(page)["Memories"])
    expect(results(page).first).to_be_visible()
    results(page).filter(has_text="unclosed").click()
    expect(drawer(page).locator(".memory-text")).to_have_text(marked(TEXTS["bidi"]))
    holders = """wanted => [...document.querySelectorAll("main *, aside *")]
      .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.includes(wanted)))
      .map((element) => getComputedStyle(element).unicodeBidi)"""
    for wanted in ("unclosed", "reversed"):
        found = page.evaluate(holders, wanted)
        assert found
        assert set(found) <= {"isolate", "plaintext", "isolate-override"}, (wanted, found)


def test_a_line_of_a_megabyte_does_not_hold_up_the_page(page, context, origin, api):
    pieces = [LONG[at : at + 50_000] for at in range(0, len(LONG), 50_000)]
    api("POST", "/memory/add-batch", {"memories": [{"text": piece, "source": "long"} for piece in pieces]})
    page.add_init_script(
        "window.longTasks = []; new PerformanceObserver(list => window.longTasks.push("
        "...list.getEntries().map(entry => entry.duration))).observe({type: 'longtask', buffered: true})"
    )
    open_page(page, origin)
    show_view(page, views_of(page)["Memories"])
    results(page).filter(has_text="www").first.click()
    expect(drawer(page)).to_contain_text("www")
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert max(page.evaluate("window.longTasks"), default=0) < 1000
