"""A browser for tests of the page: Debian's Chromium, and a watch on everything that a page must not do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    Response,
    WebError,
)

from benchmarks.service import Service
from tests.page.requirements import CHROMIUM, INSTALL_CHROMIUM

Theme = Literal["light", "dark"]
Motion = Literal["no-preference", "reduce"]
WIDE, NARROW = (1280, 800), (360, 740)
"""Width and height of the window, in CSS pixels."""

STEP_TIMEOUT_MS = 10_000
CLEAR = "() => { if (location.origin !== 'null') for (const kept of [sessionStorage, localStorage]) kept.clear(); }"
UNFINISHED_WORK = Path(__file__).with_name("unfinished_work.js")
_NOT_USED = (
    # Chromium draws its address bar's suggestions with pages of its own, two in each window: they take longer to load
    # than ours, although nobody sees the bar.
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    # Playwright's own list, of which Chromium would read nothing next to ours.
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)
_ARGUMENTS = (
    f"--disable-features={','.join(_NOT_USED)}",
    # Root may not use the sandbox, and only the service's own pages are opened.
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    # No name is looked up: whatever a page asks for elsewhere fails here.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Watch:
    """Collects faults of pages: console errors (also of the CSP), uncaught exceptions, refused requests, other origins.

    A refused request is read from its response: the console's line on it may come after the test.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._faults: list[str] = []
        self._expected: list[re.Pattern[str]] = []

    @contextmanager
    def over(self, context: BrowserContext) -> Iterator[None]:
        """Watch the tabs of a context until the end of the block."""
        context.on("console", self._read)
        context.on("weberror", self._catch)
        context.on("request", self._follow)
        context.on("response", self._check)
        yield
        context.remove_listener("console", self._read)
        context.remove_listener("weberror", self._catch)
        context.remove_listener("request", self._follow)
        context.remove_listener("response", self._check)

    def expect(self, pattern: str) -> None:
        """Accept console errors that match, as those that the browser prints of a refused request."""
        self._expected.append(re.compile(pattern))

    @property
    def faults(self) -> list[str]:
        return [fault for fault in self._faults if not any(pattern.search(fault) for pattern in self._expected)]

    def _read(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert") and "responded with a status of" not in message.text:
            self._faults.append(f"console: {message.text} ({message.location.get('url')})")

    def _check(self, response: Response) -> None:
        if response.status >= 400:
            self._faults.append(f"response: status of {response.status} ({response.url})")

    def _catch(self, error: WebError) -> None:
        self._faults.append(f"uncaught: {error.error}")

    def _follow(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob") and f"{address.scheme}://{address.netloc}" != self._origin:
            self._faults.append(f"request to another origin: {request.url}")


@contextmanager
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """A headless browser.

    :param playwright: Its event loop keeps the thread until it ends, so no `asyncio.run` works meanwhile.
    """
    if CHROMIUM is None:
        raise FileNotFoundError(INSTALL_CHROMIUM)
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
    yield browser
    browser.close()


def open_context(
    browser: Browser, *, theme: Theme = "light", size: tuple[int, int] = WIDE, motion: Motion = "no-preference"
) -> BrowserContext:
    """A profile of its own in the browser, in English and UTC."""
    context = browser.new_context(
        color_scheme=theme,
        reduced_motion=motion,
        viewport={"width": size[0], "height": size[1]},
        locale="en-GB",
        timezone_id="UTC",
    )
    context.set_default_timeout(STEP_TIMEOUT_MS)
    context.add_init_script(path=UNFINISHED_WORK)
    return context


def empty(tab: Page) -> None:
    """Leave the page of a tab and close the other tabs of its context: only what the browser has cached stays."""
    for other in tab.context.pages:
        if other != tab:
            other.close()
    tab.evaluate(CLEAR)
    tab.context.clear_cookies()
    tab.context.clear_permissions()
    tab.mouse.move(0, 0)
    tab.goto("about:blank")


def address_of(service: Service) -> str:
    return f"http://127.0.0.1:{service.port}"
