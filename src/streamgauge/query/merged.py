"""Unnamed windows, whose merge is the default graph, rewritten for dialects in which every window has a name.

A pattern over the merge matches a triple of any window or of the static data, once however many contain it:

    ?s :p ?o    becomes    { SELECT DISTINCT ?s ?o { { GRAPH ?window { ?s :p ?o } } UNION { ?s :p ?o } } }

Each triple pattern is a group of its own, because the triples of one solution may be in different windows.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import count
from typing import Final

from streamgauge.model import algebra as al
from streamgauge.model.query import ContinuousQuery
from streamgauge.query.graphs import reads
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.traversal import every_pattern, patterns_replaced, variable_names, with_names, with_pattern

WINDOW: Final = "urn:streamgauge:window"


def with_named_windows(query: ContinuousQuery) -> ContinuousQuery:
    """The query with a name for each window; ValueError for a query that cannot be rewritten this way."""
    if uses_timestamp(query.form):
        raise ValueError("RSP-QL has no timestamp() over several unnamed windows: name them, or print csparql")
    if not reads(query.form):
        raise ValueError("RSP-QL requires a pattern for every window: print csparql")
    form = _without_labels(query.form)
    fresh = _fresh(form)
    windows = tuple(replace(item, name=f"{WINDOW}:{n}") for n, item in enumerate(query.windows, 1))
    return replace(query, form=with_pattern(form, _merged(form.pattern, fresh=fresh)), windows=windows)


def _fresh(form: al.QueryForm) -> Iterator[al.Var]:
    known = variable_names(form)
    return (al.Var(name) for name in map("w{}".format, count(1)) if name not in known)


def _without_labels(form: al.QueryForm) -> al.QueryForm:
    """The form with variables for the blank nodes of its patterns, as a blank node may not span groups (4.1.4)."""
    triples = [triple for part in every_pattern(form.pattern) if isinstance(part, al.BGP) for triple in part.patterns]
    labels = [var for triple in triples for var in al.triple_variables(triple) if var.name.startswith("_:")]
    if labels and any(_counts_rows(part) for part in every_pattern(form.pattern)):
        raise ValueError(
            "RSP-QL: COUNT(DISTINCT *) over several unnamed windows with blank nodes: replace them by variables"
        )
    named = with_pattern(form, with_names(form.pattern, dict(zip(dict.fromkeys(labels), _fresh(form), strict=False))))
    if not isinstance(named, al.Construct):
        return named
    # Numbered anew: blank nodes of a form are numbered without gaps (``model.algebra``), and the pattern has none any
    # more.
    nodes = [var for triple in named.template for var in al.triple_variables(triple) if var.name.startswith("_:")]
    numbers = {label: al.Var(f"_:{n}") for n, label in enumerate(dict.fromkeys(nodes))}
    return replace(named, template=with_names(named.template, numbers))


def _counts_rows(pattern: al.Pattern) -> bool:
    return isinstance(pattern, al.Group) and any(
        aggregate.argument is None and aggregate.distinct for _, aggregate in pattern.aggregates
    )


def _merged(pattern: al.Pattern, fresh: Iterator[al.Var]) -> al.Pattern:
    if isinstance(pattern, al.BGP):
        groups = [_path(triple.predicate, triple.subject, triple.object, fresh) for triple in pattern.patterns]
        return reduce(al.Join, groups) if groups else pattern
    return patterns_replaced(pattern, partial(_merged, fresh=fresh))


def _path(path: al.Path | al.Var, subject: al.Node, end: al.Node, fresh: Iterator[al.Var]) -> al.Pattern:
    """The groups of a triple pattern; a path without repetition becomes joins and unions (18.2.2.4)."""
    match path:
        case str() | al.Var():
            return _anywhere(al.TriplePattern(subject, path, end), fresh)
        case al.Inverse(path=inner):
            return _path(inner, end, subject, fresh)
        case al.Sequence(steps=steps):
            # Worked example: ?s :a/:b/:c ?o becomes ?s :a ?w1, ?w1 :b ?w2 and ?w2 :c ?o, each a group of its own.
            nodes = [subject, *(next(fresh) for _ in steps[1:]), end]
            ends = zip(steps, nodes, nodes[1:], strict=False)
            return reduce(al.Join, [_path(step, near, far, fresh) for step, near, far in ends])
        case al.Alternative(choices=choices):
            return reduce(al.Union, [_path(choice, subject, end, fresh) for choice in choices])
    raise ValueError("RSP-QL has no repeated or negated path over several unnamed windows: print csparql")


def _anywhere(triple: al.TriplePattern, fresh: Iterator[al.Var]) -> al.Pattern:
    """A triple pattern over all windows and the static data, with distinct matches."""
    block = al.BGP((triple,))
    either: al.Pattern = al.Union(al.Graph(next(fresh), block), block)
    variables = al.triple_variables(triple)
    # SPARQL has no subquery without columns, so a ground triple gets one.
    if not variables:
        variables = (next(fresh),)
        either = al.Extend(either, variables[0], '"1"^^<http://www.w3.org/2001/XMLSchema#integer>')
    return al.Distinct(al.Project(either, tuple(dict.fromkeys(variables))))
