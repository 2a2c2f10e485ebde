"""Graphs: a named graph for facts with equal labels, and the label on its name (Taelman et al., ESWC 2016, 5.2)."""

from collections.abc import Iterable, Sequence

from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.servers.fragments import ExpiringQuad, Quad, QuadPattern, labels
from streamgauge.servers.fragments.annotations import AnnotatedForm, Namer, triple_nodes


def annotate(facts: Sequence[Fact], style: labels.Style, fresh: Namer) -> list[ExpiringQuad]:
    """A named graph per group with a quad for each fact, and the label on the graph's name."""
    quads, timed = labels.by_label(facts, style)
    for group in timed:
        name = fresh(group)
        graph = labels.label_subject(style, name)
        quads += [((*fact.triple, graph), fact.final) for fact in group]
        quads += labels.expiring_label(graph, name, group[0], style)
    return labels.latest_ends(quads)


def facts(quads: Iterable[Quad], style: labels.Style) -> list[Fact]:
    """A fact for each quad and each label of its graph; a quad in a graph without a label is static."""
    read = labels.read_labels(quads, style)
    # Several labels on one graph are several validities of each of its quads.
    unbounded = [(None, None)]
    return list(
        dict.fromkeys(
            Fact(quad[:3], *times) for quad in read.others for times in (quad[3] and read.of(quad[3])) or unbounded
        )
    )


def form(pattern: TriplePattern, number: int, style: labels.Style) -> AnnotatedForm:
    """The triple pattern in a graph variable, and the label of that graph."""
    graph = Var(f"_graph{number}")
    label = labels.label_patterns(graph, number, style)
    member = QuadPattern(Var("_s"), Var("_p"), Var("_o"), graph)
    own = (QuadPattern(*triple_nodes(pattern), graph),)
    return AnnotatedForm(own, label.patterns, label.initial, label.final, member=member)
