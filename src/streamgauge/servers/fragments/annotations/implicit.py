"""Implicit graphs: the label is on the address of the triple's own fragment (Taelman et al., ESWC 2016, 5.2).

In a grouped style that address is owl:sameAs a name that carries the label of the whole group. This costs one quad per
fact and saves the fact's own label: three quads for an interval with a node, one for an expiration, where nothing is
gained. Flat intervals (borders on the subject itself) always use such a name: if a triple held twice, the four borders
on its address would not tell which two belong together.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from urllib.parse import quote

from streamgauge.model.algebra import TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term, Triple, datatype, is_literal
from streamgauge.servers.fragments import DEFAULT, ExpiringQuad, Quad, QuadPattern, labels
from streamgauge.servers.fragments.annotations import AnnotatedForm, ComputedVariable, Namer, triple_nodes

SAME_AS = "<http://www.w3.org/2002/07/owl#sameAs>"


class FragmentTemplateError(ValueError):
    """A template without a form-style expression of three variables; the sentence shows one."""


def fragment(triple: Triple, style: labels.Style) -> Term:
    """The address of a triple's fragment, as an IRI: the style's template with its three terms."""
    base, brace, rest = style.template.partition("{?")
    names = rest.removesuffix("}").split(",")
    if not brace or not rest.endswith("}") or len(names) < 3:
        raise FragmentTemplateError(
            f"{style.template!r} is not a template: expected one like http://host/data{{?s,p,o}}"
        )
    parameters = (f"{name}={quote(_parameter(term), safe='')}" for name, term in zip(names, triple, strict=False))
    return f"<{base}?{'&'.join(parameters)}>"


def _parameter(term: Term) -> str:
    """A term as forms take it: an IRI bare, a literal's datatype without brackets (TPF specification, 4.2)."""
    if not is_literal(term):
        return term[1:-1] if term.startswith("<") and not term.startswith("<<") else term
    if term.endswith('"') or not term.endswith(">"):
        return term
    return f"{term[: term.rindex('^^')]}^^{datatype(term)}"


def annotate(facts: Sequence[Fact], style: labels.Style, fresh: Namer) -> list[ExpiringQuad]:
    """Triples of the default graph, and a label for each or, through owl:sameAs, for each group."""
    quads, timed = labels.by_label(facts, style)
    for group in timed:
        quads += [((*fact.triple, DEFAULT), fact.final) for fact in group]
        quads += _labels(group, style, fresh(group))
    return labels.latest_ends(quads)


def _labels(group: Sequence[Fact], style: labels.Style, name: str) -> list[ExpiringQuad]:
    addresses = [(fragment(fact.triple, style), fact) for fact in group]
    if not _linked(style):
        return [quad for address, fact in addresses for quad in labels.expiring_label(address, name, fact, style)]
    shared = labels.label_subject(style, name)
    same: list[ExpiringQuad] = [((address, SAME_AS, shared, DEFAULT), fact.final) for address, fact in addresses]
    return same + labels.expiring_label(shared, name, group[0], style)


def _linked(style: labels.Style) -> bool:
    return style.grouped or (style.label is labels.Label.INTERVAL and style.vocabulary.interval is None)


def facts(quads: Iterable[Quad], style: labels.Style) -> list[Fact]:
    """The facts in annotated quads.

    A triple holds at each time stated for its address or for the address's owl:sameAs, and always if none is stated.
    """
    read = labels.read_labels(quads, style)
    same: dict[Term, list[Term]] = {}
    for subject, predicate, object_, _ in read.others:
        # Only links to a label: data may say owl:sameAs of its own.
        if predicate == SAME_AS and read.of(object_):
            same.setdefault(subject, []).append(object_)
    return list(dict.fromkeys(fact for quad in read.others for fact in _facts(quad, same, read)))


def _facts(quad: Quad, same: dict[Term, list[Term]], read: labels.Labels) -> list[Fact]:
    if quad[1] == SAME_AS and quad[2] in same.get(quad[0], ()):
        return []
    address = fragment(quad[:3], read.style)
    times = [time_ for subject in (address, *same.get(address, ())) for time_ in read.of(subject)]
    return [Fact(quad[:3], *time_) for time_ in times or [(None, None)]]


def form(pattern: TriplePattern, number: int, style: labels.Style) -> AnnotatedForm:
    """The pattern itself, and the label on the computed address of each triple or on its owl:sameAs."""
    address = Var(f"_fragment{number}")
    shared = Var(f"_group{number}") if _linked(style) else address
    label = labels.label_patterns(shared, number, style)
    link = ComputedVariable(address, pattern, partial(fragment, style=style))
    own: tuple[QuadPattern, ...] = (QuadPattern(*triple_nodes(pattern)),)
    # Each triple has its own label, so there is no group of which it could be a member.
    if shared is address:
        return AnnotatedForm(own + label.patterns, (), label.initial, label.final, (link,))
    member = QuadPattern(Var("_f"), SAME_AS, shared)
    own = (*own, QuadPattern(address, SAME_AS, shared))
    return AnnotatedForm(own, label.patterns, label.initial, label.final, (link,), member=member)
