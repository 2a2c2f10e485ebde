"""The page of capacities: a figure is bounded above only where the engine itself failed at the next value."""

import re
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.report.capacity import Carried, bound_of, figure_of, json_of, page, shown
from streamgauge.suites.experiments.capacity import Bound, Capacity, CapacityAxis, Limit, LoadProbe
from streamgauge.suites.experiments.load_search import Harder


def axis(harder: Harder) -> CapacityAxis:
    name, unit = ("pace", "times real time") if harder is Harder.GREATER else ("window", "ms")
    return CapacityAxis(name, unit, 20, harder, True, lambda experiment, _value: experiment)


def probe(value: float, bound: Bound | None = None, folder: Path = Path("p")) -> LoadProbe:
    right, late = (8 if bound is None else 6), (bound is Bound.DELAY) * 2_000
    figures = (100 * value, 8, right, 1.0, 1.0, 2.0, 30.0, 40.0 + late, 1.0)
    return LoadProbe(value, *figures, bound, "it is so", (folder,), excess=late - 960.0)


def found(harder: Harder, bound: Bound | None) -> tuple[Carried, Capacity]:
    beyond = 80 if harder is Harder.GREATER else 20
    probes = tuple(sorted([probe(40), probe(beyond, bound)], key=lambda one: one.value)) if bound else (probe(40),)
    one = Capacity("live", "rspql", probes, 40, beyond if bound else None)
    return Carried("c", axis(harder), Limit(1000, 250), 0.05, [one]), one


@dataclass
class Expected:
    harder: Harder
    bound: Bound | None
    figure: str
    sentence: str
    icon: str
    rule: str


GREATER, SMALLER = Harder.GREATER, Harder.SMALLER
ENDED = "The search ended before anything bound it"
MOST, LEAST = "pace at most 40 times real time: ", "pace at least 40 times real time, the limit was not reached"
CASES = [
    Expected(GREATER, Bound.WRONG, MOST, "At 80 bound by wrong", "right", "at 80: wrong"),
    Expected(GREATER, Bound.DELAY, MOST, "At 80 bound by delay", "right", "at 80: delay"),
    Expected(GREATER, Bound.FAILED, MOST, "At 80 bound by the engine failed", "right", "at 80: the engine"),
    Expected(GREATER, None, LEAST, ENDED, "unknown", "at 40, limit"),
    Expected(SMALLER, Bound.WRONG, "window at least 40 ms: ", "At 20 bound by wrong", "right", "at 20: wrong"),
    Expected(SMALLER, None, "window at most 40 ms, the limit was not reached", ENDED, "unknown", "at 40, limit"),
    *(
        Expected(
            GREATER, bound, LEAST, f"The search ended at 80 by {bound}, which says nothing", "unknown", "at 40, limit"
        )
        for bound in (Bound.FEEDER, Bound.UNKNOWN, Bound.REFUSED)
    ),
    Expected(
        GREATER, Bound.SHORT, "no figure: pace 40 was carried", "Pace 80 failed by stream", "unknown", "at 40, no"
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.harder}-{case.bound}")
def test_a_figure_says_whether_the_engine_bounds_it(case: Expected) -> None:
    carried, one = found(case.harder, case.bound)
    assert figure_of(carried, one).startswith(case.figure)
    assert bound_of(carried, one).startswith(case.sentence)
    (engine,) = json_of(carried)["engines"]
    assert engine["limit_reached"] is (case.icon == "right")


@pytest.mark.parametrize("case", [CASES[0], CASES[3], CASES[6]], ids=lambda case: f"{case.harder}-{case.bound}")
def test_the_page_draws_bound_and_limit(case: Expected) -> None:
    carried, _ = found(case.harder, case.bound)
    text = page(carried)
    assert f'<article class="card {case.icon}">' in text
    assert f'<svg class="icon {case.icon}"' in text
    assert text.count("bound 1 s<title>") == 2  # on a wide screen and on a narrow one
    assert len(re.findall(rf"{case.rule}[^<]*<title>", text)) == 4


NOISY = (
    (20, 809, None), (40, 787, None), (57, 417, None), (59, 1006, Bound.DELAY), (62, 446, Bound.SHORT),
    (67, 818, Bound.SHORT), (80, 793, Bound.SHORT),
)  # fmt: skip
"""Pace, slowest window (ms) and bound of a recorded search whose bound was a disturbance at 59."""


def searched(probes: Any, passed: float | None, failed: float | None) -> Capacity:
    """The capacity that a search over probes of value, slowest window (ms) and bound found."""
    scored = (
        LoadProbe(value, slowest=slow, bound=bound, reason="late", excess=slow - 1000) for value, slow, bound in probes
    )
    return Capacity("live", "rspql", tuple(sorted(scored, key=lambda one: one.value)), passed, failed)


@pytest.mark.parametrize(
    ("probes", "passed", "failed", "why"),
    [
        (NOISY, 57, 59, "at the harder 62 it was right and in time"),
        (NOISY[:4], 57, 59, "easier values were up to 392 ms slower than harder ones"),
        (((10, 30, None), (12, 20, Bound.WRONG), (14, 20, None)), 10, 12, "at the harder 14"),
        (((40, 809, None), (20, 417, None), (19, 1006, Bound.DELAY)), 20, 19, "up to 392 ms slower"),
        (((10, 30, None), (20, 450, None), (40, 1500, Bound.DELAY)), 20, 40, ""),
        (((10, 300, None), (20, 250, None), (40, 1500, Bound.DELAY)), 20, 40, ""),
        (((10, 300, None), (20, 250, None), (40, 900, Bound.WRONG), (80, 900, Bound.FAILED)), 20, 40, ""),
        (((20, 250, Bound.DELAY), (40, 900, Bound.WRONG)), None, 20, ""),
    ],
)  # fmt: skip
def test_probes_that_contradict_each_other_give_no_figure(probes, passed, failed, why) -> None:
    one = searched(probes, passed, failed)
    carried = Carried("c", axis(GREATER), Limit(1000, 250), 0.05, [one])
    (engine,) = json_of(carried)["engines"]
    assert (why in one.doubt, bool(one.doubt)) == (True, bool(why))
    assert (engine["capacity"], engine["carried"]) == (None if why else passed, passed)
    assert figure_of(carried, one).startswith("no figure: ") == bool(why)


def links(tmp_path: Path, *, own: bool) -> Any:
    folder = tmp_path / "pace=40" / "live-rspql-seed0-1"
    folder.mkdir(parents=True)
    if own:
        (folder.parent / "report.html").write_text("a page")
    one = Capacity("live", "rspql", (probe(40, folder=folder), LoadProbe(80, bound=Bound.REFUSED)), 40, 80)
    return page(Carried("c", axis(GREATER), Limit(1000, 250), 0.05, [one], tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(("own", "address"), [(True, "pace%3D40/report.html"), (False, "pace%3D40/")])
def test_each_probe_leads_to_its_runs(tmp_path: Path, own: bool, address: str) -> None:
    text = links(tmp_path, own=own)
    assert text.count(f'<a href="{address}">40</a>') == 1
    assert '<th scope="row">80</th>' in text


def test_the_terminal_says_the_same() -> None:
    carried, _ = found(GREATER, None)
    console = Console(width=200, record=True, file=StringIO())
    for part in shown(carried):
        console.print(part)
    assert "live as rspql: pace at least 40 times real time, the limit was not reached" in console.export_text()
