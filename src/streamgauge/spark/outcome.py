"""From solutions to answers: ASK's one boolean, CONSTRUCT's triples, and engines' own ideas of an empty aggregate."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.model import algebra as al
from streamgauge.model.semantics import EmptyAggregate
from streamgauge.model.terms import XSD, Term
from streamgauge.spark.compiler import Compiler
from streamgauge.spark.intervals import merged
from streamgauge.spark.relation import Relation, column, refine

_PLACES = ("subject", "predicate", "object")
_NEVER = al.TriplePattern(al.Var(""), al.Var(""), al.Var(""))


def asked(spark: SparkSession, found: Relation, reports: int) -> Relation:
    """ASK: one row ``ask`` for each report."""
    said = fn.when(fn.col("found"), "true").otherwise("false")
    ask = fn.concat(fn.lit('"'), said, fn.lit(f'"^^<{XSD}boolean>')).alias(column("ask"))
    every = _every(spark, reports).join(_matched(found), "lo", "left")
    return Relation(every.select("lo", fn.col("lo").alias("hi"), ask), ("ask",), frozenset({"ask"}), 1)


def _every(spark: SparkSession, reports: int) -> DataFrame:
    return spark.range(reports).select(fn.col("id").cast("int").alias("lo"))


def _matched(found: Relation) -> DataFrame:
    """The reports (``lo``) that have a solution, each once, with ``found`` true."""
    intervals = merged(found.frame.select("lo", "hi").distinct(), ())
    return intervals.select(fn.explode(fn.sequence("lo", "hi")).alias("lo"), fn.lit(True).alias("found"))


def constructed(found: Relation, template: tuple[al.TriplePattern, ...], reports: int) -> Relation:
    """CONSTRUCT: the set of triples of each report; a blank node of the template is a new one in every solution."""
    blank = any(var.name.startswith("_:") for triple in template for var in al.triple_variables(triple))
    solutions = refine(found, 1) if blank else found
    frame = solutions.frame.withColumn("solution", fn.monotonically_increasing_id()) if blank else solutions.frame
    triples = [
        fn.struct(
            *(_node(node, solutions).alias(column(place)) for node, place in zip(_nodes(triple), _PLACES, strict=True))
        )
        for triple in template or (_NEVER,)
    ]
    names = [column(place) for place in _PLACES]
    rows = frame.select("lo", "hi", fn.explode(fn.array(*triples)).alias("triple")).select("lo", "hi", "triple.*")
    subject, predicate, item = map(fn.col, names)
    valid = ~subject.startswith('"') & predicate.startswith("<") & item.isNotNull()
    kept = merged(rows.filter(valid).distinct(), names)
    return Relation(kept, _PLACES, frozenset(_PLACES), reports)


def _nodes(triple: al.TriplePattern) -> tuple[al.Var | Term, ...]:
    predicate = triple.predicate
    assert isinstance(predicate, al.Var | str)
    return triple.subject, predicate, triple.object


def _node(node: al.Var | Term, solutions: Relation) -> Column:
    match node:
        case al.Var(name=name) if name.startswith("_:"):
            made = fn.concat(fn.lit(f"_:c{name[2:]}x"), fn.col("solution").cast("string"))
            return fn.coalesce(solutions.value(name), made)
        case al.Var(name=name):
            return solutions.value(name)
        case _:
            return fn.lit(node)


def over_nothing(compiler: Compiler, query: al.Select, found: Relation, empty: EmptyAggregate) -> Relation:
    """The rows with another value than SPARQL's where an aggregate without GROUP BY had no solution."""
    group = global_group(query) if empty is not EmptyAggregate.SPARQL else None
    if group is None:
        return found
    spark, reports = compiler.facts.spark, compiler.facts.reports
    matched = _matched(compiler.relation(group.pattern))
    rows = refine(found, 1)
    kept = rows.frame.join(matched.select("lo"), "lo", "left_semi")
    if empty is EmptyAggregate.NO_ROW:
        return Relation(kept, rows.variables, rows.certain, 1)
    cell = fn.lit('""' if empty is EmptyAggregate.EMPTY_STRING else None).cast("string")
    others = _every(spark, reports).join(matched, "lo", "left_anti")
    hollow = others.select("lo", fn.col("lo").alias("hi"), *(cell.alias(column(name)) for name in rows.variables))
    return Relation(kept.select(*hollow.columns).unionByName(hollow), rows.variables, frozenset(), 1)


def global_group(form: al.QueryForm) -> al.Group | None:
    """The aggregation without keys that gives a SELECT its one row, if it is one."""
    pattern = form.pattern
    shells = al.Project | al.Extend | al.Filter | al.Distinct | al.Reduced | al.OrderBy | al.Slice
    while isinstance(pattern, shells):
        pattern = pattern.pattern
    return pattern if isinstance(pattern, al.Group) and not pattern.keys else None
