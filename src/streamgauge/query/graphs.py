"""GRAPH over named windows, pushed down to where triples are matched (https://www.w3.org/TR/sparql11-query/#defn_evalGraph)."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.terms import Term
from streamgauge.query.rebuild import every_pattern, expression_parts, parts, with_pattern

STAMPS: Final = "urn:streamgauge:stamps"


def spread(form: al.QueryForm, names: Sequence[Term]) -> al.QueryForm:
    """The form with every GRAPH pushed down: only ``Graph(<name>, BGP)`` is left, and BGPs of the default graph.

    ``names`` are the windows' names as terms. ``GRAPH ?g { P }`` is the union over them of P in that graph, joined
    with ?g (18.6): inside P, ?g is a variable like any other, so ``BOUND(?g)`` is false there. A GRAPH that names no
    window matches nothing. Graphs of stamps are kept. The same object when there is no GRAPH.
    """
    if not any(isinstance(pattern, al.Graph) for pattern in every_pattern(form.pattern)):
        return form
    return with_pattern(form, _push(form.pattern, None, tuple(dict.fromkeys(names))))


def _push(pattern: al.Pattern, graph: Term | None, names: tuple[Term, ...]) -> al.Pattern:
    """The pattern evaluated with this active graph, ``None`` for the default graph."""
    match pattern:
        case al.BGP(patterns=patterns):
            return pattern if graph is None or not patterns else al.Graph(graph, pattern)
        case al.Graph(name=al.Var() as variable, pattern=inner):
            return _over_all(variable, inner, names)
        case al.Graph(name=str() as name, pattern=inner):
            known = name in names or name.startswith(f"<{STAMPS}")
            return _push(inner, name, names) if known else _nothing(inner)
        case _:
            below = partial(_push, graph=graph, names=names)
            return parts(pattern, below, partial(_inside, below=below))


def _inside(tree: al.Expression, below: partial[al.Pattern]) -> al.Expression:
    """The expression, patterns of its EXISTS pushed."""
    return expression_parts(tree, below, partial(_inside, below=below))


def _over_all(variable: al.Var, inner: al.Pattern, names: tuple[Term, ...]) -> al.Pattern:
    choices: list[al.Pattern] = [
        al.Join(_push(inner, name, names), al.Values((variable,), ((name,),))) for name in names
    ]
    return _union(choices) if choices else _nothing(al.Graph(variable, inner))


def _union(choices: Sequence[al.Pattern]) -> al.Pattern:
    """The union of patterns, no deeper than it has to be."""
    if len(choices) == 1:
        return choices[0]
    half = (len(choices) + 1) // 2
    return al.Union(_union(choices[:half]), _union(choices[half:]))


def _nothing(pattern: al.Pattern) -> al.Values:
    """No solution, over the variables that a text can name."""
    return al.Values(tuple(var for var in al.pattern_variables(pattern) if not var.name.startswith(("_:", "."))), ())
