"""What is known of streamed triples before a query is compiled: how many each predicate has, and of which datatypes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from streamgauge.compute.spark.intervals import TRIPLE
from streamgauge.compute.spark.numbers import SPARK_TYPES
from streamgauge.compute.spark.reads import numeric_variables, reads
from streamgauge.model.algebra import QueryForm, TriplePattern, Var
from streamgauge.model.query import StreamWindow
from streamgauge.model.terms import XSD, Term
from streamgauge.query.graphs import spread
from streamgauge.query.stamps import stamped, uses_timestamp

NOT_LITERAL = "other"
"""Stands for the datatype of what is no literal."""

_ANY = "any"


@dataclass(frozen=True)
class Profile:
    """``kinds`` has the datatypes (IRIs or NOT_LITERAL) of the objects of each predicate, ``counts`` its triples.

    ``repeated`` says whether some triple may be there twice, ``None`` when nobody has looked.
    """

    kinds: Mapping[Term, frozenset[str]] = field(default_factory=dict)
    counts: Mapping[Term, int] = field(default_factory=dict)
    repeated: bool | None = None


def profiled(frame: DataFrame) -> Profile:
    """The profile of all triples of a frame, in one small job."""
    literal = fn.col("object").startswith('"')
    suffix = fn.when(literal, fn.substring_index("object", '"', -1)).otherwise(NOT_LITERAL)
    kinds: dict[Term, frozenset[str]] = {}
    counts: dict[Term, int] = {}
    repeated = False
    numbers = (fn.count("*"), fn.count_distinct(fn.xxhash64(*TRIPLE)))  # equal hashes count as equal
    for predicate, kind, count, distinct in frame.groupBy("predicate", suffix.alias("suffix")).agg(*numbers).collect():
        iri = kind.removeprefix("^^<").removesuffix(">") or XSD + "string"
        kinds[predicate] = kinds.get(predicate, frozenset()) | {iri}
        counts[predicate] = counts.get(predicate, 0) + count
        repeated = repeated or count != distinct
    return Profile(kinds, counts, repeated)


@dataclass(frozen=True)
class Counts:
    """What to count, while rows are looked at anyway, to know the profile that one query needs.

    ``predicates`` are those that the query names, ``numeric`` the ones whose objects it computes with.
    """

    predicates: tuple[Term, ...]
    numeric: tuple[Term, ...]

    def columns(self) -> list[Column]:
        """Aggregates over rows with columns predicate and object."""
        found = [fn.count_if(fn.col("predicate") == name) for name in self.predicates]
        for name in self.numeric:
            is_it = fn.col("predicate") == name
            found += [fn.count_if(is_it & fn.col("object").endswith(_suffix(kind))) for kind in SPARK_TYPES]
        return [column.alias(f"counted{place}") for place, column in enumerate(found)]

    @property
    def _width(self) -> int:
        return len(self.predicates) + len(self.numeric) * len(SPARK_TYPES)

    def profile(self, rows: Iterable[Sequence[int]]) -> Profile:
        """The profile from the values of these aggregates, added up over rows."""
        sums = [sum(values) for values in zip(*rows, strict=True)] or [0] * self._width
        counts = {name: count for name, count in zip(self.predicates, sums, strict=False) if count}
        kinds = {name: frozenset({NOT_LITERAL, _ANY}) for name in counts}
        for place, name in enumerate(self.numeric):
            begin = len(self.predicates) + place * len(SPARK_TYPES)
            for kind, count in zip(SPARK_TYPES, sums[begin : begin + len(SPARK_TYPES)], strict=True):
                if count and count == counts.get(name):
                    kinds[name] = frozenset({XSD + kind})
        return Profile(kinds, counts)


def counts_for(query: QueryForm, windows: Sequence[StreamWindow]) -> Counts | None:
    """What to count for a query; ``None`` when it asks for predicates that it does not name, or for timestamps."""
    if uses_timestamp(query):
        return None
    names = tuple(f"<{window.name}>" for window in windows if window.name is not None)
    pattern = spread(stamped(query), names).pattern
    patterns = [triple for triples in reads(pattern).values() for triple in triples]
    predicates = list(dict.fromkeys(triple.predicate for triple in patterns))
    if not all(isinstance(name, str) for name in predicates):
        return None
    values = numeric_variables(pattern)
    numeric = dict.fromkeys(triple.predicate for triple in patterns if _computed(triple, values))
    return Counts(tuple(map(str, predicates)), tuple(map(str, numeric)))


def _computed(triple: TriplePattern, values: frozenset[str]) -> bool:
    return isinstance(triple.object, Var) and triple.object.name in values


def _suffix(kind: str) -> str:
    return f'"^^<{XSD}{kind}>'
