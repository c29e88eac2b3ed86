"""One browser for all browser tests that follow each other in a process."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, ViewportSize, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

VIEWPORT: ViewportSize = {"width": 1440, "height": 900}
"""Pixels of a visitor's page."""

KEPT_BY_PAGES = "local_storage,indexeddb,cache_storage,service_workers,websql,file_systems"
"""What scripts can leave in a browser, besides cookies, in the words of Chromium's protocol."""

OWN = ("127.0.0.1", "localhost", "::1")
"""This machine: all other addresses are outside."""

BLOCKED = "--host-resolver-rules=MAP * ~NOTFOUND" + "".join(f", EXCLUDE {host}" for host in OWN)
"""No name and no number but this machine's leads anywhere, whoever in the browser asks."""

NO_BROWSER = f"needs a browser ({', '.join(BROWSERS)}); on Debian: apt-get install chromium"


def installed_browser() -> str | None:
    """The path of the first browser there is."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Running:
    """The browser that runs, if any, and the driver it is spoken to by; it reaches this machine alone.

    It keeps the files it has been given, and what it made of those, as a visitor's browser does: to read Streamlit's
    scripts anew for every test takes a second of processor time each. All else that a test left is forgotten.

    Attributes:
        outside: addresses elsewhere that its pages asked for, in vain, since `check` was last called.
    """

    def __init__(self) -> None:
        self.playwright: Playwright | None = None
        self.browser: Browser | None = None
        self.outside: list[str] = []
        self._visits: BrowserContext | None = None
        self._files: tempfile.TemporaryDirectory | None = None

    def started(self) -> Browser:
        """The browser; started where there is none, or where the last test has lost it."""
        if self.browser is None or not self.browser.is_connected():
            self.end()
            path = installed_browser()
            assert path, NO_BROWSER
            self._files = self._files or tempfile.TemporaryDirectory(
                prefix="datamask-browser-", ignore_cleanup_errors=True
            )
            self.playwright = sync_playwright().start()
            self._visits = self.playwright.chromium.launch_persistent_context(
                self._files.name, executable_path=path, args=[*FLAGS, BLOCKED], viewport=VIEWPORT, accept_downloads=True
            )
            self._listen(self._visits)
            self.browser = self._visits.browser
            assert self.browser is not None
            self._watch(self.browser)
        return self.browser

    def visitor(self) -> Page:
        """A page of somebody who was nowhere before, though the files of a dashboard at the same address are kept."""
        self.leave()
        assert self._visits is not None
        return self._visits.new_page()

    def leave(self) -> None:
        """Close the visitor's pages, and forget all that they kept but files."""
        self.started()
        assert self._visits is not None
        blank, *pages = self._visits.pages
        for page in pages:
            page.close()
        self._visits.set_offline(False)
        self._visits.clear_cookies()
        chromium = self._visits.new_cdp_session(blank)
        chromium.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": KEPT_BY_PAGES})
        chromium.detach()

    def check(self) -> None:
        """Forget what was asked for elsewhere.

        Raises:
            AssertionError: something was.
        """
        asked, self.outside = self.outside, []
        assert not asked, f"a page asked for {len(asked)} addresses outside of this machine: {', '.join(asked[:5])}"

    def end(self) -> None:
        """End both."""
        if self._visits is not None:
            self._visits.close()
        if self.playwright is not None:
            self.playwright.stop()
        self.browser = self.playwright = self._visits = None

    def _watch(self, browser: Browser) -> None:
        """Note what the pages of all its contexts ask for; nothing is routed, which would turn its cache off."""
        new_context, new_page = browser.new_context, browser.new_page

        def watched_context(**options: Any) -> BrowserContext:
            context = new_context(**options)
            self._listen(context)
            return context

        def watched_page(**options: Any) -> Page:
            page = new_page(**options)
            self._listen(page.context)
            page.on("websocket", lambda socket: self._note(socket.url))
            return page

        browser.new_context, browser.new_page = watched_context, watched_page  # type: ignore[method-assign]

    def _listen(self, context: BrowserContext) -> None:
        context.on("request", lambda request: self._note(request.url))
        context.on("page", lambda page: page.on("websocket", lambda socket: self._note(socket.url)))

    def _note(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in OWN:
            self.outside.append(url)
