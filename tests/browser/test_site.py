"""The site of the documentation in a real browser: read, searched and switched to dark, without another machine."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from streamgauge.cli import docs
from streamgauge.servers.http.server import Serving
from tests.browser.driving import CONTRAST, asked, complaints, faults, keep, show

pytestmark = pytest.mark.browser

VIEWS = [("index.html", 1440, "light"), ("commands.html", 390, "dark")]
MORE_VIEWS = [("cases/windows.html", 1440, "dark"), ("semantics.html", 390, "light")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    ready: list[str] = []
    serving = Serving(docs.application(docs.built_site()), "127.0.0.1", 0, lambda: None, ready.append)
    thread = Thread(target=serving.run, daemon=True)
    thread.start()
    for _ in range(6000):
        if ready:
            break
        thread.join(0.05)
    yield ready[0]
    serving.stop()
    thread.join(30)


@pytest.mark.heavy("axe-core on pages of the site, after Sphinx has built them")
@pytest.mark.parametrize("views", [VIEWS, pytest.param(MORE_VIEWS, marks=pytest.mark.prove)], ids=["some", "more"])
def test_pages_are_for_everybody(browser: Any, address: str, views: list[tuple[str, int, str]]) -> None:
    browser.get_log("performance")
    for page, width, theme in views:
        show(browser, f"{address}{page}", width, theme)
        wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, (page, width)
        ratio, where = browser.execute_script(CONTRAST)
        assert ratio >= 4.5, (page, theme, where)
        assert not (result := faults(browser)), (page, result)
        keep(browser, f"site-{page.removesuffix('.html').replace('/', '-')}")
    assert [entry for entry in complaints(browser) if entry["level"] == "SEVERE"] == []
    sent = [json.loads(entry)["message"] for entry in asked(browser)]
    to = [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]
    assert len(to) > len(views)
    assert [line for line in to if not line.startswith((address, "data:"))] == []


def test_words_are_searched_by_the_keyboard(browser: Any, address: str) -> None:
    show(browser, f"{address}index.html", 1440)
    field = browser.find_element(By.CSS_SELECTOR, "input[name=q]")
    field.send_keys("landmark", Keys.ENTER)
    for page in ("cases/landmark.html", "semantics.html"):
        link = f'#search-results ul.search li a[href*="{page}"]'
        assert WebDriverWait(browser, 120).until(lambda shown, link=link: shown.find_elements(By.CSS_SELECTOR, link))


def test_the_theme_is_switched_with_its_pictures(browser: Any, address: str, tmp_path: Path) -> None:
    show(browser, f"{address}semantics.html", 1440, "light")
    switch = browser.find_element(By.CSS_SELECTOR, ".theme-toggle-content button")
    ways = []
    for _ in range(3):
        switch.send_keys(Keys.ENTER)
        dark = "return [document.body.dataset.theme, getComputedStyle(document.body).backgroundColor]"
        ways.append(tuple(browser.execute_script(dark)))
    assert {theme for theme, _ in ways} == {"auto", "light", "dark"}
    assert len({colour for _, colour in ways}) == 2
