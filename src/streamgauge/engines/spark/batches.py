"""One micro-batch after the other: rows in, late ones out, windows closed, answers to the sink, the state kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from streamgauge.engines.spark.arrivals import BatchArrivals, late, surely_in_time
from streamgauge.engines.spark.closes import Closes
from streamgauge.engines.spark.evaluation import Evaluation, ReportRows
from streamgauge.engines.spark.panes import Panes, files_of
from streamgauge.engines.spark.state import State, StateLog, forget
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Origin, Semantics
from streamgauge.semantics.refusal import OutOfOrderError

DRAINED = "-drained"


@dataclass(frozen=True, slots=True)
class BatchAnswers:
    """One batch: its answers, and what is known before and after it; ``part`` numbers batches and drains, ascending."""

    part: int
    said: Sequence[ReportRows]
    before: State
    after: State


class BatchSink(Protocol):
    """Where answers go. The same batch may be written twice: the second time replaces the first or has its keys."""

    def write(self, done: BatchAnswers) -> None:
        """Keep or send the answers of a batch."""


class Batches:
    """Does micro-batches of a query; what must survive is in the ``checkpoint`` folder.

    Called by Spark with a frame over the batch's files (``panes.streaming``) and the batch's number.
    """

    def __init__(
        self, spark: SparkSession, query: ContinuousQuery, semantics: Semantics, checkpoint: Path, sink: BatchSink
    ) -> None:
        self._query, self._semantics, self._sink = query, semantics, sink
        self._panes = Panes(spark, checkpoint / "panes", query)
        self._evaluation = Evaluation(spark, query, semantics, checkpoint / "shown", self._panes.counts)
        self._log = StateLog(checkpoint / "batches")
        self.told: int | None = None
        self.error: Exception | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Do one batch of files; what goes wrong is kept in ``error`` and raised."""
        self.take(lambda _before: files_of(rows), batch)

    def take(self, bring: Callable[[State], Sequence[str]], batch: int) -> None:
        """Do one batch of the stream tables that ``bring`` names when it is told what is known before it."""
        try:
            self._do(bring, batch)
        except Exception as error:
            self.error = error
            raise

    def _do(self, bring: Callable[[State], Sequence[str]], batch: int) -> None:
        before = self._begun(self._log.before(batch))
        came = replace(self._taken(bring(before), before, batch), batch=batch)
        done = self._closed(2 * batch, before, came, self._upto(came))
        self._sink.write(done)
        self._log.commit(done.after)
        self._panes.delete(before, done.after)

    def drain(self, advanced_to: int | None = None) -> State:
        """Nothing more will come: do the reports up to ``advanced_to`` (ms), by default of all windows with content.

        Done again after a crash it does the same again.
        """
        before = self._begun(self._log.latest())
        upto = advanced_to
        if before.t0 is not None and before.greatest is not None and upto is None:
            upto = self._closes(before.t0).last_holding(before.greatest)
        if before.t0 is None or upto is None or (before.passed is not None and upto <= before.passed):
            return before
        done = self._closed(2 * before.batch + 1, before, before, upto)
        self._sink.write(done)
        self._log.commit(done.after, DRAINED)
        return done.after

    @property
    def state(self) -> State:
        """The state now."""
        return self._log.latest()

    def _begun(self, state: State) -> State:
        """The state with the t0 that needs no element."""
        known = state.t0 is not None or self._semantics.origin is Origin.FIRST
        return state if known else replace(state, t0=self._semantics.t0)

    def _taken(self, files: Sequence[str], before: State, batch: int) -> State:
        """The state with what came, without its reports."""
        arrived = self._panes.measure(files)
        if arrived is None:
            return before
        _refuse_going_back(arrived, before)
        unit = self._semantics.time_unit
        t0 = arrived.begin - arrived.begin % unit if before.t0 is None else before.t0
        closes = self._closes(t0)
        dropped: list[int] = []
        if not surely_in_time(arrived.first, arrived.last, before, closes):
            dropped = late(arrived.heads(), before, closes)
        pane = self._panes.pane(batch, arrived, dropped)
        greatest = arrived.last if before.greatest is None else max(arrived.last, before.greatest)
        return replace(
            before,
            t0=t0,
            greatest=greatest,
            rows=before.rows + arrived.rows,
            late=before.late + len(dropped),
            next=arrived.highest + 1,
            panes=(*before.panes, pane),
        )

    def _upto(self, came: State) -> int | None:
        """How far reports are due, ms: by the watermark, or as far as was told."""
        if came.t0 is None or came.greatest is None:
            return self.told
        due = self._closes(came.t0).come_to(came.greatest - (self._semantics.lateness or 0))
        return due if self.told is None else max(due, self.told)

    def _closed(self, part: int, before: State, came: State, upto: int | None) -> BatchAnswers:
        """The reports up to an instant (ms), and the state after them."""
        if came.t0 is None or upto is None or (came.passed is not None and upto <= came.passed):
            return BatchAnswers(part, (), before, came)
        closes = self._closes(came.t0)
        due = closes.between(came.passed, upto)
        wanted = [came.last, *due] if came.last else list(due)
        said: list[ReportRows] = []
        last = came.last
        if due:
            first = min(view.first for report in wanted for view in report.views)
            held = self._panes.held(came.panes, first, max(report.last for report in wanted))
            due = self._evaluation.evaluated(held, due)
            said = list(self._evaluation.said(held, due, came.last))
            last = due[-1] if due else last
        after = replace(came, passed=upto, last=last, sent=came.sent + len(said))
        return BatchAnswers(part, said, before, forget(after, self._wanted_from(closes, after)))

    def _wanted_from(self, closes: Closes, after: State) -> int:
        """The earliest time (ms) that some later report may look at."""
        assert after.passed is not None
        wanted = closes.wanted_from(after.passed)
        operator = self._query.r2s or self._semantics.r2s
        if after.last is None or operator == "Rstream":
            return wanted
        return min(wanted, *(view.first for view in after.last.views))

    def _closes(self, t0: int) -> Closes:
        return Closes(self._query, self._semantics, t0)


def _refuse_going_back(arrived: BatchArrivals, before: State) -> None:
    """Raise OutOfOrderError for files that come after others whose elements are later in system time."""
    if arrived.lowest < before.next:
        raise OutOfOrderError(
            f"{arrived.files[0]}: sequence {arrived.lowest} comes after {before.next - 1}: files must come (by their "
            "time of change) in the order of their sequence numbers"
        )
