"""LIMIT and OFFSET of a whole query: every legal answer, where SPARQL leaves open which rows are kept.

Rows that ORDER BY does not order (equal keys, blank nodes, a number and a string, no ORDER BY at all: 15.1) form a
tie. The cut takes any rows of a tie, a fixed number of them:

    ORDER BY ?v LIMIT 3     1 2 2 2 5       certain: 1; a pool of three rows with 2, of which two are kept
    OFFSET 1 LIMIT 1        2 2 5           a pool of two rows with 2, of which one is kept
    LIMIT 1                 5 "x" 6         a pool of three rows, of which 5 or "x" is kept (``chains``)

The query is asked without its LIMIT, with its keys as further columns, so every evaluator's answer is cut here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count, groupby

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport, TiePool
from streamgauge.model.semantics import R2S, Counting, Semantics
from streamgauge.model.terms import Row, Term
from streamgauge.oracle.expected.reports import ContentInspection, Expect, Look, expected_reports, together
from streamgauge.oracle.judging import choices, intervals
from streamgauge.oracle.judging.choices import Position
from streamgauge.oracle.judging.compare import computed_columns
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import children, variable_names
from streamgauge.semantics.definition import Asked, operator, streamed
from streamgauge.semantics.refusal import RefusedError
from streamgauge.spark.term_order import Place, places
from streamgauge.sparql.values import DOUBLE, FLOAT

OPEN = (
    "LIMIT or OFFSET cuts between rows that ORDER BY does not tell apart: several answers are legal, and {}; "
    "order by every column"
)


@dataclass(frozen=True, slots=True)
class UncutQuery:
    """A SELECT without its LIMIT: ``query`` has a column more for each key that is no column already.

    ``computed`` are the columns that an aggregate or an expression computes.
    """

    query: ContinuousQuery
    cut: a.Slice
    width: int
    keys: tuple[int, ...]
    descending: tuple[bool, ...]
    distinct: bool
    computed: frozenset[int] = frozenset()


def whole(query: ContinuousQuery) -> UncutQuery | None:
    """The query without the LIMIT and OFFSET of the whole; ``None`` when it has none, or is no SELECT."""
    form = query.form
    if not isinstance(form, a.Select) or not isinstance(form.pattern, a.Slice):
        return None
    inner, distinct = form.pattern.pattern, False
    while isinstance(inner, a.Distinct | a.Reduced):
        distinct, inner = distinct or isinstance(inner, a.Distinct), inner.pattern
    columns = inner.variables if isinstance(inner, a.Project) else tuple(map(a.Var, form.variables))
    inner = inner.pattern if isinstance(inner, a.Project) else inner
    keys = inner.keys if isinstance(inner, a.OrderBy) else ()
    inner = inner.pattern if isinstance(inner, a.OrderBy) else inner
    taken = variable_names(form)
    fresh = (a.Var(name) for number in count() if (name := f"key{number}") not in taken)
    named = [key if isinstance(key, a.Var) and not key.name.startswith(".") else next(fresh) for key, _ in keys]
    extended = reduce(
        lambda below, pair: below if pair[0] == pair[1][0] else a.Extend(below, pair[0], pair[1][0]),
        zip(named, keys, strict=True),
        inner,
    )
    variables = tuple(dict.fromkeys((*columns, *named)))
    bare = a.Select(a.Project(extended, variables), tuple(var.name for var in variables))
    asked = replace(query, form=bare, sparql=sparql(bare))
    at = tuple(variables.index(name) for name in named)
    return UncutQuery(
        asked, form.pattern, len(form.variables), at, tuple(down for _, down in keys), distinct, computed_columns(bare)
    )


class Cut:
    """Expected reports of any query, those of a SELECT with LIMIT with all legal answers (``ExpectedReport.pools``)."""

    def __init__(self, expect: Expect) -> None:
        self._expect = expect

    def __call__(
        self, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int
    ) -> tuple[ExpectedReport, ...]:
        """The reports that are due up to ``advanced_to`` (ms); RefusedError where legal answers cannot be described."""
        found = whole(query)
        self._refuse_ties(query, semantics, advanced_to, t0)
        if found is None:
            return self._expect(query, semantics, advanced_to, t0)
        every = replace(every_instant(query, semantics), answers=Counting.BAG)
        asked = replace(found.query, r2s=R2S.RSTREAM)
        reports = self._expect(asked, every, advanced_to, t0)
        cuts = {report.due: cut(report.rows, found) for report in reports}
        return _sent(reports, cuts, query, semantics)

    def _refuse_ties(self, query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int) -> None:
        """RefusedError where a LIMIT within the query cuts a tie: what is made of its rows cannot be described."""
        for inner in _within(query.form):
            names = tuple(var.name for var in a.pattern_variables(inner) if not var.name.startswith(("_:", ".")))
            found = whole(replace(query, form=a.Select(inner, names), r2s=R2S.RSTREAM))
            assert found is not None
            every = replace(every_instant(found.query, semantics), answers=Counting.BAG)
            reports = self._expect(found.query, every, advanced_to, t0)
            if any(cut(report.rows, found).pools for report in reports):
                raise RefusedError(OPEN.format("the rest of the query depends on which it is"))


def _within(form: a.QueryForm) -> list[a.Slice]:
    """The LIMITs of subqueries, and that of a CONSTRUCT; those in GRAPH and EXISTS depend on what is outside."""
    whole_query = form.pattern if isinstance(form, a.Select) else None
    found, waiting = [], [form.pattern]
    while waiting:
        pattern = waiting.pop()
        if isinstance(pattern, a.Slice) and pattern is not whole_query:
            found.append(pattern)
        waiting += [] if isinstance(pattern, a.Graph) else children(pattern)
    return found


class InspectedCut(Cut):
    """The same of reports whose contents can be looked at."""

    def __init__(self, expect: Expect, inspection: ContentInspection) -> None:
        super().__init__(expect)
        self._inspection = inspection

    def look(self, query: ContinuousQuery, semantics: Semantics, t0: int) -> Look:
        """The contents of the reports under one t0 (ms)."""
        return self._inspection.look(query, semantics, t0)

    def together(self, asked: Sequence[Asked], advanced_to: int, t0: int) -> list[tuple[ExpectedReport, ...]]:
        """The reports of several queries over the same windows (times in ms)."""
        if any(whole(query) is not None or _within(query.form) for query, _ in asked):
            return [self(query, semantics, advanced_to, t0) for query, semantics in asked]
        return together(self._expect, asked, advanced_to, t0)


def with_cuts(expect: Expect) -> Expect:
    """``expect`` for queries with LIMIT too."""
    if isinstance(expect, Cut):
        return expect
    return InspectedCut(expect, expect) if isinstance(expect, ContentInspection) else Cut(expect)


def every_instant(query: ContinuousQuery, semantics: Semantics) -> Semantics:
    """The semantics under which every evaluated instant sends all that holds."""
    if operator(query, semantics) is R2S.RSTREAM and semantics.notify_empty and semantics.since is None:
        return semantics
    able = semantics.r2s_able | {R2S.RSTREAM}
    return replace(semantics, r2s=R2S.RSTREAM, r2s_able=able, notify_empty=True, since=None)


@dataclass(frozen=True, slots=True)
class CutRows:
    """The rows that LIMIT and OFFSET keep: a legal answer, and the pools from which parts of it were taken."""

    rows: tuple[Row, ...]
    pools: tuple[TiePool, ...]


def cut(rows: Sequence[Row], found: UncutQuery) -> CutRows:
    """The rows that are kept, in the columns of the query; RefusedError where DISTINCT folds rows of several keys."""
    keys = [[row[at] for row in rows] for at in found.keys]
    near = [ties(terms) if at in found.computed else terms for at, terms in zip(found.keys, keys, strict=True)]
    stands = places(list(zip(*near, strict=True)) or [()] * len(rows), found.descending)
    plain = [row[: found.width] for row in rows]
    if found.distinct:
        plain, stands = _folded(plain, stands)
        near = [[row[at] for row in plain] for at in found.keys] if all(at < found.width for at in found.keys) else []
    begin = found.cut.offset
    end = len(plain) if found.cut.limit is None else min(begin + found.cut.limit, len(plain))
    kept: list[Row] = []
    pools: list[TiePool] = []
    for tie, at in _ties(stands):
        skipped = max(begin - at, 0)
        take = min(end, at + len(tie)) - max(begin, at)
        if take <= 0:
            continue
        pool = _pool(plain, tie, _positions(near, tie, found.descending), take, skipped)
        kept += pool.rows[:take]
        if take < len(tie) and len(set(pool.rows)) > 1:
            pools.append(pool)
    return CutRows(tuple(kept), tuple(pools))


def _pool(rows: Sequence[Row], tie: Sequence[int], order: Sequence[Position], take: int, skipped: int) -> TiePool:
    """The rows of a tie (indexes), first those that are kept when its chains follow one another."""
    if not order:
        return TiePool(tuple(rows[index] for index in tie), take)
    ranked = sorted(zip(order, tie, strict=True))
    ranked = ranked[skipped:] + ranked[:skipped]
    return TiePool(tuple(rows[index] for _, index in ranked), take, tuple(place for place, _ in ranked), skipped)


def _positions(
    keys: Sequence[Sequence[Term | None]], tie: Sequence[int], descending: Sequence[bool]
) -> Sequence[Position]:
    """The positions of a tie's rows by the first key that orders some of them; empty where none does."""
    if len(tie) < 2 or not keys:
        return ()
    pairs = zip(keys, descending, strict=True)
    ordered = (choices.positions([terms[index] for index in tie], down) for terms, down in pairs)
    return next(filter(None, ordered), ())


def ties(terms: Sequence[Term | None]) -> list[Term | None]:
    """Computed keys with one term for all xsd:float and xsd:double values that rounding may exchange.

    Neighbours in order are exchangeable when they differ by no more than the tolerance of their datatype.
    """
    known = {term: number for term in terms if term is not None and (number := intervals.read(term)) is not None}
    rounds = {
        term: number for term, number in known.items() if number.kind in (FLOAT, DOUBLE) and number.special is None
    }
    names: dict[Term | None, Term] = {}
    before: tuple[Term, intervals.Interval] | None = None
    for term, number in sorted(rounds.items(), key=lambda one: one[1].value):
        near = before is not None and number.value - before[1].value <= intervals.TOLERANCE[number.kind] * number.size
        names[term] = names[before[0]] if before is not None and near else term
        before = term, number
    return [names.get(term, term) for term in terms]


def _ties(stands: Sequence[Place]) -> Iterator[tuple[list[int], int]]:
    """Indexes of rows that the keys together do not order, with how many rows come before them."""
    order = sorted(range(len(stands)), key=stands.__getitem__)
    at = 0
    for _, tied in groupby(order, key=stands.__getitem__):
        tie = list(tied)
        yield tie, at
        at += len(tie)


def _folded(rows: Sequence[Row], stands: Sequence[Place]) -> tuple[list[Row], list[Place]]:
    """Each row once; RefusedError where its copies stand in several places."""
    found: dict[Row, Place] = {}
    for row, place in zip(rows, stands, strict=True):
        if found.setdefault(row, place) != place:
            raise RefusedError(OPEN.format("DISTINCT folds rows whose keys differ"))
    return list(found), list(found.values())


def _sent(
    reports: Sequence[ExpectedReport], cuts: dict[DueReport, CutRows], query: ContinuousQuery, semantics: Semantics
) -> tuple[ExpectedReport, ...]:
    r2s = operator(query, semantics)
    if any(kept.pools for kept in cuts.values()):
        if r2s is not R2S.RSTREAM:
            raise RefusedError(OPEN.format(f"what {r2s} sends depends on which was given before"))
        if semantics.answers is Counting.SET:
            raise RefusedError(OPEN.format("answers compared as sets do not tell how many were kept"))
    sizes = {report.due: report.content for report in reports}
    bags = ((due, kept.rows) for due, kept in cuts.items())
    found = expected_reports(streamed(bags, r2s, semantics), sizes, query, r2s)
    return tuple(replace(report, pools=cuts[report.due].pools) for report in found)
