"""The spark engine on the pipe: pushed elements become micro-batches of a streaming query, and time triggers reports.

A batch adds rows, drops late ones, closes windows, passes answers to the sink and stores the state (``Batches``).
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.errors import StreamingQueryException

from streamgauge.engines import Emit
from streamgauge.engines.spark.evaluation import Evaluation, ReportRows
from streamgauge.engines.spark.lateness import LateRule
from streamgauge.engines.spark.panes import PaneRows, Panes, files_of, streaming
from streamgauge.engines.spark.parts import PartFile, PartFiles
from streamgauge.engines.spark.state import Closes, Pane, State, StateLog, forget
from streamgauge.formats.stream import write
from streamgauge.incremental.drivers.admission import Admission, disorder
from streamgauge.incremental.drivers.relation_to_stream import answer_kind
from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Grain, Origin, Semantics
from streamgauge.semantics.arrivals import origins
from streamgauge.semantics.beginning import begun
from streamgauge.spark.failures import JOB_ERRORS
from streamgauge.spark.requirements import classic_session

DRAINED = "-drained"

REHEARSALS = 3
"""Number of batches before the first report that evaluate it in advance, to compile its plan."""


ANSWER_ROWS: Final = 50_000
"""Approximate number of answer rows in the driver at a time; the rows of one report stay together.

Measured for 1.6 million rows of three terms written to a run folder: the driver's Python, 160 MiB before the first, has
a peak of 220 MiB for 25,000 rows at a time, 249 for 50,000, 298 for 100,000 and 1,110 for all.
"""

FIRST_RATIO: Final = 0.05
"""Initial estimate of answer rows per triple in a window, until a batch has been measured."""


@dataclass(frozen=True, slots=True)
class BatchAnswers:
    """One batch: its answers, and the states before and after it; ``part`` numbers batches and drains, ascending.

    ``groups`` yields the answers of a few reports at a time, evaluated lazily and only once; ``after`` does not yet
    count them as sent.
    """

    part: int
    groups: Iterable[Sequence[ReportRows]]
    before: State
    after: State


@dataclass(frozen=True, slots=True)
class BatchDone:
    """A written batch: the instants (ms) of its reports, and the states before and after it."""

    part: int
    instants: Sequence[int]
    before: State
    after: State


class BatchSink(Protocol):
    """The destination of answers; a batch that is written again must replace the first copy or reuse its keys."""

    def write(self, done: BatchAnswers) -> Sequence[int]:
        """Store or send the answers of a batch and return the instants (ms) of its reports."""


class Batches:
    """Processes the micro-batches of a query; its durable state is in the ``checkpoint`` folder.

    Spark calls it with a frame over the batch's files (``panes.streaming``) and the batch's number. A job that waits
    for its stream has time for ``rehearsals``, which compile the first report's plan and warm up the JVM in advance.
    ``moves``: no t0 is declared, so reports begin with the stream (``begun``). ``remote``: the source's files are on
    another file system. ``horizon``: no report is due after it (ms). ``tell`` is called after each batch.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        semantics: Semantics,
        checkpoint: Path,
        sink: BatchSink,
        rehearsals: int = 0,
        moves: bool = False,
        remote: bool = False,
        horizon: int | None = None,
        tell: Callable[[BatchDone], object] = lambda _done: None,
    ) -> None:
        self._query, self._semantics, self._sink, self._rehearsals = query, semantics, sink, rehearsals
        self._tell, self._ratio, self._horizon = tell, FIRST_RATIO, horizon
        self._waits = moves or semantics.origin is Origin.FIRST
        self._panes = Panes(spark, checkpoint / "panes", query, remote)
        self._evaluation = Evaluation(spark, query, semantics, checkpoint / "shown", self._panes.counts)
        self._log = StateLog(checkpoint / "batches")
        self._parts = PartFiles(spark)
        self.advanced_to: int | None = None
        self.error: Exception | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Process one batch of files; an exception is stored in ``error`` and raised."""
        self.take(lambda before: self._parts.following(files_of(rows), before.next, before.files), batch)

    def take(self, bring: Callable[[State], Sequence[PartFile]], batch: int) -> None:
        """Process one batch of the stream tables that ``bring`` returns for the state before it."""
        try:
            self._do(bring, batch)
        except Exception as error:
            self.error = error
            raise

    def _do(self, bring: Callable[[State], Sequence[PartFile]], batch: int) -> None:
        before = self._begun(self._log.before(batch))
        came = replace(self._taken(bring(before), before, batch), batch=batch)
        # Batches have even numbers, drains odd ones: neither replaces the other's files.
        done = self._written(self._closed(2 * batch, before, came, self._upto(came)))
        # After the answers: a crash in between repeats the batch, whose answers replace the first ones.
        self._log.commit(done.after)
        self._panes.delete(before, done.after)
        if done.instants:
            # The plan has been compiled by a real report.
            self._rehearsals = 0
        elif self._rehearsals:
            self._rehearse(done.after)

    def _written(self, answers: BatchAnswers) -> BatchDone:
        """Evaluate a batch's answers while its sink consumes them."""
        instants = self._sink.write(answers)
        after = replace(answers.after, sent=answers.before.sent + len(instants))
        done = BatchDone(answers.part, instants, answers.before, after)
        self._tell(done)
        return done

    def _rehearse(self, now: State) -> None:
        """Evaluate the next report on its content so far and discard the answer, which compiles its plan."""
        if now.t0 is None:
            return
        closes = self._closes(now.t0)
        due = closes.between(now.passed, closes.after(now.passed))
        if due and (content := self._content(now, due)).files:
            self._rehearsals -= 1
            with suppress(
                *JOB_ERRORS
            ):  # an error on partial content may vanish with the rest; if not, the report itself raises it
                list(self._evaluation.answers_of(content, self._evaluation.evaluated(content, due), now.last))

    def drain(self, advanced_to: int | None = None) -> State:
        """End the stream: do the reports up to ``advanced_to`` (ms).

        The default is the horizon, else the last advance or, if later, the end of the last window with content.
        Idempotent, so that it can be repeated after a crash.
        """
        before = self._begun(self._log.latest())
        upto = self._horizon if advanced_to is None else advanced_to
        if before.t0 is not None and before.greatest is not None and upto is None:
            holding = self._closes(before.t0).last_holding(before.greatest)
            upto = holding if self.advanced_to is None else max(holding, self.advanced_to)
        # Nothing to do, also after a crash behind the commit of an earlier drain.
        if before.t0 is None or upto is None or (before.passed is not None and upto <= before.passed):
            return before
        done = self._written(self._closed(2 * before.batch + 1, before, before, upto))
        self._log.commit(done.after, DRAINED)
        return done.after

    @property
    def state(self) -> State:
        """The state after the last committed batch."""
        return self._log.latest()

    def _begun(self, state: State) -> State:
        """The state with t0, unless t0 depends on the first element."""
        if state.t0 is not None or self._waits:
            return state
        return replace(state, t0=self._semantics.t0, since=self._semantics.since)

    def _beginning(self, before: State, first: int) -> Semantics:
        """The semantics with the t0 and ``since`` of this stream, whose first element is at ``first`` (ms)."""
        if before.t0 is not None:
            return replace(self._semantics, t0=before.t0, since=before.since)
        semantics = begun(self._query.windows, self._semantics, first)
        return replace(semantics, t0=origins(semantics, self._query.windows, first)[0])

    def _taken(self, parts: Sequence[PartFile], before: State, batch: int) -> State:
        """The state with a batch's rows, before its reports."""
        if parts:
            before = replace(before, next=max(part.highest for part in parts) + 1, files=before.files + len(parts))
        arrived = self._panes.measure([part.file for part in parts])
        if arrived is None:
            return before
        semantics = self._beginning(before, arrived.begin)
        closes = self._closes(semantics.t0)
        dropped = arrived.late(LateRule.of(before, closes), before.greatest)
        panes = self._panes.of_batch(batch, arrived, dropped)
        greatest = arrived.last if before.greatest is None else max(arrived.last, before.greatest)
        return replace(
            before,
            t0=semantics.t0,
            since=semantics.since,
            greatest=greatest,
            rows=before.rows + arrived.rows,
            late=before.late + len(dropped),
            panes=(*before.panes, *panes),
        )

    def _upto(self, came: State) -> int | None:
        """The instant (ms) up to which reports are due: by the watermark, or by the last advance."""
        if came.t0 is None or came.greatest is None:
            return self.advanced_to
        due = self._closes(came.t0).come_to(came.greatest - (self._semantics.lateness or 0))
        reached = due if self.advanced_to is None else max(due, self.advanced_to)
        return reached if self._horizon is None else min(reached, self._horizon)

    def _closed(self, part: int, before: State, came: State, upto: int | None) -> BatchAnswers:
        """The reports up to an instant (ms), with the state after them."""
        if came.t0 is None or upto is None or (came.passed is not None and upto <= came.passed):
            return BatchAnswers(part, (), before, came)
        closes = self._closes(came.t0)
        due: Sequence[DueReport] = closes.between(came.passed, upto)
        if due:
            due = self._evaluation.evaluated(self._content(came, due), due)
        after = replace(came, passed=upto, last=due[-1] if due else came.last)
        kept = forget(after, self._wanted_from(closes, after))
        return BatchAnswers(part, self._groups(came, due), before, kept)

    def _groups(self, came: State, due: Sequence[DueReport]) -> Iterator[Sequence[ReportRows]]:
        """The answers of the reports in groups of an estimated ANSWER_ROWS rows, by the size of earlier answers."""
        left = [(report, _size(came.panes, report)) for report in due]
        before = came.last
        while left:
            # Computed again for each group, as the estimate improves with every answer.
            groups = ceil(sum(size for _, size in left) * self._ratio / ANSWER_ROWS)
            length = ceil(len(left) / max(1, groups))
            taken, left = left[:length], left[length:]
            group = [report for report, _ in taken]
            content = self._content(replace(came, last=before), group)
            answers = tuple(self._evaluation.answers_of(content, group, before))
            rows = sum(len(one.rows) for one in answers)
            # It falls slowly: an estimate too low fills the driver's memory, one too high only costs more jobs.
            self._ratio = max(self._ratio / 4, rows / max(1.0, sum(size for _, size in taken)))
            before = group[-1]
            yield [one for one in answers if came.since is None or one.due.instant >= came.since]

    def _content(self, now: State, due: Sequence[DueReport]) -> PaneRows:
        """The rows of the windows of these reports and of the previous report."""
        reports = [now.last, *due] if now.last else due
        first = min(view.first for report in reports for view in report.views)
        return self._panes.between(now.panes, first, max(report.last for report in reports))

    def _wanted_from(self, closes: Closes, after: State) -> int:
        """The earliest time (ms) that a later report may need."""
        assert after.passed is not None
        reports = closes.wanted_from(after.passed)
        operator = self._query.r2s or self._semantics.r2s
        if after.last is None or operator == "Rstream":
            return reports
        # The next difference is to the last report, whose content is needed once more.
        return min(reports, *(view.first for view in after.last.views))

    def _closes(self, t0: int) -> Closes:
        return Closes(self._query, self._semantics, t0)


def _size(panes: Iterable[Pane], due_report: DueReport) -> float:
    """Estimated number of triples in the windows of a report."""
    first = min(view.first for view in due_report.views)
    return sum(pane.about(first, due_report.last) for pane in panes)


MAX_WAITING_ROWS = 350_000
"""Maximum number of triples waiting for the next micro-batch."""

PAUSE_S = 1.0
"""Minimum time (s) between two micro-batches, unless time advances or too many triples wait."""


SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # small jobs gain nothing from replanning at each stage
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",  # a batch's files are listed without a job
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",  # the only partition column is the base of time
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.parquet.filterPushdown": "false",  # every part of a stream table has every predicate
    "spark.sql.lightweightPlanChangeValidation": "false",  # checks plans after every step of the optimizer
}

FEW_ROWS = 5_000
"""Batches of up to so many triples are faster with interpreted plans than with plans compiled to bytecode."""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


class MicroBatches:
    """A session that writes elements as files for one streaming query; ``late`` counts late elements."""

    def __init__(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        semantics: Semantics,
        emit: Emit,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._query, self._semantics, self._clock = query, semantics, clock
        self._folder = tempfile.TemporaryDirectory(prefix="streamgauge-spark-")
        root = Path(self._folder.name)
        self._landing = root / "landing"
        self._landing.mkdir()
        self._spark = configured(spark)
        self._batches = Batches(self._spark, query, semantics, root / "checkpoint", Emitted(query, semantics, emit))
        writer = streaming(self._spark, str(self._landing), 1).writeStream.foreachBatch(self._batch)
        self._running = writer.option("checkpointLocation", str(root / "checkpoint" / "spark")).start()
        self._admission = Admission([window.stream for window in query.windows])
        self._waiting: list[StreamElement] = []
        self._rows, self._files, self._plans = 0, 0, COMPILED
        self._greatest: int | None = None
        self._closes: Closes | None = None
        self._next, self._ended = 0, clock()
        self.late = 0
        if semantics.origin is not Origin.FIRST:
            self._begin(semantics.t0)

    def _begin(self, t0: int) -> None:
        self._closes = Closes(self._query, self._semantics, t0)
        self._next = self._closes.after(None)

    def push(self, element: StreamElement) -> None:
        """Add an element to the next micro-batch."""
        if not self._admission.takes(element):
            return
        if self._greatest is not None and element.time < self._greatest and self._semantics.lateness is None:
            raise disorder(element, self._greatest)
        if self._closes is None:
            self._begin(element.time - element.time % self._semantics.time_unit)
        self._greatest = element.time if self._greatest is None else max(self._greatest, element.time)
        if element.added:
            self._waiting.append(element)
            self._rows += len(element.added)
        # A batch costs a job whatever its size, so elements wait until a report is due, and at least PAUSE_S.
        if self._rows >= MAX_WAITING_ROWS or (self._next <= self._reached and self._clock() - self._ended >= PAUSE_S):
            self._land()

    def advance(self, time: int) -> None:
        """Promise that no earlier element follows: do the reports up to ``time``."""
        if self._closes is None:
            return
        self._greatest = time if self._greatest is None else max(self._greatest, time)
        if self._next <= time:
            self._batches.advanced_to = time
            self._land()
            self._batches.drain(time)
            self._next = self._closes.after(time)

    def close(self) -> None:
        """End the input without further reports."""
        self._running.stop()
        self.late = self._batches.state.late
        self._folder.cleanup()
        self._admission.close()

    @property
    def _reached(self) -> int:
        """The instant (ms) up to which the watermark makes reports due."""
        assert self._closes is not None
        assert self._greatest is not None
        return self._closes.come_to(self._greatest - (self._semantics.lateness or 0))

    def _land(self) -> None:
        """Pass the waiting elements to the streaming query as one file, and wait until it is processed."""
        assert self._closes is not None
        if self._waiting:
            unfinished, file = self._landing / f".{self._files:06}", self._landing / f"{self._files:06}.parquet"
            write(self._waiting, unfinished)
            # Spark ignores names that begin with a dot, so it never sees an incomplete file.
            unfinished.rename(file)
            self._plans = INTERPRETED if self._rows <= FEW_ROWS else COMPILED
            self._waiting, self._rows, self._files = [], 0, self._files + 1
            self._answered()
        self._next = self._closes.after(self._reached)
        self._ended = self._clock()

    def _batch(self, rows: DataFrame, batch: int) -> None:
        """Process a batch with interpreted or compiled plans, by its size."""
        set_all(self._spark, self._plans)
        self._batches(rows, batch)

    def _answered(self) -> None:
        try:
            self._running.processAllAvailable()
        except StreamingQueryException as error:
            # Spark wraps the error of a batch in the text of a Java exception; the original has the sentence.
            raise (self._batches.error or error) from None
        self.late = self._batches.state.late


class Emitted:
    """Sends answers of batches to a callback, in the semantics' grain."""

    def __init__(self, query: ContinuousQuery, semantics: Semantics, emit: Emit) -> None:
        self._emit, self._grain, self._kind = emit, semantics.grain, answer_kind(query.form)
        self._names = query.form.variables if isinstance(query.form, al.Select) else ()

    def write(self, done: BatchAnswers) -> Sequence[int]:
        """Emit every report of a batch."""
        instants = []
        for reported in chain.from_iterable(done.groups):
            instants.append(reported.due.instant)
            rows = tuple(reported.as_rows())
            scope = (reported.due.start, reported.due.end)
            bags = [(row,) for row in rows] if self._grain is Grain.ROW and rows else [rows]
            for bag in bags:
                self._emit(Answer(self._names, bag, (), self._kind, reported.due.instant, scope))
        return instants


def configured(spark: SparkSession) -> SparkSession:
    """A copy of a session with settings for many small jobs; the original keeps its settings."""
    classic_session(spark, "the engine spark")
    # A new session would have the settings of Spark's start, without what was set since: a partition for each core.
    own = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    set_all(own, SETTINGS)
    return own


def set_all(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Set a session's settings."""
    for key, value in settings.items():
        spark.conf.set(key, value)
