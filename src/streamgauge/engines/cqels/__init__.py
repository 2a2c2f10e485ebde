"""CQELS 1.x, with jars that you provide: windows on arrival time, a row for every match on arrival."""

import os
from pathlib import Path

from streamgauge.engines import beyond_sparql_11, java_program, on_the_pipe
from streamgauge.formats.jvm import prepared
from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.query.graphs import unnamed
from streamgauge.query.traversal import every_pattern, keyword, reads_patterns
from streamgauge.semantics.profiles import makes_choices_of
from streamgauge.semantics.refusal import meaningless

DIALECT = "cqels"
PROFILES = ("cqels-1.x",)
PACE_MS_PER_UNIT = 300
_TAKEN = (*PROFILES, "cqels-1.x-yabench")
HOME = "STREAMGAUGE_CQELS_HOME"
HOW = (
    "take CQELS 1.0.0 from a clone of the project cqels of KMax, which YABench ran, or of Benchmark of CityBench: "
    "`streamgauge engines prepare cqels --source CLONE`, or set STREAMGAUGE_CQELS_HOME to the folder of its jars "
    "(docs/foreign-engines.md)"
)
_MODIFIERS = al.Project | al.Distinct | al.Reduced | al.Slice | al.OrderBy | al.Group


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why CQELS cannot answer the query under the semantics; ``None`` if it can."""
    if not makes_choices_of(semantics, _TAKEN):
        return f"CQELS has its own semantics: use {' or '.join(_TAKEN)} instead of {semantics.name}"
    if reason := meaningless(query, semantics):
        return reason
    if isinstance(query.form, al.Ask):
        return "CQELS has no ASK: use SELECT or CONSTRUCT"
    if reason := beyond_sparql_11(query, DIALECT):
        return reason
    try:
        alone = unnamed(query)
    except ValueError as error:
        return str(error)
    if alone and query.static:
        return "CQELS's STREAM matches the stream only: name the window and keep patterns on static data outside it"
    return next(filter(None, map(_unseen, every_pattern(query.form.pattern))), None)


def _unseen(pattern: al.Pattern) -> str | None:
    """The sentence for a pattern that CQELS ignores or fails at; it supports triple patterns and FILTER."""
    match pattern:
        case al.BGP(patterns=triples):
            paths = not all(isinstance(triple.predicate, str | al.Var) for triple in triples)
            return "CQELS has no property paths: write triple patterns" if paths else None
        case al.Extend(pattern=inner):
            grouped = any(isinstance(pattern, al.Group) for pattern in every_pattern(inner))
            return None if grouped else "CQELS has no BIND: leave it out and select the variables that it uses"
        case al.Filter(condition=condition):
            asks = reads_patterns(condition)
            return "CQELS has no EXISTS: write triple patterns and FILTER" if asks else None
        case al.Join() | al.Graph():
            return None
        case _ if isinstance(pattern, _MODIFIERS):
            return None
        case _:
            return f"CQELS has triple patterns and FILTER, but no {keyword(pattern)}: leave it out"


def deviations() -> str:
    """The file of this build's deviations: CityBench's jar, recognised by fastutil, differs in aggregates."""
    home = Path(os.environ.get(HOME) or prepared("cqels"))
    city = any(home.glob("fastutil*.jar"))
    return "deviations-citybench.toml" if city else "deviations.toml"


command = java_program("cqels", HOME, HOW, Path(__file__).parent / "Cqels.java")
start = on_the_pipe(refuse, command, DIALECT)
