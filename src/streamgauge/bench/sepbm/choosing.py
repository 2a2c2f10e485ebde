"""Which resources are published, and in which order: an equal number for each query, drawn by the seed alone."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import reduce
from random import Random
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from streamgauge.compute.spark.intervals import TRIPLE
from streamgauge.model.terms import Term, Triple
from streamgauge.services.broker.contract import Publication

Item = TypeVar("Item", bound=Hashable)


class Rule(StrEnum):
    """Which of an answer's IRIs are resources that are published (the paper leaves it open)."""

    FIRST = "first"  # the first variable's: what the row is about
    ANY = "any"  # those of any variable: departments and universities too, which make many rows at once


MOST_DELETED: Final = 0.4
"""The largest share of deletions: each resource is deleted at most once, half of them are published again."""


def candidates(rows: DataFrame, rule: Rule, described: DataFrame, seed: int, name: str, most: int) -> list[Term]:
    """The first ``most`` IRIs of a query's rows in an order drawn for it, of those that have statements.

    ``described`` has a column ``subject``: what statements are about.
    """
    columns = rows.columns if rule is Rule.ANY else rows.columns[:1]
    named = reduce(DataFrame.unionByName, [rows.select(fn.col(each).alias("subject")) for each in columns])
    found = named.filter(_is_iri(fn.col("subject"))).distinct().join(described, "subject", "left_semi")
    return drawn(found, seed, name, most)


def drawn(terms: DataFrame, seed: int, name: str, most: int) -> list[Term]:
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


def dealt(offered: Mapping[str, Sequence[Item]], most: int) -> dict[str, list[Item]]:
    """To each name its share of ``most``: in turn each takes the next of what it is offered that nobody has taken.

    So all have the same number unless some are offered too few; then the others have more.
    """
    taken: dict[Item, None] = {}
    found: dict[str, list[Item]] = {name: [] for name in offered}
    left = {name: iter(items) for name, items in offered.items()}
    while left and len(taken) < most:
        for name in [*left]:
            item = next((item for item in left[name] if item not in taken), None)
            if item is None:
                del left[name]
            elif len(taken) < most:
                taken[item] = None
                found[name].append(item)
    return found


def distinct_resources(publications: int, deletes: float) -> int:
    """How many resources a sequence has of which a share of the publications deletes, half of it published again."""
    deleted = deletions(publications, deletes)
    return publications - deleted - deleted // 2


def deletions(publications: int, deletes: float) -> int:
    """How many publications delete: the share, rounded, and no more than there are resources to delete.

    Of 34 publications 40% are 13.6; 14 would leave 34 - 14 - 7 = 13 resources, so 13 delete.
    """
    deleted = round(publications * deletes)
    while deleted > publications - deleted - deleted // 2:
        deleted -= 1
    return deleted


def arranged(resources: Iterable[Term], publications: int, deletes: float, seed: int) -> Iterator[tuple[Term, int]]:
    """Resources in a drawn order, each with 1 (published) or -1 (deleted).

    Some are deleted after they were published; every other one of these is published again after that.
    """
    random = Random(seed)
    listed = sorted(resources)
    gone = random.sample(listed, deletions(publications, deletes))
    turns = listed + gone + gone[: len(gone) // 2]
    random.shuffle(turns)
    seen: dict[Term, int] = {}
    for term in turns:
        seen[term] = seen.get(term, 0) + 1
        yield term, -1 if seen[term] == 2 else 1


def publications(turns: Iterable[tuple[Term, int]], described: Mapping[Term, tuple[Triple, ...]]) -> list[Publication]:
    """The sequence: each resource's concise bounded description (here: all statements about it) comes or goes."""
    return [
        Publication(number, *((described[term], ()) if sign > 0 else ((), described[term])))
        for number, (term, sign) in enumerate(turns, 1)
    ]


def descriptions(facts: DataFrame, resources: Sequence[Term]) -> dict[Term, tuple[Triple, ...]]:
    """The statements about each resource, sorted."""
    found: dict[Term, list[Triple]] = {}
    table = (
        facts.join(fn.broadcast(among(facts.sparkSession, resources)), "subject", "left_semi").select(*TRIPLE).toArrow()
    )
    for triple in sorted(zip(*(table.column(name).to_pylist() for name in TRIPLE), strict=True)):
        found.setdefault(triple[0], []).append(triple)
    return {term: tuple(said) for term, said in found.items()}


def among(spark: SparkSession, resources: Sequence[Term]) -> DataFrame:
    """The resources as a column ``subject``."""
    return spark.createDataFrame(pa.table({"subject": pa.array(resources, pa.string())}))
