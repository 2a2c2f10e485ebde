"""Which existential restrictions are parts of which, by the ontology alone (OWL 2 Profiles, table 9).

That A is a part of ``p some C`` derives no link, and yet A is a part of whatever ``p some D`` is a part of, where C is
a part of D (scm-svf1), or ``q some C``, where p is a part of q (scm-svf2).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from streamgauge.model.terms import Term, is_blank
from streamgauge.reasoning.graph import OWL, THING, Graph
from streamgauge.reasoning.literals import RDFS
from streamgauge.reasoning.rules import OntologyError

Edges = dict[Term, set[Term]]

_SOME: Final = f"<{OWL}someValuesFrom>"
_ON: Final = f"<{OWL}onProperty>"
_BOTH, _EITHER = f"<{OWL}intersectionOf>", f"<{OWL}unionOf>"
_ONLY_RIGHT: Final = {f"<{RDFS}{name}>" for name in ("subClassOf", "domain", "range")}


def wider(graph: Graph) -> Mapping[Term, tuple[Term, ...]]:
    """For each existential restriction the others that it is a part of, those that may be conditions."""
    restrictions = {node: place for node in graph.predicates if (place := _place(graph, node)) is not None}
    if len(restrictions) < 2:
        return {}
    above, properties = _classes(graph), _properties(graph)
    by_place = defaultdict[tuple[Term, Term], list[Term]](list)
    for node, place in restrictions.items():
        by_place[place].append(node)
    grown = True
    while grown:
        grown = False
        for node, place in restrictions.items():
            fresh = _next(place, above, properties, by_place) - above[node] - {node}
            above[node] |= fresh
            grown = grown or bool(fresh)
    used = _conditions(graph, restrictions)
    found = {node: tuple(sorted((_reached(node, above) & used) - {node})) for node in restrictions}
    return {node: others for node, others in found.items() if others}


def _place(graph: Graph, node: Term) -> tuple[Term, Term] | None:
    """The property and the class of an existential restriction."""
    on, some = graph.values(node, _ON), graph.values(node, _SOME)
    return (on[0], some[0]) if len(on) == len(some) == 1 else None


def _next(
    place: tuple[Term, Term], above: Edges, properties: Edges, by_place: Mapping[tuple[Term, Term], list[Term]]
) -> set[Term]:
    """One application of scm-svf1 and scm-svf2; every class is a part of owl:Thing and of itself (scm-cls)."""
    on, filler = place
    fillers = {(on, each) for each in (*_reached(filler, above), THING)}
    ons = {(each, filler) for each in _reached(on, properties)}
    return {node for each in fillers | ons for node in by_place.get(each, ())}


def _classes(graph: Graph) -> Edges:
    """From each class to those that axioms say it is a part of (scm-sco, scm-eqc1, scm-int, scm-uni)."""
    edges = defaultdict[Term, set[Term]](set)
    for (subject, predicate), ends in graph.found.items():
        if predicate in (f"<{RDFS}subClassOf>", f"<{OWL}equivalentClass>"):
            edges[subject].update(ends)
        if predicate == f"<{OWL}equivalentClass>":
            for end in ends:
                edges[end].add(subject)
        if predicate == _BOTH:
            edges[subject].update(_members(graph, ends))
        if predicate == _EITHER:
            for each in _members(graph, ends):
                edges[each].add(subject)
    return edges


def _members(graph: Graph, lists: Iterable[Term]) -> Iterator[Term]:
    for start in lists:
        try:
            yield from graph.items(start)
        except OntologyError:
            continue


def _properties(graph: Graph) -> Edges:
    """From each property to those that axioms say it is a part of (scm-spo, scm-eqp1)."""
    edges = defaultdict[Term, set[Term]](set)
    for (subject, predicate), ends in graph.found.items():
        if predicate in (f"<{RDFS}subPropertyOf>", f"<{OWL}equivalentProperty>"):
            edges[subject].update(ends)
        if predicate == f"<{OWL}equivalentProperty>":
            for end in ends:
                edges[end].add(subject)
    return edges


def _reached(start: Term, edges: Edges) -> set[Term]:
    reached, waiting = {start}, [start]
    while waiting:
        fresh = edges.get(waiting.pop(), set()) - reached
        reached |= fresh
        waiting += fresh
    return reached


def _conditions(graph: Graph, restrictions: Iterable[Term]) -> set[Term]:
    """Those that are not only on the right of axioms: named ones, and any that something else refers to."""
    nodes = set(restrictions)
    used = {node for node in nodes if not is_blank(node) or graph.values(node, f"<{RDFS}subClassOf>")}
    for (subject, predicate), ends in graph.found.items():
        if predicate not in _ONLY_RIGHT:
            used |= nodes.intersection(ends)
        elif predicate == f"<{RDFS}subClassOf>" and subject in nodes:
            used.add(subject)
    return used | {node for node in nodes if graph.values(node, f"<{OWL}equivalentClass>")}
