"""The page of the query service in a real browser: register, watch answers come, end; desk and phone, day and night."""

from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from streamgauge.engines import load
from streamgauge.servers.queries.registry import Queries
from tests.browser.driving import CONTRAST, complaints, keep, resize, show, text, texts, until
from tests.servers.queries.asks import IN, construct, select
from tests.servers.queries.test_face import LINES, TOKEN, lines, served

pytestmark = pytest.mark.browser


@pytest.fixture
def service() -> Iterator[SimpleNamespace]:
    with served(Queries(load, ("live",))) as running:
        yield running


def press(browser: Any, label: str) -> None:
    """Press a button of a table that is drawn anew now and then."""

    def pressed() -> bool:
        browser.find_element("css selector", f"button[aria-label='{label}']").click()
        return True

    until(pressed)


def publish(service: SimpleNamespace, *times: int) -> None:
    httpx.post(f"{service.url}/streams/{IN}", content=lines(*times), headers=LINES).raise_for_status()


def test_a_query_is_registered_watched_and_ended(browser: Any, service: SimpleNamespace) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    show(browser, f"{service.url}/")
    assert "No query is registered." in text(browser, "main")
    browser.find_element("id", "query").send_keys("SELECT nothing")
    browser.find_element("css selector", "#register button").click()
    until(lambda: "this query has no stream" in text(browser, "#said"))
    field = browser.find_element("id", "query")
    field.clear()
    field.send_keys(select())
    browser.find_element("css selector", "#register button").click()
    until(lambda: text(browser, "#link") == "live")
    publish(service, 0, 1000, 2500, 4100)
    until(lambda: "urn:s2500" in text(browser, "#answers"))
    rows = texts(browser, "#answers tbody tr")
    assert [row.split()[:2] for row in rows] == [["4", "s"], ["2", "s"], ["2", "s"]]
    until(lambda: text(browser, "#queries tbody").split()[2:6] == [IN, "4", "0", "2"])
    press(browser, "End q1")
    until(lambda: text(browser, "#link") == "deregistered")
    until(lambda: "No query is registered." in text(browser, "main"))
    said = [one["message"] for one in complaints(browser) if "400" not in one["message"]]
    assert said == []


def test_the_example_is_registered_published_on_and_answered(browser: Any, service: SimpleNamespace) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    show(browser, f"{service.url}/")
    assert "No stream is read" in text(browser, "main")
    browser.find_element("id", "fill").click()
    browser.find_element("css selector", "#register button").click()
    until(lambda: text(browser, "#link") == "live")
    browser.find_element("css selector", "#publish button").click()
    until(lambda: text(browser, "#published") == "4 taken, read by 1 query")
    until(lambda: "urn:sensor" in text(browser, "#answers"))
    until(lambda: text(browser, "#streams tbody") == "urn:readings 4 q1")
    browser.find_element("css selector", "#publish ~ details summary").click()
    shown = text(browser, "#curl")
    assert f"{service.url}/streams/urn%3Areadings?t=now" in shown
    field = browser.find_element("id", "elements")
    field.clear()
    field.send_keys('{"t": 20000}')  # without a time the line is of now, 55 years of windows after the example's
    browser.find_element("css selector", "#publish button").click()
    until(lambda: text(browser, "#published") == "1 taken, read by 1 query")
    field.send_keys("}")
    browser.find_element("css selector", "#publish button").click()
    until(lambda: "not a line of JSON" in text(browser, "#published"))
    said = [one["message"] for one in complaints(browser) if "400" not in one["message"]]
    assert said == []


def test_a_service_with_tokens_asks_for_one(browser: Any) -> None:
    with served(Queries(load, ("live",)), tokens=(TOKEN,)) as service:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        httpx.post(f"{service.url}/queries", content=select(), headers=headers).raise_for_status()
        show(browser, f"{service.url}/")
        until(lambda: browser.find_element("id", "token").is_displayed())
        browser.find_element("id", "token").send_keys(TOKEN)
        browser.find_element("css selector", "#token-form button").click()
        until(lambda: not browser.find_element("id", "token").is_displayed())
        press(browser, "Show answers of q1")
        until(lambda: text(browser, "#link") == "live")
        assert TOKEN not in browser.current_url


def test_it_fits_and_can_be_read(browser: Any, service: SimpleNamespace) -> None:
    httpx.post(f"{service.url}/queries", content=construct("http://ex.org/" + "a-long-name/" * 20)).raise_for_status()
    show(browser, f"{service.url}/")
    until(lambda: "q1" in text(browser, "#queries"))
    press(browser, "Show answers of q1")
    publish(service, 0, 2500)
    until(lambda: "urn:seen" in text(browser, "#answers"))
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    for width, theme in product((390, 1280), ("light", "dark")):
        resize(browser, width, theme, 900)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        heights = "return [...document.querySelectorAll('main button')].map(one => one.getBoundingClientRect().height)"
        assert max(browser.execute_script(heights)) <= 60
        ratio, where = browser.execute_script(CONTRAST)
        assert ratio >= 4.5, (width, theme, where)
    keep(browser, "queries")
