"""The running service, and a browser that looks at its page.

A module has a service of its own, as a process with the real model, and a browser; a test has a context of its own in
it. The browser cannot be shared by more modules: Playwright's event loop would stay in the thread, where tests of other
folders run loops too. A test fails if its page prints an error, violates its CSP, throws, or asks another origin.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from benchmarks.service import Service
from tests.page.browsing import WIDE, Motion, Theme, Watch, address_of, chromium, open_context
from tests.page.requirements import CHROMIUM, INSTALL_CHROMIUM
from tests.page.samples import Api, api_of


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip(INSTALL_CHROMIUM)
    with chromium() as browser:
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
    context = open_context(browser, theme=theme, size=size, motion=motion)
    watch.over(context)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """An empty tab."""
    return context.new_page()
