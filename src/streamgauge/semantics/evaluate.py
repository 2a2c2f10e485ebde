"""SPARQL over contents: the algebra (``streamgauge.sparql``) over a dataset of the windows' triples."""

from collections.abc import Callable, Iterator
from copy import copy
from itertools import chain
from typing import Final, TypeAlias

from streamgauge.model import algebra as a
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Counting, EmptyAggregate, Semantics
from streamgauge.model.terms import Row, Term, Triple
from streamgauge.query.graphs import spread
from streamgauge.query.instants import NOW_GRAPH, global_group, now_fact, uses_now
from streamgauge.query.stamps import stamp, stamped, stamps_graph, time_fact, uses_timestamp
from streamgauge.query.traversal import every_pattern
from streamgauge.semantics.arrivals import Contents, latest
from streamgauge.semantics.refusal import RefusedError
from streamgauge.semantics.static_data import with_matched_static
from streamgauge.semantics.updates import element_graph
from streamgauge.semantics.updates import restated as restated_updates
from streamgauge.sparql.algebra import FALSE, UndefinedError, answer
from streamgauge.sparql.bgp import Dataset, IndexedGraph
from streamgauge.sparql.expression import UnsupportedFunctionError

TRIPLE_COLUMNS: Final = ("subject", "predicate", "object")

_Kind: TypeAlias = tuple[Counting, bool, int | None]
"""(counting, whether with stamps, instant if any): queries of one kind share a dataset."""


class Loaded:
    """The datasets of a content, built once for all queries over the same windows and static data.

    ``before`` is the content of the report before: if nothing was evicted, its datasets are extended and taken over.
    """

    def __init__(self, contents: Contents, before: "Loaded | None" = None) -> None:
        self._contents = contents
        self._datasets: dict[_Kind, Dataset] = {}
        # Compared once for all kinds of datasets.
        self._come = None if before is None else _come(before._contents, contents)
        self._before = None if self._come is None else before
        if before is not None:
            before._before = None  # or each content would keep all earlier ones alive

    def dataset(
        self, kind: _Kind, make: Callable[[Contents], Dataset], grow: Callable[[Dataset, Contents], None] | None
    ) -> Dataset:
        """The content as a dataset; ``grow`` adds arrivals to an earlier one, ``None`` if it has to be built anew."""
        if kind not in self._datasets:
            # Popped, as the dataset is extended in place: the earlier content must not be asked again.
            known = self._before._datasets.pop(kind, None) if grow is not None and self._before is not None else None
            if known is None or grow is None or self._come is None:
                known = make(self._contents)
            else:
                grow(known, self._come)
            self._datasets[kind] = known
        return self._datasets[kind]


def _come(before: Contents, now: Contents) -> Contents | None:
    """The arrivals that each window has more than before; ``None`` if an arrival was evicted."""
    pairs = list(zip(before, now, strict=True))
    # A content that only grows begins with the earlier one.
    if any(new[: len(old)] != old for old, new in pairs):
        return None
    return tuple(new[len(old) :] for old, new in pairs)


class Snapshot:
    """A query over contents: ``rows(contents)`` is the bag of solutions, of triples (CONSTRUCT), or one boolean (ASK).

    Terms in rows keep the lexical form that they have in the content.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        counting: Counting = Counting.SET,
        empty_aggregate: EmptyAggregate = EmptyAggregate.SPARQL,
    ) -> None:
        """Raises RefusedError for property paths over a content that is a bag."""
        self._counting, self._empty = counting, empty_aggregate
        self._static = query.static
        self._names = [window.name for window in query.windows]
        self._timed, self._now = uses_timestamp(query.form), uses_now(query.form)
        self.instant: int | None = None
        """The value of NOW() in ms, for a query that calls it (``at``)."""
        self._form = stamped(query.form)
        # ``GRAPH ?g`` must not range over the graph of NOW().
        if self._now:
            self._form = spread(self._form, [f"<{name}>" for name in self._names if name is not None])
        if counting is Counting.UPDATES:
            self._form = restated_updates(self._form)
        if counting is Counting.BAG and any(map(_has_path, every_pattern(self._form.pattern))):
            raise RefusedError("property paths over a window whose content is a bag are not defined: use content = set")
        group = global_group(self._form.pattern) if empty_aggregate is not EmptyAggregate.SPARQL else None
        # Whether anything matched cannot be read from the answer: a count of 0 and an engine's own value look alike.
        self._matches = a.Ask(group.pattern) if group else None

    def at(self, instant: int) -> "Snapshot":
        """The query at a report's instant (ms); unchanged unless it calls NOW()."""
        if not self._now:
            return self
        snapshot = copy(self)
        snapshot.instant = instant
        return snapshot

    @property
    def form(self) -> a.QueryForm:
        """The query form after rewriting timestamp(), NOW() and updates, as the algebra evaluates it."""
        return self._form

    @property
    def over_nothing(self) -> tuple[Row, ...] | None:
        """The answer where an aggregate without GROUP BY has no solutions; ``None`` if it is SPARQL's."""
        return None if self._matches is None else self._over_nothing()

    def dataset(self, contents: Contents) -> Dataset:
        """The dataset of the windows' triples and the static data."""
        self._check_instant()
        return self._dataset(contents)

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of the rows; CONSTRUCT has three, ASK one."""
        if isinstance(self._form, a.Select):
            return self._form.variables
        return TRIPLE_COLUMNS if isinstance(self._form, a.Construct) else ("ask",)

    def rows(self, contents: Contents, loaded: Loaded | None = None) -> tuple[Row, ...]:
        """The answer over the contents and the static data; ``loaded`` shares datasets with other queries.

        Raises RefusedError for a part of the query that SPARQL does not define.
        """
        grows = not self._timed and not self._now and self._counting is not Counting.UPDATES
        kind = self._counting, self._timed, self.instant
        return self.rows_over((loaded or Loaded(contents)).dataset(kind, self._dataset, self._grow if grows else None))

    def rows_over(self, dataset: Dataset) -> tuple[Row, ...]:
        """The answer over a dataset that was built from contents (``dataset``)."""
        self._check_instant()
        try:
            if self._matches is not None and answer(self._matches, dataset) == ((FALSE,),):
                return self._over_nothing()
            return answer(self._form, dataset)
        except (UndefinedError, UnsupportedFunctionError) as error:
            raise RefusedError(str(error)) from error

    def _check_instant(self) -> None:
        if self._now and self.instant is None:
            raise ValueError("NOW() is the instant of a report: say at which instant the query is answered")

    def _over_nothing(self) -> tuple[Row, ...]:
        match self._empty:
            case EmptyAggregate.NO_ROW:
                return ()
            case EmptyAggregate.EMPTY_STRING:
                return (('""',) * len(self.variables),)
            case _:
                return ((None,) * len(self.variables),)

    def _graph(self, name: str | None) -> Term | None:
        """The graph of a window, ``None`` for the default graph, which alone can have repeated triples (a bag)."""
        # Bags are refused with named windows (``meaningless``), so nothing is merged here by mistake.
        return None if name is None or self._counting is Counting.BAG else f"<{name}>"

    def _dataset(self, contents: Contents) -> Dataset:
        """The dataset: the windows' triples in their graphs, stamps if the query reads them, and NOW()."""
        if self._counting is Counting.UPDATES:
            return Dataset(IndexedGraph(()), by_element(contents))
        # Two windows may have the same graph: without names they share the default graph, with the static data.
        graphs: dict[Term | None, list[Triple]] = {None: list(self._static)}
        for name, inside in zip(self._names, contents, strict=True):
            graphs.setdefault(self._graph(name), []).extend(triple for arrival in inside for triple in arrival.triples)
        if self._timed:
            for graph, fact in self._stamps(contents):
                graphs.setdefault(graph, []).append(fact)
        if self.instant is not None:
            graphs[NOW_GRAPH] = [now_fact(self.instant)]
        default = IndexedGraph(graphs.pop(None), occurrences=self._counting is Counting.BAG)
        return Dataset(default, {name: IndexedGraph(triples) for name, triples in graphs.items() if name is not None})

    def _grow(self, dataset: Dataset, come: Contents) -> None:
        """Add each window's new arrivals to its graph."""
        for name, inside in zip(self._names, come, strict=True):
            graph = self._graph(name)
            target = dataset.default if graph is None else dataset.named[graph]
            target.extend(triple for arrival in inside for triple in arrival.triples)

    def _stamps(self, contents: Contents) -> Iterator[tuple[Term, Triple]]:
        """The facts on the latest arrival of each triple, with their graphs; static data have none."""
        for name in dict.fromkeys(self._names):
            together = (inside for own, inside in zip(self._names, contents, strict=True) if own == name)
            for triple, time in latest(chain.from_iterable(together)).items():
                for fact in (*stamp(triple), time_fact(triple, time)):
                    yield stamps_graph(name), fact


def snapshot_under(query: ContinuousQuery, semantics: Semantics) -> Snapshot:
    """The snapshot of a query under a semantics' counting, value of empty aggregates and view of static data."""
    return Snapshot(with_matched_static(query, semantics), semantics.content, semantics.empty_aggregate)


def by_element(contents: Contents) -> dict[Term, IndexedGraph]:
    """A graph for each element of the content; the last one is the newest (``updates``)."""
    (inside,) = contents
    newest = len(inside) - 1
    return {element_graph(number, newest): IndexedGraph(element.triples) for number, element in enumerate(inside)}


def _has_path(pattern: a.Pattern) -> bool:
    return isinstance(pattern, a.BGP) and any(
        not isinstance(triple.predicate, a.Var | str) for triple in pattern.patterns
    )
