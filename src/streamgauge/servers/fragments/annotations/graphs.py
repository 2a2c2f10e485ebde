"""Graphs: a named graph for facts with equal labels, and the label on its name (Taelman et al., ESWC 2016, 5.2)."""

from collections.abc import Iterable, Sequence

from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.servers.fragments import ExpiringQuad, Quad, QuadPattern, labels
from streamgauge.servers.fragments.annotations import AnnotatedForm, Namer, triple_nodes


def annotate(facts: Sequence[Fact], style: labels.Style, fresh: Namer) -> list[ExpiringQuad]:
    """A graph per group: a quad for each fact, and those of one label."""
    quads, timed = labels.by_label(facts, style)
    for group in timed:
        name = fresh(group)
        graph = labels.label_subject(style, name)
        quads += [((*fact.triple, graph), fact.final) for fact in group]
        quads += labels.expiring_label(graph, name, group[0], style)
    return labels.latest_ends(quads)


def facts(quads: Iterable[Quad], style: labels.Style) -> list[Fact]:
    """A fact for each quad and label of its graph; one in a graph without a label holds always."""
    read = labels.read_labels(quads, style)
    always = [(None, None)]
    return list(
        dict.fromkeys(
            Fact(quad[:3], *times) for quad in read.others for times in (quad[3] and read.of(quad[3])) or always
        )
    )


def form(pattern: TriplePattern, number: int, style: labels.Style) -> AnnotatedForm:
    """The pattern in a graph, and the graph's label."""
    graph = Var(f"_graph{number}")
    label = labels.label_patterns(graph, number, style)
    member = QuadPattern(Var("_s"), Var("_p"), Var("_o"), graph)
    own = (QuadPattern(*triple_nodes(pattern), graph),)
    return AnnotatedForm(own, label.patterns, label.initial, label.final, member=member)
