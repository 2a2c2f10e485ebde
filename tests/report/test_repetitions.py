"""Repetitions on the page: a box for each window, borders as bad as in the worst repetition."""

import random

from streamgauge.model.verdict import Judgement
from streamgauge.report.charts import ChartDrawing
from streamgauge.report.plots.borders import border_strips
from streamgauge.report.plots.measures import box_plots
from streamgauge.report.series import series_of
from tests.report import build

UNDRAWN = ChartDrawing(drawn=False)


def repetition(number, engine, count, wrong=()):
    """A judged run whose windows of these numbers lack rows."""
    draw = random.Random(number)
    windows = [build.window(index, draw) for index in range(count)]
    windows = [build.spoilt(window, 3, 0) if window.index in wrong else window for window in windows]
    run = build.observed(build.header(engine, repetition=number), windows, draw)
    return run, build.verdict(windows, Judgement.WRONG if wrong else Judgement.RIGHT)


def test_windows_have_boxes_of_their_own_beside_an_engine_with_many():
    few = [repetition(number, "live", 20) for number in (1, 2)]
    many = [repetition(number, "cqels", 400) for number in (1, 2)]
    delays = [plot for plot in box_plots(UNDRAWN, series_of([*few, *many])) if plot.message.startswith("Delay")]
    assert [delay.numbers.name for delay in delays] == ["delay-repetitions", "delay-repetitions-many-windows"]
    assert [line[1] for line in delays[0].numbers.shown] == [str(number) for number in range(20)]
    assert "neighbouring" not in delays[0].note
    assert "Each box is over 17 neighbouring windows." in delays[1].note
    assert delays[1].message.startswith("Delay over the repetitions: cqels")


def test_borders_are_as_bad_as_in_the_worst_repetition():
    runs = [repetition(1, "live", 20, wrong=(3,)), repetition(2, "live", 20, wrong=(3, 7)), repetition(3, "live", 20)]
    (strip,) = border_strips(UNDRAWN, series_of(runs))
    assert strip.message == "Window borders: live as csparql, the worst of 3 repetitions"
    states = {line[0]: line[2] for line in strip.numbers.shown}
    assert {name for name, state in states.items() if state == "wrong"} == {"window 3", "window 7"}
    bars = {bar["start"]: bar for bar in strip.chart(strip.size)["data"]["values"]}
    assert {at: bar["link"] for at, bar in bars.items() if bar["link"]} == {15.0: "#w0-0-3", 35.0: "#w0-1-7"}
    assert bars[15.0]["tip"].endswith("not right in 2 of 3 repetitions")
    assert len([*strip.numbers.every()]) == 60
