"""Numbers as Spark columns: canonical numeric terms to values, by a datatype known before the query runs."""

import re

from pyspark.sql import Column
from pyspark.sql import functions as fn

from streamgauge.model.terms import XSD, Term, datatype

SPARK_TYPES = {"integer": "bigint", "float": "float", "double": "double"}
"""The datatypes (local names in XSD) that Spark computes exactly as SPARQL does; other numbers are Python's."""

DATA_BITS = 31
"""Whole numbers from data that Spark computes with are below 10^9, and counts are below 2^31."""

_REAL = r"(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN)"
_FORMS = {"integer": "-?[0-9]{1,9}", "float": _REAL, "double": _REAL}
BEYOND = "beyond "
"""Before the datatype's IRI: numbers of it that Spark does not compute with, or that are none."""

OTHER_KIND = "streamgauge: an object is of another datatype than the ones before it"
"""In the message of the error that a job fails with when what it was compiled for is no longer so."""

RANK = {kind: rank for rank, kind in enumerate(SPARK_TYPES)}


def kind_of(term: Term) -> str | None:
    """The numeric kind of a literal: a key of SPARK_TYPES, ``decimal``, or ``None``."""
    name = (datatype(term) or "").removeprefix(XSD)
    return name if name in SPARK_TYPES or name == "decimal" else None


def computable(form: Column, kind: str) -> Column:
    """Whether Spark computes with a literal of that kind as SPARQL does: its form is allowed, and short if whole."""
    return form.rlike(_pattern(kind))


def _pattern(kind: str) -> str:
    return f'^"{_FORMS[kind]}"'


def exact_kind(term: Term) -> str | None:
    """The datatype IRI of a literal, after BEYOND where Spark does not compute with it; ``None`` for another term."""
    iri = datatype(term)
    kind = (iri or "").removeprefix(XSD)
    return iri if kind not in _FORMS or re.match(_pattern(kind), term) else f"{BEYOND}{iri}"


def suffix(kind: str) -> str:
    """How the canonical terms of a kind end."""
    return f'"^^<{XSD}{kind}>'


def parsed(term: Column, kind: str) -> Column:
    """The value of a term of that kind that is ``computable``."""
    return fn.substring(term, fn.lit(2), fn.length(term) - (len(suffix(kind)) + 1)).try_cast(SPARK_TYPES[kind])


def guarded(term: Column, kind: str) -> Column:
    """The value of a term that should be of that kind; a job that meets another one fails with OTHER_KIND."""
    other = fn.raise_error(fn.lit(OTHER_KIND)).cast(SPARK_TYPES[kind])
    return fn.when(term.endswith(suffix(kind)) & computable(term, kind), parsed(term, kind)).otherwise(other)


def literal(term: Term, kind: str) -> Column:
    """A canonical numeric constant as a value."""
    return fn.lit(term[1 : term.rindex('"')]).try_cast(SPARK_TYPES[kind])


def integer_term(value: Column) -> Column:
    """The canonical xsd:integer term of a whole number."""
    return fn.concat(fn.lit('"'), value.cast("string"), fn.lit(f'"^^<{XSD}integer>'))


def real_term(value: Column, kind: str) -> Column:
    """A term of that kind with the value; ``scalars.canonical`` makes its form canonical."""
    text = fn.when(value == float("inf"), "INF").when(value == float("-inf"), "-INF").otherwise(value.cast("string"))
    return fn.concat(fn.lit('"'), text, fn.lit(f'"^^<{XSD}{kind}>'))
