"""The report in a real browser: opens from a file without network, on desk and phone, by day and by night."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge import report
from tests.report import build

pytestmark = pytest.mark.browser

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
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromedriver are not here: install the packages chromium and chromium-driver")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = Chrome(options=options, service=ChromeService(driver))
    try:
        offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
        yield browser
    finally:
        browser.quit()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    runs = [build.right(), build.wrong(), build.late(), build.failed(), build.unknown(), *build.repetitions(3)]
    runs.append(build.fitted())
    report.write(runs, path, "A_rather_long_title_that_nobody_broke_into_words_and_that_a_phone_must_break")
    return Path(path).as_uri()


def show(browser: Any, address: str, width: int = 1280, theme: str = "light", height: int = 900) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    browser.get(address)


def test_it_opens_without_network_and_without_complaints(browser: Any, address: str) -> None:
    show(browser, address)
    assert "5 of 21 windows not as expected" in browser.find_element("css selector", "#verdict").text
    assert browser.find_element("css selector", ".headline").is_displayed()
    assert browser.get_log("browser") == []
    asked = [entry["message"] for entry in browser.get_log("performance") if "requestWillBeSent" in entry["message"]]
    assert asked
    assert not [one for one in asked if '"url":"http' in one]


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_sideways_even_when_all_is_open(browser: Any, address: str, width: int) -> None:
    show(browser, address, width)
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width
    boxes = (
        "return [...document.querySelectorAll('.scroll,figure,.card,h1,pre')].map(e => e.getBoundingClientRect().right)"
    )
    assert max(browser.execute_script(boxes)) <= width


@pytest.mark.parametrize(("width", "shown"), [(390, "narrow"), (1280, "wide")])
def test_plots_are_drawn_for_the_screen(browser: Any, address: str, width: int, shown: str) -> None:
    show(browser, address, width)
    plots = browser.find_elements("css selector", ".plot")
    visible = {plot.get_attribute("class") for plot in plots if plot.is_displayed()}
    assert visible == {f"plot {shown}"}
    small = """return Math.min(...[...document.querySelectorAll('.plot text')]
      .map(e => e.getBoundingClientRect().height).filter(h => h))"""
    assert browser.execute_script(small) >= 10


CONTRAST = """
const colour = text => text.match(/[\\d.]+/g).map(Number)
const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
const behind = e => { for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor)
  if (c.length < 4 || c[3] > 0.99) return c } return [255, 255, 255] }
const found = []
for (const e of document.querySelectorAll('body *')) {
  if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue
  if (e.tagName === 'title') continue
  const s = getComputedStyle(e), inside = e.ownerSVGElement
  const ink = colour(inside ? s.fill : s.color), a = light(ink), b = light(behind(inside ? inside.parentElement : e))
  const where = e.tagName + '.' + e.getAttribute('class') + ': ' + e.textContent.slice(0, 40)
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), where])
}
return found.sort((x, y) => x[0] - y[0])[0]
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out(browser: Any, address: str, theme: str) -> None:
    show(browser, address, theme=theme)
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    ratio, where = browser.execute_script(CONTRAST)
    assert ratio >= 4.5, where


def test_dark_and_light_differ_in_page_and_plots(browser: Any, address: str) -> None:
    look = """const plot = document.querySelector('.plot.wide [stroke="#0068b0"]')
    return [getComputedStyle(document.body).backgroundColor, getComputedStyle(plot).stroke]"""
    show(browser, address, theme="light")
    day = browser.execute_script(look)
    show(browser, address, theme="dark")
    night = browser.execute_script(look)
    assert day[0] == "rgb(246, 247, 249)"
    assert night[0] == "rgb(16, 19, 23)"
    assert day[1] != night[1]


def test_the_keyboard_skips_to_the_verdict_and_opens_the_rows(browser: Any, address: str) -> None:
    from selenium.webdriver.common.keys import Keys

    show(browser, address)
    browser.find_element("css selector", "body").send_keys(Keys.TAB)
    skip = browser.switch_to.active_element
    assert skip.get_attribute("class") == "skip"
    assert skip.rect["x"] >= 0
    skip.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "verdict"
    outer = browser.find_element("xpath", "//details[.//td][contains(summary, 'not right')]")
    _open_by_key(browser, outer, Keys.ENTER)
    inner = outer.find_element("css selector", "tr.rows details")
    assert not inner.find_element("css selector", ".witness").is_displayed()
    _open_by_key(browser, inner, Keys.SPACE)
    assert ":S0" in inner.find_element("css selector", ".witness").text


def _open_by_key(browser: Any, details: Any, key: str) -> None:
    from selenium.webdriver.common.keys import Keys

    target = details.find_element("css selector", "summary")
    for _ in range(200):
        if browser.switch_to.active_element == target:
            break
        browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element == target, "the tab key does not reach it"
    target.send_keys(key)
    assert details.get_attribute("open") is not None


def test_in_print_all_is_on_white(browser: Any, address: str) -> None:
    show(browser, address, theme="dark")
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    look = "return [document.body, document.querySelector('.card')].map(e => getComputedStyle(e).backgroundColor)"
    assert browser.execute_script(look) == ["rgb(255, 255, 255)", "rgb(255, 255, 255)"]
    ratio, where = browser.execute_script(CONTRAST)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert ratio >= 4.5, where


def test_borders_that_fit_best_are_drawn_against_the_expected_ones(browser: Any, address: str) -> None:
    show(browser, address)
    figure = browser.find_element("xpath", "//figure[contains(., 'Borders that fit best')]")
    plot = figure.find_element("css selector", ".plot.wide")
    assert plot.is_displayed()
    tips = [one.get_attribute("textContent") for one in plot.find_elements("css selector", "title")]
    assert any("expected [10, 15) s, fits best [11.1, 15.3) s" in tip for tip in tips)
    outlines, found = (
        plot.find_elements("css selector", f"path[fill-opacity='{share}']") for share in ("0.04", "0.75")
    )
    assert (len(outlines), len(found)) == (12, 11)
