"""C-SPARQL 0.9.7, with jars that you provide: by its external clock, or by the wall clock as YABench ran it."""

from pathlib import Path

from streamgauge.engines import beyond_sparql_11, java_program, on_the_pipe
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.semantics.profiles import makes_choices_of
from streamgauge.semantics.refusal import meaningless

DIALECT = "csparql"
PROFILES = ("csparql-0.9.7",)
_TAKEN = (*PROFILES, "csparql-0.9.7-wall")
TIME_UNIT_MS = PACE_MS_PER_UNIT = 1000
HOME = "STREAMGAUGE_CSPARQL_HOME"
HOW = (
    "clone C-SPARQL 0.9.7 (the project CSPARQL-engine of streamreasoning), then `streamgauge engines prepare csparql "
    "--source CLONE` builds it, or set STREAMGAUGE_CSPARQL_HOME to the folder of its jars "
    "(docs/foreign-engines.md)"
)


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why C-SPARQL cannot answer the query under the semantics; ``None`` if it can."""
    if not makes_choices_of(semantics, _TAKEN):
        return f"C-SPARQL has its own semantics: use {' or '.join(_TAKEN)} instead of {semantics.name}"
    if reason := meaningless(query, semantics):
        return reason
    timed = (window.window for window in query.windows if window.window.kind == "time")
    if any(window.size % TIME_UNIT_MS or window.slide % TIME_UNIT_MS for window in timed):
        return "C-SPARQL's smallest unit is the second: use a RANGE and STEP in whole seconds"
    return beyond_sparql_11(query, DIALECT)


command = java_program("csparql", HOME, HOW, Path(__file__).parent / "CSparql.java")
start = on_the_pipe(refuse, command, DIALECT)
