"""Live queries: SPARQL kept current over facts with known ends (Taelman et al., ESWC 2016, 5).

The needs of a query are the facts of its triple patterns. A pattern may be restricted to the values of a variable at
another pattern (its supplier) without which no solution exists: in a group each pattern by the others, in OPTIONAL,
MINUS and EXISTS by the certain patterns around them. In GRAPH the name of the graph is a further place of a pattern.

A worked example: in ``{ ?s a :Train OPTIONAL { ?s :delay ?d } }`` the pattern 0 supplies ?s to pattern 1, so delays are
fetched only for known trains. Pattern 1 supplies nothing: a train without a delay is a solution too.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Final, Protocol, TypeAlias

from streamgauge.incremental import Bag, refuse
from streamgauge.incremental.operators import add_all, difference
from streamgauge.incremental.query_forms import apart, columns, shape, wanted
from streamgauge.incremental.rewrite import Normaliser, UnsupportedError, leaf, operands
from streamgauge.model import algebra as al
from streamgauge.model.answer import AnswerKind
from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import Row, Term
from streamgauge.query import QueryError, parse_sparql, recognised
from streamgauge.query.instants import uses_now
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.traversal import every_pattern, exists_patterns, needs_triple, nullable
from streamgauge.servers.fragments.annotations import triple_nodes
from streamgauge.servers.fragments.client import LinkedDataSource
from streamgauge.servers.fragments.client.caching_client import CachingHttpClient
from streamgauge.spark.term_order import places
from streamgauge.sparql.expression import row_expression


class RefusedQueryError(MistakeError, ValueError):
    """A query that cannot be kept current; the sentence says which part of it, and what to do."""


@dataclass(frozen=True, slots=True)
class AnswerOrder:
    """The ORDER BY, LIMIT, OFFSET and DISTINCT of a whole query.

    ``keys`` are over the columns of the unordered part.
    """

    keys: tuple[tuple[al.Expression, bool], ...]
    offset: int
    limit: int | None
    distinct: bool

    def sorted(self, rows: list[Row], names: tuple[str, ...]) -> list[Row]:
        """Rows over ``names`` in order; ties, which SPARQL leaves open, are broken by the rows' text."""
        cells = [map(row_expression(key, names), rows) for key, _ in self.keys]
        keys: list[Row] = list(zip(*cells, strict=True)) if cells else [()] * len(rows)
        stand = places(keys, [down for _, down in self.keys])
        # Ties by text and not by arrival: a poll must not change the order of rows that have not changed.
        return [rows[at] for at in sorted(range(len(rows)), key=lambda at: (stand[at], repr(rows[at])))]


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """A query form; ``kept`` is the part that is kept current, ``order`` is applied to its rows, if there is any.

    Without LIMIT the order matters only if whole answers are sent, not changes.
    """

    form: al.QueryForm
    kept: al.QueryForm
    order: AnswerOrder | None

    @property
    def kind(self) -> AnswerKind:
        """The kind of the answers."""
        match self.form:
            case al.Ask():
                return "boolean"
            case al.Construct():
                return "triples"
            case _:
                return "solutions"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the answers."""
        return columns(self.form)


def live_query(query: str | al.QueryForm) -> LiveQuery:
    """The parsed query; QueryError for invalid SPARQL, RefusedQueryError for a query that cannot be kept current."""
    form = _parsed(query) if isinstance(query, str) else query
    if uses_timestamp(form):
        raise RefusedQueryError("timestamp(): a function of streams, and these facts are not in one: leave it out")
    if uses_now(form):
        raise RefusedQueryError("NOW(): the answer would change with every ms; compare with a constant")
    result = _apart(form)
    if why := refuse(result.kept, _names(form.pattern)):
        raise RefusedQueryError(why)
    return result


def _parsed(query: str) -> al.QueryForm:
    try:
        return parse_sparql(query)
    except QueryError as error:
        if (dialect := recognised(query)) is None:
            raise
        message = f"this query ({dialect}) has windows over streams: `streamgauge query` answers it"
        raise RefusedQueryError(f"{message}; queries over Linked Data have none") from error


def _names(pattern: al.Pattern) -> tuple[Term, ...]:
    """Graph names to check a query with: those that it mentions, and one other for its graph variables."""
    graphs = [inner.name for inner in every_pattern(pattern) if isinstance(inner, al.Graph)]
    return (*dict.fromkeys(name for name in graphs if not isinstance(name, al.Var)), "<urn:streamgauge:any>")


def _apart(form: al.QueryForm) -> LiveQuery:
    try:
        kept, cut = apart(form)
    except UnsupportedError as error:
        raise RefusedQueryError(str(error)) from error
    return LiveQuery(form, kept, None if cut is None else AnswerOrder(cut.keys, cut.offset, cut.limit, cut.distinct))


class OrderedAnswer:
    """Derives the answer from the rows that are kept current: ordered, sliced, and projected to the query's form."""

    def __init__(self, live_query: LiveQuery, order: AnswerOrder) -> None:
        self._order, self._kept = order, wanted(live_query.kept)
        self._names = wanted(live_query.form)
        self._shape = shape(live_query.form, self._names)
        self._cut: Bag = {}
        self._shown: Bag = {}

    def answer(self, bag: Bag) -> Bag:
        """The answer for the current rows; equal solutions take the place of the first."""
        # Repeated as often as they occur, since LIMIT counts solutions and not distinct rows.
        rows = self._order.sorted([row for row, count in bag.items() for _ in range(count)], self._kept)
        shown = [row[: len(self._names)] for row in rows]
        if self._order.distinct:
            shown = list(dict.fromkeys(shown))
        cut: Bag = {}
        for row in shown[self._order.offset :][: self._order.limit]:
            cut[row] = cut.get(row, 0) + 1
        if self._shape is None:
            return cut
        add_all(self._shown, self._shape.change(difference(cut, self._cut)))
        self._cut = cut
        return dict(self._shown)


Suppliers: TypeAlias = Mapping[al.Var, frozenset[int]]
"""By variable, the numbers of patterns each of which has all values of the variable that can matter."""

EVERYTHING: Final = al.TriplePattern(al.Var("_:s"), al.Var("_:p"), al.Var("_:o"))
"""The pattern of all triples."""

_NONE: Final[Suppliers] = {}


@dataclass(frozen=True, slots=True)
class PatternNeed:
    """A triple pattern whose facts are needed, at least those that join with facts of its suppliers.

    With a ``graph`` (a name or a variable) quads of the data's own named graphs are needed instead.
    """

    pattern: al.TriplePattern
    suppliers: Suppliers = field(default_factory=dict)
    graph: al.Node | None = None

    @property
    def nodes(self) -> tuple[al.Node, ...]:
        """The nodes of the pattern, followed by the graph's node if there is one."""
        return triple_nodes(self.pattern) if self.graph is None else (*triple_nodes(self.pattern), self.graph)


@dataclass(frozen=True, slots=True)
class _WalkedPattern:
    """A visited pattern: what it supplies to its siblings, and a function that passes it what they supply.

    Two steps are needed because a pattern may be restricted by siblings that are visited after it.
    """

    certain: Suppliers
    restrict: Callable[[Suppliers], None]


def pattern_needs(pattern: al.Pattern, outer: Iterable[al.Var] = ()) -> tuple[PatternNeed, ...]:
    """The triple patterns of a pattern, including those of EXISTS, and the steps of repeated paths.

    ``outer`` are variables whose values are known from outside; their supplier is ``OUTER``.
    """
    walk = _NeedWalk()
    walked = walk.pattern(walk.normal.pattern(without_slices(pattern)))
    walked.restrict({variable: frozenset((OUTER,)) for variable in outer})
    return tuple(
        replace(
            pattern, suppliers={variable: ids for variable, ids in walk.suppliers.get(number, _NONE).items() if ids}
        )
        for number, pattern in enumerate(walk.patterns)
    )


OUTER: Final = -1
"""The number of the supplier of values that are known from outside."""


def without_slices(pattern: al.Pattern) -> al.Pattern:
    """The pattern without its outermost LIMIT and OFFSET."""
    return without_slices(pattern.pattern) if isinstance(pattern, al.Slice) else pattern


@dataclass(slots=True)
class _NeedWalk:
    """Numbers the triple patterns, and passes down what may restrict them; ``graph`` is the enclosing GRAPH."""

    patterns: list[PatternNeed] = field(default_factory=list)
    suppliers: dict[int, Suppliers] = field(default_factory=dict)
    normal: Normaliser = field(default_factory=Normaliser)
    graph: al.Node | None = None

    def pattern(self, pattern: al.Pattern) -> _WalkedPattern:
        match pattern:
            case al.BGP() | al.Join():
                return self._join(operands(pattern))
            case al.Graph(name=name, pattern=inner):
                return replace(self, graph=name)._named(inner)
            case al.LeftJoin(left=left, right=right):
                return self._within(self.pattern(left), [self.pattern(right), *self._exists(pattern)])
            case al.Minus(left=left, right=right):
                return self._within(self.pattern(left), [self.pattern(right)])
            case al.Union(left=left, right=right):
                both = self.pattern(left), self.pattern(right)
                # A solution comes from either side, so none of them has all values of a variable.
                return _WalkedPattern(_NONE, partial(_all, both))
            case al.Values():
                # VALUES has no facts to fetch; its constants restrict nothing here, though they could.
                return _WalkedPattern(_NONE, partial(_all, ()))
            case al.Extend(pattern=inner, variable=variable):
                return _without(self._within(self.pattern(inner), self._exists(pattern)), (variable,))
            case al.Project(pattern=inner, variables=variables):
                return _only(self._below(variables).pattern(inner), variables)
            case al.Group(pattern=inner, keys=keys):
                below = self._within(self.pattern(inner), self._exists(pattern))
                return _WalkedPattern(_NONE, _only(below, [var for var, key in keys if var == key]).restrict)
            case al.Slice(pattern=inner):
                # Restricting what is below a LIMIT would change which rows it keeps.
                return _alone(self.pattern(inner))
            case _:
                return self._within(self.pattern(pattern.pattern), self._exists(pattern))

    def _named(self, pattern: al.Pattern) -> _WalkedPattern:
        """The needs within GRAPH.

        All quads of the graph if the pattern may match an empty one, whose existence matters.
        """
        walked = self.pattern(pattern)
        if needs_triple(pattern):
            return walked
        return _WalkedPattern(walked.certain, partial(_all, (walked, _alone(self._triple(EVERYTHING)))))

    def _below(self, variables: Collection[al.Var]) -> "_NeedWalk":
        """The walk below a projection: a graph variable that is projected away is a different one there."""
        if not isinstance(self.graph, al.Var) or self.graph in variables:
            return self
        return replace(self, graph=self.normal.variable())

    def _exists(self, pattern: al.Pattern) -> list[_WalkedPattern]:
        """The patterns of EXISTS in the expressions of a pattern."""
        return [self.pattern(self.normal.pattern(inner)) for inner in exists_patterns(pattern)]

    def _within(self, first: _WalkedPattern, others: Sequence[_WalkedPattern]) -> _WalkedPattern:
        """Patterns that matter only where they join with the certain part of the first."""

        def restrict(known: Suppliers) -> None:
            first.restrict(known)
            for other in others:
                # Only variables that the first part binds in every solution restrict the others: one that is unbound
                # there is compatible with any value, so facts with other values could match as well.
                other.restrict({var: ids | known.get(var, frozenset()) for var, ids in first.certain.items()})

        return _WalkedPattern(first.certain, restrict)

    def _join(self, parts: Sequence[al.Pattern]) -> _WalkedPattern:
        """Patterns that all have to match: each is restricted by the others."""
        walked = [
            walked_pattern
            for at, part in enumerate(parts)
            for walked_pattern in self._operand(part, [*parts[:at], *parts[at + 1 :]])
        ]

        def restrict(known: Suppliers) -> None:
            for walked_pattern in walked:
                walked_pattern.restrict(
                    _merged((known, *(other.certain for other in walked if other is not walked_pattern)))
                )

        return _WalkedPattern(_merged(walked_pattern.certain for walked_pattern in walked), restrict)

    def _operand(self, part: al.Pattern, others: Sequence[al.Pattern]) -> list[_WalkedPattern]:
        leaf_ = leaf(part)
        if leaf_ is None or leaf_.graph is not None:
            return [self.pattern(part)]
        if leaf_.repeated is not None:
            return self._path(leaf_.bgp.patterns[0], leaf_.repeated, others)
        return [self._triple(pattern) for pattern in leaf_.bgp.patterns]

    def _triple(self, triple: al.TriplePattern) -> _WalkedPattern:
        number = len(self.patterns)
        wanted = PatternNeed(triple, graph=self.graph)
        self.patterns.append(wanted)
        own = frozenset((number,))
        variables = tuple(dict.fromkeys(node for node in wanted.nodes if isinstance(node, al.Var)))

        def restrict(known: Suppliers) -> None:
            # A pattern is not its own supplier: it would have to be read before it is read.
            self.suppliers[number] = {var: known[var] - own for var in variables if var in known}

        return _WalkedPattern(dict.fromkeys(variables, own), restrict)

    def _path(self, triple: al.TriplePattern, path: al.Repeat, others: Sequence[al.Pattern]) -> list[_WalkedPattern]:
        """A repeated path needs all its steps, and all nodes if a path of length zero may start anywhere."""
        ends = self.normal.variable(), self.normal.variable()
        # With fresh ends: a step in the middle of the path starts at nodes that neither end names.
        steps = [self.pattern(self.normal.path(ends[0], path.path, ends[1], None))]
        # ``?x :next* ?y`` without a known end also has (n, n) for every node n of the data, so all triples are needed.
        if nullable(path) and not _begins(triple, others):
            steps.append(self._triple(EVERYTHING))
        return list(map(_alone, steps))


def _begins(triple: al.TriplePattern, others: Sequence[al.Pattern]) -> bool:
    """Whether a path starts from known nodes: a constant, or a variable of another pattern."""
    if isinstance(triple.subject, str) or isinstance(triple.object, str):
        return True
    plain = [leaf_ for leaf_ in map(leaf, others) if leaf_ is not None and leaf_.repeated is None and not leaf_.graph]
    nodes = {node for leaf_ in plain for one in leaf_.bgp.patterns for node in (one.subject, one.object)}
    if triple.subject in nodes:
        return True
    elsewhere = {var for other in others for var in al.pattern_variables(other)}
    return triple.object in nodes and triple.subject not in elsewhere


def _all(walked: Sequence[_WalkedPattern], known: Suppliers) -> None:
    for walked_pattern in walked:
        walked_pattern.restrict(known)


def _alone(walked: _WalkedPattern) -> _WalkedPattern:
    """A pattern that needs all its facts, and supplies nothing."""
    return _WalkedPattern(_NONE, lambda _: walked.restrict(_NONE))


def _merged(supplies: Iterable[Suppliers]) -> Suppliers:
    merged: dict[al.Var, frozenset[int]] = {}
    for supply in supplies:
        for variable, ids in supply.items():
            merged[variable] = merged.get(variable, frozenset()) | ids
    return merged


def _only(walked: _WalkedPattern, variables: Iterable[al.Var]) -> _WalkedPattern:
    """A pattern below a projection: hidden variables are neither supplied nor restricted."""
    seen = frozenset(variables)

    def chosen(supply: Suppliers) -> Suppliers:
        return {variable: ids for variable, ids in supply.items() if variable in seen}

    return _WalkedPattern(chosen(walked.certain), lambda known: walked.restrict(chosen(known)))


def _without(walked: _WalkedPattern, variables: Iterable[al.Var]) -> _WalkedPattern:
    """A pattern that is not restricted by variables which are bound above it (BIND)."""
    hidden = frozenset(variables)
    return _WalkedPattern(
        walked.certain, lambda known: walked.restrict({var: ids for var, ids in known.items() if var not in hidden})
    )


@dataclass(frozen=True, slots=True)
class PollResult:
    """The answer's rows with multiplicities, ordered if the query is, at ``instant`` (server's time, ms).

    ``due`` is when a fact that the answer depends on next begins or ends, ``until`` when a response becomes stale; both
    in ms of our clock, ``None`` if unknown. ``lapsed``: all facts have ended, and the source has not renewed them.
    """

    bag: Bag
    instant: int
    due: int | None
    until: int | None
    lapsed: bool = False


class LivePlan(Protocol):
    """A plan that keeps a query's answer current by polling."""

    async def poll(self) -> PollResult:
        """The current answer; LinkedDataError, LabelError."""


def first_of(sources: Sequence[LinkedDataSource], times: Sequence[int | None], web: CachingHttpClient) -> int | None:
    """The earliest of the sources' times (ms, of each source's clock), by our clock (``CachingHttpClient.due``)."""
    firsts = [
        web.due(source.address, time, getattr(source, "pushes", False))
        for source, time in zip(sources, times, strict=True)
        if time is not None
    ]
    return min(firsts, default=None)


class Caching(StrEnum):
    """The policy of the cache between polls."""

    ON = "on"  # fragments, updated by changes, and static answers
    OFF = "off"  # nothing: the same plan requests everything again at each poll
    PROTOTYPE = "prototype"  # nothing, as QueryStreamer.js without its cache: all patterns are dynamic
