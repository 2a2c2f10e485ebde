"""The hand-overs of a run that stay on disk: when its reports were due, and its stream under the time of arrival."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.formats import tables
from streamgauge.model.report import DueReport
from streamgauge.model.run import Run
from streamgauge.model.semantics import Borders
from streamgauge.oracle.judging.metrics import ADVANCE, DueTime, Trigger, due_time, trigger
from streamgauge.semantics.arrivals import by_triple
from streamgauge.spark.hadoop_tables import read_parquet

Numbers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"

_MS_NS: Final = 1_000_000
"""Nanoseconds of a millisecond."""


def handed_over(run: Run, due: Sequence[DueReport]) -> DueTime:
    """``metrics.due_time`` of a run whose hand-overs stay on disk, for reports ascending in time; one pass."""
    if run.header.factor is not None or run.folder is None:
        return due_time(run)
    semantics, windows = run.header.semantics, run.header.query.windows
    at_time = [place for place, window in enumerate(windows) if window.window.kind != "count"]
    waiting = {kind: _Waiting([one for one in due if trigger(one, semantics, at_time) is kind]) for kind in Trigger}
    triples = by_triple(windows, semantics.tick)
    # Carried over from batch to batch: the arrivals, and the times shown to have passed, which elements out of order
    # never move back.
    arrived, greatest = 0, dict.fromkeys(Trigger, np.iinfo(np.int64).min)
    for _, batch in tables.batches(run.folder / "fed.parquet", tables.FED):
        sequence, time, size, at = (batch.column(name).to_numpy() for name in ("sequence", "time", "size", "handed"))
        counts = arrived + np.cumsum(np.where(sequence == ADVANCE, 0, size if triples else 1))
        arrived = int(counts[-1]) if len(counts) else arrived
        for kind, reports in waiting.items():
            shown = np.where(sequence == ADVANCE, time, time - (kind is Trigger.LATER))
            shown = np.maximum.accumulate(np.concatenate([[greatest[kind]], shown]))[1:]
            greatest[kind] = shown[-1] if len(shown) else greatest[kind]
            reports.meet(shown, counts if kind is Trigger.ARRIVAL else None, at)
    known = {key: at for reports in waiting.values() for key, at in reports.handed.items()}
    return lambda report: known.get((report.due.instant, report.due.seen))


@dataclass
class _Waiting:
    """Reports, ascending in time, and the hand-overs (ns) of those that are due, by instant and arrivals seen."""

    reports: Sequence[DueReport]
    handed: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._instants = np.array([report.instant for report in self.reports], np.int64)
        self._seen = np.array([report.seen for report in self.reports], np.int64)
        self._done = 0

    def meet(self, shown: Numbers, arrived: "Numbers | None", at: Numbers) -> None:
        """The next hand-overs (ns): after each the time shown to have passed (ms), and the number of arrivals."""
        place = np.searchsorted(shown, self._instants[self._done :])
        if arrived is not None:
            place = np.maximum(place, np.searchsorted(arrived, self._seen[self._done :]))
        for number in place[place < len(at)].tolist():
            report = self.reports[self._done]
            self.handed[report.instant, report.seen] = int(at[number])
            self._done += 1


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
