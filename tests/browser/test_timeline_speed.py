"""The timeline of 10,000 elements and 2,000 reports: first drawing, zoom and pan, by CPU of page and server."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from streamgauge.workbench.rooms.playground.examples import FIRST
from tests.browser.test_playground import REDRAWN, after, fill, page_cpu, shown, texts, write
from tests.contention import CONTENDED
from tests.workbench.serving import opened

pytestmark = [pytest.mark.browser, pytest.mark.prove]

ELEMENTS = 10_000
FIRST_MS = 1_000
"""CPU ms from the text to its drawing on an idle machine, at most."""
FRAME_MS = 1_000 / 30
"""CPU ms of the page's main thread for a frame on an idle machine, at most."""
FRAMES = 60

WHEELED = """const [frames, done] = arguments, svg = () => document.querySelector('.timeline svg')
let turned = 0
const turn = () => {
  const clientY = svg().getBoundingClientRect().top + 60
  const move = turned % 3 ? { deltaY: turned % 20 < 10 ? -100 : 100 } : { deltaX: turned % 2 ? 100 : -100 }
  const place = { clientX: 900, clientY, ctrlKey: true, bubbles: true, cancelable: true }
  svg().dispatchEvent(new WheelEvent('wheel', { ...move, ...place }))
  if (++turned < frames) requestAnimationFrame(turn); else requestAnimationFrame(() => done())
}
requestAnimationFrame(turn)"""
"""Zooms in and out and pans, a turn of the wheel in each frame."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with opened(tmp_path_factory.mktemp("runs")) as bench:
        yield bench


def test_ten_thousand_elements_are_drawn_zoomed_and_panned(browser: Any, bench: Any) -> None:
    for method in ("disable", "setTimeDomain", "enable"):
        browser.execute_cdp_cmd(f"Performance.{method}", {"timeDomain": "threadTicks"})
    shown(browser, bench)
    query = FIRST.query.replace("RANGE 10s STEP 5s", "RANGE 2s STEP PT0.5S")
    after(browser, lambda: write(browser, query))
    browser.execute_script("document.querySelector('[name=advance]').value = arguments[0]", ELEMENTS * 100)
    before = time.process_time() * 1000 + page_cpu(browser)
    fill(browser, ELEMENTS)
    first = time.process_time() * 1000 + page_cpu(browser) - before
    assert texts(browser, ".reports-A .heading")[0].startswith("1,997 reports of A")
    frames = []
    for zoomed in (False, True):
        if zoomed:
            zoom = "document.querySelector('[data-zoom=in]').click()"
            for _ in range(3):
                browser.execute_async_script(f"const done = arguments[0]; {REDRAWN}; {zoom}")
        before = page_cpu(browser)
        browser.execute_async_script(WHEELED, FRAMES)
        frames.append((page_cpu(browser) - before) / FRAMES)
    print(f"first drawing {first:.0f} ms; a frame {frames[0]:.1f} ms, zoomed in {frames[1]:.1f} ms")
    assert first < CONTENDED * FIRST_MS
    assert max(frames) < CONTENDED * FRAME_MS
