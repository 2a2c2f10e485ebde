"""The reports of a faulty engine: the definition over a ``Case``, lazily, remembering contents and answers."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

from streamgauge.model.query import ContinuousQuery, StreamWindow
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Changes, EmptyAggregate, Report, Semantics
from streamgauge.oracle.diagnosis.held import Arrived, HeldContent
from streamgauge.oracle.diagnosis.matches import aggregates, matches_query
from streamgauge.oracle.diagnosis.models import Case, Rows, Said, Stream
from streamgauge.oracle.diagnosis.relevant import relevant
from streamgauge.query.stamps import uses_timestamp
from streamgauge.semantics.definition import facts, operator
from streamgauge.semantics.due import candidates_in_order
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.order import admit, by_triple
from streamgauge.semantics.stream import streamed

Contents: TypeAlias = tuple[HeldContent, ...]


T = TypeVar("T")


class Remembered(Generic[T]):
    """The items of an iterator, computed as far as they are asked for, and then kept."""

    def __init__(self, found: Iterator[T]) -> None:
        self._found = found
        self._known: list[T] = []
        self._error: ValueError | None = None

    def __iter__(self) -> Iterator[T]:
        at = 0
        while True:
            if at == len(self._known):
                after = self._next()
                if after is None:
                    return
                self._known.append(after)
            yield self._known[at]
            at += 1

    def _next(self) -> T | None:
        """The next one; what was refused once is refused again."""
        if self._error is not None:
            raise self._error
        try:
            return next(self._found, None)
        except ValueError as error:
            self._error = error
            raise


DueReports: TypeAlias = Remembered[tuple[DueReport, Contents]]
"""The due reports of a case with their contents."""


class Simulator:
    """Says what cases would say; one per run, because it remembers contents and the answers over them.

    Triples that cannot matter to ``query`` do not matter to any query that only leaves out parts of it.
    """

    def __init__(self, query: ContinuousQuery, stream: Stream) -> None:
        self._mattering = relevant(query, (triple for element in stream.elements for triple in element.added))
        self._timed = uses_timestamp(query.form)
        self._arrived: dict[object, Arrived] = {}
        self._numbers: dict[object, int] = {}
        self._due: dict[object, DueReports] = {}
        self._declared: dict[object, Remembered[DueReport]] = {}
        self._solvers: dict[object, tuple[int, Snapshot]] = {}
        self._solvers_of: dict[object, tuple[int, Snapshot]] = {}
        self._rows: dict[tuple[int, tuple[int, ...]], Rows] = {}
        self._content_numbers: dict[int, int] = {}
        self._held: list[object] = []

    def told(self, case: Case) -> tuple[Said, ...]:
        """Every report of the case."""
        said = tuple(self._said(case))
        for telling in case.tellings:
            said = telling(said)
        return said

    def telling(self, case: Case) -> Iterator[Said]:
        """The reports of the case, computed only as far as they are asked for."""
        return iter(self.told(case)) if case.tellings else self._said(case)

    def _said(self, case: Case) -> Iterator[Said]:
        r2s = operator(case.query, case.semantics)
        for due, rows in streamed(self.evaluated(case), r2s, case.semantics):
            yield Said(due.instant, rows, due)

    def evaluated(self, case: Case) -> Iterator[tuple[DueReport, Rows]]:
        """The instants that are evaluated, with the answers over what the windows hold."""
        solve = self.solver(case)
        seen: list[Rows] = []
        matches = self._new_solver(case, matches_query(case.query)) if case.gate else None
        for due, contents in self.due(case):
            if case.gate is not None and matches is not None:
                seen.append(self._answer(matches, contents))
                if not case.gate(seen):
                    continue
            yield due, self.answer(case, solve, contents)

    def answer(self, case: Case, solver: tuple[int, Snapshot], contents: Contents) -> Rows:
        """The answer over contents, changed as the case changes its rows."""
        rows = self._answer(solver, contents)
        for rule in case.row_rules:
            rows = rule(rows)
        return rows

    def _answer(self, solver: tuple[int, Snapshot], contents: Contents) -> Rows:
        number, snapshot = solver
        key = (number, tuple(map(self.number, contents)))
        if key not in self._rows:
            self._rows[key] = snapshot.rows(tuple(held.mattering for held in contents))
        return self._rows[key]

    def number(self, held: HeldContent) -> int:
        """One number for all contents that are the same to the query."""
        known = self._content_numbers.get(id(held))
        if known is None:
            triples = tuple(triple for arrival in held.mattering for triple in arrival.triples)
            key = (triples, tuple(arrival.time for arrival in held.mattering)) if self._timed else triples
            known = self._content_numbers[id(held)] = self._numbers.setdefault(key, len(self._numbers))
            self._held.append(held)
        return known

    def due(self, case: Case) -> DueReports:
        """The reports that are due, with their contents; remembered per query window, semantics and t0."""
        key = (
            id(case.stream),
            case.query.windows,
            case.keeps is not None,
            case.semantics,
            case.t0,
            case.advanced_to,
            tuple(map(id, case.scopings)),
            tuple(map(id, case.content_rules)),
        )
        if key not in self._due:
            self._held += [case.stream, case.scopings, case.content_rules]
            self._due[key] = Remembered(self._reports(case))
        return self._due[key]

    def candidates(self, case: Case) -> tuple[DueReport, ...]:
        """The reports that may be due, whatever their content."""
        return tuple(self._scoped(case))

    def _scoped(self, case: Case) -> Iterator[DueReport]:
        """The candidates with the borders that the case gives them."""
        for due in self._candidates(case):
            for scoping in case.scopings:
                due = scoping(case, due)
            yield due

    def _candidates(self, case: Case) -> Remembered[DueReport]:
        """The reports that may be due before any border is moved; the same for all cases that only move borders."""
        key = (id(case.stream), case.query.windows, case.semantics, case.t0, case.advanced_to)
        if key not in self._declared:
            self._held.append(case.stream)
            heads = self._arrivals(case).heads
            windows, semantics = case.query.windows, case.semantics
            self._declared[key] = Remembered(candidates_in_order(heads, windows, semantics, case.t0, case.advanced_to))
        return self._declared[key]

    def _reports(self, case: Case) -> Iterator[tuple[DueReport, Contents]]:
        before: Contents | None = None
        windows = len(case.query.windows)
        for due in self._scoped(case):
            now = self.contents(case, due)
            if _reports(before, now[:windows], case.semantics):
                yield due, now
            before = now[:windows]

    def contents(self, case: Case, due: DueReport) -> Contents:
        """The windows' contents at a report, and after them the window that evicts nothing, if the case has one."""
        pairs = zip(case.query.windows, due.views, strict=True)
        held = tuple(self._hold(case, window, view) for window, view in pairs)
        return held if case.keeps is None else (*held, self._hold(case, case.keeps, _everything(case, due)))

    def rows_at(self, case: Case) -> Callable[[DueReport], Rows | None]:
        """The answer over what the windows of a due report hold; ``None`` where nothing is there and it had to be."""
        solve, filled = self.solver(case), Report.NON_EMPTY in case.semantics.report

        def rows(due: DueReport) -> Rows | None:
            contents = self.contents(case, due)
            return None if filled and not contents[0].inside else self.answer(case, solve, contents)

        return rows

    def seen(self, case: Case, last: int) -> int:
        """How many arrivals there are up to a time (ms)."""
        return bisect_right(self._arrivals(case).heads.times, last)

    def _hold(self, case: Case, window: StreamWindow, view: View) -> HeldContent:
        arrived = self._arrivals(case)
        held = arrived.held(window.stream, view)
        for rule in case.content_rules if window is not case.keeps else ():
            held = arrived.ruled(held, rule)
        return held

    def _arrivals(self, case: Case) -> Arrived:
        windows = case.query.windows
        single = by_triple(windows, case.semantics.tick)
        late = (case.semantics, case.t0, windows) if case.semantics.lateness is not None else None
        key = (id(case.stream), single, late)
        if key not in self._arrived:
            self._held.append(case.stream)
            admitted, _ = admit(facts(case.stream.elements), case.semantics, windows, case.t0)
            self._arrived[key] = Arrived(admitted, windows, case.semantics, self._mattering)
        return self._arrived[key]

    def solver(self, case: Case) -> tuple[int, Snapshot]:
        """The evaluator of the case's query over contents."""
        return self._solver(case, case.query)

    def _solver(self, case: Case, query: ContinuousQuery) -> tuple[int, Snapshot]:
        """One for equal queries; the hash of a query is long, so objects that were seen are known by their identity."""
        key = (id(query), id(case.keeps), case.semantics.content, case.semantics.empty_aggregate)
        if key not in self._solvers_of:
            self._held += [query, case.keeps]
            self._solvers_of[key] = self._new_solver(case, query)
        return self._solvers_of[key]

    def _new_solver(self, case: Case, query: ContinuousQuery) -> tuple[int, Snapshot]:
        counting, empty = case.semantics.content, case.semantics.empty_aggregate
        if not aggregates(query.form):
            empty = EmptyAggregate.SPARQL
        if case.keeps is not None:
            query = _with_window(query, case.keeps)
        key = (query.form, query.static, query.windows, counting, empty)
        if key not in self._solvers:
            self._solvers[key] = (len(self._solvers), Snapshot(query, counting, empty))
        return self._solvers[key]


def _with_window(query: ContinuousQuery, extra: StreamWindow) -> ContinuousQuery:
    return ContinuousQuery(query.form, (*query.windows, extra), query.r2s, query.static)


def _everything(case: Case, due: DueReport) -> View:
    """All that arrived from t0 on, as far as the report sees."""
    return View(case.t0, due.end, case.t0, due.last, due.seen)


def _reports(before: Contents | None, now: Contents, semantics: Semantics) -> bool:
    if Report.NON_EMPTY in semantics.report and not any(held.inside for held in now):
        return False
    if Report.CONTENT_CHANGE not in semantics.report:
        return True
    earlier: Sequence[HeldContent | None] = before or (None,) * len(now)
    pairs = list(zip(earlier, now, strict=True))
    if any(held.adds(old, semantics.content) for old, held in pairs):
        return True
    gone = any(old is not None and old.adds(held, semantics.content) for old, held in pairs)
    return semantics.changes is Changes.BOTH and gone
