"""The running service, and a browser that looks at its page.

A module has a service of its own, as a process with the real model, a browser, and a tab that its tests use one after
the other: a profile for each test would start a process and compile the page again. A test begins with an empty tab
that has kept nothing but the browser's cache. One that adds a listener, a route or a script to a tab asks for the
context, and has its own. Modules that follow each other in this folder share the program that drives their browsers. It
cannot outlive them: Playwright's event loop stays in the thread, where tests of other folders run loops too. A test
fails if its page prints an error, violates its CSP, throws, or asks another origin.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from benchmarks.service import Service
from tests.page.browsing import WIDE, Motion, Theme, Watch, address_of, chromium, empty, open_context
from tests.page.requirements import CHROMIUM, INSTALL_CHROMIUM
from tests.page.samples import Api, api_of


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    if CHROMIUM is None:
        pytest.skip(INSTALL_CHROMIUM)
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with chromium(playwright) as browser:
        yield browser


@pytest.fixture(scope="module")
def service_settings() -> dict[str, str]:
    """Settings of the service of a module, which may replace this fixture."""
    return {}


@pytest.fixture(scope="module")
def service(
    browser: Browser, service_settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    # Other tests shorten the event stream for the whole session (tests/conftest.py).
    settings = {"EVENT_STREAM_MAX_S": "3600"} | service_settings
    service = Service(tmp_path_factory.mktemp("page") / "data", **settings)
    service.start()
    yield service
    if service.running:
        service.kill()


@pytest.fixture(scope="module")
def api(service: Service, service_settings: dict[str, str]) -> Api:
    return api_of(service, service_settings.get("API_KEY"))


@pytest.fixture(scope="module")
def origin(service: Service) -> str:
    return address_of(service)


@pytest.fixture
def theme() -> Theme:
    return "light"


@pytest.fixture
def size() -> tuple[int, int]:
    return WIDE


@pytest.fixture
def motion() -> Motion:
    return "no-preference"


@pytest.fixture
def watch(origin: str) -> Iterator[Watch]:
    watch = Watch(origin)
    yield watch
    assert watch.faults == []


@pytest.fixture
def context(
    browser: Browser, watch: Watch, theme: Theme, size: tuple[int, int], motion: Motion
) -> Iterator[BrowserContext]:
    """A profile of the test's own, which holds what it adds to its tabs."""
    context = open_context(browser, theme=theme, size=size, motion=motion)
    with watch.over(context):
        yield context
        context.close()


@pytest.fixture(scope="module")
def shared_tab(browser: Browser) -> Iterator[Page]:
    """A tab of the module, which a test leaves empty."""
    context = open_context(browser)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(
    request: pytest.FixtureRequest, shared_tab: Page, watch: Watch, theme: Theme, size: tuple[int, int], motion: Motion
) -> Iterator[Page]:
    """An empty tab: of the test's own context if it asks for one, else that of the module."""
    if "context" in request.fixturenames:
        yield request.getfixturevalue("context").new_page()
        return
    shared_tab.set_viewport_size({"width": size[0], "height": size[1]})
    shared_tab.emulate_media(color_scheme=theme, reduced_motion=motion)
    with watch.over(shared_tab.context):
        yield shared_tab
        empty(shared_tab)
