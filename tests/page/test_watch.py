"""The watch itself: each thing that a page must not do is noticed. And the tab: nothing of a test stays in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from benchmarks.service import free_port
from tests.page.browsing import WIDE, Watch, empty, open_context

CAUSES = {
    "console: a message": "console.error('a message')",
    "uncaught: thrown": "setTimeout(() => { throw new Error('thrown') })",
    "console: Executing inline script violates": "document.documentElement.append("
    "Object.assign(document.createElement('script'), {text: '1'}))",
}


@pytest.fixture
def watched(browser: Browser, origin: str) -> Iterator[tuple[Watch, Page]]:
    watch, context = Watch(origin), open_context(browser)
    with watch.over(context):
        yield watch, context.new_page()
        context.close()


@pytest.mark.parametrize(("fault", "cause"), CAUSES.items())
def test_faults_of_a_page_are_noticed(watched, origin, fault, cause):
    watch, page = watched
    page.goto(f"{origin}/health")
    page.evaluate(f"() => {{ {cause} }}")
    page.evaluate("() => new Promise(done => setTimeout(done))")
    assert [each[: len(fault)] for each in watch.faults] == [fault]
    watch.expect(".")
    assert watch.faults == []


def test_a_refused_request_is_noticed(watched, origin):
    watch, page = watched
    page.goto(f"{origin}/nothing")
    assert watch.faults == [f"response: status of 404 ({origin}/nothing)"]


def test_a_request_to_another_origin_is_noticed(watched):
    watch, page = watched
    elsewhere = f"http://127.0.0.1:{free_port()}/"
    page.evaluate("address => fetch(address, {mode: 'no-cors'}).catch(() => 0)", elsewhere)
    assert f"request to another origin: {elsewhere}" in watch.faults


def test_a_watch_notices_nothing_after_its_end(browser, origin):
    watch, context = Watch(origin), open_context(browser)
    page = context.new_page()
    with watch.over(context):
        page.goto(f"{origin}/health")
    page.goto(f"{origin}/nothing")
    assert watch.faults == []
    context.close()


ATTEMPTS_TO_STAY = """() => {
  sessionStorage.setItem("left", "1");
  localStorage.setItem("left", "1");
  document.cookie = "left=1";
  addEventListener("beforeunload", (event) => event.preventDefault());
}"""
LEFT = """async () => {
  const { state } = await navigator.permissions.query({name: "clipboard-read"});
  return [sessionStorage.length, localStorage.length, document.cookie, state];
}"""


def test_an_emptied_tab_keeps_nothing_of_its_page(watched, origin):
    _, page = watched
    page.goto(f"{origin}/health")
    page.mouse.click(9, 9)
    page.evaluate(ATTEMPTS_TO_STAY)
    page.context.new_page()
    page.context.grant_permissions(["clipboard-read"])
    assert page.evaluate(LEFT) == [1, 1, "left=1", "granted"]
    empty(page)
    assert page.url == "about:blank"
    page.goto(f"{origin}/health")
    assert page.evaluate(LEFT) == [0, 0, "", "prompt"]
    assert page.context.pages == [page]


PREFERRED = """() => [innerWidth, innerHeight, ...["(prefers-color-scheme: dark)", "(prefers-reduced-motion: reduce)"]
  .map((query) => matchMedia(query).matches)]"""


@pytest.mark.parametrize(
    ("size", "theme", "motion"),
    [((500, 400), "dark", "reduce"), (WIDE, "light", "no-preference")],
    ids=["set", "reset"],
)
def test_the_tab_of_the_module_has_the_size_and_the_preferences_of_each_test(page, origin, size, theme, motion):
    page.goto(f"{origin}/health")
    assert page.evaluate(PREFERRED) == [*size, theme == "dark", motion == "reduce"]
