"""SPARQL over what the windows hold, answered by pyoxigraph."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import chain, count

import pyoxigraph as ox

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Counting, EmptyAggregate
from streamgauge.model.terms import Row, Triple
from streamgauge.query.printer import sparql
from streamgauge.query.rebuild import variable_names
from streamgauge.query.stamps import stamp, stamped, stamps_graph, time_fact, uses_timestamp
from streamgauge.semantics.content import Contents, latest
from streamgauge.semantics.differing import Doubts
from streamgauge.semantics.refusal import RefusedError
from streamgauge.semantics.restated import restated, without_blank_nodes
from streamgauge.wire.canonical import Canonical

TRUE = '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
FALSE = '"false"^^<http://www.w3.org/2001/XMLSchema#boolean>'
TRIPLE_COLUMNS = ("subject", "predicate", "object")


class Snapshot:
    """A query answered over contents: ``rows(contents)`` is the bag of solutions (triples, one boolean)."""

    def __init__(
        self,
        query: ContinuousQuery,
        counting: Counting = Counting.SET,
        empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL,
    ) -> None:
        self._counting = counting
        self._static = query.static
        self._names = [each.name for each in query.windows]
        self._form = query.form
        self._timed = uses_timestamp(query.form)
        form = restated(stamped(query.form))
        self._text = sparql(form if counting is Counting.SET else occurrences(form))
        self._doubts = Doubts(form)
        self._empty = empty_aggregate
        group = _global_group(form) if empty_aggregate is not EmptyAggregate.SPARQL else None
        self._matches = sparql(a.Ask(group.pattern)) if group else None
        self._canonical = Canonical()

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of the rows."""
        if isinstance(self._form, a.Select):
            return self._form.variables
        return TRIPLE_COLUMNS if isinstance(self._form, a.Construct) else ("ask",)

    def rows(self, contents: Contents) -> tuple[Row, ...]:
        """The answer over what the windows hold (and the static data), as canonical rows in pyoxigraph's order."""
        return self.rows_of(self._store(contents))

    def rows_of(self, store: ox.Store) -> tuple[Row, ...]:
        """The answer over a store that holds what the windows hold, as ``rows`` would put it there."""
        self._doubts.refuse(store)
        if self._matches is not None and not bool(store.query(self._matches)):
            return self._over_nothing()
        found = store.query(self._text)
        if isinstance(found, ox.QueryBoolean):
            return ((TRUE if found else FALSE,),)
        if isinstance(found, ox.QueryTriples):
            return tuple(dict.fromkeys(self._canonical.triple(triple) for triple in found))
        width = range(len(self.variables))
        term = self._canonical.term
        return tuple(tuple(None if row[i] is None else term(row[i]) for i in width) for row in found)

    def _over_nothing(self) -> tuple[Row, ...]:
        match self._empty:
            case EmptyAggregate.NO_ROW:
                return ()
            case EmptyAggregate.EMPTY_STRING:
                return (('""',) * len(self.variables),)
            case _:
                return ((None,) * len(self.variables),)

    def _store(self, contents: Contents) -> ox.Store:
        store = ox.Store()
        for name in self._names:
            if name is not None:
                store.add_graph(ox.NamedNode(name))
        store.bulk_extend(ox.parse("\n".join(self._quads(contents)).encode(), format=ox.RdfFormat.N_QUADS))
        return store

    def _quads(self, contents: Contents) -> Iterator[str]:
        """The windows' triples in their graphs, static data in the default graph, stamps where they are asked for."""
        if self._counting is Counting.BAG:
            held = [triple for inside in contents for arrival in inside for triple in arrival.triples]
            yield from (_quad(triple, f"urn:occurrence:{n}") for n, triple in enumerate((*held, *self._static)))
            return
        yield from (_quad(triple, None) for triple in self._static)
        for name, inside in zip(self._names, contents, strict=True):
            yield from (_quad(triple, name) for arrival in inside for triple in arrival.triples)
        if self._timed:
            yield from self._stamps(contents)

    def _stamps(self, contents: Contents) -> Iterator[str]:
        """When each triple of a graph arrived last; static data has no time."""
        for name in dict.fromkeys(self._names):
            together = (inside for own, inside in zip(self._names, contents, strict=True) if own == name)
            for triple, time in latest(chain.from_iterable(together)).items():
                for fact in (*stamp(triple), time_fact(triple, time)):
                    yield _quad(fact, stamps_graph(name)[1:-1])


def _quad(triple: Triple, graph: str | None) -> str:
    subject, predicate, item = triple
    return f"{subject} {predicate} {item} ." if graph is None else f"{subject} {predicate} {item} <{graph}> ."


def _global_group(form: a.QueryForm) -> a.Group | None:
    """The aggregation without keys that gives the Select its one row, if it is one."""
    pattern = form.pattern
    while isinstance(pattern, a.Project | a.Extend | a.Filter | a.Distinct | a.Reduced | a.OrderBy | a.Slice):
        pattern = pattern.pattern
    return pattern if isinstance(pattern, a.Group) and not pattern.keys else None


def occurrences(form: a.QueryForm) -> a.QueryForm:
    """The query over a content that is a bag: each triple pattern matches every occurrence, in a graph of its own."""
    taken = variable_names(form)
    fresh = (a.Var(name) for number in count() if (name := f"occurrence{number}") not in taken)

    def spread(bgp: a.BGP) -> a.Pattern:
        if any(not isinstance(triple.predicate, a.Var | str) for triple in bgp.patterns):
            raise RefusedError("property paths over a window whose content is a bag are not defined: use content = set")
        patterns = without_blank_nodes(bgp.patterns, fresh)
        parts: list[a.Pattern] = [a.Graph(next(fresh), a.BGP((triple,))) for triple in patterns]
        return reduce(a.Join, parts) if parts else bgp

    return replace(form, pattern=_map_bgps(form.pattern, spread))


def _map_bgps(pattern: a.Pattern, change: Callable[[a.BGP], a.Pattern]) -> a.Pattern:
    match pattern:
        case a.BGP():
            return change(pattern)
        case a.Join() | a.LeftJoin() | a.Union() | a.Minus():
            return replace(pattern, left=_map_bgps(pattern.left, change), right=_map_bgps(pattern.right, change))
        case a.Values():
            return pattern
        case _:
            return replace(pattern, pattern=_map_bgps(pattern.pattern, change))
