"""`make wheel`: build the wheel, install it into a fresh environment, and look at what `datamask open` shows there.

Not part of `make test`: it installs every dependency anew. The wheel stays in dist/; everything else is made in a
folder that goes at the end.

    python -m tests.wheel [--keep FOLDER]     FOLDER, a new one, keeps the environment, the log and a picture of the map
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from datamask.dashboard.data import demo
from tests.e2e.browsing import FLAGS, NO_BROWSER, installed_browser
from tests.e2e.serving import FAILED
from tests.e2e.walkthrough import write_shards
from tests.e2e.websocket_client import Visitor

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300
"""Until the server answers, a page stands, or the demo is open: tenfold what it takes."""

SOURCES = (
    ".streamlit",
    "app.py",
    "datamask",
    "LICENSE",
    "pages",
    "pyproject.toml",
    "README.md",
    "sample_data/demo",
    "sample_data/demo_runs",
    "setup.py",
)
"""What a wheel is made of. Built from a copy: setuptools takes along whatever an earlier build left in build/."""

PAGES = ("", "frontier", "runs", "compare", "evidence", "data", "export")


def main() -> None:
    """Do it all; an assertion or a failed command ends it with its reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="do the work in this folder, a new one, and leave it there")
    keep = parser.parse_args().keep
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="datamask-wheel-") as scratch:
        place = (keep or Path(scratch)).absolute()
        place.mkdir(parents=True, exist_ok=keep is None)
        wheel = build(place)
        say(began, f"built {wheel.relative_to(ROOT)}")
        program = install(wheel, place)
        say(began, "installed it beside the dependencies of requirements.txt")
        look(program, place)
        say(began, "the map is shown, every page is drawn, the demo is open, Ctrl-C ends it")


def say(began: float, what: str) -> None:
    """A line with the seconds since the beginning."""
    print(f"{time.monotonic() - began:6.0f} s  {what}", flush=True)


def build(place: Path) -> Path:
    """The wheel, in dist/."""
    source, dist = place / "source", ROOT / "dist"
    for name in SOURCES:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "secrets.toml"))
        else:
            shutil.copy(ROOT / name, source / name)
    pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(place / "wheel"), str(source))
    (wheel,) = (place / "wheel").glob("datamask-*.whl")
    dist.mkdir(exist_ok=True)
    return Path(shutil.copy(wheel, dist))


def install(wheel: Path, place: Path) -> Path:
    """The command `datamask` of a fresh environment.

    The pinned dependencies go first, so that the wheel's own ranges find them and fetch no others; that they do is
    checked.
    """
    environment = place / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    pip(python, "install", "-r", str(ROOT / "requirements.txt"))
    before = versions(python)
    pip(python, "install", str(wheel))
    pip(python, "check")
    assert versions(python) - before == {f"datamask @ {wheel.as_uri()}"}, "the ranges of pyproject.toml exclude a pin"
    return environment / "bin" / "datamask"


def pip(python: str, *words: str) -> None:
    """One command of pip, quietly."""
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True)


def versions(python: str) -> set[str]:
    """What is installed, with its version."""
    listing = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
    return {re.sub(r"#sha256=\w+$", "", line) for line in listing.splitlines()}


def look(program: Path, place: Path) -> None:
    """Serve a small corpus from an empty folder, and look at it as a person would."""
    shards = write_shards(place / "shards" / "corpus")
    working, home = place / "working", place / "home"
    for folder in (working, home):
        folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("DATAMASK_", "STREAMLIT_", "PYTHON"))
    }
    clean |= {"HOME": str(home), "STREAMLIT_SERVER_HEADLESS": "true"}
    clean.pop("XDG_CACHE_HOME", None)
    log = place / "server.log"
    with log.open("wb") as lines:
        words = [str(program), "open", str(shards), "--port", str(port)]
        server = subprocess.Popen(words, cwd=working, env=clean, stdout=lines, stderr=subprocess.STDOUT)
    try:
        address = answered(server, port, log)
        in_a_browser(address, place / "map.png")
        every_page(f"http://127.0.0.1:{port}", working)
        server.send_signal(signal.SIGINT)
        assert server.wait(SECONDS) == 0, log.read_text()
    finally:
        if server.poll() is None:
            server.kill()
        server.wait()
    assert "Traceback" not in log.read_text(), log.read_text()
    assert [entry.name for entry in working.iterdir()] == ["runs"], "only the runs folder is made where one works"


def answered(server: subprocess.Popen, port: int, log: Path) -> str:
    """The address that was printed, once the server answers there."""
    deadline = time.monotonic() + SECONDS
    while True:
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < deadline, "the server did not answer"
        printed = re.search(r"http://\S+/\?corpus=\w+", log.read_text())
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as health:
                if printed and health.status == 200:
                    break
        except OSError:
            pass
        time.sleep(0.2)
    with urllib.request.urlopen(printed[0], timeout=60) as page:
        assert page.status == 200 and b"<html" in page.read()
    return printed[0]


def in_a_browser(address: str, picture: Path) -> None:
    """The map of all 800 rows, in the colors of the theme."""
    browser_path = installed_browser()
    assert browser_path, NO_BROWSER
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=list(FLAGS))
        try:
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(address)
            expect(page.locator(".map .stage").first).to_be_visible(timeout=1000 * SECONDS)
            expect(page.get_by_text("800 of 800 rows shown").first).to_be_visible(timeout=1000 * SECONDS)
            expect(page.locator(FAILED)).to_have_count(0)
            title = page.get_by_role("heading", level=1, name="Map", exact=True)
            assert title.evaluate("node => getComputedStyle(node).color") == "rgb(14, 20, 26)", "no theme"
        finally:
            page.screenshot(path=str(picture))
            browser.close()


def every_page(address: str, working: Path) -> None:
    """No page fails, and the demo came along."""
    with Visitor(address) as visitor:
        for page in PAGES:
            visitor.draw(page)
            assert not visitor.faults(), (page, visitor.faults())
        visitor.draw("data")
        visitor.press("open_sample", "data")
        deadline = time.monotonic() + SECONDS
        while not (working / "runs" / demo.RUN_ID / "status.json").exists():
            assert time.monotonic() < deadline, visitor.text()
            time.sleep(0.5)


if __name__ == "__main__":
    main()
