"""When a report is due on the wall clock, for every kind of window and strategy."""

from dataclasses import replace

import pytest

from streamgauge.model.query import ContinuousQuery, StreamWindow, Window
from streamgauge.model.run import Fed, Run, RunHeader
from streamgauge.model.semantics import Borders, Report, Semantics, Tick
from streamgauge.oracle.judging.metrics import due_time
from streamgauge.query import parse_sparql
from streamgauge.semantics.definition import expected
from tests.notation import STREAM, stream

OTHER = "http://ex.org/streams/other"
TEXT = "1: a p b. | 2: b p c. c p d. | 6: d p e. | 7: e p f. | 11: f p g."
CLOSE = Semantics("close")
CHANGE = replace(CLOSE, name="change", report=frozenset({Report.CONTENT_CHANGE}), partial_head=True)
TIME, COUNT, MARK = Window(5, 5), Window(2, 2, "count"), Window(5, 5, "landmark")


def due(semantics: Semantics, *windows: Window) -> list[tuple[int, int | None]]:
    """(instant, which hand-over made it due) for all reports; each element is handed over 1 s after the other."""
    elements = [replace(one, stream=OTHER) if one.time == 7 else one for one in stream(TEXT)]
    names = [None, *(f"urn:w{n}" for n in range(1, len(windows)))]
    over = [StreamWindow(STREAM if n == 0 else OTHER, w, names[n]) for n, w in enumerate(windows)]
    query = ContinuousQuery(parse_sparql("SELECT * { ?s ?p ?o }"), tuple(over))
    records = [Fed(one.sequence, one.time, 0, place, len(one.added)) for place, one in enumerate(elements)]
    fed = (*records, Fed(-1, 15, 0, len(elements)))
    run = Run(RunHeader("test", query, "", "rspql", semantics, 15, 0), (), fed)
    when = due_time(run)
    return [(report.due.instant, when(report)) for report in expected(elements, query, semantics, 15, 0)]


@pytest.mark.parametrize(
    ("semantics", "windows", "wanted"),
    [
        (CLOSE, [TIME], [(5, 2), (10, 4), (15, 5)]),
        (CLOSE, [MARK], [(5, 2), (10, 4), (15, 5)]),
        (replace(CLOSE, borders=Borders.OPEN_CLOSED), [TIME], [(5, 2), (10, 4), (15, 5)]),
        (CLOSE, [COUNT], [(2, 1), (6, 2)]),
        (CLOSE, [TIME, COUNT], [(5, 2), (10, 4), (15, 5)]),
        (CLOSE, [COUNT, TIME], [(2, 1), (5, 2), (6, 2), (10, 4), (15, 5)]),
        (replace(CHANGE, tick=Tick.ELEMENT), [TIME], [(1, 0), (2, 1), (6, 2), (11, 4)]),
        (replace(CHANGE, tick=Tick.TUPLE), [TIME], [(1, 0), (2, 1), (2, 1), (6, 2), (11, 4)]),
        (replace(CHANGE, tick=Tick.BATCH), [TIME], [(1, 1), (2, 2), (6, 3), (11, 5)]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_due_by_the_hand_over_that_shows_it(semantics, windows, wanted):
    assert due(semantics, *windows) == wanted
