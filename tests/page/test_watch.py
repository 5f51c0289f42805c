"""The watch itself: each thing that a page must not do is noticed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from benchmarks.service import free_port
from tests.page.browsing import Watch, open_context

CAUSES = {
    "console: a message": "console.error('a message')",
    "uncaught: thrown": "setTimeout(() => { throw new Error('thrown') })",
    "console: Executing inline script violates": "document.documentElement.append("
    "Object.assign(document.createElement('script'), {text: '1'}))",
}


@pytest.fixture
def watched(browser: Browser, origin: str) -> Iterator[tuple[Watch, Page]]:
    watch, context = Watch(origin), open_context(browser)
    watch.over(context)
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
