"""The facts that triple patterns read, graph by graph: streamed triples with their intervals, and static data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.model.algebra import TriplePattern, Var, triple_variables
from streamgauge.model.query import StreamWindow
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Counting
from streamgauge.model.terms import XSD, Term, Triple
from streamgauge.query.stamps import stamps_graph
from streamgauge.spark.intervals import TRIPLE, Source, intervals, longest, merged, repeats, sources
from streamgauge.spark.numbers import SPARK_TYPES, exact_kind, guarded, parsed
from streamgauge.spark.profile import NOT_LITERAL, Profile, profiled
from streamgauge.spark.relation import Relation, column, cut, number
from streamgauge.spark.stamps import stamps

_BLOCKS = 8  # a block of reports is this many times as wide as the longest interval: few rows are cut, few pairs wasted


@dataclass(frozen=True)
class Facts:
    """One graph's facts: streamed ones in blocks of ``width`` reports; static ones are valid in all ``reports``.

    ``kinds`` has the datatypes (IRIs; NOT_LITERAL for other terms) of the objects of each constant predicate of the
    query; ``counts`` the streamed triples of each predicate: one that it lacks has static triples only. Where
    ``copies`` says so a triple may be there more than once: solutions then have to be made distinct. Kinds that are not
    ``sure`` are looked at again, object by object.
    """

    spark: SparkSession
    streamed: DataFrame
    static: tuple[Triple, ...]
    reports: int
    width: int
    kinds: Mapping[Term, frozenset[str]]
    counts: Mapping[Term, int]
    copies: bool = False
    sure: bool = True

    def rows(self, pattern: TriplePattern) -> int:
        """An estimate of the number of solutions of a triple pattern."""
        if isinstance(pattern.predicate, str) and pattern.predicate in self.counts:
            return self.counts[pattern.predicate]
        static = sum(_may_match(pattern, triple) for triple in self.static)
        return static + (0 if isinstance(pattern.predicate, str) else sum(self.counts.values()))

    def match(self, pattern: TriplePattern, numeric: frozenset[str]) -> Relation:
        """The solutions of a triple pattern; variables in ``numeric`` get their value if it is of one known kind."""
        if not isinstance(pattern.predicate, str) or pattern.predicate in self.counts:
            return self._solutions(self.streamed, pattern, numeric, self.width)
        static = [triple for triple in self.static if _may_match(pattern, triple)]
        return self._solutions(_always(self.spark, static, self.reports), pattern, numeric, self.reports)

    def _solutions(self, frame: DataFrame, pattern: TriplePattern, numeric: frozenset[str], width: int) -> Relation:
        nodes = dict(zip(TRIPLE, (pattern.subject, pattern.predicate, pattern.object), strict=True))
        names = {var.name: [p for p, node in nodes.items() if node == var] for var in triple_variables(pattern)}
        for position, node in nodes.items():
            if isinstance(node, str):
                frame = frame.filter(fn.col(position) == node)
        for positions in names.values():
            for other in positions[1:]:
                frame = frame.filter(fn.col(positions[0]) == fn.col(other))
        numbers = self._numbers(pattern, numeric)
        terms = [fn.col(positions[0]).alias(column(name)) for name, positions in names.items()]
        read = parsed if self.sure else guarded
        values = [read(fn.col("object"), kind).alias(number(name)) for name, kind in numbers.items()]
        return Relation(frame.select("lo", "hi", *terms, *values), tuple(names), frozenset(names), width, numbers)

    def _numbers(self, pattern: TriplePattern, numeric: frozenset[str]) -> dict[str, str]:
        node = pattern.object
        if not isinstance(node, Var) or node.name not in numeric or not isinstance(pattern.predicate, str):
            return {}
        kinds = self.kinds.get(pattern.predicate, frozenset())
        kind = next(iter(kinds), "").removeprefix(XSD)
        return {node.name: kind} if len(kinds) == 1 and kind in SPARK_TYPES else {}


Graphs = Mapping[Term | None, Facts]
"""The facts of the default graph (``None``) and of each named window's graph that the query reads."""


Patterns = Mapping[Term | None, Sequence[TriplePattern]]
"""The triple patterns that read each graph (``reads.py``)."""


@dataclass(frozen=True)
class Reader:
    """What all graphs of a query are read from: the stream table, the due reports, the windows, how copies count.

    ``known`` is the profile of the stream where somebody has counted already; ``plain`` says that every pattern is a
    triple pattern without a path, so that making solutions distinct does what making triples distinct would do.
    """

    spark: SparkSession
    stream: DataFrame
    due: Sequence[DueReport]
    windows: Sequence[StreamWindow] = ()
    counting: Counting = Counting.SET
    known: Profile | None = None
    plain: bool = False

    def graphs(self, wanted: Patterns, static: Iterable[Triple]) -> Graphs:
        """The facts of each graph for the triple patterns that read it; static data is in the default graph."""
        beside = tuple(static)
        return {graph: self._facts(graph, wanted, beside) for graph in wanted}

    def _facts(self, graph: Term | None, wanted: Patterns, static: tuple[Triple, ...]) -> Facts:
        """One graph's facts; unless they are known a small job finds the datatypes and whether triples repeat."""
        patterns, given = wanted[graph], self._feeding(graph)
        kept = tuple(dict.fromkeys(t for t in static if not graph and any(_may_match(p, t) for p in patterns)))
        known = self.known
        if given or graph is None:
            frame = self._arrivals(patterns, given).select(*TRIPLE, "lo", "hi")
        else:
            (frame, given), known = self._stamps(graph, wanted), None
        found = known or profiled(frame)
        kinds, counts = dict(found.kinds), found.counts
        for predicate in {p.predicate for p in patterns if isinstance(p.predicate, str)} | kinds.keys():
            kinds[predicate] = kinds.get(predicate, frozenset()) | _static_kinds(predicate, kept)
        any_predicate = any(not isinstance(p.predicate, str) for p in patterns)
        mixed = [triple for triple in kept if any_predicate or triple[1] in counts]
        if mixed:
            frame = frame.unionByName(_always(self.spark, mixed, len(self.due)))
        frame, copies = self._once(frame, True if mixed else found.repeated)
        width = 1 << (_BLOCKS * longest(self.due, given)).bit_length()  # a power of two: the blocks of graphs nest
        frame, width = (frame, len(self.due)) if 2 * width > len(self.due) else (cut(frame, width), width)
        return Facts(self.spark, frame, kept, len(self.due), width, kinds, counts, copies, found.sure)

    def _once(self, frame: DataFrame, repeated: bool | None) -> tuple[DataFrame, bool]:
        """Each triple once where contents are sets, and whether that is left to be done to the solutions."""
        if self.counting is not Counting.SET or repeated is False:
            return frame, False
        if repeated is None and self.plain:
            return frame, True
        return (merged(frame) if repeated or repeats(frame) else frame), False

    def _feeding(self, graph: Term | None) -> list[Source]:
        return [source for source in sources(self.windows) if source.graph == graph]

    def _stamps(self, graph: Term, wanted: Patterns) -> tuple[DataFrame, list[Source]]:
        """A graph of stamps, and the windows that feed the graph whose triples they are of."""
        for of in dict.fromkeys(source.graph for source in sources(self.windows)):
            if graph == stamps_graph(of and of[1:-1]):
                given = self._feeding(of)
                return stamps(self._arrivals(wanted.get(of, ()), given)), given
        return self._arrivals((), ()).select(*TRIPLE, "lo", "hi"), []

    def _arrivals(self, patterns: Sequence[TriplePattern], given: Sequence[Source]) -> DataFrame:
        """The arrivals that some pattern may match, with their intervals."""
        some = reduce(Column.__or__, map(_constants, patterns), fn.lit(False))
        if not given:
            none = self.stream.filter(fn.lit(False))
            return none.select("*", *(fn.lit(0).alias(name) for name in ("window", "lo", "hi")))
        return intervals(self.stream.filter(some), self.due, given)


def _always(spark: SparkSession, triples: Sequence[Triple], reports: int) -> DataFrame:
    columns = zip(*triples, strict=True) if triples else ((), (), ())
    table = pa.table({name: pa.array(values, pa.string()) for name, values in zip(TRIPLE, columns, strict=True)})
    interval = (fn.lit(0).alias("lo"), fn.lit(reports - 1).alias("hi"))
    return spark.createDataFrame(table).select(*TRIPLE, *interval)


def _constants(pattern: TriplePattern) -> Column:
    nodes = zip(TRIPLE, (pattern.subject, pattern.predicate, pattern.object), strict=True)
    return reduce(Column.__and__, (fn.col(name) == node for name, node in nodes if isinstance(node, str)), fn.lit(True))


def _may_match(pattern: TriplePattern, triple: Triple) -> bool:
    nodes = (pattern.subject, pattern.predicate, pattern.object)
    return all(not isinstance(node, str) or node == term for node, term in zip(nodes, triple, strict=True))


def _static_kinds(predicate: Term, static: Iterable[Triple]) -> frozenset[str]:
    return frozenset(exact_kind(o) or NOT_LITERAL for _, p, o in static if p == predicate)
