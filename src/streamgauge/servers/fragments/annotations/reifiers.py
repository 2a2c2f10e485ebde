"""Reifiers: triples, and a reifier of the triple terms of facts with equal labels (RDF 1.2 Concepts, 1.5).

It is what Turtle's ``s p o {| label |}`` says: the triple is asserted, so that it is found by its parts.
"""

from collections.abc import Iterable, Sequence

from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import REIFIES, Term, triple_term
from streamgauge.servers.fragments import DEFAULT, ExpiringQuad, Quad, QuadPattern, labels
from streamgauge.servers.fragments.annotations import AnnotatedForm, ComputedVariable, Namer, triple_nodes


def annotate(facts: Sequence[Fact], style: labels.Style, fresh: Namer) -> list[ExpiringQuad]:
    """Triples of the default graph, and a reifier for each group, which has its label."""
    quads, timed = labels.by_label(facts, style)
    for group in timed:
        name = fresh(group)
        reifier = labels.label_subject(style, name)
        quads += [((*fact.triple, DEFAULT), fact.final) for fact in group]
        quads += [((reifier, REIFIES, triple_term(fact.triple), DEFAULT), fact.final) for fact in group]
        quads += labels.expiring_label(reifier, name, group[0], style)
    return labels.latest_ends(quads)


def facts(quads: Iterable[Quad], style: labels.Style) -> list[Fact]:
    """A fact for each asserted triple and label of its reifiers; other triples hold always."""
    read = labels.read_labels(quads, style)
    reifiers: dict[Term, list[Term]] = {}
    plain = []
    for quad in read.others:
        if quad[1] == REIFIES and read.of(quad[0]):
            reifiers.setdefault(quad[2], []).append(quad[0])
        else:
            # Triples that merely mention a labelled reifier are data like any other.
            plain.append(quad[:3])
    facts_: dict[Fact, None] = {}
    for triple in plain:
        times = [bounds for reifier in reifiers.get(triple_term(triple), ()) for bounds in read.of(reifier)]
        facts_.update((Fact(triple, *time_), None) for time_ in times or [(None, None)])
    return list(facts_)


def form(pattern: TriplePattern, number: int, style: labels.Style) -> AnnotatedForm:
    """The pattern itself, and the label on a reifier of the computed triple term of each triple."""
    reifier, term = Var(f"_reifier{number}"), Var(f"_triple{number}")
    label = labels.label_patterns(reifier, number, style)
    own = QuadPattern(*triple_nodes(pattern)), QuadPattern(reifier, REIFIES, term)
    member = QuadPattern(reifier, REIFIES, Var("_t"))
    return AnnotatedForm(
        own, label.patterns, label.initial, label.final, (ComputedVariable(term, pattern, triple_term),), member=member
    )
