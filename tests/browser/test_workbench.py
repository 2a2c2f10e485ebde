"""Every room of the workbench in a real browser: it opens, says no error, asks nobody else, keeps nobody out."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.driving import CONTRAST, asked, complaints, faults, keep, show
from tests.workbench.serving import opened

pytestmark = pytest.mark.browser

SIZES = [(1440, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("runs")) as bench:
        yield bench


def test_each_room_opens_for_everybody(browser: Any, bench: Any) -> None:
    show(browser, f"{bench.url}/")
    rooms = [link.get_attribute("href") for link in browser.find_elements("css selector", "nav a")]
    assert len(rooms) > 1
    browser.get_log("browser")
    browser.get_log("performance")
    for address in rooms:
        for width, theme in SIZES:
            show(browser, address, width, theme)
            wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, (address, width)
            ratio, where = browser.execute_script(CONTRAST)
            assert ratio >= 4.5, (address, theme, where)
        assert not (result := faults(browser)), (address, result)
        keep(browser, f"room-{address.removeprefix(bench.url).strip('/') or 'front'}")
    assert [entry for entry in complaints(browser) if entry["level"] == "SEVERE"] == []
    sent = [json.loads(entry)["message"] for entry in asked(browser)]
    addresses = [one["params"]["request"]["url"] for one in sent if one["method"] == "Network.requestWillBeSent"]
    assert len(addresses) > len(rooms)
    assert {address for address in addresses if not address.startswith((f"{bench.url}/", "data:"))} == set()
