"""Numbers as Spark columns: canonical numeric terms to values, by a datatype known before the query runs."""

from pyspark.sql import Column
from pyspark.sql import functions as fn

from streamgauge.model.terms import XSD, Term, datatype

SPARK_TYPES = {"integer": "bigint", "float": "float", "double": "double"}
"""The datatypes (local names in XSD) that Spark computes exactly as SPARQL does; others go to pyoxigraph."""

OTHER_KIND = "streamgauge: an object is of another datatype than the ones before it"
"""In the message of the error that a job fails with when what it was compiled for is no longer so."""

RANK = {kind: rank for rank, kind in enumerate(SPARK_TYPES)}


def kind_of(term: Term) -> str | None:
    """The numeric kind of a literal: a key of SPARK_TYPES, ``decimal``, or ``None``."""
    name = (datatype(term) or "").removeprefix(XSD)
    return name if name in SPARK_TYPES or name == "decimal" else None


def suffix(kind: str) -> str:
    """How the canonical terms of a kind end."""
    return f'"^^<{XSD}{kind}>'


def parsed(term: Column, kind: str) -> Column:
    """The value of a canonical term of that kind; null when it has none in Spark's type."""
    return fn.substring(term, fn.lit(2), fn.length(term) - (len(suffix(kind)) + 1)).try_cast(SPARK_TYPES[kind])


def guarded(term: Column, kind: str) -> Column:
    """The value of a term that should be of that kind; a job that meets another one fails with OTHER_KIND."""
    other = fn.raise_error(fn.lit(OTHER_KIND)).cast(SPARK_TYPES[kind])
    return fn.when(term.endswith(suffix(kind)), parsed(term, kind)).otherwise(other)


def literal(term: Term, kind: str) -> Column:
    """A canonical numeric constant as a value."""
    return fn.lit(term[1 : term.rindex('"')]).try_cast(SPARK_TYPES[kind])


def integer_term(value: Column) -> Column:
    """The canonical xsd:integer term of a whole number."""
    return fn.concat(fn.lit('"'), value.cast("string"), fn.lit(f'"^^<{XSD}integer>'))


def real_term(value: Column, kind: str) -> Column:
    """A term of that kind with the value; the form is not yet canonical, pyoxigraph's batches make it so."""
    text = fn.when(value == float("inf"), "INF").when(value == float("-inf"), "-INF").otherwise(value.cast("string"))
    return fn.concat(fn.lit('"'), text, fn.lit(f'"^^<{XSD}{kind}>'))
