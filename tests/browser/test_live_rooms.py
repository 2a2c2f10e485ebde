"""The rooms Live and Servers, and the broker's own page, in a real browser: what is done is seen as it comes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from streamgauge.workbench.rooms.live import ELEMENTS
from tests.browser.driving import CONTRAST, complaints, faults, keep, show, text, texts, until
from tests.servers.broker.served import GRAPH, OTHER, serving
from tests.servers.broker.world import broker, select
from tests.workbench.servers.test_servers import NOW, remembering
from tests.workbench.serving import opened

pytestmark = pytest.mark.browser

SIZES = [(1440, "light"), (390, "dark")]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Any]:
    with opened(tmp_path) as bench:
        yield bench


def follow(browser: Any, words: str) -> None:
    """Follow a link, once the page that has it is there."""
    until(lambda: browser.find_elements("partial link text", words) != [])
    browser.find_element("partial link text", words).click()


def press(browser: Any, selector: str) -> None:
    """Press a button by the keyboard; a page that is drawn again meanwhile has another in its place."""
    from selenium.webdriver.common.keys import Keys

    def pressed() -> bool:
        browser.find_element("css selector", selector).send_keys(Keys.ENTER)
        return True

    until(pressed)


def check(browser: Any, address: str, name: str) -> None:
    """It fits, can be read, keeps nobody out; desk and phone, day and night."""
    for width, theme in SIZES:
        show(browser, address, width, theme)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width, (address, width)
        ratio, where = browser.execute_script(CONTRAST)
        assert ratio >= 4.5, (address, theme, where)
    assert not (result := faults(browser)), (address, result)
    keep(browser, name)


def reading(at: int, sensor: str, value: int) -> str:
    number = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return json.dumps({"t": at, "add": f"<urn:sensor:{sensor}> <urn:says> {number} ."}) + "\n"


def test_streams_of_the_folder_are_listed_in_whole_words_and_chosen_by_a_click(browser: Any, bench: Any) -> None:
    folder = bench.folder / "feeds"
    (folder / "run").mkdir(parents=True)
    for number in range(12):
        (folder / f"readings-of-station-{number:02}.jsonl").write_text(reading(1, "a", 5), encoding="utf-8")
    for name in ("run/run.json", "run/answers.jsonl", "notes.md", "a.csv-metadata.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    check(browser, f"{bench.url}/live/new", "live-new")
    show(browser, f"{bench.url}/live/new", 1440, "light")
    browser.execute_script("document.querySelector('.fold').open = true")
    buttons = browser.find_elements("css selector", ".files button")
    names = [button.text for button in buttons if button.text.startswith("feeds/")]
    assert names == [f"feeds/readings-of-station-{number:02}.jsonl" for number in range(12)]
    assert all(button.size["height"] < 40 and button.size["width"] > 150 for button in buttons[:12])
    for button in (buttons[0], buttons[1], buttons[0]):
        button.click()
    wanted = "\n".join(button.text for button in buttons[:2])
    assert browser.execute_script("return document.getElementById('sources').value") == wanted


AVERAGE = "4.714285714285714285"
"""The mean of seven readings that sum to 33."""


def figures_are_short(browser: Any) -> None:
    """Values have few decimals, all of them in their tips; rates have one."""
    cell = browser.find_element("css selector", f"#answers td[title='{AVERAGE}']")
    assert cell.text == "4.7143"
    until(lambda: all(re.fullmatch(r"\d+\.\d", rate) for rate in texts(browser, "#state dd")[:2]))


def ended_and_downloaded(browser: Any, bench: Any) -> None:
    """A file that ends ends its query, says so in the list too, and leaves answers that can be downloaded."""
    show(browser, f"{bench.url}/live/new?example=1", 1440)
    browser.find_element("id", "sources").send_keys("log.jsonl")
    press(browser, "form button.first")
    until(lambda: text(browser, "#state .headline") == "ended: its sources have been read to their end")
    (folder := bench.folder / "downloads").mkdir()
    browser.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    for kind, words in (("csv", "CSV"), ("jsonl", "JSON lines")):
        browser.find_element("link text", f"Download {words}").click()
        file = folder / f"q2.{kind}"
        until(lambda file=file: file.exists() and AVERAGE in file.read_text(encoding="utf-8"))
    show(browser, f"{bench.url}/live/", 1440)
    assert texts(browser, "main .state") == ["ended"]
    press(browser, "[id^=end-]")
    until(lambda: "No query is registered." in text(browser, "main"))


def test_a_query_is_registered_watched_held_released_and_ended(browser: Any, bench: Any) -> None:
    log: Path = bench.folder / "log.jsonl"
    log.write_text("".join(reading(1000 * at, "aba"[at % 3], at) for at in range(12)))
    browser.get("about:blank")
    browser.get_log("browser")
    show(browser, f"{bench.url}/live/new?example=1")
    named = "const area = document.getElementById('query'); area.value = `REGISTER RSTREAM <means> AS ${area.value}`"
    browser.execute_script(named)
    browser.find_element("id", "sources").send_keys("log.jsonl?follow=1")
    press(browser, "form button.first")
    until(lambda: text(browser, "#link") == "Live, newest first.")
    assert text(browser, "h1").startswith("means")
    until(lambda: len(browser.find_elements("css selector", "#answers tbody tr")) == 2)
    figures_are_short(browser)
    with log.open("a") as file:
        file.write(reading(15_000, "a", 30))
    until(lambda: text(browser, "#answers tbody tr").split()[:2] == ["2", "15"])
    until(lambda: len(browser.find_elements("css selector", "#chart .plot.wide .series")) == 2)
    boxes = "return [...document.querySelectorAll('#timeline a.report')].map(box => box.ariaLabel)"
    until(lambda: browser.execute_script(boxes)[-1:] == ["answer 2 at 15 s: 2 rows"])
    browser.execute_script("document.querySelectorAll('#timeline a.report')[1].focus()")
    assert browser.execute_script("return document.querySelector('#answers .chosen').id") == "answer-2"
    press(browser, "[data-zoom=in]")
    until(lambda: browser.find_elements("css selector", "#timeline .minimap .view") != [])
    press(browser, "[data-zoom=all]")
    press(browser, "#hold")
    until(lambda: text(browser, "#link") == "Held: answers wait.")
    with log.open("a") as file:
        file.write(reading(20_000, "a", 31))
    until(lambda: "1 answer waits" in text(browser, "#state"))
    assert text(browser, "#answers tbody tr").split()[0] == "2"
    press(browser, "#hold")
    until(lambda: text(browser, "#answers tbody tr").split()[0] == "3")
    browser.find_element("id", "threshold").send_keys("5")
    press(browser, ".choose button")
    until(lambda: "at or above 5, the last at" in text(browser, "#chart [role=status]"))
    assert browser.find_elements("css selector", "#chart .plot.wide .threshold circle") != []
    address = browser.current_url
    check(browser, address, "live-query")
    check(browser, f"{bench.url}/live/", "live")
    check(browser, f"{bench.url}/live/new", "live-new")
    show(browser, address)
    press(browser, "#end")
    until(lambda: "No query is registered." in text(browser, "main"))
    ended_and_downloaded(browser, bench)
    assert [entry["message"] for entry in complaints(browser) if entry["level"] == "SEVERE"] == []


def test_a_newcomer_is_led_from_the_front_page_to_a_threshold(browser: Any, bench: Any) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    show(browser, f"{bench.url}/", 1440)
    follow(browser, "Register an example")
    until(lambda: "AVG" in str(browser.execute_script("return document.getElementById('query').value")))
    press(browser, "form button.first")
    until(lambda: "No element has come yet." in text(browser, "#state"))
    check(browser, browser.current_url, "live-query-without-elements")
    show(browser, browser.current_url, 1440)
    browser.find_element("id", "threshold").send_keys("28")
    form = httpx.get(str(browser.find_element("id", "begin-1").get_attribute("href")))
    assert 'value="urn:readings"' in form.text
    elements = {"stream": "urn:readings", "elements": ELEMENTS}
    assert httpx.post(f"{bench.url}/live/streams/publish", data=elements).status_code == 303
    until(lambda: browser.find_elements("css selector", "#show option[value='?average']") != [])
    press(browser, ".choose button")
    until(lambda: text(browser, "#chart [role=status]") == "3 of 6 values at or above 28, the last at 20 s.")
    query = browser.current_url.partition("?")[0]
    follow(browser, "Its plan")
    until(lambda: "group" in text(browser, "#plan") and "triple patterns" in text(browser, "#plan"))
    check(browser, browser.current_url, "live-plan")
    show(browser, f"{bench.url}/live/", 1440)
    follow(browser, "Board")
    until(lambda: browser.find_elements("css selector", ".board .threshold") == [])
    browser.find_element("css selector", ".board input").send_keys("28")
    press(browser, "fieldset button")
    until(lambda: "3 of 6 values at or above 28" in text(browser, ".board [role=status]"))
    check(browser, browser.current_url, "live-board")
    show(browser, query, 1440)
    press(browser, "#end")
    until(lambda: "No query is registered." in text(browser, "main"))
    assert [entry["message"] for entry in complaints(browser) if entry["level"] == "SEVERE"] == []


def test_without_script_tables_reload_and_forms_do(browser: Any, bench: Any) -> None:
    log: Path = bench.folder / "plain.jsonl"
    log.write_text(reading(0, "a", 1) + reading(11_000, "a", 2))
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(browser, f"{bench.url}/live/new?example=1")
        browser.find_element("id", "sources").send_keys("plain.jsonl?follow=1")
        press(browser, "form button.first")
        until(lambda: "<urn:sensor:a>" in browser.page_source.replace("&lt;", "<").replace("&gt;", ">"))
        with log.open("a") as file:
            file.write(reading(16_000, "a", 7))
        until(lambda: '<td class="n">2</td>' in browser.page_source)
        press(browser, "#hold")
        until(lambda: "Release the answers" in browser.page_source)
        press(browser, "#end")
        until(lambda: "No query is registered." in browser.page_source)
        assert "Release the answers" not in browser.page_source
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def a_page_that_was_refused_opens_again(browser: Any) -> None:
    """The address of a refused form leads to its page when it is opened again."""
    page = browser.current_url
    browser.find_element("id", "graph").send_keys("<a> <b")
    press(browser, "form[action$=publish] button")
    until(lambda: "not text/turtle" in text(browser, "[role=alert]"))
    assert browser.current_url == f"{page}publish"
    show(browser, browser.current_url)
    assert browser.current_url == page
    assert browser.find_elements("css selector", "[role=alert]") == []


def a_fragments_server_is_no_broker(browser: Any, servers: str, address: str) -> None:
    """A fragments server that is entered as a broker is refused by what it is, and not kept."""
    show(browser, servers)
    browser.find_element("id", "kind").send_keys("broker")
    browser.find_element("id", "address").send_keys(address)
    press(browser, "button.first")
    until(lambda: "is a fragments server, not a broker" in text(browser, "[role=alert]"))
    assert browser.find_elements("css selector", f"[aria-label^='Forget {address}']") == []


def past_facts_are_found(browser: Any) -> None:
    """Facts as they are, as they were, and a sentence where the history does not reach."""
    until(lambda: len(browser.find_elements("css selector", "svg.lane .holds")) == 1)
    assert "train:delay" in text(browser, ".facts")
    at_instant(browser, str(NOW + 1000))
    until(lambda: text(browser, "#facts-title") == f"As it was at {NOW + 1000}")
    assert len(browser.find_elements("css selector", "svg.lane .holds")) == 2
    check(browser, browser.current_url, "servers-fragments")
    show(browser, browser.current_url)
    follow(browser, "Now")
    until(lambda: text(browser, "#facts-title") == "Now")
    at_instant(browser, "2020-01-01T00:00:00Z")
    until(lambda: "the history does not reach back to 2020-01-01T00:00:00Z" in text(browser, "[role=alert]"))
    assert "{" not in text(browser, "[role=alert]")


def at_instant(browser: Any, instant: str) -> None:
    """Look up facts as they were at an instant."""
    from selenium.webdriver.common.keys import Keys

    browser.find_element("id", "at").send_keys(instant, Keys.ENTER)


def test_a_channel_is_watched_as_it_changes_and_facts_over_time(browser: Any, bench: Any) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    with serving(broker()) as (url, made), remembering() as data:
        made.create_channel("people", select("?x a :Student"))
        show(browser, f"{bench.url}/servers/")
        browser.find_element("id", "address").send_keys(url)
        press(browser, "button.first")
        follow(browser, "people")
        until(lambda: text(browser, "#link") == "Listening, newest first.")
        address = browser.current_url
        httpx.post(f"{url}/publish", content=GRAPH, headers={"content-type": "text/turtle"}).raise_for_status()
        until(lambda: text(browser, "#changes tbody tr").split() == ["1", "0", "s", "+", ":s1"])
        until(lambda: text(browser, "#answer").split() == ["x", ":s1"])
        browser.refresh()
        until(lambda: text(browser, "#changes tbody tr").split() == ["1", "0", "s", "+", ":s1"])
        check(browser, address, "servers-channel")
        check(browser, address.partition("channels")[0], "servers-broker")
        a_page_that_was_refused_opens_again(browser)
        a_fragments_server_is_no_broker(browser, f"{bench.url}/servers/", data)
        check(browser, f"{bench.url}/servers/", "servers")
        show(browser, f"{bench.url}/servers/")
        browser.find_element("id", "address").send_keys(data)
        press(browser, "button.first")
        follow(browser, "/trains")
        past_facts_are_found(browser)
    refused = "the server responded with a status of 400 (Bad Request)"
    messages = [entry["message"] for entry in complaints(browser) if entry["level"] == "SEVERE"]
    assert [message for message in messages if refused not in message] == []


def test_the_brokers_own_page_makes_channels_publishes_and_shows_what_changes(browser: Any) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    with serving(broker()) as (url, _):
        show(browser, f"{url}/")
        until(lambda: "There is no channel" in text(browser, "main"))
        press(browser, "#create button")
        until(lambda: text(browser, "#link") == "subscribed")
        press(browser, "#publish button.first")
        until(lambda: text(browser, "#said") == "Publication 1 took effect.")
        until(lambda: text(browser, "#rows tbody") == "<urn:a> <urn:knows> <urn:b>")
        assert text(browser, "#changes tbody tr").split()[-4:] == ["+", "<urn:a>", "<urn:knows>", "<urn:b>"]
        press(browser, "#publish button[value=delete]")
        until(lambda: text(browser, "#count") == "0 rows")
        assert text(browser, "#changes tbody tr").split()[3] == "\N{MINUS SIGN}"
        httpx.post(f"{url}/publish", content=OTHER, headers={"content-type": "text/turtle"}).raise_for_status()
        until(lambda: "urn:t:s2" in text(browser, "#changes"))
        check(browser, f"{url}/", "broker")
        httpx.delete(f"{url}/channels/all").raise_for_status()
        said = [entry["message"] for entry in complaints(browser) if entry["level"] == "SEVERE"]
        assert said == []
        browser.find_element("id", "graph").send_keys("<")
        press(browser, "#publish button.first")
        until(lambda: "not text/turtle" in text(browser, "#said"))
