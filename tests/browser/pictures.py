"""Pictures of the workbench for README and docs: ``make pictures`` writes docs/pictures/workbench-*.png.

A workbench over a run whose engine has other borders than it should, and two live queries over drawn readings, shown
in Chromium.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import httpx

from streamgauge.model.terms import XSD
from streamgauge.workbench.rooms.live import EXAMPLE
from tests.browser.driving import show, started, until
from tests.browser.test_playground import record
from tests.workbench.serving import opened

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
LARGEST = 150_000
"""Bytes of a picture, at most."""
WIDTH = 1_100


class Picture(NamedTuple):
    """A part of a page: its name, address, the selector of what is at the top, and the height in px."""

    name: str
    address: str
    top: str
    height: int


PICTURES = (
    Picture("playground", "/playground/", "#timeline-title", 470),
    Picture("run", "/runs/run/mine", "#timeline-h", 560),
    Picture("board", "/live/board?threshold.q1=28", ".board", 480),
)
QUERIES = (
    f"REGISTER RSTREAM <averages> AS {EXAMPLE}",
    f"REGISTER RSTREAM <greatest> AS {EXAMPLE}".replace("AVG", "MAX").replace("?average", "?greatest"),
)


def readings() -> Iterator[str]:
    """Two minutes of three sensors as lines of JSON."""
    drawn = Random(1)
    for at in range(120):
        for sensor in "abc":
            value = f'"{20 + drawn.randrange(14)}"^^<{XSD}integer>'
            yield json.dumps({"t": 1000 * at, "add": f"<urn:sensor:{sensor}> <urn:says> {value} ."}) + "\n"


def fill(url: str) -> None:
    """Register the queries and publish the readings."""
    with httpx.Client(base_url=url, timeout=60) as client:
        for query in QUERIES:
            client.post("/live/new", data={"query": query})
        client.post("/live/streams/publish", data={"stream": "urn:readings", "elements": "".join(readings())})


def take(browser: Any, url: str, picture: Picture) -> bytes:
    """The PNG of a part of a page."""
    show(browser, url + picture.address, WIDTH, "light", 2_400)
    until(lambda: browser.execute_script("return document.querySelector(arguments[0])", picture.top))
    metrics = {"width": WIDTH, "height": picture.height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_async_script("setTimeout(arguments[0], 3000)")  # pages draw again in another size
    place = "scrollTo(0, document.querySelector(arguments[0]).getBoundingClientRect().top + scrollY - 12)"
    browser.execute_script(place, picture.top)
    browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 100))")
    return bytes(browser.get_screenshot_as_png())


def main() -> None:
    """Write all pictures."""
    with tempfile.TemporaryDirectory() as scratch, started(Path(scratch) / "profile") as browser:
        folder = Path(scratch) / "bench"
        folder.mkdir()
        record(folder / "mine")
        with opened(folder) as bench:
            fill(bench.url)
            for picture in PICTURES:
                (FOLDER / f"workbench-{picture.name}.png").write_bytes(take(browser, bench.url, picture))


if __name__ == "__main__":
    main()
