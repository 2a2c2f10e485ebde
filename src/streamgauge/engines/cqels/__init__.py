"""CQELS 1.x, with jars of yours: windows on arrival time, a row for every match that arrives."""

import os
from pathlib import Path

from streamgauge.engines import beyond_sparql_11, java_program, on_the_pipe
from streamgauge.formats.jvm import prepared
from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.query.graphs import unnamed
from streamgauge.query.traversal import every_expression, every_pattern
from streamgauge.semantics.profiles import makes_choices_of
from streamgauge.semantics.refusal import meaningless

DIALECT = "cqels"
PROFILES = ("cqels-1.x",)
PACE_MS_PER_UNIT = 300
_TAKEN = (*PROFILES, "cqels-1.x-yabench")
HOME = "STREAMGAUGE_CQELS_HOME"
HOW = (
    "take CQELS 1.0.0 from a clone of the project cqels of KMax, which YABench ran, or of Benchmark of CityBench: "
    "`streamgauge engines prepare cqels --source CLONE`, or name the folder of its jars by STREAMGAUGE_CQELS_HOME "
    "(docs/foreign-engines.md)"
)
_MODIFIERS = al.Project | al.Distinct | al.Reduced | al.Slice | al.OrderBy | al.Group


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """``None``, or the sentence why CQELS cannot answer the query under the semantics."""
    if not makes_choices_of(semantics, _TAKEN):
        return f"CQELS has semantics of its own: take {' or '.join(_TAKEN)}, not {semantics.name}"
    if reason := meaningless(query, semantics):
        return reason
    if isinstance(query.form, al.Ask):
        return "CQELS has SELECT and CONSTRUCT, no ASK: select a variable"
    if reason := beyond_sparql_11(query, DIALECT):
        return reason
    try:
        alone = unnamed(query)
    except ValueError as error:
        return str(error)
    if alone and query.static:
        return "CQELS's STREAM reads the stream alone: name the window and leave patterns on static data outside of it"
    return next(filter(None, map(_unseen, every_pattern(query.form.pattern))), None)


def _unseen(pattern: al.Pattern) -> str | None:
    """The parts that CQELS does not recognise, and skips, or stops at: it reads triple patterns and FILTER."""
    match pattern:
        case al.BGP(patterns=triples):
            paths = not all(isinstance(triple.predicate, str | al.Var) for triple in triples)
            return "CQELS has no property paths: write triple patterns" if paths else None
        case al.Extend(pattern=inner):
            grouped = any(isinstance(pattern, al.Group) for pattern in every_pattern(inner))
            return None if grouped else "CQELS has no BIND: select the variables that it reads"
        case al.Filter(condition=condition):
            asks = any(isinstance(part, al.Exists) for part in every_expression(condition))
            return "CQELS has no EXISTS: write patterns and FILTER" if asks else None
        case al.Join() | al.Graph():
            return None
        case _ if isinstance(pattern, _MODIFIERS):
            return None
        case _:
            return f"CQELS reads triple patterns and FILTER, no {type(pattern).__name__.upper()}: leave it out"


def deviations() -> str:
    """The list of what the build deviates in: CityBench's jar, which comes with fastutil, differs in aggregates."""
    home = Path(os.environ.get(HOME) or prepared("cqels"))
    city = any(home.glob("fastutil*.jar"))
    return "deviations-citybench.toml" if city else "deviations.toml"


command = java_program("cqels", HOME, HOW, Path(__file__).parent / "Cqels.java")
start = on_the_pipe(refuse, command, DIALECT)
