"""SEP-BM's page in a real browser: opens from a file without network, on desk and phone, by day and by night."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.papers.reproduction import write
from streamgauge.papers.sepbm.measure import SepbmExtent
from streamgauge.papers.sepbm.page import document
from tests.browser.driving import CONTRAST, asked, complaints, keep, resize, show, without_network
from tests.report.sepbm import measured

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(browser: Any) -> Iterator[Any]:
    with without_network(browser):
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "sepbm.html"
    write(document(SepbmExtent(), measured()), path)
    return Path(path).as_uri()


def test_it_opens_without_network_and_without_complaints(browser: Any, address: str) -> None:
    show(browser, address)
    assert "Average notification time" in browser.find_element("css selector", "#published").text
    assert complaints(browser) == []
    requests = asked(browser)
    assert requests
    assert not [one for one in requests if '"url":"http' in one]


@pytest.mark.parametrize(("width", "shown"), [(390, "narrow"), (1280, "wide")])
def test_nothing_sticks_out_plots_are_drawn_for_the_screen_and_every_text_stands_out(
    browser: Any, address: str, width: int, shown: str
) -> None:
    show(browser, address, width)
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    plots = browser.find_elements("css selector", ".plot")
    assert {plot.get_attribute("class") for plot in plots if plot.is_displayed()} == {f"plot {shown}"}
    for theme in ("light", "dark"):
        resize(browser, width, theme, 900)
        ratio, where = browser.execute_script(CONTRAST)
        assert ratio >= 4.5, (theme, where)
    if shown == "wide":
        keep(browser, "sepbm")
