"""The hand-overs of a run that stay on disk: when its reports were due, and its stream under the time of arrival."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.formats import tables
from streamgauge.model.report import DueReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import Borders
from streamgauge.oracle.expected.due_table import Numbers, integers
from streamgauge.oracle.judging.metrics import ADVANCE, DueTime, Trigger, due_time, trigger
from streamgauge.semantics.arrivals import by_triple
from streamgauge.spark.hadoop_tables import read_parquet

UNKNOWN: Final = np.iinfo(np.int64).min
"""The hand-over of a report that the run does not show to be due."""

_MS_NS: Final = 1_000_000
"""Nanoseconds of a millisecond."""


def handed_over(run: Run, due: Sequence[DueReport]) -> DueTime:
    """``metrics.due_time`` of a run whose hand-overs stay on disk, for reports ascending in time."""
    times = hand_overs(run, due)
    return due_time(run) if times is None else due_times(due, times)


def due_times(due: Sequence[DueReport], times: Sequence[int]) -> DueTime:
    """When these reports were due (ns), from their hand-overs (``hand_overs``)."""
    pairs = zip(due, times, strict=True)
    known = {(report.instant, report.seen): at for report, at in pairs if at != UNKNOWN}
    return lambda report: known.get((report.due.instant, report.due.seen))


def hand_overs(run: Run, due: Sequence[DueReport]) -> Sequence[int] | None:
    """The hand-over (ns) that made each of these reports due, ascending in time, or UNKNOWN; one pass over the table.

    ``None`` for a paced run, whose due times do not depend on hand-overs.
    """
    if run.header.factor is not None or run.folder is None:
        return None
    semantics, windows = run.header.semantics, run.header.query.windows
    at_time = [place for place, window in enumerate(windows) if window.window.kind != "count"]
    kinds = list(Trigger)
    rows = ((kinds.index(trigger(one, semantics, at_time)), one.instant, one.seen) for one in due)
    reports = np.fromiter(rows, [(name, np.int64) for name in ("kind", "instant", "seen")], len(due))
    handed = np.full(len(due), UNKNOWN, np.int64)
    waiting = {kind: _Waiting(reports, np.flatnonzero(reports["kind"] == at), handed) for at, kind in enumerate(kinds)}
    triples = by_triple(windows, semantics.tick)
    # Carried over from batch to batch: the arrivals, and the times shown to have passed, which elements out of order
    # never move back.
    arrived, greatest = 0, dict.fromkeys(Trigger, np.iinfo(np.int64).min)
    for _, batch in tables.batches(run.folder / "fed.parquet", tables.FED):
        sequence, time, size, at = (batch.column(name).to_numpy() for name in ("sequence", "time", "size", "handed"))
        counts = arrived + np.cumsum(np.where(sequence == ADVANCE, 0, size if triples else 1))
        arrived = int(counts[-1]) if len(counts) else arrived
        for kind, own in waiting.items():
            shown = np.where(sequence == ADVANCE, time, time - (kind is Trigger.LATER))
            shown = np.maximum.accumulate(np.concatenate([[greatest[kind]], shown]))[1:]
            greatest[kind] = shown[-1] if len(shown) else greatest[kind]
            own.meet(shown, counts if kind is Trigger.ARRIVAL else None, at)
    return integers(handed)


class _Waiting:
    """The reports at some places, ascending in time; ``handed`` gets the hand-overs (ns) of those that are due."""

    def __init__(self, reports: Any, places: Numbers, handed: Numbers) -> None:
        self._instants, self._seen = reports["instant"][places], reports["seen"][places]
        self._places, self._handed, self._done = places, handed, 0

    def meet(self, shown: Numbers, arrived: "Numbers | None", at: Numbers) -> None:
        """The next hand-overs (ns): after each the time shown to have passed (ms), and the number of arrivals."""
        record = np.searchsorted(shown, self._instants[self._done :])
        if arrived is not None:
            record = np.maximum(record, np.searchsorted(arrived, self._seen[self._done :]))
        shown_here = record[record < len(at)]
        end = self._done + len(shown_here)
        self._handed[self._places[self._done : end]] = at[shown_here]
        self._done = end


def by_arrival_table(session: SparkSession, run: Run, stream: DataFrame) -> tuple[Run, DataFrame]:
    """``metrics.by_arrival`` of a run whose hand-overs stay on disk, over a stream table."""
    assert run.folder is not None
    fed = read_parquet(session, run.folder / "fed.parquet").select("sequence", "handed")
    started = run.header.started
    up = 0 if run.header.semantics.borders is Borders.CLOSED_OPEN else _MS_NS - 1

    passed, ms = fn.col("handed") - started + up, fn.lit(_MS_NS)
    rounded = fn.call_function("div", passed - fn.pmod(passed, ms), ms)  # down also before the start, which div is not
    times = fed.filter(fn.col("sequence") != ADVANCE).select("sequence", rounded.alias("time"))
    (last,) = fed.agg(fn.max("handed")).first() or (None,)
    until = ((started if last is None else last) - started + up) // _MS_NS
    header = replace(run.header, advanced_to=until, begin=0, factor=1.0)
    return replace(run, header=header), stream.drop("time").join(times, "sequence")
