"""What is asked of a source for the facts of a triple pattern: those without a time, those with one, and its labels.

Also for the quads of a pattern in the data's own named graphs, and the labels that tell other graphs from these.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TypeAlias, TypeVar

from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term
from streamgauge.servers.fragments.annotations import Form, method, places
from streamgauge.servers.fragments.labelling import labels
from streamgauge.servers.fragments.quads import ANYWHERE, DEFAULT, Quad, QuadPattern
from streamgauge.servers.fragments.streaming.demand import Wanted
from streamgauge.servers.fragments.style import Style

Values: TypeAlias = Mapping[Var, frozenset[Term]]
"""The values of variables that can matter."""

Terms = TypeVar("Terms", bound=Sequence[Term])
"""A triple or a quad."""


class Where(Enum):
    """Which graphs have facts; alone, how facts without times are read."""

    ANY = "all graphs: each is a label's, or its triples hold always"
    DEFAULT = "the default graph"


@dataclass(frozen=True, slots=True)
class Place:
    """A pattern of a form, and what is asked for it, which may be more."""

    pattern: QuadPattern
    asked: QuadPattern


@dataclass(frozen=True, slots=True)
class Asking:
    """A triple pattern as it is asked for: groups of patterns that belong together, and the one that is counted."""

    form: Form
    groups: tuple[tuple[Place, ...], ...]
    entry: QuadPattern

    def computed(self, place: Place, quads: Iterable[Quad]) -> dict[Var, frozenset[Term]]:
        """The values of variables that follow from the triples that were found at a place."""
        return {
            link.variable: frozenset(link.term(quad[:3]) for quad in quads)
            for link in self.form.links
            if place.pattern.nodes[:3] == places(link.pattern)
        }


def where(style: Style | Where) -> Where:
    """Which graphs have the facts of a style."""
    if isinstance(style, Where):
        return style
    triple = TriplePattern(Var("s"), Var("p"), Var("o"))
    in_graph = any(isinstance(each.graph, Var) for each in method(style.method).form(triple, 0, style).own)
    return Where.ANY if in_graph else Where.DEFAULT


def asking(wanted: Wanted, style: Style | Where) -> Asking:
    """How a pattern's facts are asked for; in one request where a pattern in a graph or none has all of them.

    Without a style only facts without a time are.
    """
    pattern = wanted.pattern
    if wanted.graph is not None:
        return _in_graph(pattern, wanted.graph, style)
    plain = QuadPattern(*places(pattern))
    if isinstance(style, Where):
        asked = QuadPattern(*places(pattern), ANYWHERE) if style is Where.ANY else plain
        return Asking(Form((plain,), (), None, None), ((Place(plain, asked),),), asked)
    form = method(style.method).form(pattern, 0, style)
    in_graph = [each for each in form.patterns if each.nodes[:3] == plain.nodes[:3] and isinstance(each.graph, Var)]
    if in_graph:
        anywhere = QuadPattern(*places(pattern), ANYWHERE)
        group = tuple(Place(each, anywhere if each in in_graph else each) for each in form.patterns)
        return Asking(form, (group,), anywhere)
    group = tuple(Place(each, each) for each in form.patterns)
    if plain in form.patterns:
        return Asking(form, (group,), plain)
    return Asking(form, ((Place(plain, plain),), group), plain)


def _in_graph(pattern: TriplePattern, graph: Node, style: Style | Where) -> Asking:
    """How the quads of a pattern in a named graph are asked for, with the graph's label where it may have one."""
    plain = QuadPattern(*places(pattern), graph)
    if isinstance(style, Where) or where(style) is Where.DEFAULT:
        return Asking(Form((plain,), (), None, None), ((Place(plain, plain),),), plain)
    form = method(style.method).form(pattern, 0, style)
    own = form.own[0].graph
    asked = [QuadPattern(*(graph if node == own else node for node in each.nodes)) for each in form.patterns]
    return Asking(form, (tuple(Place(each, each) for each in asked),), plain)


def facts_of(quads: Iterable[Quad], style: Style | Where) -> list[Fact]:
    """The facts that quads say; without a style their triples, which hold always."""
    having = quads if where(style) is Where.ANY else [quad for quad in quads if quad[3] == DEFAULT]
    if isinstance(style, Where):
        return [Fact(triple) for triple in dict.fromkeys(quad[:3] for quad in having)]
    return method(style.method).facts(having, style)


def named_of(quads: Iterable[Quad], style: Style | Where) -> list[Quad]:
    """The quads of the data's own named graphs: where graphs may be annotations, of those that have no label."""
    if isinstance(style, Where) or where(style) is Where.DEFAULT:
        return [quad for quad in quads if quad[3] != DEFAULT]
    read = labels(quads, style)
    return [quad for quad in read.others if quad[3] != DEFAULT and not read.of(quad[3])]


def terms_at(nodes: tuple[Node, ...], variable: Var, found: Iterable[Terms]) -> frozenset[Term]:
    """The terms at a variable's place in the triples, or quads, that match nodes."""
    place = nodes.index(variable)
    return frozenset(each[place] for each in matching(nodes, found))


def bound(pattern: QuadPattern, quads: Iterable[Quad]) -> dict[Var, frozenset[Term]]:
    """The terms of a pattern's variables in the quads that match it."""
    nodes, found = pattern.nodes, taken(pattern, quads)
    places_of = {variable: nodes.index(variable) for variable in pattern.variables}
    return {variable: frozenset(quad[place] for quad in found) for variable, place in places_of.items()}


def taken(pattern: QuadPattern, quads: Iterable[Quad]) -> list[Quad]:
    """The quads of a pattern; a graph's variable is a named graph, or ANYWHERE."""
    if pattern.graph == ANYWHERE:
        return matching(pattern.nodes[:3], quads)
    found = matching(pattern.nodes, quads)
    return [quad for quad in found if quad[3] != DEFAULT] if isinstance(pattern.graph, Var) else found


def matching(nodes: tuple[Node, ...], found: Iterable[Terms]) -> list[Terms]:
    """Triples, or quads, with constants where they should stand, and equal terms where a variable is repeated."""
    constants, equal = _tests(nodes)
    kept = list(found)
    for place, term in constants:
        kept = [each for each in kept if each[place] == term]
    for one, other in equal:
        kept = [each for each in kept if each[one] == each[other]]
    return kept


@lru_cache(10_000)
def _tests(nodes: tuple[Node, ...]) -> tuple[tuple[tuple[int, Term], ...], tuple[tuple[int, int], ...]]:
    """The places of constants with them, and pairs of places that hold the same variable."""
    constants = tuple((place, node) for place, node in enumerate(nodes) if not isinstance(node, Var))
    repeated = ((nodes.index(node), place) for place, node in enumerate(nodes) if isinstance(node, Var))
    return constants, tuple(pair for pair in repeated if pair[0] != pair[1])
