"""The budgets of the first load and of the first answer, measured by the browser."""

from __future__ import annotations

import pytest

from tests.page.samples import add_samples
from tests.page.steps import open_page, settle

MAX_FIRST_LOAD_BYTES = 200_000
MAX_FIRST_LOAD_REQUESTS = 40
MAX_ANSWER_TO_SCREEN_MS = 300


@pytest.fixture(scope="module", autouse=True)
def _samples(api):
    add_samples(api)


def test_the_first_load_transfers_at_most_200_kilobytes_in_few_requests(page, context, origin):
    transferred: list[float] = []
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.loadingFinished", lambda event: transferred.append(event["encodedDataLength"]))
    open_page(page, origin)
    assert 5_000 < sum(transferred) <= MAX_FIRST_LOAD_BYTES
    assert len(transferred) <= MAX_FIRST_LOAD_REQUESTS


def test_a_second_load_transfers_the_document_and_answers_only(page, context, origin):
    open_page(page, origin)
    again: list[str] = []
    page.on("response", lambda response: again.append(response.url))
    page.reload()
    settle(page)
    transferred = page.evaluate(
        "performance.getEntriesByType('resource').filter(each => each.name.includes('/assets/') && each.transferSize)"
        ".map(each => each.name)"
    )
    assert transferred == []
    assert any("/assets/" in url for url in again)


SHOWN_AT = """() => new Promise((done) => {
  const look = () => {
    if (!document.querySelector("[role=listbox] [role=option]")) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now())));
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, {childList: true, subtree: true});
  const question = document.querySelector("input[type=search]");
  question.value = "the user's beagle";
  question.dispatchEvent(new InputEvent("input", {bubbles: true}));
})"""
ANSWERED_AT = """() => performance.getEntriesByType("resource")
  .find((each) => new URL(each.name).pathname === "/search/explain").responseEnd"""


def test_the_first_answer_is_shown_within_300_ms_of_its_arrival(page, origin):
    open_page(page, origin)
    shown_at = page.evaluate(SHOWN_AT)
    assert 0 <= shown_at - page.evaluate(ANSWERED_AT) <= MAX_ANSWER_TO_SCREEN_MS
