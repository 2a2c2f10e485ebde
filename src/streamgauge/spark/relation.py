"""Relations: bags of solutions, each valid over an interval of report indexes, and how they join.

A frame has ``lo`` and ``hi`` (first and last report index, inclusive), a string column per variable (`column`) and, for
variables in ``numbers``, a column with its value (`number`). An interval never crosses a block of ``width`` reports, so
equal blocks can be a join key beside the shared variables; width 1 means lo = hi = the report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.model.terms import Row


@dataclass(frozen=True)
class Relation:
    """A bag of solutions; ``certain`` variables are bound in every row, the other ``variables`` may not be."""

    frame: DataFrame
    variables: tuple[str, ...]
    certain: frozenset[str]
    width: int
    numbers: Mapping[str, str] = field(default_factory=dict)

    def value(self, name: str) -> Column:
        """The term column of a variable, null when the relation does not have it."""
        return fn.col(column(name)) if name in self.variables else fn.lit(None).cast("string")

    def where(self, condition: Column) -> "Relation":
        """The rows for which the condition is true."""
        return replace(self, frame=self.frame.filter(condition))

    def project(self, variables: tuple[str, ...]) -> "Relation":
        """Project to these variables; missing ones become unbound."""
        numbers = {name: kind for name, kind in self.numbers.items() if name in variables}
        columns = [self.value(name).alias(column(name)) for name in variables] + [fn.col(number(n)) for n in numbers]
        frame = self.frame.select("lo", "hi", *columns)
        return Relation(frame, variables, self.certain & set(variables), self.width, numbers)

    def rename(self, names: Mapping[str, str]) -> "Relation":
        """The same rows under other variable names (a one-to-one mapping of all of them)."""
        terms = [fn.col(column(name)).alias(column(names[name])) for name in self.variables]
        values = [fn.col(number(name)).alias(number(names[name])) for name in self.numbers]
        return Relation(
            self.frame.select("lo", "hi", *terms, *values),
            tuple(names[name] for name in self.variables),
            frozenset(names[name] for name in self.certain),
            self.width,
            {names[name]: kind for name, kind in self.numbers.items()},
        )


def always(spark: SparkSession, reports: int, variables: Sequence[str], rows: Sequence[Row]) -> Relation:
    """Rows that are solutions of every report."""
    data = {"lo": pa.array([0] * len(rows), pa.int32()), "hi": pa.array([reports - 1] * len(rows), pa.int32())}
    for index, name in enumerate(variables):
        data[column(name)] = pa.array([row[index] for row in rows], pa.string())
    bound = frozenset(name for i, name in enumerate(variables) if all(row[i] is not None for row in rows))
    return Relation(spark.createDataFrame(pa.table(data)), tuple(variables), bound, reports)


def fresh(relation: Relation, stem: str) -> str:
    """A variable name that the relation does not have: the stem, numbered."""
    return next(name for number in count() if (name := f"{stem}{number}") not in relation.variables)


def column(name: str) -> str:
    """The column of a variable's term; Spark ignores case in names and splits them at dots, SPARQL does neither."""
    # Worked example: ?x and ?X are the columns v_x and v_^x, which differ for Spark too.
    letters = (letter if letter == letter.lower() else "^" + letter.lower() for letter in name)
    return "v_" + "".join(letters).replace(".", "~")


def number(name: str) -> str:
    """The column of a variable's numeric value."""
    return "n_" + column(name)[2:]


def refine(relation: Relation, width: int) -> Relation:
    """The same solutions with intervals cut at the borders of blocks of ``width`` reports."""
    if relation.width <= width:
        return relation
    if width == 1:
        others = [name for name in relation.frame.columns if name not in ("lo", "hi")]
        frame = relation.frame.select(fn.explode(fn.sequence("lo", "hi")).alias("lo"), *others).withColumn(
            "hi", fn.col("lo")
        )
    else:
        frame = cut(relation.frame, width)
    return replace(relation, frame=frame, width=width)


def cut(frame: DataFrame, width: int) -> DataFrame:
    """A frame's intervals cut at the borders of blocks of ``width`` reports."""
    blocks = fn.sequence(block("lo", width), block("hi", width))
    others = [name for name in frame.columns if name not in ("lo", "hi")]
    pieces = frame.select("lo", "hi", *others, fn.explode(blocks).alias("block"))
    # Worked example: the interval 5 to 17 in blocks of 8 reports becomes 5 to 7, 8 to 15 and 16 to 17.
    low = fn.greatest("lo", fn.col("block") * width)
    high = fn.least("hi", fn.col("block") * width + (width - 1))
    return pieces.select(low.alias("lo"), high.alias("hi"), *others)


def block(name: str, width: int) -> Column:
    """The index of the block of ``width`` reports that a report index column falls in."""
    # ``div`` divides whole numbers; ``/`` would convert them to doubles.
    return fn.expr(f"cast({name} div {width} as int)") if width > 1 else fn.col(name)


def join(left: Relation, right: Relation, reports: int, also: Column | None = None) -> Relation:
    """Join(left, right): the compatible pairs that are valid at the same reports.

    ``also`` is a further condition on a pair; the right row's columns are prefixed ``r_`` in it.
    """
    condition = compatible(left, right, reports)
    paired = left.frame.join(other(right), condition if also is None else condition & also, "inner")
    low, high = fn.greatest("lo", "r_lo"), fn.least("hi", "r_hi")
    return merged(paired, left, right, (low, high), left.certain | right.certain)


def union(left: Relation, right: Relation) -> Relation:
    """UNION: ``Union(left, right)`` of SPARQL 1.1, 18.5."""
    variables = tuple(dict.fromkeys(left.variables + right.variables))
    # A column has a single type: where the sides have numbers of different kinds, only the terms are kept.
    numbers = {n: kind for n, kind in left.numbers.items() if right.numbers.get(n) == kind}
    frames = [replace(side.project(variables), numbers={}).frame for side in (left, right)]
    kept = ["lo", "hi", *map(column, variables), *map(number, numbers)]
    frame = frames[0].select(*kept).unionByName(frames[1].select(*kept))
    return Relation(frame, variables, left.certain & right.certain, max(left.width, right.width), numbers)


def compatible(left: Relation, right: Relation, reports: int) -> Column:
    """The condition that a left row and a right row (its columns prefixed ``r_``) are compatible at some report."""
    terms = [_same(name, left, right) for name in shared(left, right)]
    width = max(left.width, right.width)
    if width == 1:
        return reduce(Column.__and__, terms, fn.col("lo") == fn.col("r_lo"))
    if width < reports:
        # An equality, by which Spark hashes or sorts: by the overlap alone it would compare all pairs.
        terms.append(block("lo", width) == block("r_lo", width))
    overlap = (fn.col("lo") <= fn.col("r_hi")) & (fn.col("r_lo") <= fn.col("hi"))
    return reduce(Column.__and__, terms, overlap)


def _same(name: str, left: Relation, right: Relation) -> Column:
    ours, theirs = fn.col(column(name)), fn.col("r_" + column(name))
    equal = ours == theirs
    # Unbound is compatible with every value (SPARQL 1.1, 18.3). Only where it may occur: Spark cannot hash by an OR.
    if name not in left.certain:
        equal = ours.isNull() | equal
    return equal if name in right.certain else theirs.isNull() | equal


def shared(left: Relation, right: Relation) -> list[str]:
    """The variables that both have."""
    return [name for name in left.variables if name in right.variables]


def other(right: Relation) -> DataFrame:
    """The frame of the right side of a pair, its columns prefixed ``r_``."""
    return right.frame.select(*(fn.col(name).alias("r_" + name) for name in right.frame.columns))


def merged(
    paired: DataFrame, left: Relation, right: Relation, interval: tuple[Column, Column], certain: frozenset[str]
) -> Relation:
    """The pairs as one relation: shared variables from either side, over this interval."""
    variables = tuple(dict.fromkeys(left.variables + right.variables))
    both = {**right.numbers, **left.numbers}
    numbers = {n: kind for n, kind in both.items() if _one_kind(n, kind, left, right)}
    terms = [_either(column(name), name, left, right) for name in variables]
    values = [_either(number(name), name, left, right) for name in numbers]
    frame = paired.select(interval[0].alias("lo"), interval[1].alias("hi"), *terms, *values)
    return Relation(frame, variables, certain, min(left.width, right.width), numbers)


def _one_kind(name: str, kind: str, left: Relation, right: Relation) -> bool:
    if name in left.certain or name not in right.variables:
        return left.numbers.get(name) == kind
    return right.numbers.get(name) == kind and (name not in left.variables or left.numbers.get(name) == kind)


def _either(name: str, variable: str, left: Relation, right: Relation) -> Column:
    ours, theirs = fn.col(name), fn.col("r_" + name)
    if variable not in right.variables or variable in left.certain:
        return ours
    # Whichever side binds it: compatible rows have equal terms where both do.
    return (fn.coalesce(ours, theirs) if variable in left.variables else theirs).alias(name)
