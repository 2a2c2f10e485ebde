"""Continuous SPARQL: dialects in, one algebra, any dialect out."""

from typing import TYPE_CHECKING, Final

from streamgauge.model.lazily import names_of

if TYPE_CHECKING:
    from streamgauge.query.continuous import (
        TemplateError,
        detect,
        dialect_names,
        fill,
        parameters,
        parse,
        print_query,
        recognised,
    )
    from streamgauge.query.parser import parse_sparql
    from streamgauge.query.text import QueryError
    from streamgauge.query.versions import VERSIONS, announced

__all__ = [
    "VERSIONS",
    "QueryError",
    "TemplateError",
    "announced",
    "detect",
    "dialect_names",
    "fill",
    "parameters",
    "parse",
    "parse_sparql",
    "print_query",
    "recognised",
]

_MODULES: Final = {
    "continuous": (
        *("TemplateError", "detect", "dialect_names", "fill", "parameters", "parse", "print_query", "recognised"),
    ),
    "parser": ("parse_sparql",),
    "text": ("QueryError",),
    "versions": ("VERSIONS", "announced"),
}
"""The names of each module, which is loaded when one is first used."""

__getattr__ = names_of(__name__, _MODULES)
