"""The facts that a query's triple patterns read: the stream's triples with their intervals, and static data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.compute.spark.intervals import TRIPLE, intervals, longest, merged, repeats
from streamgauge.compute.spark.numbers import SPARK_TYPES, parsed
from streamgauge.compute.spark.relation import Relation, column, cut, number
from streamgauge.model.algebra import TriplePattern, Var, triple_variables
from streamgauge.model.report import DueReport
from streamgauge.model.terms import XSD, Term, Triple, datatype

_BLOCKS = 8  # a block of reports is this many times as wide as the longest interval: few rows are cut, few pairs wasted


NOT_LITERAL = "other"


@dataclass(frozen=True)
class Facts:
    """Streamed facts in blocks of ``width`` reports; static ones are valid in all ``reports``.

    ``kinds`` has the datatypes (IRIs; NOT_LITERAL for other terms) of the objects of each constant predicate of the
    query; predicates in ``unstreamed`` have static triples only.
    """

    spark: SparkSession
    streamed: DataFrame
    static: tuple[Triple, ...]
    reports: int
    width: int
    kinds: Mapping[Term, frozenset[str]]
    unstreamed: frozenset[Term]
    counts: Mapping[Term, int]

    def rows(self, pattern: TriplePattern) -> int:
        """An estimate of the number of solutions of a triple pattern."""
        if isinstance(pattern.predicate, str) and pattern.predicate not in self.unstreamed:
            return self.counts[pattern.predicate]
        static = sum(_may_match(pattern, triple) for triple in self.static)
        return static + (sum(self.counts.values()) if isinstance(pattern.predicate, Var) else 0)

    def match(self, pattern: TriplePattern, numeric: frozenset[str]) -> Relation:
        """The solutions of a triple pattern; variables in ``numeric`` get their value if it is of one known kind."""
        if pattern.predicate not in self.unstreamed:
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
        values = [parsed(fn.col("object"), kind).alias(number(name)) for name, kind in numbers.items()]
        return Relation(frame.select("lo", "hi", *terms, *values), tuple(names), frozenset(names), width, numbers)

    def _numbers(self, pattern: TriplePattern, numeric: frozenset[str]) -> dict[str, str]:
        node = pattern.object
        if not isinstance(node, Var) or node.name not in numeric or not isinstance(pattern.predicate, str):
            return {}
        kinds = self.kinds[pattern.predicate]
        kind = next(iter(kinds), "").removeprefix(XSD)
        return {node.name: kind} if len(kinds) == 1 and kind in SPARK_TYPES else {}


def gather(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    static: Iterable[Triple],
    patterns: Sequence[TriplePattern],
) -> Facts:
    """The facts for these triple patterns; two small jobs find the datatypes and whether triples repeat."""
    kept = tuple(dict.fromkeys(triple for triple in static if any(_may_match(p, triple) for p in patterns)))
    chosen = stream.filter(reduce(Column.__or__, map(_constants, patterns), fn.lit(False)))
    predicates = sorted({p.predicate for p in patterns if isinstance(p.predicate, str)})
    frame = intervals(spark, chosen, due)
    streamed, counts = _profile(frame)
    unstreamed = frozenset(predicates) - streamed.keys()
    kinds = {p: streamed.get(p, frozenset()) | _static_kinds(p, kept) for p in predicates}
    any_predicate = any(isinstance(p.predicate, Var) for p in patterns)
    mixed = [triple for triple in kept if any_predicate or triple[1] in streamed]
    if mixed:
        frame = frame.unionByName(_always(spark, mixed, len(due)))
    frame, width = _blocks(merged(frame) if mixed or (streamed and repeats(frame)) else frame, due)
    return Facts(spark, frame, kept, len(due), width, kinds, unstreamed, counts)


def _blocks(frame: DataFrame, due: Sequence[DueReport]) -> tuple[DataFrame, int]:
    """The facts cut into blocks of reports when the stream is long, and the width of a block."""
    width = _BLOCKS * longest(due)
    if 2 * width > len(due):
        return frame, len(due)
    return cut(frame, width), width


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
    return all(isinstance(node, Var) or node == term for node, term in zip(nodes, triple, strict=True))


def _profile(frame: DataFrame) -> tuple[dict[Term, frozenset[str]], dict[Term, int]]:
    """The datatypes of the objects of each predicate, and the number of its triples."""
    literal = fn.col("object").startswith('"')
    suffix = fn.when(literal, fn.substring_index("object", '"', -1)).otherwise(NOT_LITERAL)
    kinds: dict[Term, frozenset[str]] = {}
    counts: dict[Term, int] = {}
    for predicate, kind, count in frame.groupBy("predicate", suffix.alias("suffix")).agg(fn.count("*")).collect():
        iri = kind.removeprefix("^^<").removesuffix(">") or XSD + "string"
        kinds[predicate] = kinds.get(predicate, frozenset()) | {iri}
        counts[predicate] = counts.get(predicate, 0) + count
    return kinds, counts


def _static_kinds(predicate: Term, static: Iterable[Triple]) -> frozenset[str]:
    return frozenset(datatype(o) or NOT_LITERAL for _, p, o in static if p == predicate)
