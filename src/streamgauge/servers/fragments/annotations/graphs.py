"""Graphs: a named graph for facts with equal labels, and the label on its name (Taelman et al., ESWC 2016, 5.2)."""

from collections.abc import Iterable, Sequence

from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.servers.fragments.annotations import Form, Namer, places
from streamgauge.servers.fragments.labelling import asked, groups, labelled, labels, lasting, named, node
from streamgauge.servers.fragments.quads import DEFAULT, Lasting, Quad, QuadPattern
from streamgauge.servers.fragments.style import Style


def annotate(facts: Sequence[Fact], style: Style, fresh: Namer) -> list[Lasting]:
    """A graph per group: a quad for each fact, and those of one label."""
    still, timed = groups(facts, style)
    quads: list[Lasting] = [((*fact.triple, DEFAULT), None) for fact in still]
    for group in timed:
        name = fresh(group)
        graph = named(style, name)
        quads += [((*fact.triple, graph), fact.final) for fact in group]
        quads += [(quad, group[0].final) for quad in labelled(graph, group[0], style, node(style, name))]
    return lasting(quads)


def facts(quads: Iterable[Quad], style: Style) -> list[Fact]:
    """A fact for each quad and label of its graph; one in a graph without a label holds always."""
    read = labels(quads, style)
    always = [(None, None)]
    return list(
        dict.fromkeys(
            Fact(quad[:3], *times) for quad in read.others for times in (quad[3] and read.of(quad[3])) or always
        )
    )


def form(pattern: TriplePattern, number: int, style: Style) -> Form:
    """The pattern in a graph, and the graph's label."""
    graph = Var(f"_graph{number}")
    label = asked(graph, number, style)
    member = QuadPattern(Var("_s"), Var("_p"), Var("_o"), graph)
    own = (QuadPattern(*places(pattern), graph),)
    return Form(own, label.patterns, label.initial, label.final, member=member)
