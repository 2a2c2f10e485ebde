"""A probe's score: what a run fails by, with limits at their very border."""

from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.model.run import Fed
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.metrics import percentile
from streamgauge.oracle.judging.oracle import unknown
from streamgauge.semantics.profiles import RSPQL
from streamgauge.suites.experiments.capacity import Bound, Limit, feeder_p99, probed, rate, slowest
from tests.oracle.runs import right_run

LIMIT = Limit(delay=100, feeder=20, lasting=1000)
MS = 1_000_000


def run(late=0, factor=2.0, failure=None):
    """A run of 2 s of stream at ``factor``, every element handed over ``late`` ms after its time."""
    recorded = right_run(RSPQL)
    header = replace(recorded.header, factor=factor, begin=0, advanced_to=2000, started=0, failure=failure)
    fed = tuple(Fed(n, n * 20, n * 10 * MS, (n * 10 + late) * MS, 7) for n in range(100))
    return replace(recorded, header=header, fed=fed)


def window(index=0, delay=50.0, recall=1.0, instant=5000):
    return WindowVerdict(index, instant - 5000, instant, instant, index, 1.0, recall, 1, 1, 1, 1, delay)


def verdict(*windows):
    right = all(window.right for window in windows)
    judgement = Judgement.RIGHT if right else Judgement.WRONG
    return Verdict(judgement, "definition", 0, 1.0, 1.0, 0, 0, 0, None, (), windows)


def bound(found_run, found_verdict):
    return probed(4.0, [(Path("a"), found_run, found_verdict)], LIMIT).bound


@pytest.mark.parametrize(
    ("found_run", "found_verdict", "expected"),
    [
        (run(), verdict(window(delay=100)), None),
        (run(), verdict(window(delay=101)), Bound.DELAY),
        (run(late=20), verdict(window()), None),
        (run(late=21), verdict(window(delay=101)), Bound.FEEDER),
        (run(late=21), verdict(window(recall=0.5)), Bound.WRONG),
        (run(failure="it crashed"), verdict(window(recall=0.5)), Bound.FAILED),
        (run(), unknown(run(), "SAMPLE"), Bound.UNKNOWN),
        (run(factor=2.1), verdict(window()), Bound.SHORT),
    ],
)
def test_what_a_run_fails_by(found_run, found_verdict, expected):
    assert bound(found_run, found_verdict) is expected


def test_a_value_is_carried_when_all_of_its_runs_are():
    right, late = (Path("a"), run(), verdict(window())), (Path("b"), run(), verdict(window(delay=200)))
    assert probed(1, [right, right], LIMIT).carried
    result = probed(1, [right, late], LIMIT)
    assert (result.bound, result.slowest, result.windows, result.right) == (Bound.DELAY, 200, 2, 2)
    assert result.folders == (Path("a"), Path("b"))


def test_the_bound_holds_in_every_window():
    query = right_run(RSPQL).header.query
    slide = query.windows[0].window.slide
    early = [window(n, 1.0, instant=n) for n in range(slide * 9)]
    late = [window(n, 500.0, instant=slide * 9) for n in range(2)]
    assert slowest(query, early + late) == 500


def test_percentiles():
    assert [percentile(list(range(1, 101)), share) for share in (50, 99, 100)] == [50, 99, 100]
    assert percentile([7.0], 99) == 7.0
    assert percentile([], 50) is None


def test_rate_and_lateness():
    assert rate(run()) == 700.0
    assert feeder_p99(run(late=13)) == 13.0
