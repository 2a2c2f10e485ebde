"""The facts that a store's quads say about a pattern, each with the quads that say it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import Term, Triple
from streamgauge.servers.fragments.annotations import Form, Link, method
from streamgauge.servers.fragments.labelling import bounds, reserved
from streamgauge.servers.fragments.quads import DEFAULT, Match, Quad, QuadPattern
from streamgauge.servers.fragments.serving.selection import fits
from streamgauge.servers.fragments.storing import Store
from streamgauge.servers.fragments.style import Style

Row: TypeAlias = dict[Var, Term]
Place: TypeAlias = Term | None
Wanted: TypeAlias = tuple[Place, Place, Place]
"""Which triples: a term, or ``None`` for any."""

_BATCH: Final = 1000
_PLACES: Final = (Var("s"), Var("p"), Var("o"))
_ANY: Final = TriplePattern(*_PLACES)


@dataclass(frozen=True, slots=True)
class Located:
    """A fact in a store: quads of its own, those of its label, and what its group's quads match (``None``: no group).

    ``name`` is what its annotation was given as a name, ``None`` when it has none or one that is not ours.
    """

    fact: Fact
    own: tuple[Quad, ...]
    label: tuple[Quad, ...] = ()
    member: Match | None = None
    name: str | None = None


def located(store: Store, wanted: Wanted, style: Style) -> Iterator[Located]:
    """All facts of wanted triples, those that hold always too; the store must not change meanwhile."""
    nodes = [term if term is not None else var for term, var in zip(wanted, _PLACES, strict=True)]
    pattern = TriplePattern(nodes[0], nodes[1], nodes[2])
    form = method(style.method).form(pattern, 0, style)
    asserted: set[Quad] = set()
    for row in _rows(store, (*form.patterns, *form.also), form.links, {}):
        found = _located(row, pattern, form, style)
        asserted.update(quad for quad in found.own if quad[:3] == found.fact.triple)
        yield found
    for quad in _quads(store, (*wanted, DEFAULT)):
        if quad not in asserted and not _says_times(quad, store, style):
            yield Located(Fact(quad[:3]), (quad,))


def _located(row: Row, pattern: TriplePattern, form: Form, style: Style) -> Located:
    def value(node: Node) -> Term:
        return row[node] if isinstance(node, Var) else node

    def made(patterns: Sequence[QuadPattern]) -> tuple[Quad, ...]:
        quads = (tuple(map(value, each.nodes)) for each in patterns)
        return tuple((s, p, o, g) for s, p, o, g in quads)

    triple = value(pattern.subject), value(_predicate(pattern)), value(pattern.object)
    initial, final = (None if each is None else row[each] for each in (form.initial, form.final))
    own, label = made(form.own + form.also), made(form.label)
    member = None if form.member is None else _bound(form.member, row).match
    return Located(
        Fact(triple, *bounds(initial, final, style)), own, label, member, _name((*own, *label), triple, style)
    )


def _predicate(pattern: TriplePattern) -> Node:
    assert isinstance(pattern.predicate, Var | str)
    return pattern.predicate


def _name(quads: Sequence[Quad], triple: Triple, style: Style) -> str | None:
    """The name in the subject of a label."""
    times = reserved(style.vocabulary)
    for start in (f"<{style.vocabulary.names}", f"{triple[1][:-1]}-"):
        for subject, predicate, _, _ in quads:
            if predicate in times and subject.startswith(start):
                return subject[len(start) : -1].removesuffix("-interval")
    return None


def _rows(store: Store, patterns: Sequence[QuadPattern], links: Sequence[Link], row: Row) -> Iterator[Row]:
    """All solutions, each next pattern the one that the fewest quads match."""
    if not patterns:
        yield row
        return
    matches = [_bound(pattern, row).match for pattern in patterns]
    least = min(range(len(patterns)), key=[store.count(match) for match in matches].__getitem__)
    rest = (*patterns[:least], *patterns[least + 1 :])
    for quad in _quads(store, matches[least]):
        extended = _linked(_extended(row, patterns[least], quad), links)
        if extended is not None:
            yield from _rows(store, rest, links, extended)


def _extended(row: Row, pattern: QuadPattern, quad: Quad) -> Row | None:
    """The row with a quad's terms; ``None`` when it does not fit. A variable is a named graph only."""
    found = dict(row)
    for node, term in zip(pattern.nodes, quad, strict=True):
        if isinstance(node, Var) and (found.setdefault(node, term) != term or term == DEFAULT):
            return None
    return found


def _linked(row: Row | None, links: Sequence[Link]) -> Row | None:
    """The row with the variables that can be computed; ``None`` when one is something else."""
    for link in links if row is not None else ():
        assert row is not None
        s, p, o = (
            row.get(node) if isinstance(node, Var) else node
            for node in (link.pattern.subject, _predicate(link.pattern), link.pattern.object)
        )
        if s is not None and p is not None and o is not None:
            term = link.term((s, p, o))
            if row.setdefault(link.variable, term) != term:
                return None
    return row


def _bound(pattern: QuadPattern, row: Row) -> QuadPattern:
    nodes = (row.get(node, node) if isinstance(node, Var) else node for node in pattern.nodes)
    return QuadPattern(*nodes)


def _quads(store: Store, match: Match) -> Iterator[Quad]:
    offset = 0
    while found := store.page(match, offset, _BATCH):
        yield from found
        offset += len(found)


def _says_times(quad: Quad, store: Store, style: Style) -> bool:
    """Whether a quad of the default graph is part of an annotation: a label, or on what has one."""
    times = reserved(style.vocabulary)
    if quad[1] in times:
        return True
    form = method(style.method).form(_ANY, 0, style)
    return any(
        fits(quad, part.match) and any(store.count((each, time, None, DEFAULT)) for each in holders for time in times)
        for part in (*form.patterns, *form.also)
        if part.predicate != _ANY.predicate
        for holders in ([(quad[1],)] if isinstance(part.predicate, Var) else [(quad[0], quad[2])])
    )
