"""Continuous SPARQL: dialects in, one algebra, any dialect out; templates with ``${NAME}`` for a value."""

import re
from collections.abc import Mapping
from typing import Final

from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import meant, spelled
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S
from streamgauge.query.dialects import Dialect, load
from streamgauge.query.parser import refuse_sequences
from streamgauge.query.text import QueryError, check_bounds

_PARAMETER: Final = re.compile(r"\$\{([^}\s]*)\}")


class TemplateError(MistakeError, ValueError):
    """Values for parameters that a template does not have; the message names them and its parameters."""


def parameters(template: str) -> tuple[str, ...]:
    """The names of a template's parameters, in order of first appearance."""
    return tuple(dict.fromkeys(_PARAMETER.findall(template)))


def fill(template: str, values: Mapping[str, object]) -> str:
    """The text with each ``${NAME}`` replaced; QueryError for a missing value, TemplateError for an unknown name."""
    for match in _PARAMETER.finditer(template):
        if match.group(1) not in values:
            raise QueryError(
                f"the parameter {match.group(1)} has no value: give {match.group(1)}=...", template, match.start()
            )
    unused = sorted(set(values) - set(parameters(template)))
    if unused:
        known = ", ".join(parameters(template)) or "none"
        raise TemplateError(f"the query has no parameter {', '.join(unused)}; its parameters: {known}")
    # By a function, since backslashes of a value would be escapes in a replacement string.
    return _PARAMETER.sub(lambda match: str(values[match.group(1)]), template)


def dialect_names() -> tuple[str, ...]:
    """The names of the dialects that can be read and printed."""
    return tuple(sorted(load()))


def recognised(text: str) -> str | None:
    """The name of the dialect whose stream clause the text has; ``None`` for plain SPARQL and other texts."""
    return next((name for name in dialect_names() if load()[name].recognises(text)), None)


def detect(text: str) -> str:
    """The name of the dialect whose stream clause the text has; QueryError says what to add if it has none."""
    check_bounds(text)
    if (name := recognised(text)) is not None:
        return name
    # A query of EP-SPARQL has no stream clause either: its own sentence is the better one.
    refuse_sequences(text)
    clauses = "; ".join(f"{name}: {load()[name].CLAUSE}" for name in dialect_names())
    raise QueryError(f"this query has no stream: add a stream clause ({clauses})", text, 0)


def parse(text: str, dialect: str | None = None) -> ContinuousQuery:
    """The query of a text, in the named dialect or that of its stream clause; QueryError shows the error's place."""
    check_bounds(text)
    return _named(detect(text) if dialect is None else dialect).parse(text)


def print_query(query: ContinuousQuery, dialect: str) -> str:
    """The query as text of a dialect; ValueError if the dialect cannot express it."""
    if query.r2s is R2S.CHANGES:
        raise ValueError(
            f"no dialect has the operator {query.r2s}: leave it out, and use semantics that have it, such as sens"
        )
    return _named(dialect).print_query(query)


def _named(name: str) -> Dialect:
    if (dialect := spelled(name, dialect_names())) is None:
        raise ValueError(
            f"unknown dialect {name}: use one of {', '.join(dialect_names())}{meant(name, dialect_names())}"
        )
    return load()[dialect]
