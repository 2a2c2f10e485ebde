"""Singleton properties: a property of their own for facts with equal labels (Taelman et al., ESWC 2016, 5.2)."""

from collections.abc import Iterable, Sequence

from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term
from streamgauge.servers.fragments import DEFAULT, ExpiringQuad, Quad, QuadPattern, labels
from streamgauge.servers.fragments.annotations import AnnotatedForm, Namer, triple_nodes


def annotate(facts: Sequence[Fact], style: labels.Style, fresh: Namer) -> list[ExpiringQuad]:
    """A property for each group and predicate: what it stands for, its label, and a triple for each fact."""
    quads, timed = labels.by_label(facts, style)
    for group in timed:
        for predicate, members in _by_predicate(group).items():
            quads += _singleton(predicate, members, style, fresh(members))
    return labels.latest_ends(quads)


def _by_predicate(group: Iterable[Fact]) -> dict[Term, list[Fact]]:
    facts_by_predicate: dict[Term, list[Fact]] = {}
    for fact in group:
        facts_by_predicate.setdefault(fact.triple[1], []).append(fact)
    return facts_by_predicate


def _singleton(predicate: Term, members: Sequence[Fact], style: labels.Style, name: str) -> list[ExpiringQuad]:
    # The name ends the predicate's own IRI, so that the property stays readable in data.
    single = f"{predicate[:-1]}-{name}>"
    own: list[ExpiringQuad] = [((fact.triple[0], single, fact.triple[2], DEFAULT), fact.final) for fact in members]
    # All members have the same label, and with it the same end.
    own.append(((single, style.vocabulary.singleton, predicate, DEFAULT), members[0].final))
    return own + labels.expiring_label(single, name, members[0], style)


def facts(quads: Iterable[Quad], style: labels.Style) -> list[Fact]:
    """A fact for each triple with a singleton property and each of the property's labels; other triples hold always."""
    read = labels.read_labels(quads, style)
    singles: dict[Term, list[Term]] = {}
    for subject, predicate, object_, _ in read.others:
        if predicate == style.vocabulary.singleton and read.of(subject):
            singles.setdefault(subject, []).append(object_)
    return list(dict.fromkeys(fact for quad in read.others for fact in _facts(quad, singles, read)))


def _facts(quad: Quad, singles: dict[Term, list[Term]], read: labels.Labels) -> list[Fact]:
    subject, predicate, object_, _ = quad
    if predicate in singles:
        return [Fact((subject, of, object_), *times) for of in singles[predicate] for times in read.of(predicate)]
    # The declaration of a singleton property is part of the annotation, not a fact.
    return [] if subject in singles and predicate == read.style.vocabulary.singleton else [Fact(quad[:3])]


def form(pattern: TriplePattern, number: int, style: labels.Style) -> AnnotatedForm:
    """A triple with a singleton property of the predicate, and the property's label."""
    subject, predicate, object_ = triple_nodes(pattern)
    single = Var(f"_property{number}")
    label = labels.label_patterns(single, number, style)
    own = (QuadPattern(subject, single, object_),)
    about = (QuadPattern(single, style.vocabulary.singleton, predicate), *label.patterns)
    member = QuadPattern(Var("_s"), single, Var("_o"))
    return AnnotatedForm(own, about, label.initial, label.final, member=member)
