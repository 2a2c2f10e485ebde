"""All reports of a run in one Spark job: what a query answers at each, and what changes from one to the next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.model.algebra import BGP, Ask, Construct, QueryForm, Select, Var
from streamgauge.model.query import StreamWindow
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Counting, EmptyAggregate
from streamgauge.model.terms import Triple
from streamgauge.query.graphs import spread
from streamgauge.query.rebuild import every_pattern
from streamgauge.query.stamps import stamped
from streamgauge.spark.compiler import Compiler
from streamgauge.spark.facts import Reader
from streamgauge.spark.outcome import asked, constructed, over_nothing
from streamgauge.spark.profile import Profile
from streamgauge.spark.reads import numeric_variables, reads
from streamgauge.spark.refusal import refuse
from streamgauge.spark.relation import Relation, refine

__all__ = ["MANY", "answers", "changes", "refuse"]


MANY = 500
"""From how many reports on aggregates sweep over intervals instead of being computed report by report."""

TRIPLE_COLUMNS = ("subject", "predicate", "object")


@dataclass(frozen=True)
class Means:
    """What an engine's semantics says about contents: how copies count, what an aggregate over nothing gives.

    ``known`` is the profile of the stream's triples (of at least those that are read) where it is known already.
    """

    counting: Counting = Counting.SET
    empty: EmptyAggregate = EmptyAggregate.SPARQL
    known: Profile | None = None


def answers(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    query: QueryForm,
    static: Iterable[Triple] = (),
    many: int = MANY,
    windows: Sequence[StreamWindow] = (),
    means: Means = Means(),
) -> DataFrame:
    """Columns ``report`` (index in ``due``) and one canonical term per variable; a row per solution.

    The columns are ``ask`` for ASK, ``subject``, ``predicate``, ``object`` for CONSTRUCT. ``stream`` is the stream
    table, with a column ``arrival`` (rank in system time) when ``seen`` or ``after`` matter. ``windows`` are the
    query's; without any, one over every element. ValueError names what Spark does not evaluate, or due reports that are
    out of order.
    """
    names = _columns(query)
    if not due:
        return spark.createDataFrame([], _schema("report int", names))
    found = refine(_rows(_reader(spark, stream, due, query, windows, means), query, static, many, means.empty), 1)
    return found.frame.select("lo", *map(found.value, names)).toDF("report", *names)


def changes(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    query: QueryForm,
    static: Iterable[Triple] = (),
    many: int = MANY,
    windows: Sequence[StreamWindow] = (),
    means: Means = Means(),
) -> DataFrame:
    """Columns ``report``, ``net`` and one term per variable: how many more (or fewer) copies of a row than before.

    The bag of the report before the first is empty. Costs as much as there are solutions, however many reports.
    """
    names = _columns(query)
    if not due:
        return spark.createDataFrame([], _schema("report int, net bigint", names))
    found = _rows(_reader(spark, stream, due, query, windows, means), query, static, many, means.empty)
    terms = [found.value(name).alias(f"t{index}") for index, name in enumerate(names)]
    come = found.frame.select(fn.col("lo").alias("report"), fn.lit(1).alias("net"), *terms)
    go = found.frame.select((fn.col("hi") + 1).alias("report"), fn.lit(-1).alias("net"), *terms)
    keys = ["report", *(f"t{index}" for index in range(len(names)))]
    summed = come.unionByName(go).filter(fn.col("report") < len(due)).groupBy(*keys).agg(fn.sum("net").alias("net"))
    return summed.filter(fn.col("net") != 0).select("report", "net", *keys[1:]).toDF("report", "net", *names)


def columns(query: QueryForm) -> tuple[str, ...]:
    """The names of the columns of a query's answers."""
    match query:
        case Select(variables=variables):
            return variables
        case Ask():
            return ("ask",)
        case Construct():
            return TRIPLE_COLUMNS


def _columns(query: QueryForm) -> tuple[str, ...]:
    if (reason := refuse(query)) is not None:
        raise ValueError(reason)
    return columns(query)


def _schema(first: str, names: Sequence[str]) -> str:
    return ", ".join([first, *(f"`{name}` string" for name in names)])


def _reader(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    query: QueryForm,
    windows: Sequence[StreamWindow],
    means: Means,
) -> Reader:
    plain = not any(isinstance(part, BGP) and _has_path(part) for part in every_pattern(query.pattern))
    return Reader(spark, stream, due, windows, means.counting, means.known, plain)


def _has_path(pattern: BGP) -> bool:
    return any(not isinstance(triple.predicate, str | Var) for triple in pattern.patterns)


def _rows(reader: Reader, query: QueryForm, static: Iterable[Triple], many: int, empty: EmptyAggregate) -> Relation:
    """The answer's rows over intervals of reports, in the answer's columns."""
    names = tuple(f"<{window.name}>" for window in reader.windows if window.name is not None)
    form = spread(stamped(query), names)
    compiler = Compiler(reader.graphs(reads(form.pattern), static), numeric_variables(form.pattern), many)
    found = compiler.relation(form.pattern)
    match query:
        case Select(variables=variables):
            return over_nothing(compiler, replace(query, pattern=form.pattern), found.project(variables), empty)
        case Ask():
            return asked(reader.spark, found, len(reader.due))
        case Construct(template=template):
            return constructed(found, template, len(reader.due))
