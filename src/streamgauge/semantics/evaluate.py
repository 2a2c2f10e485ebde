"""SPARQL over what the windows hold, answered by pyoxigraph or by the algebra itself."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import reduce
from itertools import chain, count
from typing import Final, TypeAlias

import pyoxigraph as ox

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Counting, EmptyAggregate
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.printer import sparql
from streamgauge.query.stamps import stamp, stamped, stamps_graph, time_fact, uses_timestamp
from streamgauge.query.traversal import variable_names
from streamgauge.semantics.arrivals import Contents, latest
from streamgauge.semantics.pyoxigraph_gaps import shape_gap, volatile
from streamgauge.semantics.refusal import RefusedError
from streamgauge.semantics.stored_query import restated, without_blank_nodes
from streamgauge.semantics.stored_terms import ContentGaps, Forms, literals_of
from streamgauge.semantics.updates import element_graph
from streamgauge.semantics.updates import restated as restated_updates
from streamgauge.sparql.algebra import FALSE, TRUE, UndefinedError, answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from streamgauge.sparql.expression import UnsupportedFunctionError

TRIPLE_COLUMNS = ("subject", "predicate", "object")


_AS_STORED: Final[Forms] = {}
_PlacedTriple: TypeAlias = tuple[Triple, str | None]
"""A triple and the IRI of the graph that it is in, without brackets; none for the default graph."""
FEW: Final = 1_000
"""Triples of a content up to which those that contents share are read once."""
MOST_REMEMBERED: Final = 20_000
"""Triples that are remembered for the contents that follow."""
_StoredTerm: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


class Loaded:
    """A content as evaluators need it, made once for all queries over the same windows and static data.

    ``before`` is the content of the report before: where nothing of it has left, its store is taken over and filled up.
    """

    def __init__(self, contents: Contents, before: "Loaded | None" = None) -> None:
        self._contents = contents
        self._stores: dict[bool, ox.Store] = {}
        self._literals: Set[Term] | None = None
        self._come = None if before is None else _come(before._contents, contents)
        self._before = None if self._come is None else before
        if before is not None:
            before._before = None

    def literals(self, make: Callable[[Contents], Set[Term]]) -> Set[Term]:
        """The literals of the content and the static data."""
        if self._literals is None:
            known = None if self._before is None else self._before._literals
            self._literals = make(self._contents) if known is None else known | make(self._come or ())
        return self._literals

    def store(self, timed: bool, grows: bool, fill: Callable[[Contents, ox.Store | None], ox.Store]) -> ox.Store:
        """A store with the content, ``timed`` with the times of triples; it is only asked.

        ``fill`` adds a content to a store, or to an empty one; ``grows`` where more content only adds to a store.
        """
        if timed not in self._stores:
            known = self._before._stores.pop(timed, None) if grows and self._before is not None else None
            self._stores[timed] = fill(self._contents if known is None else self._come or (), known)
        return self._stores[timed]


def _come(before: Contents, now: Contents) -> Contents | None:
    """The arrivals that each window holds more than before; ``None`` where something has left."""
    pairs = list(zip(before, now, strict=True))
    if any(new[: len(old)] != old for old, new in pairs):
        return None
    return tuple(new[len(old) :] for old, new in pairs)


class Snapshot:
    """A query answered over contents: ``rows(contents)`` is the bag of solutions (triples, one boolean).

    pyoxigraph answers where it is proven to give SPARQL's answer, the algebra (``streamgauge.sparql``) everywhere else
    (``pyoxigraph_gaps``). Terms in rows keep the lexical form that they have in the content.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        counting: Counting = Counting.SET,
        empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL,
    ) -> None:
        self._counting, self._empty = counting, empty_aggregate
        self._static = query.static
        self._names = [each.name for each in query.windows]
        self._timed = uses_timestamp(query.form)
        self._exact = stamped(query.form)
        self._volatile = volatile(self._exact) is not None
        bag = counting is Counting.BAG
        updated = counting is Counting.UPDATES
        self.gap = None if self._volatile else shape_gap(self._exact, self._graph_names(), bag)
        if updated:
            self._exact, self.gap = restated_updates(self._exact), "elements that are matched by themselves"
        """The part of the query for which pyoxigraph is never asked, ``None`` when it is the content that decides."""
        self._contents = ContentGaps(self._exact)
        self._read: dict[_PlacedTriple, ox.Quad] = {}
        self._static_literals = literals_of(query.static)
        group = _global_group(self._exact) if empty_aggregate is not EmptyAggregate.SPARQL else None
        self._matches = a.Ask(group.pattern) if group else None
        if not updated:
            self._prepare()

    def _prepare(self) -> None:
        """Write the texts for pyoxigraph; RefusedError for paths over a content that is a bag."""
        form = restated(self._exact)
        bag = self._counting is Counting.BAG
        self._text = sparql(occurrences(form) if bag else form)
        group = _global_group(form) if self._matches else None
        self._matches_text = sparql(a.Ask(group.pattern)) if group else None

    def _graph_names(self) -> set[Term]:
        named = {f"<{name}>" for name in self._names if name is not None}
        return named | ({stamps_graph(name) for name in self._names} if self._timed else set())

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of the rows."""
        if isinstance(self._exact, a.Select):
            return self._exact.variables
        return TRIPLE_COLUMNS if isinstance(self._exact, a.Construct) else ("ask",)

    def rows(self, contents: Contents, loaded: Loaded | None = None) -> tuple[Row, ...]:
        """The answer over what the windows hold (and the static data); ``loaded`` is the same for other queries too.

        RefusedError says which part of the query SPARQL does not define.
        """
        if self.gap is None:
            loaded = loaded or Loaded(contents)
            forms = _AS_STORED if self._volatile else self._contents.forms(loaded.literals(self._literals))
            if forms is not None:
                grows = not self._timed and self._counting is Counting.SET
                return self._by_pyoxigraph(loaded.store(self._timed, grows, self._store), forms)
        return self._by_algebra(self._dataset(contents))

    def rows_of(self, store: ox.Store) -> tuple[Row, ...]:
        """The answer over a store that holds what the windows hold, as ``rows`` would put it there.

        A store has lost the lexical forms already, so its literals are looked at only where their values matter.
        """
        if self.gap is None:
            quads = store if self._contents.compares else ()
            literals = {text for quad in quads if (text := str(quad.object))[0] == '"'}
            forms = _AS_STORED if self._volatile else self._contents.forms(literals)
            if forms is not None:
                return self._by_pyoxigraph(store, forms)
        return self._by_algebra(_dataset_of(store))

    def _literals(self, contents: Contents) -> Set[Term]:
        found = {item for inside in contents for arrival in inside for _, _, item in arrival.triples if item[0] == '"'}
        return found | self._static_literals if self._static_literals else found

    def _by_pyoxigraph(self, store: ox.Store, forms: Forms) -> tuple[Row, ...]:
        if self._matches_text is not None and not bool(store.query(self._matches_text)):
            return self._over_nothing()
        found = store.query(self._text)
        if isinstance(found, ox.QueryBoolean):
            return ((TRUE if found else FALSE,),)
        texts = [forms.get if plain else _AS_STORED.get for plain in self._contents.plain_columns]
        if isinstance(found, ox.QueryTriples):
            parts = ((each.subject, each.predicate, each.object) for each in found)
            return tuple(dict.fromkeys(_written(part, texts) for part in parts))
        return tuple([_written(row, texts) for row in found])

    def _by_algebra(self, dataset: Dataset) -> tuple[Row, ...]:
        try:
            if self._matches is not None and answer(self._matches, dataset) == ((FALSE,),):
                return self._over_nothing()
            return answer(self._exact, dataset)
        except (UndefinedError, UnsupportedFunctionError) as error:
            raise RefusedError(str(error)) from error

    def _over_nothing(self) -> tuple[Row, ...]:
        match self._empty:
            case EmptyAggregate.NO_ROW:
                return ()
            case EmptyAggregate.EMPTY_STRING:
                return (('""',) * len(self.variables),)
            case _:
                return ((None,) * len(self.variables),)

    def _store(self, contents: Contents, known: ox.Store | None = None) -> ox.Store:
        """A store with what windows hold; ``known`` holds the static data and what they held before."""
        held = list(dict.fromkeys(self._quads(contents, known is None)))
        quads = self._remembered(held) if len(held) <= FEW else _parsed(held)
        if known is not None:
            known.extend(quads)
            return known
        store = ox.Store()
        for name in self._names:
            if name is not None:
                store.add_graph(ox.NamedNode(name))
        if len(held) <= FEW:
            store.extend(quads)
        else:
            store.bulk_extend(quads)
        return store

    def _remembered(self, held: Sequence[_PlacedTriple]) -> Iterator[ox.Quad]:
        """Quads, those of contents before as they were read then: contents that follow each other share most."""
        if len(self._read) > MOST_REMEMBERED:
            self._read.clear()
        fresh = [each for each in held if each not in self._read]
        self._read.update(zip(fresh, _parsed(fresh), strict=True))
        return map(self._read.__getitem__, held)

    def _quads(self, contents: Contents, first: bool) -> Iterator[_PlacedTriple]:
        """The windows' triples in their graphs, stamps where asked for, and ``first`` the static data."""
        if self._counting is Counting.BAG:
            held = [triple for inside in contents for arrival in inside for triple in arrival.triples]
            yield from ((triple, f"urn:occurrence:{n}") for n, triple in enumerate((*held, *self._static)))
            return
        if first:
            yield from ((triple, None) for triple in self._static)
        for name, inside in zip(self._names, contents, strict=True):
            yield from ((triple, name) for arrival in inside for triple in arrival.triples)
        if self._timed:
            yield from ((fact, graph[1:-1]) for graph, fact in self._stamps(contents))

    def _stamps(self, contents: Contents) -> Iterator[tuple[Term, Triple]]:
        """The facts that say when each triple of a graph arrived last, with their graph; static data has no time."""
        for name in dict.fromkeys(self._names):
            together = (inside for own, inside in zip(self._names, contents, strict=True) if own == name)
            for triple, time in latest(chain.from_iterable(together)).items():
                for fact in (*stamp(triple), time_fact(triple, time)):
                    yield stamps_graph(name), fact

    def _dataset(self, contents: Contents) -> Dataset:
        """The same graphs for the algebra; a content that is a bag has every occurrence in the default graph."""
        if self._counting is Counting.UPDATES:
            return Dataset(IndexedGraph(()), by_element(contents))
        bag = self._counting is Counting.BAG
        graphs: dict[Term | None, list[Triple]] = {None: list(self._static)}
        for name, inside in zip(self._names, contents, strict=True):
            graph = graphs.setdefault(None if name is None or bag else f"<{name}>", [])
            graph.extend(triple for arrival in inside for triple in arrival.triples)
        if self._timed:
            for own, fact in self._stamps(contents):
                graphs.setdefault(own, []).append(fact)
        default = IndexedGraph(graphs.pop(None), occurrences=bag)
        return Dataset(default, {name: IndexedGraph(held) for name, held in graphs.items() if name is not None})


def by_element(contents: Contents) -> dict[Term, IndexedGraph]:
    """A graph for each element of the content, the last one being the newest (``updates``)."""
    (inside,) = contents
    newest = len(inside) - 1
    return {element_graph(number, newest): IndexedGraph(each.triples) for number, each in enumerate(inside)}


def _written(terms: Iterable[_StoredTerm | None], texts: Sequence[Callable[[str, str], str]]) -> Row:
    """A row of pyoxigraph's answer with the literals of the content for their stored forms, where they are plain."""
    return tuple(
        [None if term is None else put(text := str(term), text) for term, put in zip(terms, texts, strict=False)]
    )


def _dataset_of(store: ox.Store) -> Dataset:
    graphs: dict[str, list[Triple]] = {str(ox.DefaultGraph()): []}
    for name in store.named_graphs():
        graphs[str(name)] = []
    for quad in store:
        graphs[str(quad.graph_name)].append((str(quad.subject), str(quad.predicate), str(quad.object)))
    default = IndexedGraph(graphs.pop(str(ox.DefaultGraph())))
    return Dataset(default, {name: IndexedGraph(held) for name, held in graphs.items()})


def _parsed(held: Iterable[_PlacedTriple]) -> Iterator[ox.Quad]:
    """Triples in their graphs as pyoxigraph has them."""
    return iter(ox.parse("\n".join(map(_quad, held)).encode(), format=ox.RdfFormat.N_QUADS))


def _quad(placed: _PlacedTriple) -> str:
    (subject, predicate, item), graph = placed
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
