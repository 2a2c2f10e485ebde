"""Spark expects what the definition expects, on drawn streams, windows, semantics and queries.

Cases that share a query and the streams of its windows lie behind each other in time and system time, so that a few
jobs answer all of them; a report that holds nothing lies between two cases.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import SparkSession
from hypothesis import assume, given
from hypothesis import strategies as st

from streamgauge.formats.stream import write
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.model.semantics import Counting, Report, Semantics
from streamgauge.oracle.expected.reports import refuse_spark
from streamgauge.oracle.judging.judge import Means, expected_reports
from streamgauge.semantics.arrivals import Arrivals, Head, admit, arrivals, by_triple
from streamgauge.semantics.definition import expected, operator, streamed
from streamgauge.semantics.due import candidates
from streamgauge.semantics.refusal import RefusedError
from streamgauge.spark import answers as by_spark
from streamgauge.spark.intervals import contents
from tests.examples import examples
from tests.semantics.draw import asked, semantics, streams, window, windows
from tests.spark.conftest import tiny
from tests.sparql.draw import OPERATORS

__all__ = ["tiny"]
FAR = 1000
LAST = 24
CASES = 10


@dataclass(frozen=True)
class Case:
    """One run among others: a query, what it reads, under which semantics."""

    query: ContinuousQuery
    semantics: Semantics
    elements: tuple[StreamElement, ...]
    start: int

    @property
    def until(self) -> int:
        return self.start + LAST

    def heads(self) -> list[Head]:
        admitted, late = admit(map(Head.of, self.elements), self.semantics, self.query.windows, self.semantics.t0)
        assert not late
        return admitted

    def arrivals(self) -> Arrivals:
        return arrivals(self.heads(), self.query.windows, self.semantics.tick)

    def due(self) -> tuple[DueReport, ...]:
        return candidates(self.arrivals(), self.query.windows, self.semantics, self.semantics.t0, self.until)

    def wanted(self) -> tuple[ExpectedReport, ...]:
        return expected(self.elements, self.query, self.semantics, self.until, self.semantics.t0)

    def rows(self, before: int) -> list[tuple]:
        """Rows of the stream table with their ranks, the first of which is ``before``."""
        single, result, rank = by_triple(self.query.windows, self.semantics.tick), [], before
        taken = {head.sequence for head in self.heads()}
        for one in self.elements:
            if one.sequence in taken:
                for position, triple in enumerate(one.added):
                    at = rank + position if single else rank
                    result.append((one.stream, one.time, one.sequence, position, *triple, one.until, at))
                rank += len(one.added) if single else 1
        return result


@st.composite
def cases(draw: st.DrawFn) -> list[Case]:
    """Cases of one query; the sizes, slides and kinds of its windows differ, their streams and names do not."""
    over = draw(windows())
    query = draw(asked(over, OPERATORS))
    shared = draw(semantics())
    counting = draw(st.sampled_from([Counting.SET] * 3 + [Counting.BAG]))
    results = []
    for index in range(CASES):
        own = replace(
            draw(semantics()), empty_aggregate=shared.empty_aggregate, changes=shared.changes, content=counting
        )
        start = FAR * index
        own = replace(own, t0=start + own.t0)
        sized = tuple(replace(one, window=draw(window())) for one in over)
        elements = tuple(
            replace(one, time=start + one.time, until=None if one.until is None else start + one.until)
            for one in draw(streams())
        )
        results.append(Case(replace(query, windows=sized), own, elements, start))
    return results


def judged(case: Case) -> bool:
    """Whether both evaluators say that they judge it."""
    if refuse_spark(case.query, case.semantics) is not None:
        return False
    try:
        case.wanted()
    except RefusedError:
        return False
    return True


def shifted(due: DueReport, ranks: int) -> DueReport:
    views = (replace(view, seen=view.seen + ranks, after=view.after + ranks) for view in due.views)
    return DueReport(due.instant, tuple(views))


def gap(case: Case, ranks: int) -> DueReport:
    at = case.start + FAR // 2
    return DueReport(at, tuple(View(at, at, at, at - 1, ranks, ranks) for _ in case.query.windows))


def table(spark: SparkSession, rows: Sequence[tuple]):
    kinds = [pa.string(), pa.int64(), pa.int64(), pa.int32(), *[pa.string()] * 3, pa.int64(), pa.int64()]
    names = ("stream", "time", "sequence", "position", "subject", "predicate", "object", "until", "arrival")
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return spark.createDataFrame(pa.table(arrays, names=names))


def agree(spark: SparkSession, drawn: list[Case], many: int) -> None:
    ready = [case for case in drawn if judged(case)]
    assume(ready)
    rows, due, owner = [], [], []
    for case in ready:
        before = len(case.arrivals().times)
        ranks = rows[-1][-1] + 1 if rows else 0
        result = case.due()
        due += [*(shifted(one, ranks) for one in result), gap(case, ranks + before)]
        owner += [*((case, one) for one in result), (case, None)]
        rows += case.rows(ranks)
    stream, query, chosen = table(spark, rows), ready[0].query, ready[0].semantics
    held = contents(stream, due, query.windows, chosen.content, chosen.changes)
    kept = [index for index, (case, one) in enumerate(owner) if one and reports(index, case.semantics, held)]
    for bags in answered(spark, stream, [due[index] for index in kept], query, chosen, many):
        told = dict(zip(kept, bags, strict=True))
        for case in ready:
            mine = [index for index in kept if owner[index][0] is case]
            evaluated = ((owner[index][1], tuple(told[index].elements())) for index in mine)
            sent = streamed(evaluated, operator(case.query, case.semantics), case.semantics)
            sizes = {owner[index][1]: held.sizes[index] for index in mine}
            assert [(one, Counter(bag), sizes[one]) for one, bag in sent] == [
                (one.due, Counter(one.rows), one.content) for one in case.wanted()
            ]


def reports(index: int, semantics: Semantics, held) -> bool:
    if Report.NON_EMPTY in semantics.report and not held.sizes[index]:
        return False
    return Report.CONTENT_CHANGE not in semantics.report or index in held.changed


def answered(spark, stream, due, query, chosen, many) -> list[list[Counter]]:
    """Each report's bag, from its answers and from the changes since the first."""
    means = by_spark.ContentChoices(chosen.content, chosen.empty_aggregate)
    given = (spark, stream, due, query.form, query.static, many, query.windows, means)
    whole = [Counter() for _ in due]
    for report, *row in by_spark.answers(*given).collect():
        whole[report][tuple(row)] += 1
    nets = [Counter() for _ in due]
    for report, net, *row in by_spark.changes(*given).collect():
        nets[report][tuple(row)] = net
    running, summed = Counter(), []
    for net in nets:
        running.update(net)
        summed.append(+running)
    return [whole, summed]


@examples(1, prove=60)
@given(cases(), st.sampled_from([0, 1 << 30]))
def test_drawn_cases(tiny, drawn, many):
    agree(tiny, drawn, many)


def whole_way(spark, data) -> None:
    """The same from a stream table on disk, with everything that lies between it and Spark."""
    over = data.draw(windows())
    case = Case(data.draw(asked(over)), data.draw(semantics()), data.draw(streams().filter(bool)), 0)
    assume(judged(case) and {item.stream for item in over} & {element.stream for element in case.elements})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "stream.parquet"
        write(case.elements, path)
        means = [Means(lambda: spark, name) for name in ("definition", "spark")]
        wanted, result = (
            expected_reports(case.query, case.semantics, path, mean, advance_to=LAST, t0=case.semantics.t0)
            for mean in means
        )
    assert [(report.due, report.content) for report in result] == [(report.due, report.content) for report in wanted]
    assert [Counter(report.rows) for report in result] == [Counter(report.rows) for report in wanted]


@examples(1, prove=100)
@given(st.data())
def test_drawn_semantics(tiny, data):
    whole_way(tiny, data)
