"""Regular expressions of a query that a server does not take: those that cost too much whatever the text."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.query import parse_sparql
from streamgauge.query.rebuild import every_pattern, expressions
from streamgauge.sparql.regular import PatternError, TooLargeError, pattern
from streamgauge.sparql.values import STRING, read

SLOW: Final = 2
"""Patterns of a query that RE2 cannot match, each of which may take 0.05 s."""


@cache
def load_parsers() -> None:
    """Import what reads queries and patterns, which is done when it is first needed: before time counts.

    An import that is stopped in its midst would leave half a module.
    """
    form = parse_sparql("SELECT * { ?s <urn:p>+ ?o FILTER REGEX(?o, '^(a|b+)+c') }")  # a path is left to rdflib
    refused_patterns(form)


def refused_patterns(form: al.QueryForm) -> str:
    """The sentence that says which pattern of REGEX or REPLACE costs too much, or that too many may; else empty."""
    slow = 0
    for call in _calls(found for each in every_pattern(form.pattern) for found in expressions(each)):
        if call.operator.upper() in ("REGEX", "REPLACE") and len(call.arguments) > 1:
            source = call.arguments[1]
            value = read(source) if isinstance(source, str) else None
            if value is None or value.kind != STRING:
                continue
            try:
                slow += pattern(value.value).slow
            except TooLargeError as error:
                return str(error)
            except PatternError:
                continue  # SPARQL's error, on each row
    if slow > SLOW:
        return f"{slow} patterns that have back-references or repeat more than 1,000 times, {SLOW} at most"
    return ""


def _calls(found: Iterable[al.Expression]) -> Iterator[al.Call]:
    """All calls in expressions, those within calls too."""
    waiting = list(found)
    while waiting:
        each = waiting.pop()
        if isinstance(each, al.Call):
            yield each
            waiting += each.arguments
