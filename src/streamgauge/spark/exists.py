"""The reports in which a row has a match: DISTINCT, semi and anti joins, OPTIONAL, MINUS and EXISTS.

Over single reports (width 1) these are Spark's joins; over intervals, rows are cut to where they do or do not match.

SPARQL 1.1 substitutes the values of an outer row for its variables everywhere in the pattern of EXISTS
(https://www.w3.org/TR/sparql11-query/#defn_substitute); here every leaf of the pattern is joined with all distinct
outer rows, so that each solution identifies the outer rows to which it belongs. ``refuse`` names the parts of queries
that the Spark evaluator does not support.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.model.terms import XSD
from streamgauge.query.instants import NOW
from streamgauge.query.traversal import (
    assigned_here,
    assigned_in_exists,
    children,
    every_part,
    every_pattern,
    reads_patterns,
)
from streamgauge.spark.intervals import merged as joined_intervals
from streamgauge.spark.relation import (
    Relation,
    block,
    column,
    compatible,
    fresh,
    join,
    merged,
    number,
    other,
    refine,
    shared,
    union,
)
from streamgauge.sparql.expression import VOLATILE


def refuse(query: al.QueryForm) -> str | None:
    """A sentence on the part of the query that Spark does not evaluate; ``None`` if it evaluates all."""
    part = next(_unsupported(query.pattern), None)
    return None if part is None else f"spark does not evaluate {part}"


def negated(condition: al.Expression) -> al.Exists | None:
    """The EXISTS of a NOT EXISTS."""
    match condition:
        case al.Call("!", (al.Exists() as exists,)):
            return exists
        case _:
            return None


def _unsupported(pattern: al.Pattern) -> Iterator[str]:
    for part in every_pattern(pattern):
        for call in every_part(part):
            if isinstance(call, al.Call) and call.operator in VOLATILE and call.operator != NOW:
                yield f"{call.operator}()"
    for name in assigned_in_exists(pattern):
        yield f"EXISTS that assigns ?{name}, a variable of the pattern around it"


How = Literal["left_semi", "left_anti"]
Narrow = Callable[[Relation], Relation]

_ROW = ".row"
_SEPARATOR = "\n"  # in no canonical term
_LAST = (1 << 31) - 1
_BOOLEAN = f"^^<{XSD}boolean>"


def distinct(relation: Relation) -> Relation:
    """Each solution once at every report: overlapping and adjacent intervals of equal rows are one."""
    names = [*map(column, relation.variables), *map(number, relation.numbers)]
    if relation.width == 1:
        # Numbers follow from their terms, so only the terms are compared.
        return replace(relation, frame=relation.frame.dropDuplicates(["lo", *map(column, relation.variables)]))
    # Within each block, because no interval of a relation may cross a border of blocks.
    rows = joined_intervals(relation.frame.withColumn("block", block("lo", relation.width)), [*names, "block"])
    return replace(relation, frame=rows.select("lo", "hi", *names))


def settled(relation: Relation) -> Relation:
    """The same rows, computed once: each use of a plan repeats it, so nested uses would double it again and again."""
    return replace(relation, frame=relation.frame.localCheckpoint(eager=False))


def keyed(relation: Relation, name: str, variables: tuple[str, ...]) -> Relation:
    """The same rows with one more variable ``name``: what these variables are bound to, in one string."""
    # No term is the empty string, which therefore stands for unbound (``bound_in``).
    parts = [fn.coalesce(relation.value(variable), fn.lit("")) for variable in variables]
    frame = relation.frame.withColumn(column(name), fn.concat_ws(_SEPARATOR, *parts) if parts else fn.lit(""))
    return replace(relation, frame=frame, variables=(*relation.variables, name), certain=relation.certain | {name})


def bound_in(key: str, position: int) -> Column:
    """Whether the variable at a position of a key (see `keyed`) was bound."""
    return fn.split(fn.col(column(key)), _SEPARATOR).getItem(position) != ""


def kept(left: Relation, matched: Relation, how: How) -> Relation:
    """A semi (or anti) join: the left rows whose values of the shared variables are (or are not) in ``matched``."""
    names = tuple(name for name in left.variables if name in matched.variables)
    width = min(left.width, matched.width)
    left, spans = refine(left, width), distinct(refine(matched, width).project(names))
    if width == 1:
        return replace(left, frame=left.frame.join(other(spans), _equal(["lo", *map(column, names)]), how))
    return replace(left, frame=_cut(left, spans, names, how))


def flagged(left: Relation, matched: Relation, name: str) -> Relation:
    """The left rows with a variable ``name`` that is true for the rows of ``left_semi`` in `kept`, else false."""
    names = tuple(variable for variable in left.variables if variable in matched.variables)
    width = min(left.width, matched.width)
    left, spans = refine(left, width), distinct(refine(matched, width).project(names))
    if width == 1:
        spans_flagged = other(spans).withColumn("flag", fn.lit(True))
        frame = left.frame.join(spans_flagged, _equal(["lo", *map(column, names)]), "left")
        frame = frame.select(*left.frame.columns, fn.coalesce("flag", fn.lit(False)).alias(number(name)))
    else:
        paired = _with_spans(left, spans, names, "left")
        # Worked example: a row in the reports 0 to 9 whose match is in 3 to 5 becomes three rows: 0 to 2 and 6 to 9
        # with false, 3 to 5 with true.
        pieces = fn.concat(_pieces(_spans(), fn.lit(True)), _pieces(_gaps(), fn.lit(False)))
        frame = _exploded(left, paired, pieces, [fn.col("piece.flag").alias(number(name))])
    text = fn.when(fn.col(number(name)), f'"true"{_BOOLEAN}').otherwise(f'"false"{_BOOLEAN}')
    numbers = {**left.numbers, name: "boolean"}
    frame = frame.withColumn(column(name), text)
    return Relation(frame, (*left.variables, name), left.certain | {name}, width, numbers)


def _cut(left: Relation, spans: Relation, names: tuple[str, ...], how: How) -> DataFrame:
    """The left rows cut to the reports in which their values are, or are not, in ``spans``."""
    paired = _with_spans(left, spans, names, "inner" if how == "left_semi" else "left")
    return _exploded(left, paired, _pieces(_spans() if how == "left_semi" else _gaps(), fn.lit(True)), [])


def _with_spans(left: Relation, spans: Relation, names: tuple[str, ...], how: str) -> DataFrame:
    """The left rows with the sorted intervals (``r_spans``) of their values in their block of reports."""
    at = [block("lo", left.width).alias("block"), *map(column, names)]
    # One row per key and block with all its intervals: a join with each interval would multiply the left rows, and the
    # gaps between two intervals could not be seen from either of them.
    spans_by_key = spans.frame.groupBy(*at).agg(fn.sort_array(fn.collect_list(fn.struct("lo", "hi"))).alias("spans"))
    spans_by_key = spans_by_key.select(*(fn.col(name).alias("r_" + name) for name in spans_by_key.columns))
    rows = left.frame.withColumn("block", block("lo", left.width))
    return rows.join(spans_by_key, _equal(["block", *map(column, names)]), how)


def _exploded(left: Relation, paired: DataFrame, pieces: Column, more: list[Column]) -> DataFrame:
    others = left.frame.drop("lo", "hi").columns
    exploded = paired.select(*others, fn.explode(pieces).alias("piece"))
    return exploded.select(fn.col("piece.lo").alias("lo"), fn.col("piece.hi").alias("hi"), *others, *more)


def _pieces(spans: Column, flag: Column) -> Column:
    """A row's interval cut to some sorted intervals."""

    def clipped(span: Column) -> Column:
        low, high = fn.greatest(span["lo"], fn.col("lo")), fn.least(span["hi"], fn.col("hi"))
        return fn.struct(low.alias("lo"), high.alias("hi"), flag.alias("flag"))

    return fn.filter(fn.transform(spans, clipped), lambda piece: piece["lo"] <= piece["hi"])


def _spans() -> Column:
    return fn.coalesce(fn.col("r_spans"), fn.array().cast("array<struct<lo:int,hi:int>>"))


def _gaps() -> Column:
    """The intervals between, before and after the sorted disjoint ones."""
    # n spans have n + 1 gaps; those that are empty disappear when they are clipped to the row's interval.
    starts = fn.concat(fn.array(fn.lit(0)), fn.transform(_spans(), lambda span: span["hi"] + 1))
    ends = fn.concat(fn.transform(_spans(), lambda span: span["lo"] - 1), fn.array(fn.lit(_LAST)))
    return fn.zip_with(starts, ends, lambda low, high: fn.struct(low.alias("lo"), high.alias("hi")))


def _equal(names: list[str]) -> Column:
    # Null-safe, as these are keys of the same rows, not solutions to be joined: unbound equals unbound.
    return reduce(Column.__and__, [fn.col(name).eqNullSafe(fn.col("r_" + name)) for name in names])


def semi_join(left: Relation, right: Relation, reports: int, how: How, narrow: Narrow | None = None) -> Relation:
    """The left rows for which some (``left_semi``) or no (``left_anti``) pair with a right row satisfies ``narrow``."""
    if left.width == right.width == 1 and narrow is None:
        return replace(left, frame=left.frame.join(other(right), compatible(left, right, reports), how))
    known, names = _told_apart(left, right)
    pairs = join(known, right, reports)
    pairs = pairs if narrow is None else narrow(pairs)
    return kept(known, pairs.project(names), how).project(left.variables)


def left_join(left: Relation, right: Relation, reports: int, narrow: Narrow | None = None) -> Relation:
    """LeftJoin(left, right): the pairs that satisfy ``narrow``, and the left rows without such a pair."""
    if left.width == right.width == 1 and narrow is None:
        paired = left.frame.join(other(right), compatible(left, right, reports), "left")
        return merged(paired, left, right, (fn.col("lo"), fn.col("hi")), left.certain)
    known, names = _told_apart(left, right)
    pairs = join(known, right, reports)
    pairs = pairs if narrow is None else narrow(pairs)
    alone = kept(known, pairs.project(names), "left_anti").project(left.variables)
    return union(pairs.project(tuple(dict.fromkeys(left.variables + right.variables))), alone)


def minus(left: Relation, right: Relation, reports: int, free: Mapping[str, Column] | None = None) -> Relation:
    """Minus(left, right): an anti join in which only pairs that share a bound variable count.

    ``free`` says of variables that EXISTS may have put a constant for: in which left rows they are still variables.
    """
    counted = [_both_bound(name) & (free or {}).get(name, fn.lit(True)) for name in shared(left, right)]
    # Without a shared variable the domains are disjoint, and MINUS removes nothing.
    if not counted:
        return left
    some = reduce(Column.__or__, counted)
    if left.width == right.width == 1:
        return replace(left, frame=left.frame.join(other(right), compatible(left, right, reports) & some, "left_anti"))
    known, names = _told_apart(left, right)
    pairs = join(known, right, reports, some)
    return kept(known, pairs.project(names), "left_anti").project(left.variables)


def _both_bound(name: str) -> Column:
    return fn.col(column(name)).isNotNull() & fn.col("r_" + column(name)).isNotNull()


def _told_apart(left: Relation, right: Relation) -> tuple[Relation, tuple[str, ...]]:
    """The left rows, and the variables that identify them even if a pair binds an unbound variable of its left row."""
    if set(shared(left, right)) <= left.certain:
        return left, left.variables
    name = fresh(left, _ROW)
    return keyed(left, name, left.variables), (name,)


_KEY = ".given"


@dataclass(frozen=True)
class Given:
    """Distinct outer rows by ``key``; ``names`` are the variables of the key in order."""

    relation: Relation
    key: str
    names: tuple[str, ...]

    def limited(self, variables: Sequence[str]) -> "Given":
        """The outer rows that a subquery with these variables sees: its other variables are its own."""
        seen = tuple(name for name in self.relation.variables if name == self.key or name in variables)
        return replace(self, relation=self.relation.project(seen))

    def joined(self, relation: Relation, reports: int) -> Relation:
        """A leaf's solutions for each outer row."""
        return join(self.relation, relation, reports)

    def free(self) -> dict[str, Column]:
        """The condition that an outer variable is unbound, so that it is a variable of the pattern."""
        free = {name: ~bound_in(self.key, index) for index, name in enumerate(self.names)}
        return {self.key: fn.lit(False), **free}


def outer_rows(outer: Relation, pattern: al.Pattern) -> tuple[Relation, Given]:
    """The outer rows with a key for their columns in ``pattern``, and the distinct rows for which to evaluate it."""
    # The other variables cannot change the truth, and without them fewer rows are distinct.
    names = tuple(name for name in outer.variables if al.Var(name) in mentioned(pattern))
    key = fresh(outer, _KEY)
    known = keyed(outer, key, names)
    return known, Given(distinct(known.project((*names, key))), key, names)


def mentioned(pattern: al.Pattern) -> frozenset[al.Var]:
    """The variables of a pattern that outer values replace; a subquery hides those that it does not project."""
    match pattern:
        case al.BGP(patterns=patterns):
            return frozenset(var for triple in patterns for var in al.triple_variables(triple))
        case al.Values(variables=variables):
            return frozenset(variables)
        case al.Project(pattern=inner, variables=variables):
            return mentioned(inner) & frozenset(variables)
        case _:
            names = set[al.Var]().union(*map(mentioned, children(pattern)))
            for part in every_part(pattern):
                names |= {part} if isinstance(part, al.Var) else set()
                names |= mentioned(part.pattern) if isinstance(part, al.Exists) else set()
            return frozenset(names | set(assigned_here(pattern)))


def leaves(pattern: al.Pattern) -> int:
    """How often evaluating the pattern reads the outer rows."""
    own = isinstance(pattern, al.BGP | al.Values | al.Project | al.Group)
    return own + sum(map(leaves, children(pattern)))


def is_join(pattern: al.Pattern, outermost: bool = True) -> bool:
    """Whether EXISTS is a plain join with the outer rows: no operator needs its inner variables unbound."""
    match pattern:
        case al.Filter(condition=condition, pattern=inner):
            if reads_patterns(condition):
                return False
            # A deeper condition is tested before the join has brought the outer values.
            local = al.expression_variables(condition) <= frozenset(al.pattern_variables(inner))
            return (outermost or local) and is_join(inner, outermost)
        case al.Join(left=left, right=right) | al.Union(left=left, right=right):
            return is_join(left, False) and is_join(right, False)
        case al.Graph(pattern=inner):
            return is_join(inner, False)
        case al.BGP(patterns=patterns):
            # A path of length zero also connects outer values that are not in the graph; a join would miss them.
            return all(isinstance(triple.predicate, al.Var | str) for triple in patterns)
        case _:
            return isinstance(pattern, al.Values)
