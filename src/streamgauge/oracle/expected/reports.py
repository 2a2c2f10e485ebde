"""The expected reports of a recorded stream, by the definition or by Spark."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from streamgauge.formats.stream import elements
from streamgauge.formats.streams import read_triples
from streamgauge.model.algebra import BGP, Graph, QueryForm, Select, Var
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery, StreamWindow, static_missing
from streamgauge.model.report import DueReport, ExpectedReport, View
from streamgauge.model.semantics import R2S, Counting, EmptyAggregate, Semantics
from streamgauge.model.terms import Row, Term
from streamgauge.query.graphs import spread
from streamgauge.query.stamps import stamped
from streamgauge.query.traversal import every_pattern, exists_patterns
from streamgauge.semantics.arrivals import Arrivals, Contents, Head, admit, arrivals, arrived_triples, content
from streamgauge.semantics.beginning import is_sent
from streamgauge.semantics.definition import (
    CAME,
    WENT,
    Held,
    answered,
    columns,
    held,
    operator,
    refuse,
    signed,
    streamed,
)
from streamgauge.semantics.due import candidates
from streamgauge.semantics.evaluate import Snapshot, snapshot_under
from streamgauge.semantics.honoured import SHARED, not_honoured

Net = Mapping[Row, int]
"""The difference of a bag to the one before it, row to copies; the bag before the first is empty."""


@dataclass(frozen=True, slots=True)
class ContentChange:
    """The change of the answer at one evaluated report; ``content`` is the number of triples in its windows."""

    due: DueReport
    content: int
    net: Net


ExpectChanges = Callable[[ContinuousQuery, Semantics, int, int], tuple[ContentChange, ...]]
"""A function from (query, semantics, advanced_to, t0) to all evaluated reports of a stream, as changes."""


def as_sets(changes: Iterable[ContentChange]) -> Iterator[ContentChange]:
    """The changes of the distinct rows: a row comes with its first copy and goes with its last."""
    counts: Counter[Row] = Counter()
    for change in changes:
        net = {}
        for row, count in change.net.items():
            before = counts[row]
            counts[row] += count
            if bool(before) != bool(counts[row]):
                net[row] = 1 if counts[row] else -1
            if not counts[row]:
                del counts[row]
        yield replace(change, net=net)


def sent(changes: Iterable[ContentChange], semantics: Semantics) -> Iterator[ContentChange]:
    """The sent reports of an Rstream, each with the change since the report sent before.

    A report with an empty bag is sent only if the semantics sends empty answers, so changes may accumulate.
    """
    size, net = 0, Counter[Row]()
    for change in changes:
        # Counted on, as an empty bag is recognised without keeping the bag.
        size += sum(change.net.values())
        net.update(change.net)
        if size or semantics.notify_empty:
            yield replace(change, net={row: count for row, count in net.items() if count})
            net.clear()


def received(answers: Sequence[Answer]) -> Iterator[Net]:
    """The changes from answer to answer: between whole bags or, if some answer removes rows, as sent.

    As in ``align.whole``, a row that is removed while it is absent counts as -1: its next addition adds nothing.
    """
    if any(answer.removed for answer in answers):
        return _sent_changes(answers)
    return _differences(answer.added for answer in answers)


def _differences(bags: Iterable[Sequence[Row]]) -> Iterator[Net]:
    before: Counter[Row] = Counter()
    for bag in bags:
        now = Counter(bag)
        net = {row: count - before[row] for row, count in now.items() if count != before[row]}
        net.update((row, -count) for row, count in before.items() if row not in now)
        yield net
        before = now


def _sent_changes(answers: Iterable[Answer]) -> Iterator[Net]:
    counts: Counter[Row] = Counter()
    for answer in answers:
        moved = Counter(answer.added)
        moved.subtract(answer.removed)
        net = {}
        for row, count in moved.items():
            # Worked example: -a, +a, +a. After the removal of an absent row it has -1 copies, after the first addition
            # 0 and after the second 1, and only the last one is a change.
            before = max(counts[row], 0)
            counts[row] += count
            if now := max(counts[row], 0) - before:
                net[row] = now
        yield net


class Valid:
    """A query over landmark windows, answered at any instant; ``elements`` are in order of time."""

    def __init__(self, query: ContinuousQuery, semantics: Semantics, elements: Iterable[StreamElement]) -> None:
        self._query = query
        self._arrived = arrived_triples(elements, query.windows, semantics)
        self._times = [arrival.time for arrival in self._arrived]
        ends = (arrival.until for arrival in self._arrived if arrival.until is not None)
        self._borders = sorted({*self._times, *ends})
        self._snapshot = snapshot_under(query, semantics)
        self._rows: dict[int, tuple[Row, ...]] = {}

    def at(self, instant: int) -> tuple[Row, ...]:
        """The bag of rows over the facts that are valid at an instant (ms)."""
        # Between two borders the same facts hold, so one answer serves all instants there.
        state = bisect_right(self._borders, instant)
        if state not in self._rows:
            self._rows[state] = self._answer(instant)
        return self._rows[state]

    def within(self, first: int, last: int) -> Sequence[tuple[Row, ...]]:
        """The successive answers from one instant to another (ms), both included."""
        inside = self._borders[bisect_right(self._borders, first) : bisect_right(self._borders, last)]
        return [self.at(instant) for instant in (first, *inside)]

    def _answer(self, instant: int) -> tuple[Row, ...]:
        seen = bisect_right(self._times, instant)
        view = View(0, instant, 0, instant, seen)
        contents = tuple(content(self._arrived, self._times, window.stream, view) for window in self._query.windows)
        return self._snapshot.at(instant).rows(contents)


class BackgroundError(MistakeError, ValueError):
    """A query names a static graph, and no file with its triples was given."""


def beside(query: ContinuousQuery, static: str | Path | None) -> ContinuousQuery:
    """The query with the triples of an RDF file as static data; BackgroundError if it needs one and has none."""
    if static is not None:
        return query.with_static(tuple(read_triples(static)))
    if query.background:
        raise BackgroundError(static_missing(query))
    return query


Look = Callable[[DueReport], Contents]
"""A function from a due report to the contents of the query's windows."""


Objects = Callable[[ContinuousQuery, Callable[[Term], str]], Iterable[Term]]
"""The type of ``Expect.objects``."""


class Expect(Protocol):
    """The expected reports of one stream; times in ms."""

    def __call__(
        self, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int, /
    ) -> tuple[ExpectedReport, ...]:
        """The expected reports up to ``advanced_to``."""

    def instants(self, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int) -> Set[int]:
        """The instants at which reports may be due; decided without the triples."""

    def look(self, query: ContinuousQuery, semantics: Semantics, t0: int) -> Look:
        """The contents of the reports, which ``oracle.worlds`` needs to enumerate legal answers."""

    def objects(self, query: ContinuousQuery, class_of: Callable[[Term], str], /) -> Iterable[Term]:
        """The objects of the triples that a query may read, or as many that each class of literals has one."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    """The contents of the last call, up to ``advanced_to`` (ms); ``key`` are the other arguments that decide them."""

    key: object
    advanced_to: int
    held: Held


class Definition:
    """Expected reports by the definition, over a stream in memory; the contents of the last call are cached."""

    def __init__(self, stream: Sequence[StreamElement]) -> None:
        self._stream = tuple(stream)
        self._header = Header(map(Head.of, self._stream))
        self._last: _Remembered | None = None

    def __call__(
        self, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int
    ) -> tuple[ExpectedReport, ...]:
        """The reports that are due up to ``advanced_to`` (ms)."""
        refuse(query, semantics)
        return answered(self._held(query, semantics, advanced_to, t0), query, semantics)

    def instants(self, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int) -> Set[int]:
        """The instants (ms) at which reports may be due."""
        return self._header.instants(query, semantics, advanced_to, t0)

    def _held(self, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int) -> Held:
        last = self._of(query, semantics, t0)
        if last is None or last.advanced_to != advanced_to:
            contents = held(self._stream, query, semantics, advanced_to, t0)
            last = self._last = _Remembered(_key(query, semantics, t0), advanced_to, contents)
        return last.held

    def _of(self, query: ContinuousQuery, semantics: Semantics, t0: int) -> _Remembered | None:
        """The cached contents, if they are those of this query, semantics and t0."""
        # Contents are most of the cost, and a verdict often asks for them again under another operator.
        last = self._last
        return last if last is not None and last.key == _key(query, semantics, t0) else None

    def look(self, query: ContinuousQuery, semantics: Semantics, t0: int) -> Look:
        """The contents of the reports under one t0 (ms)."""
        last = self._of(query, semantics, t0)
        known = {} if last is None else dict(last.held)

        @cache
        def others() -> Look:
            admitted, _late = admit(self._stream, semantics, query.windows, t0)
            return inspected(admitted, query, semantics)

        return lambda due: known[due] if due in known else others()(due)

    def objects(self, query: ContinuousQuery, _class_of: object) -> Iterable[Term]:
        """The objects of the query's streams."""
        elements_ = (element for element in self._stream if element.stream in query.streams)
        return {triple[2] for element in elements_ for triple in element.added}


def _key(query: ContinuousQuery, semantics: Semantics, t0: int) -> object:
    return query.windows, every_instant(semantics), t0


def every_instant(semantics: Semantics) -> Semantics:
    """The semantics under which every evaluated instant sends its whole answer; their contents are the same."""
    able = frozenset({R2S.RSTREAM})
    return replace(semantics, r2s=R2S.RSTREAM, r2s_able=able, notify_empty=True, since=None, answers=Counting.BAG)


def definition(stream: Path | Sequence[StreamElement]) -> Definition:
    """Expected reports by the definition; a stream table is read into memory."""
    return Definition(tuple(elements(stream)) if isinstance(stream, Path) else stream)


def inspected(admitted: Sequence[StreamElement], query: ContinuousQuery, semantics: Semantics, before: int = 0) -> Look:
    """The contents of reports over admitted elements, ascending by time; ``before`` earlier ranks are left out."""
    arrived = arrived_triples(admitted, query.windows, semantics)
    times = [arrival.time for arrival in arrived]

    def look(due_report: DueReport) -> Contents:
        views = due_report.views
        if before:
            # Ranks count from the first arrival of the stream, and ``admitted`` begins with the one at rank
            # ``before``.
            views = tuple(replace(view, seen=view.seen - before, after=max(0, view.after - before)) for view in views)
        pairs = zip(query.windows, views, strict=True)
        return tuple(content(arrived, times, window.stream, view) for window, view in pairs)

    return look


SPARK_HONOURED: Final = SHARED | {"content": (Counting.SET, Counting.BAG)}


def refuse_spark(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why Spark cannot compute the expected answers, or ``None``; the definition may."""
    # Late: the definition needs no Spark.
    from streamgauge.spark.exists import refuse as refuse_query

    try:
        form = spread(stamped(query.form), graph_names(query.windows))
    except ValueError as error:
        return str(error)
    updates: dict[object, str] = {Counting.UPDATES: "elements that are matched by themselves (content = updates)"}
    if reason := not_honoured(semantics, SPARK_HONOURED, "Spark", updates):
        return reason
    if semantics.content is Counting.BAG and (reason := _over_bags(form)):
        return f"{reason} over a content that is a bag"
    if semantics.empty_aggregate is not EmptyAggregate.SPARQL and not isinstance(form, Select):
        return "another value than SPARQL's for an aggregate over nothing in ASK or CONSTRUCT"
    return refuse_query(form)


def graph_names(windows: Iterable[StreamWindow]) -> tuple[Term, ...]:
    """The graph names of the named windows."""
    return tuple(f"<{window.name}>" for window in windows if window.name is not None)


def _over_bags(form: QueryForm) -> str | None:
    """The part of a query that is undefined or not supported if every copy of a triple matches; else ``None``."""
    for pattern in every_pattern(form.pattern):
        if isinstance(pattern, BGP):
            # Over a bag, a pattern that is written twice matches k copies of a triple in k * k ways, which Spark's
            # joins of distinct facts do not give.
            if len(set(pattern.patterns)) < len(pattern.patterns):
                return "a triple pattern that is written twice"
            if any(not isinstance(triple.predicate, str | Var) for triple in pattern.patterns):
                return "property paths"
        if isinstance(pattern, Graph):
            return "GRAPH, timestamp() or NOW()"
        if any(exists_patterns(pattern)):
            return "EXISTS"
    return None


class Header:
    """A stream without its triples: the heads of its elements in system-time order, which decide what is due."""

    def __init__(self, heads: Iterable[Head]) -> None:
        """``heads`` in any order."""
        self.elements = sorted(heads, key=lambda head: head.sequence)
        self._last: tuple[object, Arrived] | None = None

    @property
    def first(self) -> int | None:
        """The first element's time in system-time order, ms."""
        return self.elements[0].time if self.elements else None

    @property
    def last(self) -> int:
        """The latest time, ms; 0 without elements."""
        return max((element.time for element in self.elements), default=0)

    def instants(self, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int) -> Set[int]:
        """The instants (ms) at which reports may be due."""
        return {candidate.instant for candidate in all_candidates(self, query, semantics, advanced_to, t0)[0]}

    def arrived(self, query: ContinuousQuery, semantics: Semantics, t0: int) -> "Arrived":
        """The arrivals by rank, and the late sequence numbers; cached across t0, which matters to lateness only."""
        request = (query.windows, semantics, None if semantics.lateness is None else t0)
        if self._last is None or self._last[0] != request:
            admitted, late = admit(self.elements, semantics, query.windows, t0)
            arrivals_ = arrivals(admitted, query.windows, semantics.tick)
            self._last = request, (arrivals_, frozenset(head.sequence for head in late))
        return self._last[1]


Arrived = tuple[Arrivals, frozenset[int]]
"""Arrivals by rank, and the sequence numbers of the late elements."""


def cuts(due: Iterable[DueReport], times: Sequence[int]) -> bool:
    """Whether some view excludes arrivals within its times (ms) by their rank."""
    return any(view.after > 0 or view.seen != bisect_right(times, view.last) for report in due for view in report.views)


def in_order(rows: Iterable[tuple[int, Row]], count: int) -> list[tuple[Row, ...]]:
    """The rows, collected with their report's index, as one bag per report."""
    bags: list[list[Row]] = [[] for _ in range(count)]
    for report, row in rows:
        bags[report].append(row)
    return [tuple(bag) for bag in bags]


def reports(
    due: Sequence[DueReport],
    bags: Sequence[tuple[Row, ...]],
    sizes: Sequence[int],
    query: ContinuousQuery,
    semantics: Semantics,
) -> tuple[ExpectedReport, ...]:
    """The sent reports, from the answers over the contents of all due reports."""
    content = dict(zip(due, sizes, strict=True))
    r2s = operator(query, semantics)
    return expected_reports(streamed(zip(due, bags, strict=True), r2s, semantics), content, query, r2s)


def expected_reports(
    sent: Iterable[tuple[DueReport, tuple[Row, ...]]],
    content: Mapping[DueReport, int],
    query: ContinuousQuery,
    r2s: R2S,
) -> tuple[ExpectedReport, ...]:
    """Reports with the rows that they send and the sizes of their contents."""
    names = columns(Snapshot(query).variables, r2s)
    return tuple(ExpectedReport(report, names, rows, content[report]) for report, rows in sent)


def differences(
    changes: Iterable[ContentChange], query: ContinuousQuery, semantics: Semantics
) -> tuple[ExpectedReport, ...]:
    """The sent reports under Istream or Dstream: the added rows, the removed ones, or both."""
    r2s, sizes = operator(query, semantics), dict[DueReport, int]()
    bags = list[tuple[DueReport, tuple[Row, ...]]]()
    for change in changes:
        sizes[change.due], bag = change.content, _sent_rows(change.net, r2s)
        if (bag or semantics.notify_empty) and is_sent(change.due.instant, semantics):
            bags.append((change.due, bag))
    return expected_reports(bags, sizes, query, r2s)


def _sent_rows(net: Net, r2s: R2S) -> tuple[Row, ...]:
    added = tuple(row for row, count in net.items() for _ in range(count))
    # ``range`` of a negative number is empty: each row is in one of the two lists only.
    removed = tuple(row for row, count in net.items() for _ in range(-count))
    if r2s is R2S.CHANGES:
        return (*signed(added, CAME), *signed(removed, WENT))
    return added if r2s is R2S.ISTREAM else removed


def all_candidates(
    header: Header, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int
) -> tuple[tuple[DueReport, ...], Arrivals, frozenset[int]]:
    """The candidate reports, the arrivals by rank, and the sequence numbers of the late elements."""
    refuse(query, semantics)
    arrived, late = header.arrived(query, semantics, t0)
    return candidates(arrived, query.windows, semantics, t0, advanced_to), arrived, late
