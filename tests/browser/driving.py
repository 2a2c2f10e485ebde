"""Chromium driven by selenium: started, looked at in a size and a theme, the contrast of its texts."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-prefers-reduced-motion",  # else pages scroll for 0.4 s, and a pointer finds something else at its place
]


@contextmanager
def started(profile: Path) -> Iterator[Any]:
    """A browser of its own; skips where there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromedriver are not here: install the packages chromium and chromium-driver")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=ChromeService(driver))
    browser.set_page_load_timeout(100)  # below that of the driver's own connection, which says nothing of the page
    try:
        yield browser
    finally:
        browser.quit()


@contextmanager
def offline(profile: Path) -> Iterator[Any]:
    """A browser of its own that reaches no network."""
    with started(profile) as browser, without_network(browser):
        yield browser


@contextmanager
def without_network(browser: Any) -> Iterator[None]:
    """The browser reaches no network meanwhile."""
    browser.execute_cdp_cmd("Network.enable", {})
    _connect(browser, offline=True)
    try:
        yield
    finally:
        _connect(browser, offline=False)


def _connect(browser: Any, *, offline: bool) -> None:
    conditions = {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)


def as_new(browser: Any) -> None:
    """An empty page in the browser's own size, by day; logs without what other pages left in them."""
    browser.get("about:blank")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    for log in ("browser", "performance"):
        browser.get_log(log)


def until(met: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait until something is met on the page, or on the one that comes after it.

    A look costs the browser some ms of CPU: there are ten a second.
    """
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + seconds
    while True:
        with suppress(WebDriverException):  # between two pages
            if met():
                return
        assert time.monotonic() < end
        time.sleep(0.1)


def text(browser: Any, selector: str) -> str:
    """The text that the first such element shows, cells parted by spaces; WebDriverException where there is none.

    The page is asked once: between two questions another page may have come.
    """
    script = "return document.querySelector(arguments[0]).innerText.replaceAll('\\t', ' ').trim()"
    return str(browser.execute_script(script, selector))


def texts(browser: Any, selector: str) -> list[str]:
    """As ``text``, of all such elements."""
    script = """return [...document.querySelectorAll(arguments[0])].map(
        each => each.innerText.replaceAll('\\t', ' ').trim())"""
    return list(browser.execute_script(script, selector))


def records(browser: Any) -> list[dict[str, str]]:
    """The rows of all tables that are shown: texts of cells by that of the heading that stands above them."""
    script = """const box = one => one.getBoundingClientRect(), said = one => one.innerText.replace(/\\s+/g, ' ').trim()
    return [...document.querySelectorAll('table')].flatMap(table => {
      const heads = [...table.querySelectorAll('thead th')].map(head => [said(head), box(head).left, box(head).right])
      return [...table.querySelectorAll('tbody tr')].filter(row => row.offsetParent).map(row => Object.fromEntries(
        [...row.cells].map(cell => {
          const middle = (box(cell).left + box(cell).right) / 2
          return [heads.find(([, left, right]) => left <= middle && middle <= right)?.[0], said(cell)] })))
    })"""
    return list(browser.execute_script(script))


def complaints(browser: Any) -> list[dict[str, Any]]:
    """Entries of the browser's log since the last look, but for those of its own pages, as of a new tab."""
    return [entry for entry in browser.get_log("browser") if not entry["message"].startswith("chrome://")]


def asked(browser: Any) -> list[str]:
    """What a page has asked for, over the network or not, as the browser's log tells it."""
    return [entry["message"] for entry in browser.get_log("performance") if "requestWillBeSent" in entry["message"]]


def show(browser: Any, address: str, width: int = 1280, theme: str = "light", height: int = 900) -> None:
    resize(browser, width, theme, height)
    browser.get(address)


ARTEFACTS = "STREAMGAUGE_ARTEFACTS"
"""The variable that names a folder where pictures of pages are kept."""
DRAWN = """const done = arguments[0], began = performance.now()
const look = () => [...document.querySelectorAll('.later')].some(each => each.offsetParent)
  && performance.now() - began < 20000 ? setTimeout(look, 100) : setTimeout(done, 400)
look()"""
"""Waits until plots that are drawn when they are seen are there."""
TALLEST = 6_000
"""Pixels of a page that a picture has at most."""


def keep(browser: Any, name: str) -> None:
    """Keep pictures of the page that is open, whole, on desk and phone, by day and by night, where they are asked for.

    The page is as wide as it was afterwards, by day.
    """
    folder = os.environ.get(ARTEFACTS, "")
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    before, scroll = browser.execute_script("return [innerWidth, scrollY]")
    for width, theme in ((1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")):
        resize(browser, width, theme, 900)
        browser.execute_async_script("setTimeout(arguments[0], 400)")
        tall = min(TALLEST, browser.execute_script("return document.documentElement.scrollHeight"))
        resize(browser, width, theme, max(900, tall))
        browser.execute_async_script(DRAWN)
        browser.save_screenshot(str(Path(folder) / f"{name}-{width}-{theme}.png"))
    resize(browser, before, "light", 900)
    browser.execute_script("scrollTo(0, arguments[0])", scroll)


def resize(browser: Any, width: int, theme: str, height: int) -> None:
    """The page that is open in another size and theme."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


AXE = "STREAMGAUGE_AXE_HOME"
"""The variable that names a folder with axe-core, which checks pages for what keeps people out."""


def faults(browser: Any) -> list[str]:
    """What axe-core finds serious or critical on the page that is shown; none where axe-core is not here."""
    home = os.environ.get(AXE, "")
    source = Path(home) / "node_modules" / "axe-core" / "axe.js"
    if not source.is_file():
        return []
    results: list[Any] = []

    def checked() -> bool:
        browser.execute_cdp_cmd("Runtime.evaluate", {"expression": source.read_text(encoding="utf-8")})
        message = "const done = arguments[0]; axe.run().then(r => done(r.violations))"
        results[:] = browser.execute_async_script(message)
        return True

    until(checked)
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: {one['nodes'][0]['html'][:200]}"
        for one in results
        if one["impact"] in ("serious", "critical")
    ]


CONTRAST = """
const colour = text => text.match(/[\\d.]+/g).map(Number)
const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
const behind = e => { for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor)
  if (c.length < 4 || c[3] > 0.99) return c } return [255, 255, 255] }
const found = []
for (const e of document.querySelectorAll('body *')) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue
  if (['title', 'style'].includes(e.tagName)) continue
  const s = getComputedStyle(e), inside = e.ownerSVGElement
  const ink = colour(inside ? s.fill : s.color), a = light(ink), b = light(behind(inside ? inside.parentElement : e))
  const where = e.tagName + '.' + e.getAttribute('class') + ': ' + e.textContent.slice(0, 40)
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), where])
}
return found.sort((x, y) => x[0] - y[0])[0]
"""
