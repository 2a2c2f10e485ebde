"""All reports of a run in one Spark job: the answer of a query at each, and the changes from one to the next.

The solutions become ASK's one boolean, CONSTRUCT's triples, and rows for an engine's own value of an empty aggregate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.model.algebra import BGP, Ask, Construct, QueryForm, Select, Var
from streamgauge.model.query import StreamWindow
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import Counting, EmptyAggregate
from streamgauge.model.terms import XSD, Term, Triple
from streamgauge.query.graphs import spread
from streamgauge.query.instants import global_group
from streamgauge.query.stamps import stamped
from streamgauge.query.traversal import every_pattern
from streamgauge.spark.compiler import Compiler
from streamgauge.spark.exists import refuse
from streamgauge.spark.facts import FactsReader, Profile, numeric_variables, reads
from streamgauge.spark.intervals import merged
from streamgauge.spark.relation import Relation, column, refine

_PLACES = ("subject", "predicate", "object")
_NEVER = al.TriplePattern(al.Var(""), al.Var(""), al.Var(""))


def asked(spark: SparkSession, relation: Relation, reports: int) -> Relation:
    """ASK: one row with the column ``ask`` for each report."""
    text = fn.when(fn.col("found"), "true").otherwise("false")
    ask = fn.concat(fn.lit('"'), text, fn.lit(f'"^^<{XSD}boolean>')).alias(column("ask"))
    every = _every(spark, reports).join(_matched(relation), "lo", "left")
    return Relation(every.select("lo", fn.col("lo").alias("hi"), ask), ("ask",), frozenset({"ask"}), 1)


def _every(spark: SparkSession, reports: int) -> DataFrame:
    return spark.range(reports).select(fn.col("id").cast("int").alias("lo"))


def _matched(relation: Relation) -> DataFrame:
    """The distinct reports (``lo``) with a solution, and ``found`` true."""
    # Merged before they are exploded: a thousand solutions over the same reports would give each report a thousand
    # times.
    intervals = merged(relation.frame.select("lo", "hi").distinct(), ())
    return intervals.select(fn.explode(fn.sequence("lo", "hi")).alias("lo"), fn.lit(True).alias("found"))


def constructed(relation: Relation, template: tuple[al.TriplePattern, ...], reports: int) -> Relation:
    """CONSTRUCT: the set of triples of each report; a blank node of the template is a new one in every solution."""
    blank = any(var.name.startswith("_:") for triple in template for var in al.triple_variables(triple))
    solutions = refine(relation, 1) if blank else relation
    # Unique within a job, which suffices for the labels of new blank nodes.
    frame = solutions.frame.withColumn("solution", fn.monotonically_increasing_id()) if blank else solutions.frame
    triples = [
        fn.struct(
            *(_node(node, solutions).alias(column(place)) for node, place in zip(_nodes(triple), _PLACES, strict=True))
        )
        # Spark cannot explode an array without elements of a known type: an empty template gets a triple that is
        # never valid.
        for triple in template or (_NEVER,)
    ]
    names = [column(place) for place in _PLACES]
    rows = frame.select("lo", "hi", fn.explode(fn.array(*triples)).alias("triple")).select("lo", "hi", "triple.*")
    subject, predicate, item = map(fn.col, names)
    iri, blank = predicate.startswith("<") & ~predicate.startswith("<<("), subject.startswith("_:")
    valid = (blank | (subject.startswith("<") & ~subject.startswith("<<("))) & iri & item.isNotNull()
    # The result is a graph: a triple that several solutions give counts once.
    kept = merged(rows.filter(valid).distinct(), names)
    return Relation(kept, _PLACES, frozenset(_PLACES), reports)


def _nodes(triple: al.TriplePattern) -> tuple[al.Var | Term, ...]:
    predicate = triple.predicate
    assert isinstance(predicate, al.Var | str)
    return triple.subject, predicate, triple.object


def _node(node: al.Var | Term, solutions: Relation) -> Column:
    match node:
        case al.Var(name=name) if name.startswith("_:"):
            blank = fn.concat(fn.lit(f"_:c{name[2:]}x"), fn.col("solution").cast("string"))
            return fn.coalesce(solutions.value(name), blank)
        case al.Var(name=name):
            return solutions.value(name)
        case _:
            return fn.lit(node)


def over_nothing(compiler: Compiler, query: al.Select, relation: Relation, empty: EmptyAggregate) -> Relation:
    """Replace the values of an aggregate without GROUP BY that has no solutions."""
    group = global_group(query.pattern) if empty is not EmptyAggregate.SPARQL else None
    if group is None:
        return relation
    spark, reports = compiler.facts.spark, compiler.facts.reports
    matched = _matched(compiler.relation(group.pattern))
    rows = refine(relation, 1)
    kept = rows.frame.join(matched.select("lo"), "lo", "left_semi")
    if empty is EmptyAggregate.NO_ROW:
        return Relation(kept, rows.variables, rows.certain, 1)
    cell = fn.lit('""' if empty is EmptyAggregate.EMPTY_STRING else None).cast("string")
    others = _every(spark, reports).join(matched, "lo", "left_anti")
    hollow = others.select("lo", fn.col("lo").alias("hi"), *(cell.alias(column(name)) for name in rows.variables))
    return Relation(kept.select(*hollow.columns).unionByName(hollow), rows.variables, frozenset(), 1)


__all__ = ["SWEPT_REPORTS_MIN", "answers", "changes", "refuse"]


SWEPT_REPORTS_MIN = 500
"""From how many reports on aggregates sweep over intervals instead of being computed report by report."""

TRIPLE_COLUMNS = ("subject", "predicate", "object")


@dataclass(frozen=True)
class ContentChoices:
    """The choices of a semantics about contents: how copies count, and the value of an aggregate over nothing.

    ``known`` is the profile of (at least) the stream's triples that are read, if known already.
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
    reports: int = SWEPT_REPORTS_MIN,
    windows: Sequence[StreamWindow] = (),
    means: ContentChoices = ContentChoices(),
) -> DataFrame:
    """Columns ``report`` (index in ``due``) and one canonical term per variable; a row per solution.

    The columns are ``ask`` for ASK, ``subject``, ``predicate``, ``object`` for CONSTRUCT. ``stream`` is the stream
    table, with a column ``arrival`` (rank in system time) when ``seen`` or ``after`` matter. ``windows`` are the
    query's; without any, one over every element. ValueError names what Spark does not evaluate, or due reports that are
    out of order.
    """
    _check(query)
    names = columns(query)
    if not due:
        return spark.createDataFrame([], _schema("report int", names))
    reader = FactsReader(spark, stream, due, windows, means.counting, means.known, not _has_paths(query))
    refined = refine(_rows(reader, query, static, reports, means.empty), 1)
    return refined.frame.select("lo", *map(refined.value, names)).toDF("report", *names)


def changes(
    spark: SparkSession,
    stream: DataFrame,
    due: Sequence[DueReport],
    query: QueryForm,
    static: Iterable[Triple] = (),
    many: int = SWEPT_REPORTS_MIN,
    windows: Sequence[StreamWindow] = (),
    means: ContentChoices = ContentChoices(),
) -> DataFrame:
    """Columns ``report``, ``net`` and one term per variable: changes of multiplicity since the report before.

    The report before the first is empty. The cost depends on the number of solutions, not of reports.
    """
    _check(query)
    names = columns(query)
    if not due:
        return spark.createDataFrame([], _schema("report int, net bigint", names))
    reader = FactsReader(spark, stream, due, windows, means.counting, means.known, not _has_paths(query))
    refined = _rows(reader, query, static, many, means.empty)
    terms = [refined.value(name).alias(f"t{index}") for index, name in enumerate(names)]
    # A row over lo to hi is a change at two reports, however many lie between.
    come = refined.frame.select(fn.col("lo").alias("report"), fn.lit(1).alias("net"), *terms)
    go = refined.frame.select((fn.col("hi") + 1).alias("report"), fn.lit(-1).alias("net"), *terms)
    keys = ["report", *(f"t{index}" for index in range(len(names)))]
    # Rows of the last report would leave at the one after it, which does not exist.
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


def _check(query: QueryForm) -> None:
    # Before any job: an unsupported part would fail in the middle of a plan, with Spark's message.
    if (reason := refuse(query)) is not None:
        raise ValueError(reason)


def _schema(first: str, names: Sequence[str]) -> str:
    return ", ".join([first, *(f"`{name}` string" for name in names)])


def _has_paths(query: QueryForm) -> bool:
    blocks = [part for part in every_pattern(query.pattern) if isinstance(part, BGP)]
    return any(not isinstance(triple.predicate, str | Var) for block in blocks for triple in block.patterns)


def _rows(
    reader: FactsReader, query: QueryForm, static: Iterable[Triple], reports: int, empty: EmptyAggregate
) -> Relation:
    """The answer's rows over intervals of reports, in the answer's columns."""
    names = tuple(f"<{window.name}>" for window in reader.windows if window.name is not None)
    # timestamp() and GRAPH ?g are rewritten to plain patterns first, so that the compiler knows neither.
    form = spread(stamped(query), names)
    compiler = Compiler(reader.graphs(reads(form.pattern), static), numeric_variables(form.pattern), reports)
    relation = compiler.relation(form.pattern)
    match query:
        case Select(variables=variables):
            return over_nothing(compiler, replace(query, pattern=form.pattern), relation.project(variables), empty)
        case Ask():
            return asked(reader.spark, relation, len(reader.due))
        case Construct(template=template):
            return constructed(relation, template, len(reader.due))
