"""Gracious mode on Spark: the borders of each wrong window are searched in a task of its own.

A task gets the elements near the window and the rows of its answer; the search is that of ``gracious``. Windows that no
borders near the declared ones fit exactly go to another task, with the elements of a wider reach.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from streamgauge.formats.tables import lists
from streamgauge.formats.windows import gathered_windows
from streamgauge.model.answer import Answer
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.run import Run
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.expected.stretches import by_unit, seen_elements, task_of, whole, with_tasks
from streamgauge.oracle.judging.border_fits import BorderFit
from streamgauge.oracle.judging.gracious import NARROW, FittedWindow, cautions, fit_alone, fitted, refuse, ungracious
from streamgauge.oracle.judging.metrics import Unit
from streamgauge.oracle.worlds.membership import Overlap

_FITTED: Final = pa.schema(
    [
        ("unit", pa.int32()),
        *((name, pa.int64()) for name in ("first", "last")),
        *((name, pa.float64()) for name in ("precision", "recall")),
        ("near", pa.int64()),
    ]
)
"""The fit of a window, whose columns but ``unit`` are null if no borders were tried."""

Recorded = Callable[[Mapping[int, int]], DataFrame]
"""Units by the position of their answer to the recorded rows: columns ``unit`` and ``row`` among others."""


def gracious_tables(
    stream: DataFrame, run: Run, due: Mapping[int, DueReport], recorded: Recorded, verdict: Verdict
) -> Verdict:
    """The verdict with the borders that fit each answered window best, or a caution that says why none were searched.

    ``run`` has no rows; ``due`` maps instants (ms) to the reports under the verdict's t0.
    """
    if verdict.judgement is Judgement.UNKNOWN:
        return verdict
    if reason := refuse(run.header.query, run.header.evaluator):
        return ungracious(verdict, reason)
    answered = {one.index: due[one.instant or 0] for one in verdict.windows if one.due and one.report is not None}
    wrong = [one for one in verdict.windows if one.index in answered and (one.missing or one.surplus)]
    # Right windows fit under their declared borders; only wrong ones are searched.
    fits = {index: FittedWindow(_declared(report), None) for index, report in answered.items()}
    for narrow in NARROW:
        sought = list(_sought(stream, run, wrong, answered, recorded, verdict, narrow))
        fits |= dict(zip((one.index for one in wrong), sought, strict=True))
        reach = run.header.query.windows[0].window.slide // narrow
        wrong = [
            one
            for one in wrong
            if (fit := fits[one.index].fit) is None or not fit.is_settled(answered[one.index].views[0], reach)
        ]
    windows = gathered_windows(
        fitted(one, answered[one.index].views[0], fit)
        if one.index in fits and (fit := fits[one.index].fit) is not None
        else one
        for one in verdict.windows
    )
    near = [fit.near for fit in fits.values() if fit.near is not None]
    notes = cautions(near, sum(fit.fit is None for fit in fits.values()))
    return replace(verdict, windows=windows, cautions=(*verdict.cautions, *notes))


def _declared(report: DueReport) -> BorderFit:
    return BorderFit(report.views[0].first, report.views[0].last, 1.0, 1.0)


def _sought(
    stream: DataFrame,
    run: Run,
    wrong: Sequence[WindowVerdict],
    answered: Mapping[int, DueReport],
    recorded: Recorded,
    verdict: Verdict,
    narrow: int,
) -> Iterator[FittedWindow]:
    """The fit of each wrong window within the slide divided by ``narrow``, in order.

    A unit is an index into ``wrong``.
    """
    if not wrong or verdict.t0 is None:
        return
    query = run.header.query
    reports = [whole(answered[one.index]) for one in wrong]
    near = (_widened(report, query.windows[0].window.slide // narrow) for report in reports)
    answers = recorded({one.report: unit for unit, one in enumerate(wrong) if one.report is not None})
    rows = with_tasks(stream.sparkSession, stream, zip(near, reports, strict=True), query)
    # The run is pickled into every task: without its recorded rows it is a query and a semantics.
    fitting = _fitting(Run(run.header, (), ()), verdict.variables, verdict.t0, len(wrong), narrow)
    fits = by_unit(rows.unionByName(answers, allowMissingColumns=True), fitting, _FITTED)
    for row in fits.toArrow().sort_by("unit").to_pylist():
        borders = [row[name] for name in _FITTED.names[1:5]]
        yield FittedWindow(None if None in borders else BorderFit(*borders), row["near"])


def _widened(report: DueReport, reach: int) -> DueReport:
    """The report with each view widened by ``reach`` (ms) on both sides."""
    views = (replace(view, first=view.first - reach, last=view.last + reach) for view in report.views)
    return replace(report, views=tuple(views))


def _fitting(
    run: Run, variables: tuple[str, ...], t0: int, number: int, narrow: int
) -> Callable[[int, pa.Table], pa.Table]:
    """A function from a unit and its rows (elements, answer, task) to one row of ``_FITTED``.

    The task is the declared report, one of ``number``, over the columns ``variables``.
    """

    def fit(unit: int, rows: pa.Table) -> pa.Table:
        due: DueReport = task_of(rows)
        received = tuple(lists(rows.filter(pc.is_valid(rows.column("row"))).column("row")))
        answer = Answer(variables, received, (), "solutions", due.instant, None, 0)
        # A missing row of any kind marks the unit as wrong: the search skips units without missing and surplus rows.
        wrong = Unit(ExpectedReport(due, variables, (), 0), answer, 0, Overlap(0, ((),), received))
        best = fit_alone(run, seen_elements(rows), t0, wrong, number, narrow)
        borders = (
            (None,) * 4 if best.fit is None else (best.fit.first, best.fit.last, best.fit.precision, best.fit.recall)
        )
        return pa.table([[value] for value in (unit, *borders, best.near)], schema=_FITTED)

    return fit
