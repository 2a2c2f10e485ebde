"""A reproduction's page: complete, escaped, and readable in a real browser on desk and phone, by day and by night."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.papers import reproduction as page
from tests.browser.conftest import chromium
from tests.browser.driving import CONTRAST, as_new, complaints, show, without_network
from tests.papers import build

__all__ = ["chromium"]


@pytest.fixture(scope="module")
def browser(chromium: Any) -> Iterator[Any]:
    as_new(chromium)
    with without_network(chromium):
        yield chromium


def test_the_page_holds_everything_and_escapes_it():
    text = page.page(build.reproduction())
    assert "<h1>A reproduction</h1>" in text
    assert "Compared &lt;b&gt;" in text
    assert "A sentence &amp; more." in text
    assert "All 2 published values that could be compared come out." in text
    assert text.count('class="plot ') == 2
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_what_does_not_agree_is_said():
    text = page.page(build.reproduction(agrees=False))
    assert "1 of 2 published values that could be compared come out." in text
    assert "not as published" in text


def test_the_terminal_shows_the_same():
    console = Console(file=io.StringIO(), width=200)
    for part in page.shown(build.reproduction(agrees=False)):
        console.print(part)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Compared <b> 1 of 2 as published" in told
    assert "[brackets]" in told
    assert "✓" in told
    assert "✗" in told


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "reproduction.html"
    page.write(build.reproduction(agrees=False), path)
    return Path(path).as_uri()


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_sideways(browser: Any, address: str, width: int) -> None:
    show(browser, address, width)
    assert complaints(browser) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    boxes = "return [...document.querySelectorAll('.scroll,figure,.card,h1')].map(e => e.getBoundingClientRect().right)"
    assert max(browser.execute_script(boxes)) <= width
    visible = {
        plot.get_attribute("class") for plot in browser.find_elements("css selector", ".plot") if plot.is_displayed()
    }
    assert visible == {f"plot {'narrow' if width == 390 else 'wide'}"}


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out(browser: Any, address: str, theme: str) -> None:
    show(browser, address, theme=theme)
    ratio, where = browser.execute_script(CONTRAST)
    assert ratio >= 4.5, where
