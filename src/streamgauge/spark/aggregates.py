"""GROUP BY and aggregates over relations: per group and report, or by one sweep over the ends of intervals.

With few reports, relations are expanded to a row per report. Over many reports, a group only changes when a solution
begins (``lo``) or ends (after ``hi``); its aggregates are constant in between, so that the result is a relation over
intervals again, and the cost grows with the solutions, not with the reports. The tallies of the sweep add and remove
solutions exactly in any order (real sums in units of 2^-1074).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Any, Final, Literal, Protocol

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from streamgauge.model.algebra import Aggregate, Call, Group, Var
from streamgauge.model.terms import XSD, Term
from streamgauge.spark.intervals import swept
from streamgauge.spark.relation import Relation, block, column, number, refine
from streamgauge.spark.scalars import DATA_BITS, Typed, computed, fast, integer_term, real_term, value
from streamgauge.sparql.aggregates import aggregate as evaluated
from streamgauge.sparql.aggregates import concatenation

ZERO = f'"0"^^<{XSD}integer>'
_ERROR = ""  # no term is the empty string


@dataclass(frozen=True)
class AggregatePlan:
    """One aggregate: the input columns of a row, the grouped columns, and the term they give."""

    inputs: tuple[Column, ...]
    grouped: tuple[Column, ...]
    result: Column
    count: Column | None = None


def group(every: DataFrame, inner: Relation, node: Group, within: Sequence[str] = ()) -> Relation:
    """Group(keys, aggregates) of an expanded relation, apart for each value of the variables ``within``.

    Without keys there is one row for each row of ``every``: the reports (``lo``) and the columns of ``within``.
    """
    keys = [value(expression, inner).alias(column(var.name)) for var, expression in node.keys]
    plans = [(var.name, _plan(f"a{i}", aggregate, inner)) for i, (var, aggregate) in enumerate(node.aggregates)]
    parts = list(map(column, within))
    rows = inner.frame.select("lo", *parts, *keys, *(item for _, plan in plans for item in plan.inputs))
    names = [*parts, *(column(var.name) for var, _ in node.keys)]
    grouped = rows.groupBy("lo", *names).agg(
        fn.count("*").alias("rows"), *(g for _, plan in plans for g in plan.grouped)
    )
    if not node.keys:
        # Without GROUP BY, no solutions are one group too: COUNT is 0 then.
        grouped = every.join(grouped, ["lo", *parts], "left")
    terms = [plan.result.alias(column(name)) for name, plan in plans]
    counts = {name: plan.count for name, plan in plans if plan.count is not None}
    values = [count.alias(number(name)) for name, count in counts.items()]
    variables = (*within, *(var.name for var, _ in node.keys), *(name for name, _ in plans))
    frame = grouped.select("lo", fn.col("lo").alias("hi"), *names, *terms, *values)
    return Relation(frame, variables, frozenset(counts) | set(within), 1, dict.fromkeys(counts, "integer"))


def _plan(name: str, aggregate: Aggregate, inner: Relation) -> AggregatePlan:
    if aggregate.function == "COUNT":
        return _count(name, aggregate, inner)
    if aggregate.function == "SAMPLE" and aggregate.argument is not None:
        argument = value(aggregate.argument, inner).alias(name)
        # Any value is a legal SAMPLE; the least is the same in every run.
        return AggregatePlan((argument,), (fn.min(name).alias(name),), fn.col(name))
    if aggregate.function == "GROUP_CONCAT":
        return _collected(name, aggregate, inner)
    assert aggregate.argument is not None
    typed = fast(aggregate.argument, inner)
    if typed is None or typed.kind == "boolean":
        return _collected(name, aggregate, inner)
    if aggregate.function in ("MIN", "MAX"):
        return _extreme(name, aggregate, typed, value(aggregate.argument, inner))
    wide = typed.kind == "integer" and typed.bits > DATA_BITS
    return _collected(name, aggregate, inner) if aggregate.distinct or wide else _summed(name, aggregate, typed)


def _count(name: str, aggregate: Aggregate, inner: Relation) -> AggregatePlan:
    if aggregate.argument is not None:
        argument = value(aggregate.argument, inner)
    elif aggregate.distinct:
        argument = fn.struct(fn.lit(1), *(fn.col(column(variable)) for variable in shown(inner.variables)))
    else:
        argument = fn.lit(1)
    counted = fn.count_distinct(fn.col(name)) if aggregate.distinct else fn.count(name)
    count = fn.coalesce(fn.col(name), fn.lit(0)).cast("bigint")
    return AggregatePlan((argument.alias(name),), (counted.alias(name),), integer_term(count), count)


def shown(variables: Iterable[str]) -> tuple[str, ...]:
    """The variables that ``*`` means: not a query's blank nodes, nor the middles of its paths (18.3.1)."""
    return tuple(name for name in variables if not name.startswith(("_:", ".")))


def _extreme(name: str, aggregate: Aggregate, typed: Typed, term: Column) -> AggregatePlan:
    """MIN or MAX of numbers of one kind: NaN is the greatest; of equal numbers the least term is taken."""
    if aggregate.function == "MIN":
        rank = [typed.column]
    elif typed.kind == "integer":
        rank = [-typed.column]
    else:
        rank = [~fn.isnan(typed.column), -typed.column]
    # Structs compare field by field: the term, as the last one, decides among equal numbers.
    ranked = fn.when(typed.column.isNotNull(), fn.struct(*rank, term.alias("term")))
    grouped = (fn.min(name).alias(name), fn.count(name).alias(f"{name}_count"))
    # A count skips nulls, so a smaller one shows an error, which is an error of the group.
    result = fn.when(fn.col(f"{name}_count") == fn.col("rows"), fn.col(f"{name}.term"))
    return AggregatePlan((ranked.alias(name),), grouped, result)


def _summed(name: str, aggregate: Aggregate, typed: Typed) -> AggregatePlan:
    """SUM or AVG of numbers of one kind: xsd:float and xsd:double are added up in 64 bits, integers of 31 bits too."""
    grouped = (fn.sum(name).alias(f"{name}_sum"), fn.count(name).alias(f"{name}_count"))
    return AggregatePlan((typed.column.alias(name),), grouped, term_of_total(name, aggregate.function, typed.kind))


def term_of_total(name: str, function: str, kind: str) -> Column:
    """The term of SUM or AVG from the columns ``<name>_sum``, ``<name>_count`` and ``rows`` (null for no solution)."""
    total, count = fn.col(f"{name}_sum"), fn.col(f"{name}_count")
    whole = kind == "integer"
    text = integer_term(total) if whole else real_term(total.cast(kind), kind)
    terms = {"sum": text, "count": integer_term(count)}
    sum_only = Call("+", (Var("sum"), ZERO))
    last = sum_only if function == "SUM" else Call("/", (Var("sum"), Var("count")))
    result = terms["sum"] if whole and last is sum_only else computed(last, terms)
    return fn.when(fn.col("rows").isNull(), ZERO).when(count == fn.col("rows"), result)


def _collected(name: str, aggregate: Aggregate, inner: Relation) -> AggregatePlan:
    """Any aggregate of terms of any kinds, group by group; GROUP_CONCAT in the order of the terms."""
    assert aggregate.argument is not None
    once = aggregate.distinct or aggregate.function in ("MIN", "MAX")
    evaluate: Callable[[list[list[Term]]], list[Term | None]]
    if aggregate.function == "GROUP_CONCAT":
        evaluate = partial(concatenated, aggregate.separator)
    else:
        evaluate = partial(aggregated, aggregate.function)
    argument = fn.coalesce(value(aggregate.argument, inner), fn.lit(_ERROR)).alias(name)
    gathered = fn.collect_set(name) if once else fn.collect_list(name)

    def compute(groups: pa.Array) -> pa.Array:
        return pa.array(evaluate(groups.to_pylist()), pa.string())

    result = fn.arrow_udf(compute, "string")(fn.coalesce(fn.col(name), fn.array().cast("array<string>")))
    return AggregatePlan((argument,), (gathered.alias(name),), result)


def concatenated(separator: str, groups: Sequence[Sequence[Term]]) -> list[Term | None]:
    """GROUP_CONCAT of each bag of terms: a simple literal, or the empty string for an error."""
    return [concatenation([term or None for term in sorted(terms)], separator) for terms in groups]


def aggregated(function: str, groups: Sequence[Sequence[Term]]) -> list[Term | None]:
    """SUM, AVG, MIN or MAX of each bag of terms, or the empty string for an error."""
    return [evaluated(function, [term or None for term in sorted(terms)]) for terms in groups]


Cells = tuple[Any, ...]
One = tuple[Term | None, Any]
"""The contribution of one solution to an aggregate: a term and its number, either ``None`` when it has none."""

_UNIT = 1 << 1074  # every finite double is a whole multiple of 2^-1074


@dataclass(frozen=True, slots=True)
class TallyKind:
    """The evaluation of an aggregate; ``whole`` sums are of integers of any length, which Spark gets as digits."""

    function: Literal["count", "sum", "least", "greatest"]
    distinct: bool = False
    whole: bool = False

    def columns(self, index: int) -> dict[str, str]:
        """The result columns, with Spark's types, of the aggregate at this position."""
        if self.function == "count":
            return {f"a{index}_count": "bigint"}
        if self.function == "sum":
            number = "string" if self.whole else "double"
            return {f"a{index}_sum": number, f"a{index}_count": "bigint", f"a{index}_rows": "bigint"}
        return {f"a{index}_term": "string"}

    def start(self) -> "Tally":
        """The tally of an empty bag."""
        if self.function in ("least", "greatest"):
            return _Extreme(1 if self.function == "least" else -1)
        plain: Tally = _Count() if self.function == "count" else _Sum(1 if self.whole else _UNIT)
        return _Distinct(plain) if self.distinct else plain


class Tally(Protocol):
    """The value of an aggregate over a changing bag of solutions."""

    def add(self, one: One) -> None:
        """Count one solution more."""

    def take(self, one: One) -> None:
        """Remove one occurrence of a solution's term."""

    def value(self) -> Cells:
        """The aggregate's columns now."""


class _Count:
    def __init__(self) -> None:
        self.count = 0

    def add(self, one: One) -> None:
        self.count += one[0] is not None

    def take(self, one: One) -> None:
        self.count -= one[0] is not None

    def value(self) -> Cells:
        return (self.count,)


class _Sum:
    """The numbers' sum in units of 1 / ``scale``, how many they are, and how many solutions have none."""

    def __init__(self, scale: int) -> None:
        self.scale, self.total, self.count, self.errors = scale, 0, 0, 0
        self.special: Counter[str] = Counter()

    def add(self, one: One) -> None:
        self._change(one[1], 1)

    def take(self, one: One) -> None:
        self._change(one[1], -1)

    def _change(self, number: Any, sign: int) -> None:
        if number is None:
            self.errors += sign
            return
        self.count += sign
        if self.scale == 1:
            self.total += sign * number
        elif math.isfinite(number):
            above, below = number.as_integer_ratio()
            self.total += sign * above * (self.scale // below)
        else:
            self.special[str(number)] += sign

    def value(self) -> Cells:
        """The sum, the count, and the count again only when every solution has a number (-1 otherwise)."""
        whole = self.count if not self.errors else -1
        return self._sum(), self.count, whole if self.count or self.errors else None

    def _sum(self) -> str | float:
        if self.scale == 1:
            return str(self.total)
        if self.special["nan"] or (self.special["inf"] and self.special["-inf"]):
            return math.nan
        if self.special["inf"] or self.special["-inf"]:
            return math.inf if self.special["inf"] else -math.inf
        try:
            return self.total / self.scale
        # Python raises it for a quotient beyond the largest double, which IEEE 754 rounds to infinity.
        except OverflowError:
            return math.inf if self.total > 0 else -math.inf


class _Distinct:
    """DISTINCT: another tally, over distinct terms."""

    def __init__(self, plain: Tally) -> None:
        self.plain = plain
        self.copies: Counter[Term | None] = Counter()

    def add(self, one: One) -> None:
        self.copies[one[0]] += 1
        if self.copies[one[0]] == 1:
            self.plain.add(one)

    def take(self, one: One) -> None:
        self.copies[one[0]] -= 1
        if not self.copies[one[0]]:
            del self.copies[one[0]]
            self.plain.take(one)

    def value(self) -> Cells:
        return self.plain.value()


class _Extreme:
    """MIN or MAX: the term of the least number times ``sign``; NaN is the greatest."""

    def __init__(self, sign: int) -> None:
        self.sign, self.errors = sign, 0
        self.heap: list[tuple[int, float, Term]] = []
        self.gone: Counter[tuple[int, float, Term]] = Counter()

    def add(self, one: One) -> None:
        if (entry := self._entry(one)) is None:
            self.errors += 1
        else:
            heappush(self.heap, entry)

    def take(self, one: One) -> None:
        if (entry := self._entry(one)) is None:
            self.errors -= 1
        else:
            self.gone[entry] += 1

    def _entry(self, one: One) -> tuple[int, float, Term] | None:
        term, number = one
        if term is None or number is None:
            return None
        return (self.sign, 0, term) if math.isnan(number) else (0, self.sign * number, term)

    def value(self) -> Cells:
        # A heap removes only its top cheaply: a term that has left waits until it is there.
        while self.heap and self.gone.get(self.heap[0]):
            entry = heappop(self.heap)
            self.gone[entry] -= 1
            if not self.gone[entry]:
                del self.gone[entry]
        return (self.heap[0][2] if self.heap and not self.errors else None,)


def groups(rows: Iterable[Cells], kinds: Sequence[TallyKind], keyed: bool, reports: int, width: int) -> Iterator[Cells]:
    """The aggregates of a group in a block of ``width`` reports, from rows of lo, hi, and a term and number for each.

    They are valid over intervals of reports. A group with a key exists while it has solutions; one without a key exists
    in every report, and has a row without ``hi`` for a block that may have no solutions.
    """
    group = _Moving([kind.start() for kind in kinds], keyed)
    for place, (low, high, *cells) in enumerate(rows):
        if not place:
            group.at = low - low % width
            end = min(reports, group.at + width)
        if high is not None:
            yield from group.forward(low)
            group.enter(high, [(cells[2 * index], cells[2 * index + 1]) for index in range(len(kinds))])
    yield from group.forward(end)
    yield from group.rest()


class _Moving:
    """One group's results from report to report; equal results of consecutive reports are one row."""

    def __init__(self, tallies: Sequence[Tally], keyed: bool) -> None:
        self.tallies, self.keyed = tallies, keyed
        self.at, self.rows, self.entered = 0, 0, 0
        self.ends: list[tuple[int, int, list[One]]] = []
        self.said: tuple[int, int, Cells] | None = None

    def enter(self, high: int, cells: list[One]) -> None:
        """Add a solution that is valid from the current report to ``high``."""
        self.rows += 1
        # Decides among equal ends in the heap, because cells do not compare: some are None.
        self.entered += 1
        heappush(self.ends, (high, self.entered, cells))
        for tally, one in zip(self.tallies, cells, strict=True):
            tally.add(one)

    def forward(self, report: int) -> Iterator[Cells]:
        """Advance to ``report``; yields the results of the reports before it."""
        while self.ends and self.ends[0][0] < report:
            yield from self._hold(self.ends[0][0] + 1)
            self._leave()
        yield from self._hold(report)

    def _leave(self) -> None:
        while self.ends and self.ends[0][0] < self.at:
            _, _, cells = heappop(self.ends)
            self.rows -= 1
            for tally, one in zip(self.tallies, cells, strict=True):
                tally.take(one)

    def _hold(self, until: int) -> Iterator[Cells]:
        """The current result, for the reports from the current one to before ``until``."""
        if self.at < until:
            if self.rows or not self.keyed:
                cells = tuple(cell for tally in self.tallies for cell in tally.value())
                yield from self._say(self.at, until - 1, cells)
            self.at = until

    def _say(self, low: int, high: int, cells: Cells) -> Iterator[Cells]:
        if self.said and self.said[1] == low - 1 and self.said[2] == cells:
            self.said = self.said[0], high, cells
        else:
            yield from self.rest()
            self.said = low, high, cells

    def rest(self) -> Iterator[Cells]:
        """The pending result, which the next report might have extended."""
        if self.said:
            yield self.said[0], self.said[1], *self.said[2]
            self.said = None


@dataclass(frozen=True)
class _RunningPlan:
    """One aggregate: its kind of tally, a solution's contribution (term, value), and the term of the tally's value."""

    name: str
    kind: TallyKind
    term: Column
    value: Column
    result: Column
    count: Column | None = None


SWEPT_REPORTS: Final = 512
"""Reports of one sweep at most, so that no row has a group's solutions of a whole run.

Measured for one group of all rows, an average over 10 s each second: the worker that sweeps has a peak of 149 MiB at
480 reports, 308 MiB at 714.
"""


def running_group(inner: Relation, node: Group, reports: int) -> Relation | None:
    """Group(keys, aggregates) over intervals; ``None`` when some aggregate needs every report's bag at once.

    Worked example: an average over windows of 10 s every second has intervals of 10 reports. They are cut at the
    borders of blocks of at most 512 reports; each block is swept from the solutions at its first report.
    """
    width = min(inner.width, SWEPT_REPORTS, reports)
    inner = refine(inner, width)
    running_plans = [
        _running_plan(f"a{i}", var.name, aggregate, inner) for i, (var, aggregate) in enumerate(node.aggregates)
    ]
    plans = [plan for plan in running_plans if plan is not None]
    if len(plans) < len(running_plans):
        return None
    keys = [column(var.name) for var, _ in node.keys]
    key_columns = [value(expression, inner).alias(column(var.name)) for var, expression in node.keys]
    brought = [item.alias(f"{name}{i}") for i, p in enumerate(plans) for name, item in (("t", p.term), ("v", p.value))]
    rows = inner.frame.select("lo", "hi", *brought, *key_columns)
    if not keys:
        rows = rows.unionByName(_first_rows(rows, -(-reports // width), width))
    kinds = tuple(plan.kind for plan in plans)
    sweep = partial(groups, kinds=kinds, keyed=bool(keys), reports=reports, width=width)
    message = {"lo": "int", "hi": "int"} | {
        k: v for i, plan in enumerate(plans) for k, v in plan.kind.columns(i).items()
    }
    blocks = rows.withColumn("block", block("lo", width))
    return _relation(node, plans, swept(blocks, [*keys, "block"], sweep, message), width)


def _first_rows(rows: DataFrame, blocks: int, width: int) -> DataFrame:
    """A marker row at the first report of each block, whose other columns are null."""
    starts = (fn.col("id") * width).cast("int").alias("lo")
    others = [fn.lit(None).cast(field.dataType).alias(field.name) for field in rows.schema if field.name != "lo"]
    return rows.sparkSession.range(blocks).select(starts, *others)


def _relation(node: Group, plans: Sequence[_RunningPlan], frame: DataFrame, width: int) -> Relation:
    for index, plan in enumerate(plans):
        if plan.kind.function == "sum":
            frame = frame.withColumn("rows", fn.col(f"a{index}_rows"))
        frame = frame.withColumn(column(plan.name), plan.result)
        if plan.count is not None:
            frame = frame.withColumn(number(plan.name), plan.count)
    counts = [plan.name for plan in plans if plan.count is not None]
    variables = (*(var.name for var, _ in node.keys), *(plan.name for plan in plans))
    kept = frame.select("lo", "hi", *map(column, variables), *map(number, counts))
    return Relation(kept, variables, frozenset(counts), width, dict.fromkeys(counts, "integer"))


def _running_plan(prefix: str, name: str, aggregate: Aggregate, inner: Relation) -> _RunningPlan | None:
    if aggregate.function == "COUNT":
        count = fn.col(f"{prefix}_count")
        term = _counted(aggregate, inner)
        kind = TallyKind("count", aggregate.distinct)
        return _RunningPlan(name, kind, term, fn.lit(None).cast("string"), integer_term(count), count)
    typed = fast(aggregate.argument, inner) if aggregate.argument is not None else None
    if typed is None or typed.kind == "boolean" or aggregate.argument is None:
        return None
    term = value(aggregate.argument, inner)
    if aggregate.function in ("MIN", "MAX"):
        kind = TallyKind("least" if aggregate.function == "MIN" else "greatest")
        return _RunningPlan(name, kind, term, typed.column, fn.col(f"{prefix}_term"))
    if aggregate.function not in ("SUM", "AVG"):
        return None
    whole = typed.kind == "integer"
    kind = TallyKind("sum", aggregate.distinct, whole)
    result = term_of_total(prefix, aggregate.function, typed.kind)
    term = term if aggregate.distinct else fn.lit(None).cast("string")
    return _RunningPlan(name, kind, term, typed.column.cast("bigint" if whole else "double"), result)


def _counted(aggregate: Aggregate, inner: Relation) -> Column:
    """A column that is not null for solutions that count, and equal for those that DISTINCT identifies."""
    if aggregate.argument is not None:
        term = value(aggregate.argument, inner)
        return term if aggregate.distinct else fn.when(term.isNotNull(), fn.lit(""))
    if not aggregate.distinct:
        return fn.lit("")
    return fn.concat_ws("\n", *(fn.coalesce(inner.value(variable), fn.lit("")) for variable in shown(inner.variables)))
