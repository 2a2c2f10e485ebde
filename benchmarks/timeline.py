"""The timeline of the workbench in Chromium: first drawing, edits, frames while it is zoomed and panned.

python -m benchmarks.timeline [--parts drawing edits frames] [--repeat 3]

`drawing`: 10,000 elements and 2,000 reports of one semantics, or 4,000 of two, from the text to the picture.
`edits`: a field, and the time of an element in the text; 2,000 elements in view. `frames`: the wheel is turned in each
frame, all the time or in bursts between which the server draws, at several zooms. CPU is that of the command ``ui`` and
of the page's main thread; of repeated steps the quickest counts.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil
from tests.browser.driving import show, started, until

from benchmarks.measure import awaited, free_port, run_parts
from benchmarks.results import ResultTable
from streamgauge.workbench.rooms.playground.examples import FIRST
from streamgauge.workbench.rooms.playground.state import link

ELEMENTS: Final = 10_000
IN_VIEW: Final = 2_000
APART_MS: Final = 100
"""Time between two elements."""
FRAMES: Final = 120
WIDTH: Final = 1_440
ZOOMS: Final = (0, 2, 3, 4)
"""Times that it is zoomed in by half before the wheel is turned."""
BURSTS: Final = (40, 12)
"""Frames of 40 in which the wheel is turned."""

DRAWN: Final = """const done = arguments[arguments.length - 1], form = document.getElementById('playground')
const began = performance.now()
const end = (_, seen) => { seen.disconnect(); done(performance.now() - began) }
new MutationObserver(end).observe(form, { attributeFilter: ['data-took'] })
"""
"""Waits until what follows is drawn; gives the time that it took (ms)."""

FILLED: Final = """form.elements.advance.value = arguments[1]
form.elements.stream.value = arguments[0]
form.elements.stream.dispatchEvent(new Event('change', { bubbles: true }))
form.elements.syntax.dispatchEvent(new Event('change', { bubbles: true }))"""

EDITS: Final = {
    "another field": """const field = form.elements['a.borders']
field.selectedIndex = (field.selectedIndex + 1) % 3
field.dispatchEvent(new Event('change', { bubbles: true }))""",
    "another line": """const stream = form.elements.stream, lines = stream.value.split('\\n'), at = lines.length >> 1
lines[at] = lines[at].replace(/^\\d+/, time => Number(time) + 7)
stream.value = lines.join('\\n')
form.elements.syntax.dispatchEvent(new Event('change', { bubbles: true }))""",
}

TURNED: Final = """const [frames, burst, done] = arguments, times = []
const turn = now => {
  times.push(now)
  const svg = document.querySelector('.timeline svg'), at = times.length
  const move = at % 3 ? { deltaY: at % 40 < 20 ? -100 : 100 } : { deltaX: at % 2 ? 100 : -100 }
  const place = { clientX: 900, clientY: svg.getBoundingClientRect().top + 60 }
  const event = { ...move, ...place, ctrlKey: true, bubbles: true, cancelable: true }
  if (at % 40 < burst) svg.dispatchEvent(new WheelEvent('wheel', event))
  if (at <= frames) requestAnimationFrame(turn); else done(times)
}
requestAnimationFrame(turn)"""
"""Turns the wheel in frames: in, out, left, right; gives the times of all frames."""


class StepCost(NamedTuple):
    """CPU of the server and of the page's main thread, and the time that passed, ms."""

    server: float
    page: float
    passed: float

    @property
    def cpu(self) -> float:
        """Server and page, ms."""
        return self.server + self.page


class TimelineBench:
    """A browser with a playground of the command ``ui``, whose costs are measured."""

    def __init__(self, browser: Any, server: psutil.Process, url: str) -> None:
        self.browser, self._server, self._url = browser, server, url
        browser.set_script_timeout(60)
        for method in ("disable", "setTimeDomain", "enable"):
            browser.execute_cdp_cmd(f"Performance.{method}", {"timeDomain": "threadTicks"})

    def measured(self, script: str, *arguments: object) -> tuple[StepCost, Any]:
        """The cost of a script, which gives the time that passed or the times of frames."""
        before = self._cpu()
        answer = self.browser.execute_async_script(script, *arguments)
        passed = answer if isinstance(answer, float | int) else answer[-1] - answer[0]
        server, page = (now - then for now, then in zip(self._cpu(), before, strict=True))
        return StepCost(server, page, passed), answer

    def _cpu(self) -> tuple[float, float]:
        """CPU (ms) of the server, and of the page's main thread."""
        used = self._server.cpu_times()
        metrics = self.browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        page = next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")
        return 1000 * (used.user + used.system), 1000 * float(page)

    def opened(self, window: str, *, second: bool = True) -> None:
        """Open the first example with another window, with its second semantics or without."""
        query = FIRST.query.replace("RANGE 10s STEP 5s", window)
        state = replace(FIRST, query=query, b=FIRST.b if second else None)
        show(self.browser, f"{self._url}/playground/?s={link(state)}", WIDTH)
        until(lambda: self.browser.execute_script("return document.getElementById('playground').dataset.took"))

    def filled(self, elements: int, seed: int) -> StepCost:
        """Fill in a stream."""
        return self.measured(DRAWN + FILLED, stream_text(elements, seed), elements * APART_MS)[0]

    def pressed(self, zoom: str) -> None:
        """Press a button of zoom, and wait until it is drawn."""
        script = f"document.querySelector('[data-zoom={zoom}]').click()"
        self.browser.execute_async_script(DRAWN + script)


def stream_text(count: int, seed: int) -> str:
    """A stream of readings of seven rooms, an element each 100 ms."""
    drawn = random.Random(seed)
    return "\n".join(
        f"{n * APART_MS}: room{drawn.randrange(7)} degrees {drawn.randrange(150, 300) / 10}." for n in range(count)
    )


@contextmanager
def opened_bench() -> Iterator[TimelineBench]:
    """The command ``ui`` over an empty folder, and Chromium."""
    port = free_port()
    with tempfile.TemporaryDirectory() as scratch, started(Path(scratch) / "profile") as browser:
        folder = Path(scratch) / "runs"
        folder.mkdir()
        command = [sys.executable, "-m", "streamgauge", "ui", str(folder), "--port", str(port)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
            try:
                awaited(port)
                yield TimelineBench(browser, psutil.Process(server.pid), f"http://127.0.0.1:{port}")
            finally:
                server.terminate()


def first_drawing(bench: TimelineBench, seed: int, *, second: bool = True) -> StepCost:
    """The cost of the picture of 10,000 elements and 2,000 reports, or of as many again of a second semantics."""
    bench.opened("RANGE 2s STEP PT0.5S", second=second)
    cost = bench.filled(ELEMENTS, seed)
    headings = bench.browser.execute_script(
        "return [...document.querySelectorAll('.timeline .heading')].map(each => each.textContent)"
    )
    assert headings[0].startswith(f"Stream: {ELEMENTS:,} elements"), headings
    assert any(heading.startswith("1,997 reports of A") for heading in headings), headings
    return cost


def edited(bench: TimelineBench, repeat: int) -> Iterator[tuple[str, StepCost]]:
    """The costs of edits, the least of ``repeat``."""
    bench.opened("RANGE 10s STEP 5s")
    bench.filled(IN_VIEW, 1)
    for name, script in EDITS.items():
        yield name, min((bench.measured(DRAWN + script)[0] for _ in range(repeat)), key=lambda cost: cost.passed)


def turned(bench: TimelineBench, zoom: int, burst: int) -> tuple[float, list[float]]:
    """CPU of the page for a frame, and the times between frames, ascending (ms)."""
    bench.pressed("all")
    for _ in range(zoom):
        bench.pressed("in")
    cost, times = bench.measured(TURNED, FRAMES, burst)
    bench.browser.execute_async_script("setTimeout(arguments[0], 1000)")  # the server draws what is shown last
    return cost.page / FRAMES, sorted(later - time for time, later in pairwise(times))


COSTS: Final = ("step", "server, CPU ms", "page, CPU ms", "passed, ms")


def _row(name: str, cost: StepCost) -> tuple[object, ...]:
    return name, *(round(value) for value in cost)


def drawing(arguments: argparse.Namespace) -> None:
    """Print the cost of the first drawing."""
    with opened_bench() as bench, ResultTable("timeline-drawing", COSTS) as table:
        for second in (False, True):
            costs = [first_drawing(bench, seed, second=second) for seed in range(arguments.repeat)]
            name = f"{'4,000 reports of two' if second else '2,000 reports of one'} semantics"
            table.add(*_row(name, min(costs, key=lambda cost: cost.passed)))


def edits(arguments: argparse.Namespace) -> None:
    """Print the costs of edits."""
    with opened_bench() as bench, ResultTable("timeline-edits", COSTS) as table:
        for name, cost in edited(bench, arguments.repeat):
            table.add(*_row(name, cost))


def frames(_arguments: argparse.Namespace) -> None:
    """Print the times between frames."""
    columns = ("zoomed in", "turned in", "page, CPU ms a frame", "median, ms", "95%, ms", "most, ms")
    with opened_bench() as bench, ResultTable("timeline-frames", columns) as table:
        first_drawing(bench, 0)
        for zoom in ZOOMS:
            for burst in BURSTS:
                cpu, apart = turned(bench, zoom, burst)
                most = (apart[len(apart) // 2], apart[len(apart) * 95 // 100], apart[-1])
                table.add(f"{zoom} times", f"{burst} of 40", f"{cpu:.1f}", *(f"{value:.0f}" for value in most))


if __name__ == "__main__":
    run_parts(__doc__, {"drawing": drawing, "edits": edits, "frames": frames}, repeat=3)
