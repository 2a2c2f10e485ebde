"""The data of a configuration on Spark: the closure in which queries are answered to choose from."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.model.algebra import Select
from streamgauge.model.terms import Term, Triple
from streamgauge.reasoning import Rules
from streamgauge.spark.entailment import entailed
from streamgauge.spark.intervals import TRIPLE
from streamgauge.spark.lines import LINE, write_lines
from streamgauge.suites.sepbm.choosing import Rule
from streamgauge.suites.sepbm.reference import answered, kept, look


class DistributedData:
    """Facts and their closure (``data.Data``); both are kept while it is open."""

    def __init__(self, spark: SparkSession, facts: DataFrame, rules: Rules) -> None:
        self._open, self._spark = ExitStack(), spark
        self._facts = self._kept(facts.persist(StorageLevel.MEMORY_AND_DISK))
        still = self._facts.select(*TRIPLE, *(fn.lit(0).alias(name) for name in ("lo", "hi")))
        self._closed = self._kept(kept(entailed(spark, still, rules)))
        self._known = look(self._closed)
        self._described = self._kept(_described(self._facts).persist())
        self.explicit, self.closure = self._facts.count(), self._closed.count()

    def _kept(self, frame: DataFrame) -> DataFrame:
        self._open.callback(frame.unpersist)
        return frame

    def answer(self, form: Select) -> "DistributedRows":
        """The set of a query's rows; ValueError names what Spark does not evaluate."""
        rows = answered(self._spark, self._closed, self._known, form)
        return DistributedRows(self._kept(rows.persist()), self._described)

    def descriptions(self, resources: Sequence[Term]) -> dict[Term, tuple[Triple, ...]]:
        """The statements about each resource, sorted."""
        among = fn.broadcast(_among(self._spark, resources))
        table = self._facts.join(among, "subject", "left_semi").select(*TRIPLE).toArrow()
        found: dict[Term, list[Triple]] = {}
        for triple in sorted(zip(*(table.column(name).to_pylist() for name in TRIPLE), strict=True)):
            found.setdefault(triple[0], []).append(triple)
        return {term: tuple(said) for term, said in found.items()}

    def write_base(self, without: Sequence[Term], file: Path) -> None:
        """The facts that are about none of these resources as N-Triples, sorted by bytes."""
        facts = self._facts.join(fn.broadcast(_among(self._spark, without)), "subject", "left_anti")
        write_lines(facts.selectExpr(LINE), file)

    def close(self) -> None:
        """Nothing is kept any more."""
        self._open.close()


@dataclass(frozen=True)
class DistributedRows:
    """The rows of a query (``data.Rows``); ``described`` has a column ``subject``: what statements are about."""

    rows: DataFrame
    described: DataFrame

    def count(self) -> int:
        """How many there are."""
        found: int = self.rows.count()
        return found

    def resources(self, rule: Rule, seed: int, name: str, most: int) -> list[Term]:
        """The first ``most`` IRIs in an order drawn for the query, of those that have statements."""
        columns = self.rows.columns if rule is Rule.ANY else self.rows.columns[:1]
        named = reduce(DataFrame.unionByName, [self.rows.select(fn.col(each).alias("subject")) for each in columns])
        found = named.filter(_is_iri(fn.col("subject"))).distinct().join(self.described, "subject", "left_semi")
        return _drawn(found, seed, name, most)

    def values(self, other_than: Term | None, seed: int, name: str, most: int) -> list[Term]:
        """The first ``most`` terms of the last column in an order drawn by seed and name."""
        values = self.rows.select(self.rows.columns[-1]).distinct()
        if other_than is not None:
            values = values.filter(fn.col(values.columns[0]) != other_than)
        return _drawn(values, seed, name, most)


def _drawn(terms: DataFrame, seed: int, name: str, most: int) -> list[Term]:
    """The first ``most`` of the distinct terms of a frame of one column, in an order drawn by seed and name.

    The order is that of ``workloads.draws.text_bits``, then of the terms.
    """
    (column,) = terms.columns
    hashed = fn.xxhash64(fn.lit(seed), fn.lit(f"sepbm {name}"), column)
    ordered = terms.orderBy(fn.shiftrightunsigned(hashed, 11), column).limit(most)
    found: list[Term] = ordered.toArrow().column(column).to_pylist()
    return found


def _is_iri(column: Column) -> Column:
    return column.startswith("<") & ~column.startswith("<<")


def _described(facts: DataFrame) -> DataFrame:
    """What statements are about; not where one has a blank node, which would be another when it is published."""
    blank = fn.max(fn.col("object").startswith("_:"))
    return facts.groupBy("subject").agg(blank.alias("blank")).filter("not blank").select("subject")


def _among(spark: SparkSession, resources: Sequence[Term]) -> DataFrame:
    """The resources as a column ``subject``."""
    return spark.createDataFrame(pa.table({"subject": pa.array(resources, pa.string())}))
