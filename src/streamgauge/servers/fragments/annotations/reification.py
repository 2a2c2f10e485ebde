"""Reification: an rdf:Statement for each fact, which has its label (RDF Schema, 5.3). Statements share nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import RDF_TYPE, Term
from streamgauge.servers.fragments import DEFAULT, ExpiringQuad, Quad, QuadPattern, labels
from streamgauge.servers.fragments.annotations import AnnotatedForm, Namer, triple_nodes

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
STATEMENT: Final = f"<{_RDF}Statement>"
PARTS: Final = (f"<{_RDF}subject>", f"<{_RDF}predicate>", f"<{_RDF}object>")


def annotate(facts: Sequence[Fact], style: labels.Style, fresh: Namer) -> list[ExpiringQuad]:
    """Reify each fact: a statement with its type, subject, predicate, object and label."""
    quads, timed = labels.by_label(facts, replace(style, grouped=False))
    for fact in (fact for group in timed for fact in group):
        name = fresh([fact])
        statement = labels.label_subject(style, name)
        quads.append(((statement, RDF_TYPE, STATEMENT, DEFAULT), fact.final))
        quads += [((statement, part, term, DEFAULT), fact.final) for part, term in zip(PARTS, fact.triple, strict=True)]
        quads += labels.expiring_label(statement, name, fact, style)
    return labels.latest_ends(quads)


def facts(quads: Iterable[Quad], style: labels.Style) -> list[Fact]:
    """A fact for each statement that has a label; other triples hold always."""
    read = labels.read_labels(quads, style)
    statements: dict[Term, dict[Term, list[Term]]] = {}
    plain = []
    for subject, predicate, object_, _ in read.others:
        # A statement without a label is data about something else.
        if (predicate in PARTS or object_ == STATEMENT) and read.of(subject):
            statements.setdefault(subject, {}).setdefault(predicate, []).append(object_)
        else:
            plain.append(Fact((subject, predicate, object_)))
    timed = (
        Fact((subject, predicate, object_), *times)
        for statement, parts in statements.items()
        # A statement with a part missing gives no fact; one with two objects, which RDF allows, gives two.
        for subject, predicate, object_ in product(*(parts.get(part, ()) for part in PARTS))
        for times in read.of(statement)
    )
    return list(dict.fromkeys([*plain, *timed]))


def form(pattern: TriplePattern, number: int, style: labels.Style) -> AnnotatedForm:
    """The three parts of a statement, and its label."""
    statement = Var(f"_statement{number}")
    label = labels.label_patterns(statement, number, style)
    own = tuple(QuadPattern(statement, part, node) for part, node in zip(PARTS, triple_nodes(pattern), strict=True))
    # Written, but not needed to read a fact back.
    also = (QuadPattern(statement, RDF_TYPE, STATEMENT),)
    return AnnotatedForm(own + label.patterns, (), label.initial, label.final, also=also)
