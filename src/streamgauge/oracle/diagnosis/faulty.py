"""The reports of a faulty engine: the definition over a ``Case``, lazily, with contents and answers cached.

Hundreds of cases share most of their contents and answers, so each is computed once per run. Caches use the identity of
objects whose comparison would be slower than the work saved; these objects are kept alive, so that no other object can
get their identity.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Final, Generic, TypeAlias, TypeVar

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery, StreamWindow
from streamgauge.model.report import DueReport, View
from streamgauge.model.semantics import Changes, EmptyAggregate, Report, Semantics
from streamgauge.model.terms import Term, Triple
from streamgauge.oracle.diagnosis.contents import Arrived, Contents, HeldContent
from streamgauge.oracle.diagnosis.models import Case, ModelReport, Rows, Stream
from streamgauge.query.stamps import reads_time
from streamgauge.query.traversal import every_pattern
from streamgauge.semantics.arrivals import admit, by_triple
from streamgauge.semantics.definition import facts, operator, refuse, streamed
from streamgauge.semantics.due import candidates_in_order
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError, indefinite
from streamgauge.semantics.static_data import with_matched_static


def relevant(query: ContinuousQuery, triples: Iterable[Triple]) -> frozenset[Triple] | None:
    """The triples that a match may use, whatever the window; ``None`` for all, if the query has property paths.

    A triple is relevant if it matches a pattern, and its subject has matches, in the stream or the static data, of all
    patterns with the same subject in the same basic graph pattern.
    """
    bgps = [pattern for pattern in every_pattern(query.form.pattern) if isinstance(pattern, al.BGP)]
    patterns = [triple for bgp in bgps for triple in bgp.patterns]
    if any(not isinstance(pattern.predicate, al.Var | str) for pattern in patterns):
        return None
    # In the order of the stream and without repetitions: engines repeat triples often, and each is matched once.
    every = dict.fromkeys((*triples, *query.static))
    kept: set[Triple] = set()
    for bgp in bgps:
        kept |= _of_stars(bgp, every)
    return frozenset(kept)


def _of_stars(bgp: al.BGP, every: Iterable[Triple]) -> set[Triple]:
    stars: dict[al.Node, list[al.TriplePattern]] = defaultdict(list)
    for pattern in bgp.patterns:
        stars[pattern.subject].append(pattern)
    triples: set[Triple] = set()
    for star in stars.values():
        matching = [[triple for triple in every if _matches(pattern, triple)] for pattern in star]
        # A subject that lacks one pattern of its star cannot be a part of any match, whatever the window.
        subjects: set[Term] = set.intersection(*({triple[0] for triple in matched} for matched in matching))
        triples.update(triple for matched in matching for triple in matched if triple[0] in subjects)
    return triples


def _matches(pattern: al.TriplePattern, triple: Triple) -> bool:
    nodes = (pattern.subject, pattern.predicate, pattern.object)
    return all(isinstance(node, al.Var) or node == term for node, term in zip(nodes, triple, strict=True))


@lru_cache(maxsize=256)
def where(form: al.QueryForm) -> al.Pattern:
    """The WHERE pattern: below projection, modifiers, expressions of SELECT, HAVING and aggregation."""
    pattern = form.pattern
    while isinstance(pattern, al.Project | al.Extend | al.Distinct | al.Reduced | al.OrderBy | al.Slice) or _having(
        pattern
    ):
        pattern = pattern.pattern  # type: ignore[union-attr]
    return pattern.pattern if isinstance(pattern, al.Group) else pattern


def _having(pattern: al.Pattern) -> bool:
    if not isinstance(pattern, al.Filter):
        return False
    inner = pattern.pattern
    while isinstance(inner, al.Filter | al.Extend):
        inner = inner.pattern
    return isinstance(inner, al.Group)


def matches_query(query: ContinuousQuery) -> ContinuousQuery:
    """SELECT of all variables of the WHERE pattern, over the same windows."""
    pattern = where(query.form)
    variables = tuple(var for var in al.pattern_variables(pattern) if not var.name.startswith("_:"))
    form = al.Select(al.Project(pattern, variables), tuple(var.name for var in variables))
    return ContinuousQuery(form, query.windows, None, query.static)


@lru_cache(maxsize=256)
def aggregates(form: al.QueryForm) -> bool:
    """Whether the query has aggregates or GROUP BY."""
    return any(isinstance(pattern, al.Group) for pattern in every_pattern(form.pattern))


T = TypeVar("T")


class Remembered(Generic[T]):
    """A lazy list: the items of an iterator, computed on demand and then kept."""

    def __init__(self, source: Iterator[T]) -> None:
        self._source = source
        self._known: list[T] = []
        self._error: RefusedError | OutOfOrderError | None = None

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
        """The next item, or ``None`` at the end.

        An error is raised again for each reader, as a failed generator just ends.
        """
        if self._error is not None:
            raise self._error
        try:
            return next(self._source, None)
        except (RefusedError, OutOfOrderError) as error:
            self._error = error
            raise


DueReports: TypeAlias = Remembered[tuple[DueReport, Contents]]
"""The due reports of a case with their contents."""

MAX_STREAMS: Final = 8
"""Streams whose arrivals and due reports are kept: of 200,000 triples, each takes up to 20 MiB."""


@dataclass(eq=False)
class StreamCaches:
    """The results that cases of one stream share; ``held`` are objects by whose identity the rest is found."""

    held: list[object]
    arrived: dict[object, Arrived] = field(default_factory=dict)
    due: dict[object, DueReports] = field(default_factory=dict)
    declared: dict[object, Remembered[DueReport]] = field(default_factory=dict)


class Simulator:
    """Computes the reports of cases; one per run, because it caches contents and the answers over them.

    Triples that are irrelevant to ``query`` are irrelevant to every query that only leaves out parts of it, as faults
    do.
    """

    def __init__(self, query: ContinuousQuery, stream: Stream) -> None:
        self._mattering = relevant(query, (triple for element in stream.elements for triple in element.added))
        self._timed = reads_time(query.form)
        self._streams: dict[int, StreamCaches] = {}
        self._numbers: dict[object, int] = {}
        self._solvers: dict[object, tuple[int, Snapshot]] = {}
        self._solvers_of: dict[object, tuple[int, Snapshot]] = {}
        self._rows: dict[tuple[int, int | None, tuple[int, ...]], Rows] = {}
        # Once for equal forms: a query is tried under many semantics, and many faults leave its form as it is.
        self._indefinite = cache(indefinite)
        self._held: list[object] = []

    def reports(self, case: Case) -> tuple[ModelReport, ...]:
        """All reports of the case, in order."""
        reports = tuple(self._evaluated_reports(case))
        for rule in case.report_rules:
            reports = rule(reports)
        return reports

    def reports_lazily(self, case: Case) -> Iterator[ModelReport]:
        """The reports of the case, computed on demand: most cases are discarded at their first report."""
        # A rule for reports sees the whole sequence, so nothing can be gained from laziness.
        return iter(self.reports(case)) if case.report_rules else self._evaluated_reports(case)

    def _evaluated_reports(self, case: Case) -> Iterator[ModelReport]:
        r2s = operator(case.query, case.semantics)
        for due, rows in streamed(self.evaluated(case), r2s, case.semantics):
            yield ModelReport(due.instant, rows, due)

    def evaluated(self, case: Case) -> Iterator[tuple[DueReport, Rows]]:
        """The evaluated instants with the answers over the windows' contents, before R2S."""
        solve = self.solver(case)
        seen: list[Rows] = []
        gated = (case.gate, self._new_solver(case, matches_query(case.query))) if case.gate else None
        for due, contents in self.due(case):
            if gated:
                # A gate sees all matches so far, also those of reports that it kept back.
                gate, matches = gated
                seen.append(self._answer(matches, contents, due.instant))
                if not gate(seen):
                    continue
            yield due, self.answer(case, solve, contents, due.instant)

    def answer(self, case: Case, solver: tuple[int, Snapshot], contents: Contents, instant: int) -> Rows:
        """The answer over contents at an instant (ms), after the case's rules for rows."""
        rows = self._answer(solver, contents, instant)
        for rule in case.row_rules:
            rows = rule(rows)
        return rows

    def _answer(self, solver: tuple[int, Snapshot], contents: Contents, instant: int) -> Rows:
        number, snapshot = solver[0], solver[1].at(instant)
        key = (number, snapshot.instant, tuple(map(self.number, contents)))
        if key not in self._rows:
            self._rows[key] = snapshot.rows(tuple(content.mattering for content in contents))
        return self._rows[key]

    def number(self, held_content: HeldContent) -> int:
        """A number that is equal for contents with the same relevant triples (and times, if the query reads them)."""
        if held_content.number is None:
            arrivals = held_content.mattering
            # By the triples and not by the object: windows at other places often have the same relevant triples, above
            # all none.
            key: object = tuple(triple for arrival in arrivals for triple in arrival.triples)
            if self._timed:
                key = key, tuple(arrival.time for arrival in arrivals for _ in arrival.triples)
            held_content.number = self._numbers.setdefault(key, len(self._numbers))
        return held_content.number

    def _caches(self, stream: Stream) -> StreamCaches:
        """The caches of a stream; those of the stream that was used least recently are dropped for a new one."""
        caches = self._streams.pop(id(stream), None) or StreamCaches([stream])
        self._streams[id(stream)] = caches
        if len(self._streams) > MAX_STREAMS:
            del self._streams[next(iter(self._streams))]
        return caches

    def due(self, case: Case) -> DueReports:
        """The reports that are due, with their contents; cached by everything that decides them."""
        caches = self._caches(case.stream)
        key = (
            case.query.windows,
            case.keeps is not None,
            case.semantics,
            case.t0,
            case.advanced_to,
            tuple(map(id, case.scopings)),
            tuple(map(id, case.content_rules)),
        )
        if key not in caches.due:
            caches.held += [case.scopings, case.content_rules]
            caches.due[key] = Remembered(self._due_reports(case))
        return caches.due[key]

    def candidates(self, case: Case) -> tuple[DueReport, ...]:
        """The reports that may be due, whatever their content."""
        return tuple(self._scoped(case))

    def _scoped(self, case: Case) -> Iterator[DueReport]:
        """The candidates, with borders moved by the case's scopings."""
        for candidate in self._candidates(case):
            for scoping in case.scopings:
                candidate = scoping(case, candidate)
            yield candidate

    def _candidates(self, case: Case) -> Remembered[DueReport]:
        """The candidates before borders are moved; shared by all cases that only move borders."""
        caches = self._caches(case.stream)
        key = (case.query.windows, case.semantics, case.t0, case.advanced_to)
        if key not in caches.declared:
            heads = self._arrivals(case).heads
            windows, semantics = case.query.windows, case.semantics
            due = candidates_in_order(heads, windows, semantics, case.t0, case.advanced_to)
            caches.declared[key] = Remembered(due)
        return caches.declared[key]

    def _due_reports(self, case: Case) -> Iterator[tuple[DueReport, Contents]]:
        before: Contents | None = None
        windows = len(case.query.windows)
        for due in self._scoped(case):
            now = self.contents(case, due)
            if _reports(before, now[:windows], case.semantics):
                yield due, now
            before = now[:windows]

    def contents(self, case: Case, due_report: DueReport) -> Contents:
        """The windows' contents at a report; last that of the window that never evicts, if the case has one."""
        pairs = zip(case.query.windows, due_report.views, strict=True)
        contents = tuple(self._hold(case, window, view) for window, view in pairs)
        return (
            contents if case.keeps is None else (*contents, self._hold(case, case.keeps, _everything(case, due_report)))
        )

    def rows_at(self, case: Case) -> Callable[[DueReport], Rows | None]:
        """A function from a due report to its answer; ``None`` for an empty content under non-empty content."""
        solve, filled = self.solver(case), Report.NON_EMPTY in case.semantics.report

        def rows(due_report: DueReport) -> Rows | None:
            contents = self.contents(case, due_report)
            return None if filled and not contents[0].inside else self.answer(case, solve, contents, due_report.instant)

        return rows

    def seen(self, case: Case, last: int) -> int:
        """The number of arrivals up to a time (ms)."""
        return bisect_right(self._arrivals(case).heads.times, last)

    def _hold(self, case: Case, window: StreamWindow, view: View) -> HeldContent:
        arrived = self._arrivals(case)
        content = arrived.held(window.stream, view)
        for rule in case.content_rules if window is not case.keeps else ():
            content = arrived.ruled(content, rule)
        return content

    def _arrivals(self, case: Case) -> Arrived:
        windows = case.query.windows
        single = by_triple(windows, case.semantics.tick)
        bound = (case.semantics, case.t0, windows) if case.semantics.lateness is not None else None
        arrived = self._caches(case.stream).arrived
        if (single, bound) not in arrived:
            admitted, late = admit(facts(case.stream.elements), case.semantics, windows, case.t0)
            # Semantics decide which elements are late; mostly none is, and then all cases have the same arrivals.
            same = (single, tuple(element.sequence for element in late))
            if same not in arrived:
                arrived[same] = Arrived(admitted, windows, case.semantics, self._mattering)
            arrived[single, bound] = arrived[same]
        return arrived[single, bound]

    def solver(self, case: Case) -> tuple[int, Snapshot]:
        """The evaluator of the case's query over contents, with its number."""
        return self._solver(case, case.query)

    def _solver(self, case: Case, query: ContinuousQuery) -> tuple[int, Snapshot]:
        """The evaluator shared by equal queries; RefusedError for a query that is undefined under the case's semantics.

        Hashing a query is slow, so known objects are found by identity first.
        """
        key = (id(query), id(case.keeps), case.semantics)
        if key not in self._solvers_of:
            refuse(query, case.semantics, self._indefinite)
            self._held += [query, case.keeps]
            self._solvers_of[key] = self._new_solver(case, query)
        return self._solvers_of[key]

    def _new_solver(self, case: Case, query: ContinuousQuery) -> tuple[int, Snapshot]:
        counting, empty = case.semantics.content, case.semantics.empty_aggregate
        # Without an aggregate the field has no effect, and cases that differ in it only share a solver.
        if not aggregates(query.form):
            empty = EmptyAggregate.SPARQL
        if case.keeps is not None:
            query = replace(query, windows=(*query.windows, case.keeps))
        query = with_matched_static(query, case.semantics)
        key = (query.form, query.static, query.windows, counting, empty)
        if key not in self._solvers:
            self._solvers[key] = (len(self._solvers), Snapshot(query, counting, empty))
        return self._solvers[key]


def _everything(case: Case, due_report: DueReport) -> View:
    """The view from t0 on, up to what the report sees."""
    return View(case.t0, due_report.end, case.t0, due_report.last, due_report.seen)


def _reports(before: Contents | None, now: Contents, semantics: Semantics) -> bool:
    if Report.NON_EMPTY in semantics.report and not any(content.inside for content in now):
        return False
    if Report.CONTENT_CHANGE not in semantics.report:
        return True
    earlier: Sequence[HeldContent | None] = before or (None,) * len(now)
    pairs = list(zip(earlier, now, strict=True))
    if any(content.adds(old, semantics.content) for old, content in pairs):
        return True
    gone = any(old is not None and old.adds(content, semantics.content) for old, content in pairs)
    return semantics.changes is Changes.BOTH and gone
