"""Pages of fragments in a real browser: a pattern is found, links lead on; desk and phone, day and night."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.browser.driving import CONTRAST, complaints, keep, resize, show, text, texts, until

pytestmark = pytest.mark.browser

PROGRAM = [sys.executable, "-m", "streamgauge.cli.main", "fragments", "serve"]


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with 240 departures, half of them in a graph that ends."""
    file: Path = tmp_path_factory.mktemp("data") / "trains.nq"
    stamp = '"2099-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    lines = [f"<http://example.org/graphs#0> <http://example.org/temporal#expiration> {stamp} .\n"]
    for number in range(240):
        graph = " <http://example.org/graphs#0>" if number % 2 else ""
        lines.append(
            f'<http://example.org/departures/{number:03}> <http://example.org/train#delay> "{number}"@en{graph} .\n'
        )
    file.write_text("".join(lines))
    with subprocess.Popen([*PROGRAM, str(file), "--port", "0"], stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            running.stderr.readline()
            match = re.search(r"http://\S+/", running.stderr.readline())
            assert match
            yield match[0]
        finally:
            running.terminate()


def rows(browser: Any) -> list[str]:
    return texts(browser, "tbody tr")


def says(browser: Any, words: str) -> None:
    """Wait until the page, which may be the next one, says it."""
    until(lambda: words in text(browser, "main"), 120)


def follow(browser: Any, label: str) -> None:
    browser.find_element("link text", label).click()


def test_a_pattern_is_found_and_links_lead_on(browser: Any, address: str) -> None:
    show(browser, address)
    follow(browser, "trains")
    says(browser, "241 quads match, 1 to 100 here")
    says(browser, "The first of these facts ends at 2099-01-01 00:00:00 UTC")
    follow(browser, "Next page")
    says(browser, "101 to 200 here")
    follow(browser, "Next page")
    says(browser, "201 to 241 here")
    assert len(rows(browser)) == 41
    assert browser.find_elements("link text", "Next page") == []
    browser.find_element("name", "object").send_keys('"7"@en')
    browser.find_element("css selector", "form button").click()
    says(browser, "1 quad matches, 1 to 1 here")
    (row,) = rows(browser)
    assert "departures/007" in row
    assert browser.find_element("name", "object").get_attribute("value") == '"7"@en'
    browser.find_element("css selector", "td[data-label=predicate] a").click()
    says(browser, "240 quads match")
    assert complaints(browser) == []


def test_a_default_graph_is_asked_for_by_its_name(browser: Any, address: str) -> None:
    show(browser, f"{address}trains")
    browser.find_element("name", "graph").send_keys("urn:ldf:defaultGraph")
    browser.find_element("css selector", "form button").click()
    says(browser, "121 quads match")
    assert rows(browser)
    assert complaints(browser) == []


@pytest.mark.parametrize("page", ["", "trains"])
def test_it_fits_and_can_be_read(browser: Any, address: str, page: str) -> None:
    show(browser, f"{address}{page}")
    for width, theme in product((1280, 360), ("dark", "light")):
        resize(browser, width, theme, 900)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        worst, where = browser.execute_script(CONTRAST)
        assert worst >= 4.5, (width, theme, where)
    keep(browser, f"fragments-{page}".rstrip("-"))
