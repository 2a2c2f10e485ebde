"""A run by the wall clock: whole ms that keep every hand-over on its own side of a border."""

from dataclasses import replace

import pytest

from streamgauge.model.element import StreamElement
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.semantics import Borders
from streamgauge.oracle.judging.metrics import by_arrival
from streamgauge.query import parse
from streamgauge.semantics.profiles import profile

STARTED = 7_000_000_123
MS = 1_000_000
QUERY = """SELECT ?s FROM NAMED WINDOW <http://w> ON <http://s> [RANGE 5s STEP 5s]
WHERE { WINDOW <http://w> { ?s ?p ?o } }"""
STREAM = tuple(StreamElement("http://s", time, number, ()) for number, time in enumerate((0, 2000, 5000)))


def run(borders: Borders, handed: tuple[float, ...]) -> Run:
    """What was handed over at these times, ms after the start; then time advances to 7,000.5 ms."""
    semantics = replace(profile("csparql-0.9.7-wall"), borders=borders)
    fed = [Fed(number, 0, 0, STARTED + round(at * MS)) for number, at in enumerate(handed)]
    fed.append(Fed(-1, 7000, 0, STARTED + round(7000.5 * MS)))
    return Run(
        RunHeader("csparql", parse(QUERY), QUERY, "rspql", semantics, 6000, STARTED, begin=3, factor=2.0),
        (),
        tuple(fed),
    )


@pytest.mark.parametrize(
    ("borders", "times", "until"),
    [
        (Borders.OPEN_CLOSED, (1, 2000, 5001), 7001),
        (Borders.CLOSED, (1, 2000, 5001), 7001),
        (Borders.CLOSED_OPEN, (0, 2000, 5000), 7000),
    ],
)
def test_what_comes_just_after_a_border_is_after_it(borders, times, until):
    wall, arrived = by_arrival(run(borders, (0.2, 2000.0, 5000.1)), STREAM)
    assert tuple(item.time for item in arrived) == times
    assert (wall.header.advanced_to, wall.header.begin, wall.header.factor) == (until, 0, 1.0)


def test_what_comes_just_before_an_open_border_is_before_it():
    _, arrived = by_arrival(run(Borders.CLOSED_OPEN, (0.2, 1999.9, 4999.9)), STREAM)
    assert [item.time for item in arrived] == [0, 1999, 4999]


def test_what_was_not_handed_over_is_left_out():
    _, arrived = by_arrival(run(Borders.CLOSED, (0.2, 2000.0)), STREAM)
    assert [element.sequence for element in arrived] == [0, 1]


def test_where_nothing_was_handed_over_time_stays_at_the_start():
    empty = replace(run(Borders.CLOSED, ()), fed=())
    wall, arrived = by_arrival(empty, STREAM)
    assert (wall.header.advanced_to, arrived) == (0, ())
