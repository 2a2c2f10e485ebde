"""YASPER (RSP4J 1.0.1), with jars that you provide: its operators, one window, triple patterns and FILTER."""

from pathlib import Path

from streamgauge.engines import beyond_sparql_11, java_program, on_the_pipe
from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.query.traversal import keyword
from streamgauge.semantics.profiles import makes_choices_of
from streamgauge.semantics.refusal import meaningless

DIALECT = "rspql"
PROFILES = ("yasper",)
TIME_UNIT_MS = 1000
HOME = "STREAMGAUGE_YASPER_HOME"
HOW = (
    "clone RSP4J (the project rsp4j of streamreasoning, tag 1.1.8), then `streamgauge engines prepare yasper --source "
    "CLONE` builds it, or set STREAMGAUGE_YASPER_HOME to the folder of its jars "
    "(docs/foreign-engines.md)"
)
_COMPARED = ("=", "!=", "<", ">", "<=", ">=")


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why YASPER cannot answer the query under the semantics; ``None`` if it can."""
    if not makes_choices_of(semantics, PROFILES):
        return f"YASPER has its own semantics: use {' or '.join(PROFILES)} instead of {semantics.name}"
    if reason := meaningless(query, semantics):
        return reason
    if len(query.windows) != 1 or query.windows[0].window.kind != "time" or query.static:
        return "YASPER runs with exactly one time-based window and no static data"
    if query.window.size % TIME_UNIT_MS or query.window.slide % TIME_UNIT_MS:
        return "YASPER's smallest unit is the second: use a RANGE and STEP in whole seconds"
    if query.r2s is not None and query.r2s not in semantics.r2s_able:
        return f"YASPER runs with Rstream: leave {query.r2s} out"
    form = query.form
    if not isinstance(form, al.Select) or not isinstance(form.pattern, al.Project):
        return "YASPER's parser supports only SELECT of variables: select them by name"
    return beyond_sparql_11(query, DIALECT) or _unread(form.pattern.pattern)


def _unread(pattern: al.Pattern) -> str | None:
    """The sentence for a pattern that its parser does not turn into operators."""
    while isinstance(pattern, al.Filter | al.Graph):
        if isinstance(pattern, al.Filter) and not _compares(pattern.condition):
            return "YASPER's FILTER can only compare a variable with a variable or a number: write such a comparison"
        pattern = pattern.pattern
    if not isinstance(pattern, al.BGP):
        return f"YASPER has triple patterns and FILTER, but no {keyword(pattern)}: leave it out"
    for triple in pattern.patterns:
        if not all(
            isinstance(part, al.Var) or str(part).startswith("<") for part in (triple.subject, triple.predicate)
        ):
            return "YASPER has no property paths: write triple patterns"
        if isinstance(triple.object, str) and not triple.object.startswith("<"):
            return "YASPER's parser reads a literal in a pattern as an IRI: compare it in a FILTER instead"
    return None


def _compares(condition: al.Expression) -> bool:
    if isinstance(condition, al.Call) and condition.operator in {"&&", "||"}:
        return all(map(_compares, condition.arguments))
    simple = isinstance(condition, al.Call) and condition.operator in _COMPARED
    return simple and not any(isinstance(argument, al.Call | al.Exists) for argument in _arguments(condition))


def _arguments(condition: al.Expression) -> tuple[al.Expression, ...]:
    return condition.arguments if isinstance(condition, al.Call) else ()


command = java_program("yasper", HOME, HOW, Path(__file__).parent / "Yasper.java")
start = on_the_pipe(refuse, command, DIALECT)
