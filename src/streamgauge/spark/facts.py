"""The facts that triple patterns read, graph by graph: streamed triples with their intervals, stamps, and static data.

Stamps are facts about the last arrival of each triple of a content, over intervals of reports. Their vocabulary is
that of ``query/stamps.py``; a stamp's name is any term that identifies the triple.

Before a query is compiled, a small job computes a profile of the streamed triples: the number per predicate, and the
datatypes. For micro-batches, the driver reads their files itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.model.algebra import QueryForm, TriplePattern, Var, triple_variables
from streamgauge.model.query import StreamWindow
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Counting
from streamgauge.model.terms import XSD, Term, Triple
from streamgauge.query.graphs import spread
from streamgauge.query.instants import NOW_GRAPH, now_fact
from streamgauge.query.stamps import reads_time, stamp, stamped, stamps_graph, time_fact
from streamgauge.query.traversal import children, every_part, every_pattern, exists_patterns
from streamgauge.spark.intervals import (
    TRIPLE,
    IntervalSource,
    intervals,
    latest,
    longest,
    merged,
    repeats,
    sources,
    swept,
)
from streamgauge.spark.relation import Relation, column, cut, number
from streamgauge.spark.scalars import (
    BEYOND,
    SPARK_TYPES,
    computable,
    computable_terms,
    exact_kind,
    guarded,
    parsed,
    suffix,
)

ANY = al.TriplePattern(al.Var("s"), al.Var("p"), al.Var("o"))


def reads(pattern: al.Pattern) -> Mapping[Term | None, tuple[al.TriplePattern, ...]]:
    """The plain triple patterns of each graph, by name (``None``: the default graph, always present).

    A property path needs its steps, and all triples if it may have length zero or is a negated set.
    """
    patterns_by_graph: dict[Term | None, dict[al.TriplePattern, None]] = {None: {}}
    _collect(pattern, None, patterns_by_graph)
    return {graph: tuple(patterns) for graph, patterns in patterns_by_graph.items()}


def numeric_variables(pattern: al.Pattern) -> frozenset[str]:
    """The variables that some expression or aggregate reads: their values are worth having as numbers."""
    parts = chain.from_iterable(map(every_part, every_pattern(pattern)))
    return frozenset(part.name for part in parts if isinstance(part, al.Var))


def _collect(
    pattern: al.Pattern, graph: Term | None, patterns_by_graph: dict[Term | None, dict[al.TriplePattern, None]]
) -> None:
    match pattern:
        case al.Graph(name=str() as name, pattern=inner):
            patterns_by_graph.setdefault(name, {})
            _collect(inner, name, patterns_by_graph)
            return
        case al.BGP(patterns=patterns):
            for triple in patterns:
                patterns_by_graph[graph].update(dict.fromkeys(_steps(triple)))
    for child in children(pattern):
        _collect(child, graph, patterns_by_graph)
    for inner in exists_patterns(pattern):
        _collect(inner, None, patterns_by_graph)


def _steps(triple: al.TriplePattern) -> Iterator[al.TriplePattern]:
    """The plain triple patterns that a triple pattern, its path included, is matched with."""
    if isinstance(triple.predicate, al.Var | str):
        yield triple
    else:
        yield from _path_steps(triple.predicate, isinstance(triple.subject, str), isinstance(triple.object, str))


def _path_steps(path: al.Path, first: bool, last: bool) -> Iterator[al.TriplePattern]:
    """The steps of a path; ``first`` and ``last`` say whether that end is a constant."""
    match path:
        case str():
            yield al.TriplePattern(ANY.subject, path, ANY.object)
        case al.Inverse(path=inner):
            yield from _path_steps(inner, last, first)
        case al.Sequence(steps=steps):
            for index, step in enumerate(steps):
                yield from _path_steps(step, first and index == 0, last and index == len(steps) - 1)
        case al.Alternative(choices=choices):
            for choice in choices:
                yield from _path_steps(choice, first, last)
        case al.Repeat(path=inner, modifier=modifier):
            # Within a repetition no end is a constant: its middle nodes are any nodes.
            yield from _path_steps(inner, False, False)
            # Of length zero, it connects every node of the graph with itself, so all triples are needed to know the
            # nodes.
            if modifier != "+" and not (first or last):
                yield ANY
        case al.NegatedSet():
            yield ANY


NOT_LITERAL = "other"
"""The value of the datatype column for terms that are not literals."""

OFTEN = 1.5
"""Average number of occurrences of a triple from which on triples are made distinct before the joins."""

MOST_COMPARED = 200_000
"""Triples that are compared at most to say whether they repeat often."""

_ANY = "any"


@dataclass(frozen=True)
class Profile:
    """``kinds`` has the datatypes (IRIs, some after BEYOND; NOT_LITERAL) of each predicate's objects.

    ``counts`` has the number of triples per predicate. ``repeated``: whether a triple may occur twice, ``None`` if
    unknown. Unless ``sure``, the kinds are those of other triples of the stream: a job that meets another kind fails
    with OTHER_KIND.
    """

    kinds: Mapping[Term, frozenset[str]] = field(default_factory=dict)
    counts: Mapping[Term, int] = field(default_factory=dict)
    repeated: bool | None = None
    sure: bool = True


def profiled(frame: DataFrame) -> Profile:
    """The profile of all triples of a frame, in one small job."""
    literal = fn.col("object").startswith('"')
    # After the last quotation mark is the datatype or the language tag, neither of which can contain one.
    end = fn.when(literal, fn.substring_index("object", '"', -1)).otherwise(NOT_LITERAL)
    for kind in SPARK_TYPES:
        beyond = fn.col("object").endswith(suffix(kind)) & ~computable(fn.col("object"), kind)
        end = fn.when(beyond, f"{BEYOND}{XSD}{kind}").otherwise(end)
    kinds: dict[Term, frozenset[str]] = {}
    counts: dict[Term, int] = {}
    repeated = False
    # A collision of hashes only means that triples are merged in vain.
    numbers = (fn.count("*"), fn.count_distinct(fn.xxhash64(*TRIPLE)))  # equal hashes count as equal
    for predicate, kind, count, distinct in frame.groupBy("predicate", end.alias("end")).agg(*numbers).collect():
        iri = kind.removeprefix("^^<").removesuffix(">") or XSD + "string"
        kinds[predicate] = kinds.get(predicate, frozenset()) | {iri}
        counts[predicate] = counts.get(predicate, 0) + count
        repeated = repeated or count != distinct
    return Profile(kinds, counts, repeated)


class Looked(NamedTuple):
    """The kind of each predicate's objects in a stream (``None`` for several), and whether many triples repeat."""

    kinds: Mapping[Term, str | None]
    often: bool


@dataclass(frozen=True)
class PredicateCounts:
    """The counts that the compilation of a query needs.

    ``predicates`` are the query's, ``numeric`` those with whose objects it computes.
    """

    predicates: tuple[Term, ...]
    numeric: tuple[Term, ...]

    def look(self, parts: Iterable[pa.Table]) -> Looked:
        """Inspect triples (columns subject, predicate, object) part by part, without a Spark job.

        Repetitions are counted among the first MOST_COMPARED.
        """
        kinds: dict[Term, str | None] = {}
        compared: list[Hashes] = []
        capacity = MOST_COMPARED
        for part in parts:
            named = part.filter(pc.is_in(part["predicate"], pa.array(self.predicates, pa.string())))
            for name in self.numeric:
                if len(objects := named.filter(pc.equal(named["predicate"], name))["object"]):
                    kind = _only(objects)
                    kinds[name] = kind if kinds.get(name, kind) == kind else None
            if capacity:
                compared.append(_hashes(named.slice(0, capacity)))
                capacity -= len(compared[-1])
        return Looked(kinds, _often(compared))

    def profile(self, counts: Sequence[int], looked: Looked) -> Profile:
        """The profile of triples that were counted by predicate, with the kinds of the sampled ones."""
        present = {name: count for name, count in zip(self.predicates, counts, strict=True) if count}
        kinds = {name: _kinds(looked.kinds.get(name)) for name in present}
        return Profile(kinds, present, looked.often or None, sure=False)


def _only(objects: pa.ChunkedArray) -> str | None:
    """The kind that all of these terms are of and that Spark computes with."""
    return next((kind for kind in SPARK_TYPES if pc.all(computable_terms(objects, kind)).as_py()), None)


Hashes: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"


def _hashes(part: pa.Table) -> Hashes:
    """A hash of 8 bytes for each triple, which replaces its terms."""
    columns = (part[name].to_pylist() for name in TRIPLE)
    return np.fromiter(map(hash, zip(*columns, strict=True)), np.int64, len(part))


def _often(parts: Sequence[Hashes]) -> bool:
    """Whether triples occur more than OFTEN times on average; equal hashes count as equal triples."""
    if not parts:
        return False
    triples = np.concatenate(parts)
    return bool(len(triples) > OFTEN * len(np.unique(triples)))


def _kinds(kind: str | None) -> frozenset[str]:
    # Two kinds at once, one of them of no literal, so that no numbers are read from such objects.
    return frozenset({NOT_LITERAL, _ANY} if kind is None else {XSD + kind})


def counts_for(query: QueryForm, windows: Sequence[StreamWindow]) -> PredicateCounts | None:
    """The counts for a query; ``None`` when it asks for predicates that it does not name, or for times."""
    if reads_time(query):
        return None
    names = tuple(f"<{window.name}>" for window in windows if window.name is not None)
    pattern = spread(stamped(query), names).pattern
    patterns = [triple for triples in reads(pattern).values() for triple in triples]
    predicates = list(dict.fromkeys(triple.predicate for triple in patterns))
    if not all(isinstance(name, str) for name in predicates):
        return None
    values = numeric_variables(pattern)
    numeric = dict.fromkeys(triple.predicate for triple in patterns if _computed(triple, values))
    return PredicateCounts(tuple(map(str, predicates)), tuple(map(str, numeric)))


def _computed(triple: TriplePattern, values: frozenset[str]) -> bool:
    return isinstance(triple.object, Var) and triple.object.name in values


_NOTHING = ("", "", "")
_PARTS = tuple(fact[1] for fact in stamp(_NOTHING))
_TIME = time_fact(_NOTHING, 0)[1]


def stamps(arrivals: DataFrame) -> DataFrame:
    """The stamps (subject, predicate, object, lo, hi) of arrivals that have their triple, time (ms), lo and hi."""
    present = merged(arrivals.select(*TRIPLE, "lo", "hi"))
    constant = [
        present.select(_name(), fn.lit(part).alias("predicate"), fn.col(position).alias("object"), "lo", "hi")
        for part, position in zip(_PARTS, TRIPLE, strict=True)
    ]
    swept_times = swept(
        arrivals.select(*TRIPLE, "lo", "hi", "time"), TRIPLE, latest, {"lo": "int", "hi": "int", "time": "bigint"}
    )
    text = fn.concat(fn.lit('"'), fn.col("time").cast("string"), fn.lit(f'"^^<{XSD}integer>'))
    times = swept_times.select(_name(), fn.lit(_TIME).alias("predicate"), text.alias("object"), "lo", "hi")
    return reduce(DataFrame.unionByName, constant, times)


def _name() -> Column:
    # No canonical term has a line end, so the joined text names exactly one triple.
    digest = fn.md5(fn.concat_ws("\n", *TRIPLE))
    return fn.concat(fn.lit("<urn:streamgauge:stamp:"), digest, fn.lit(">")).alias("subject")


_BLOCKS = 8  # a block of reports is this many times as wide as the longest interval: few rows are cut, few pairs wasted


@dataclass(frozen=True)
class GraphFactsTable:
    """One graph's facts: streamed ones in blocks of ``width`` reports; static ones are valid in all ``reports``.

    ``kinds`` has the datatypes (IRIs; NOT_LITERAL for other terms) of the objects of each constant predicate of the
    query; ``counts`` the number of streamed triples per predicate: one that it lacks only has static triples. With
    ``copies``, a triple may occur more than once, and solutions have to be made distinct. Kinds that are not ``sure``
    are checked object by object.
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
        # A column of a frame has one type, so numbers are read only where all objects of the predicate are of one
        # kind.
        return {node.name: kind} if len(kinds) == 1 and kind in SPARK_TYPES else {}


Graphs = Mapping[Term | None, GraphFactsTable]
"""The facts of the default graph (``None``) and of each named window's graph that the query reads."""


Patterns = Mapping[Term | None, Sequence[TriplePattern]]
"""The triple patterns that read each graph (``reads.py``)."""


@dataclass(frozen=True)
class FactsReader:
    """The sources of all graphs of a query: the stream table, the due reports, the windows, the counting of copies.

    ``known`` is the profile of the stream, if computed already; ``plain``: all patterns are triple patterns without
    paths, so that making solutions distinct is equivalent to making triples distinct.
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

    def _facts(self, graph: Term | None, wanted: Patterns, static: tuple[Triple, ...]) -> GraphFactsTable:
        """One graph's facts; unless they are known a small job finds the datatypes and whether triples repeat."""
        patterns, sources = wanted[graph], self._feeding(graph)
        kept = tuple(dict.fromkeys(t for t in static if not graph and any(_may_match(p, t) for p in patterns)))
        known = self.known
        if sources or graph is None:
            frame = self._arrivals(patterns, sources).select(*TRIPLE, "lo", "hi")
        else:
            # The known profile is that of the stream's triples, not of their stamps.
            (frame, sources), known = self._stamps(graph, wanted), None
        profile_ = known or profiled(frame)
        kinds, counts = dict(profile_.kinds), profile_.counts
        for predicate in {p.predicate for p in patterns if isinstance(p.predicate, str)} | kinds.keys():
            kinds[predicate] = kinds.get(predicate, frozenset()) | _static_kinds(predicate, kept)
        any_predicate = any(not isinstance(p.predicate, str) for p in patterns)
        # Other static triples stay apart (``match``), valid in all reports and never cut into blocks.
        mixed = [triple for triple in kept if any_predicate or triple[1] in counts]
        if mixed:
            frame = frame.unionByName(_always(self.spark, mixed, len(self.due)))
        # A static triple may be streamed as well.
        frame, copies = self._once(frame, True if mixed else profile_.repeated)
        width = 1 << (_BLOCKS * longest(self.due, sources)).bit_length()  # a power of two: the blocks of graphs nest
        # Fewer than two whole blocks hardly narrow a join, but would cut the intervals at their border.
        frame, width = (frame, len(self.due)) if 2 * width > len(self.due) else (cut(frame, width), width)
        return GraphFactsTable(self.spark, frame, kept, len(self.due), width, kinds, counts, copies, profile_.sure)

    def _once(self, frame: DataFrame, repeated: bool | None) -> tuple[DataFrame, bool]:
        """Make triples distinct for contents that are sets; else whether the solutions must be made distinct."""
        if self.counting is not Counting.SET or repeated is False:
            return frame, False
        # Distinct solutions are equivalent, and save the job by which ``repeats`` would find out.
        if repeated is None and self.plain:
            return frame, True
        return (merged(frame) if repeated or repeats(frame) else frame), False

    def _feeding(self, graph: Term | None) -> list[IntervalSource]:
        return [source for source in sources(self.windows) if source.graph == graph]

    def _stamps(self, graph: Term, wanted: Patterns) -> tuple[DataFrame, list[IntervalSource]]:
        """A graph of stamps, with the windows of the graph whose triples they stamp; or of instants."""
        if graph == NOW_GRAPH:
            return _instants(self.spark, self.due), []
        for of in dict.fromkeys(source.graph for source in sources(self.windows)):
            if graph == stamps_graph(of and of[1:-1]):
                feeding = self._feeding(of)
                return stamps(self._arrivals(wanted.get(of, ()), feeding)), feeding
        return self._arrivals((), ()).select(*TRIPLE, "lo", "hi"), []

    def _arrivals(self, patterns: Sequence[TriplePattern], sources: Sequence[IntervalSource]) -> DataFrame:
        """The arrivals that some pattern may match, with their intervals."""
        some = reduce(Column.__or__, map(_constants, patterns), fn.lit(False))
        if not sources:
            none = self.stream.filter(fn.lit(False))
            return none.select("*", *(fn.lit(0).alias(name) for name in ("window", "lo", "hi")))
        return intervals(self.stream.filter(some), self.due, sources)


def _instants(spark: SparkSession, due: Sequence[DueReport]) -> DataFrame:
    """The fact that NOW() reads: the instant of each report."""
    facts = zip(*(now_fact(report.instant) for report in due), strict=True)
    table = pa.table({name: pa.array(terms, pa.string()) for name, terms in zip(TRIPLE, facts, strict=True)})
    places = pa.array(range(len(due)), pa.int32())
    return spark.createDataFrame(table.append_column("lo", places).append_column("hi", places))


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
