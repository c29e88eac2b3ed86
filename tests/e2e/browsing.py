"""One browser for all browser tests that follow each other in a process."""

from __future__ import annotations

import shutil

from playwright.sync_api import Browser, Playwright, sync_playwright

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


NO_BROWSER = f"needs a browser ({', '.join(BROWSERS)}); on Debian: apt-get install chromium"


def installed_browser() -> str | None:
    """The path of the first browser there is."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Running:
    """The browser that runs, if any, and the driver it is spoken to by."""

    def __init__(self) -> None:
        self.playwright: Playwright | None = None
        self.browser: Browser | None = None

    def started(self) -> Browser:
        """The browser; started where there is none, or where the last test has lost it."""
        if self.browser is None or not self.browser.is_connected():
            self.end()
            path = installed_browser()
            assert path, NO_BROWSER
            self.playwright = sync_playwright().start()
            self.browser = self.playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        return self.browser

    def end(self) -> None:
        """End both."""
        if self.browser is not None:
            self.browser.close()
        if self.playwright is not None:
            self.playwright.stop()
        self.browser = self.playwright = None
