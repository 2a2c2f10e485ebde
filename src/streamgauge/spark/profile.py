"""What is known of streamed triples before a query is compiled: how many each predicate has, and of which datatypes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from streamgauge.model.algebra import QueryForm, TriplePattern, Var
from streamgauge.model.query import StreamWindow
from streamgauge.model.terms import XSD, Term
from streamgauge.query.graphs import spread
from streamgauge.query.stamps import stamped, uses_timestamp
from streamgauge.spark.intervals import TRIPLE
from streamgauge.spark.numbers import BEYOND, SPARK_TYPES, computable, suffix
from streamgauge.spark.reads import numeric_variables, reads

NOT_LITERAL = "other"
"""Stands for the datatype of what is no literal."""

OFTEN = 1.5
"""Triples that are there more often than this, on average, are made distinct before they are joined, not after."""

_ANY = "any"


@dataclass(frozen=True)
class Profile:
    """``kinds`` has the datatypes (IRIs, some after BEYOND; NOT_LITERAL) of each predicate's objects.

    ``counts`` has the number of each predicate's triples. ``repeated`` says whether some triple may be there twice,
    ``None`` when nobody has looked. Unless the kinds are ``sure`` they are those of other triples of the stream: a job
    that meets another kind fails with OTHER_KIND.
    """

    kinds: Mapping[Term, frozenset[str]] = field(default_factory=dict)
    counts: Mapping[Term, int] = field(default_factory=dict)
    repeated: bool | None = None
    sure: bool = True


def profiled(frame: DataFrame) -> Profile:
    """The profile of all triples of a frame, in one small job."""
    literal = fn.col("object").startswith('"')
    end = fn.when(literal, fn.substring_index("object", '"', -1)).otherwise(NOT_LITERAL)
    for kind in SPARK_TYPES:
        beyond = fn.col("object").endswith(suffix(kind)) & ~computable(fn.col("object"), kind)
        end = fn.when(beyond, f"{BEYOND}{XSD}{kind}").otherwise(end)
    kinds: dict[Term, frozenset[str]] = {}
    counts: dict[Term, int] = {}
    repeated = False
    numbers = (fn.count("*"), fn.count_distinct(fn.xxhash64(*TRIPLE)))  # equal hashes count as equal
    for predicate, kind, count, distinct in frame.groupBy("predicate", end.alias("end")).agg(*numbers).collect():
        iri = kind.removeprefix("^^<").removesuffix(">") or XSD + "string"
        kinds[predicate] = kinds.get(predicate, frozenset()) | {iri}
        counts[predicate] = counts.get(predicate, 0) + count
        repeated = repeated or count != distinct
    return Profile(kinds, counts, repeated)


class Looked(NamedTuple):
    """What was seen of a stream: the one kind of each predicate's objects (``None``: several); whether many repeat."""

    kinds: Mapping[Term, str | None]
    often: bool


@dataclass(frozen=True)
class Counts:
    """What must be known of a stream to compile one query.

    ``predicates`` are those that the query names, ``numeric`` the ones whose objects it computes with.
    """

    predicates: tuple[Term, ...]
    numeric: tuple[Term, ...]

    def look(self, frame: DataFrame) -> Looked:
        """Look at the triples of a frame, in one small job; a predicate that has none is not in ``kinds``."""
        counted = [fn.count("*"), fn.count_distinct(fn.xxhash64(*TRIPLE))]
        for name in self.numeric:
            is_it = fn.col("predicate") == name
            counted.append(fn.count_if(is_it))
            counted += [fn.count_if(is_it & _exact(kind)) for kind in SPARK_TYPES]
        named = frame.filter(fn.col("predicate").isin(*self.predicates))
        rows, distinct, *rest = named.agg(*counted).collect()[0]
        width = 1 + len(SPARK_TYPES)
        own = {name: rest[place * width : (place + 1) * width] for place, name in enumerate(self.numeric)}
        kinds = {name: _only(found[0], found[1:]) for name, found in own.items() if found[0]}
        return Looked(kinds, rows > OFTEN * distinct)

    def profile(self, counts: Sequence[int], looked: Looked) -> Profile:
        """The profile of triples that were counted by predicate, of the kinds that others were seen to have."""
        present = {name: count for name, count in zip(self.predicates, counts, strict=True) if count}
        kinds = {name: _kinds(looked.kinds.get(name)) for name in present}
        return Profile(kinds, present, looked.often or None, sure=False)


def _exact(kind: str) -> Column:
    return fn.col("object").endswith(suffix(kind)) & computable(fn.col("object"), kind)


def _only(count: int, by_kind: Sequence[int]) -> str | None:
    """The kind that all of them are of."""
    return next((kind for kind, own in zip(SPARK_TYPES, by_kind, strict=True) if own == count), None)


def _kinds(kind: str | None) -> frozenset[str]:
    return frozenset({NOT_LITERAL, _ANY} if kind is None else {XSD + kind})


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
