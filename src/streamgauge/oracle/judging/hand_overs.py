"""The hand-overs of a run that stay on disk: when its reports were due, and its stream under the time of arrival."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.formats import tables
from streamgauge.model.report import DueReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import Borders
from streamgauge.oracle.expected.due_table import Numbers, integers
from streamgauge.oracle.judging.metrics import ADVANCE, MS_NS, DueTime, Trigger, due_time, trigger
from streamgauge.semantics.arrivals import by_triple
from streamgauge.spark.hadoop_tables import read_parquet

UNKNOWN: Final = np.iinfo(np.int64).min
"""The hand-over of a report that the run does not show to be due."""


def due_times(due: Sequence[DueReport], times: Sequence[int]) -> DueTime:
    """When these reports were due (ns), from their hand-overs (``HandOvers.of``)."""
    pairs = zip(due, times, strict=True)
    known = {(report.instant, report.seen): at for report, at in pairs if at != UNKNOWN}
    return lambda report: known.get((report.due.instant, report.due.seen))


class HandOvers:
    """The hand-overs of a run that made its reports due, asked for in order of time; they stay on disk.

    Each kind of trigger reads the table once, however many reports there are.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._passes = {kind: _HandOverPass(run, kind) for kind in Trigger}

    def due_time(self, due: Sequence[DueReport]) -> DueTime:
        """``metrics.due_time`` for these reports."""
        times = self.of(due)
        return due_time(self._run) if times is None else due_times(due, times)

    def of(self, due: Sequence[DueReport]) -> Sequence[int] | None:
        """The hand-over (ns) that made each report due, or UNKNOWN; the reports follow those of earlier calls.

        ``None`` for a paced run, whose due times do not depend on hand-overs.
        """
        if self._run.header.factor is not None or self._run.folder is None:
            return None
        semantics, windows = self._run.header.semantics, self._run.header.query.windows
        at_time = [place for place, window in enumerate(windows) if window.window.kind != "count"]
        kinds = list(Trigger)
        rows = ((kinds.index(trigger(one, semantics, at_time)), one.instant, one.seen) for one in due)
        reports = np.fromiter(rows, [(name, np.int64) for name in ("kind", "instant", "seen")], len(due))
        handed = np.full(len(due), UNKNOWN, np.int64)
        for at, kind in enumerate(kinds):
            own = np.flatnonzero(reports["kind"] == at)
            if len(own):
                handed[own] = self._passes[kind].meet(reports["instant"][own], reports["seen"][own])
        return integers(handed)


class _HandOverPass:
    """One pass over the hand-overs of a run, for the reports of one trigger, ascending in time."""

    def __init__(self, run: Run, kind: Trigger) -> None:
        self._batches = _shown(run, kind)
        self._shown = self._arrived = self._handed = np.empty(0, np.int64)

    def meet(self, instants: Numbers, seen: Numbers) -> Numbers:
        """The hand-over (ns) that makes each report due, by its instant (ms) and the arrivals that it has seen."""
        met, done = np.full(len(instants), UNKNOWN, np.int64), 0
        while True:
            # Both ascend, so what this batch does not reach is sought in the next ones only.
            record = np.searchsorted(self._shown, instants[done:])
            if len(self._arrived):
                record = np.maximum(record, np.searchsorted(self._arrived, seen[done:]))
            here = record[record < len(self._handed)]
            met[done : done + len(here)] = self._handed[here]
            done += len(here)
            batch = next(self._batches, None) if done < len(met) else None
            if batch is None:
                return met
            self._shown, self._arrived, self._handed = batch


def _shown(run: Run, kind: Trigger) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """The hand-overs (ns), batch by batch, after the time (ms) that each shows to have passed for a kind of trigger.

    Between them the number of arrivals so far, empty where that kind does not count them.
    """
    assert run.folder is not None
    triples = by_triple(run.header.query.windows, run.header.semantics.tick)
    # Elements out of order never move back the time that is shown to have passed.
    arrived, greatest = 0, np.iinfo(np.int64).min
    for _, batch in tables.batches(run.folder / "fed.parquet", tables.FED):
        sequence, time, size, at = (batch.column(name).to_numpy() for name in ("sequence", "time", "size", "handed"))
        # An advance hands over time but no arrival.
        counts = arrived + np.cumsum(np.where(sequence == ADVANCE, 0, size if triples else 1))
        # An element at time t shows that all before t has come; an advance to t shows t as well.
        shown = np.where(sequence == ADVANCE, time, time - (kind is Trigger.LATER))
        shown = np.maximum.accumulate(np.concatenate([[greatest], shown]))[1:]
        if len(at):
            arrived, greatest = int(counts[-1]), shown[-1]
        yield shown, counts if kind is Trigger.ARRIVAL else counts[:0], at


def by_arrival_table(session: SparkSession, run: Run, stream: DataFrame) -> tuple[Run, DataFrame]:
    """``metrics.by_arrival`` of a run whose hand-overs stay on disk, over a stream table."""
    assert run.folder is not None
    fed = read_parquet(session, run.folder / "fed.parquet").select("sequence", "handed")
    started = run.header.started
    # Rounded up under (o, c], so that no time moves across a border (``metrics._rounded``).
    up = 0 if run.header.semantics.borders is Borders.CLOSED_OPEN else MS_NS - 1

    passed, ms = fn.col("handed") - started + up, fn.lit(MS_NS)
    rounded = fn.call_function("div", passed - fn.pmod(passed, ms), ms)  # down also before the start, which div is not
    times = fed.filter(fn.col("sequence") != ADVANCE).select("sequence", rounded.alias("time"))
    (last,) = fed.agg(fn.max("handed")).first() or (None,)
    until = ((started if last is None else last) - started + up) // MS_NS
    header = replace(run.header, advanced_to=until, begin=0, factor=1.0)
    return replace(run, header=header), stream.drop("time").join(times, "sequence")
