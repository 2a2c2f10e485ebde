"""The profile of streamed triples before a query is compiled: how many each predicate has, and of which datatypes.

From the pattern come the triple patterns of each graph and the variables whose numeric values are read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.model.algebra import QueryForm, TriplePattern, Var
from streamgauge.model.query import StreamWindow
from streamgauge.model.terms import XSD, Term
from streamgauge.query.graphs import spread
from streamgauge.query.stamps import stamped, uses_timestamp
from streamgauge.query.traversal import children, every_expression, every_pattern, expressions
from streamgauge.spark.intervals import TRIPLE
from streamgauge.spark.scalars import BEYOND, SPARK_TYPES, computable, suffix

ANY = al.TriplePattern(al.Var("s"), al.Var("p"), al.Var("o"))

Patterns = dict[Term | None, dict[al.TriplePattern, None]]


def reads(pattern: al.Pattern) -> Mapping[Term | None, tuple[al.TriplePattern, ...]]:
    """The plain triple patterns that each graph is asked for, by its name (``None``: the default graph, always there).

    A property path asks for its steps, and for every triple where it is of length zero or a negated set.
    """
    found: Patterns = {None: {}}
    _collect(pattern, None, found)
    return {graph: tuple(patterns) for graph, patterns in found.items()}


def numeric_variables(pattern: al.Pattern) -> frozenset[str]:
    """The variables that some expression or aggregate reads: their values are worth having as numbers."""
    trees = (tree for part in every_pattern(pattern) for tree in expressions(part))
    return frozenset(part.name for tree in trees for part in every_expression(tree) if isinstance(part, al.Var))


def _collect(pattern: al.Pattern, graph: Term | None, found: Patterns) -> None:
    match pattern:
        case al.Graph(name=str() as name, pattern=inner):
            found.setdefault(name, {})
            _collect(inner, name, found)
            return
        case al.BGP(patterns=patterns):
            for triple in patterns:
                found[graph].update(dict.fromkeys(_steps(triple)))
    for child in children(pattern):
        _collect(child, graph, found)
    for part in (part for tree in expressions(pattern) for part in every_expression(tree)):
        if isinstance(part, al.Exists):
            _collect(part.pattern, None, found)


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
            yield from _path_steps(inner, False, False)
            if modifier != "+" and not (first or last):
                yield ANY
        case al.NegatedSet():
            yield ANY


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
    """The kinds seen in a stream: the one kind of each predicate's objects (``None``: several); whether many repeat."""

    kinds: Mapping[Term, str | None]
    often: bool


@dataclass(frozen=True)
class PredicateCounts:
    """The counts of a stream that the compilation of one query needs.

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


def counts_for(query: QueryForm, windows: Sequence[StreamWindow]) -> PredicateCounts | None:
    """The counts for a query; ``None`` when it asks for predicates that it does not name, or for timestamps."""
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
    return PredicateCounts(tuple(map(str, predicates)), tuple(map(str, numeric)))


def _computed(triple: TriplePattern, values: frozenset[str]) -> bool:
    return isinstance(triple.object, Var) and triple.object.name in values
