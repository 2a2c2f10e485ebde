"""Facts of a data set: those that its quads say about a pattern, and the times that a request says of facts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import XSD, Term, Triple
from streamgauge.query.clauses import duration
from streamgauge.servers.fragments.annotations import AnnotatedForm, ComputedVariable, method
from streamgauge.servers.fragments.labels import LabelError, instant, label_predicates, read_bounds
from streamgauge.servers.fragments.pages.selection import fits
from streamgauge.servers.fragments.quads import DEFAULT, Match, Quad, QuadPattern
from streamgauge.servers.fragments.store import Store
from streamgauge.servers.fragments.style import Label, Style

VALIDITY_PARAMETERS: Final[tuple[str, ...]] = ("from", "until", "for")
"""The parameters that say it."""


class ValidityError(ValueError):
    """A time that is none, or that a label can't say; the sentence says what to write."""


@dataclass(frozen=True, slots=True)
class Validity:
    """[initial, final) of the facts of a request, ms; both ``None``: they hold always."""

    initial: int | None = None
    final: int | None = None

    def facts(self, triples: Iterable[Triple]) -> list[Fact]:
        """The triples as facts."""
        return [Fact(triple, self.initial, self.final) for triple in triples]


def validity(given: Mapping[str, str], label: Label, now: int) -> Validity:
    """The validity that ``from``, ``until`` and ``for`` say at ``now`` (ms); without ``from`` intervals begin now."""
    if "until" in given and "for" in given:
        raise ValidityError("until and for say the same: give one")
    initial = read_time(given["from"], now) if "from" in given else None
    since = now if initial is None else initial
    final = read_time(given["until"], now) if "until" in given else None
    if "for" in given:
        final = since + _duration(given["for"])
    if label is Label.INSTANT and given.keys() & set(VALIDITY_PARAMETERS):
        if final is not None:
            raise ValidityError("an instant label says one time: give from, or nothing for now")
        return Validity(since, since + 1)
    if initial is None and final is None:
        return Validity()
    return _checked(Validity(since, final), label, now)


def _checked(said: Validity, label: Label, now: int) -> Validity:
    assert said.initial is not None
    if label is Label.EXPIRATION and said.initial > now:
        raise ValidityError("an expiration label can't say that a fact begins later: write it then, or use intervals")
    if said.final is not None and said.final <= said.initial:
        raise ValidityError(f"it would end ({said.final} ms) before it begins ({said.initial} ms): give a later end")
    return said


def read_time(text: str, now: int) -> int:
    """Ms of ``now``, of whole ms since 1970, or of an xsd:dateTime with a time zone; ValidityError for others."""
    if text == "now":
        return now
    if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) <= 15:
        return int(text)
    try:
        return instant(f'"{text}"^^<{XSD}dateTime>')
    except LabelError:
        raise ValidityError(f"{text!r:.60} is no time: write now, 2026-11-22T10:00:00Z, or ms since 1970") from None


def _duration(text: str) -> int:
    lasting = duration(text)
    if not lasting or lasting > 10**15:
        raise ValidityError(f"{text!r:.60} is no duration: write one like 500ms, 10s, 5m, 1h, 1d")
    return lasting


VariableRow: TypeAlias = dict[Var, Term]
TermOrAny: TypeAlias = Term | None
TripleMatch: TypeAlias = tuple[TermOrAny, TermOrAny, TermOrAny]
"""Which triples: a term, or ``None`` for any."""

_BATCH: Final = 1000
_PLACES: Final = (Var("s"), Var("p"), Var("o"))
_ANY: Final = TriplePattern(*_PLACES)


@dataclass(frozen=True, slots=True)
class LocatedFact:
    """A fact in a store: quads of its own, those of its label, and what its group's quads match (``None``: no group).

    ``name`` is what its annotation was given as a name, ``None`` when it has none or one that is not ours.
    """

    fact: Fact
    own: tuple[Quad, ...]
    label: tuple[Quad, ...] = ()
    member: Match | None = None
    name: str | None = None


def located_facts(store: Store, wanted: TripleMatch, style: Style) -> Iterator[LocatedFact]:
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
            yield LocatedFact(Fact(quad[:3]), (quad,))


def _located(row: VariableRow, pattern: TriplePattern, form: AnnotatedForm, style: Style) -> LocatedFact:
    def value(node: Node) -> Term:
        return row[node] if isinstance(node, Var) else node

    def made(patterns: Sequence[QuadPattern]) -> tuple[Quad, ...]:
        quads = (tuple(map(value, each.nodes)) for each in patterns)
        return tuple((s, p, o, g) for s, p, o, g in quads)

    triple = value(pattern.subject), value(_predicate(pattern)), value(pattern.object)
    initial, final = (None if each is None else row[each] for each in (form.initial, form.final))
    own, label = made(form.own + form.also), made(form.label)
    member = None if form.member is None else _bound(form.member, row).match
    return LocatedFact(
        Fact(triple, *read_bounds(initial, final, style)), own, label, member, _name((*own, *label), triple, style)
    )


def _predicate(pattern: TriplePattern) -> Node:
    assert isinstance(pattern.predicate, Var | str)
    return pattern.predicate


def _name(quads: Sequence[Quad], triple: Triple, style: Style) -> str | None:
    """The name in the subject of a label."""
    times = label_predicates(style.vocabulary)
    for start in (f"<{style.vocabulary.names}", f"{triple[1][:-1]}-"):
        for subject, predicate, _, _ in quads:
            if predicate in times and subject.startswith(start):
                return subject[len(start) : -1].removesuffix("-interval")
    return None


def _rows(
    store: Store, patterns: Sequence[QuadPattern], links: Sequence[ComputedVariable], row: VariableRow
) -> Iterator[VariableRow]:
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


def _extended(row: VariableRow, pattern: QuadPattern, quad: Quad) -> VariableRow | None:
    """The row with a quad's terms; ``None`` when it does not fit. A variable is a named graph only."""
    found = dict(row)
    for node, term in zip(pattern.nodes, quad, strict=True):
        if isinstance(node, Var) and (found.setdefault(node, term) != term or term == DEFAULT):
            return None
    return found


def _linked(row: VariableRow | None, links: Sequence[ComputedVariable]) -> VariableRow | None:
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


def _bound(pattern: QuadPattern, row: VariableRow) -> QuadPattern:
    nodes = (row.get(node, node) if isinstance(node, Var) else node for node in pattern.nodes)
    return QuadPattern(*nodes)


def _quads(store: Store, match: Match) -> Iterator[Quad]:
    offset = 0
    while found := store.page(match, offset, _BATCH):
        yield from found
        offset += len(found)


def _says_times(quad: Quad, store: Store, style: Style) -> bool:
    """Whether a quad of the default graph is part of an annotation: a label, or on what has one."""
    times = label_predicates(style.vocabulary)
    if quad[1] in times:
        return True
    form = method(style.method).form(_ANY, 0, style)
    return any(
        fits(quad, part.match) and any(store.count((each, time, None, DEFAULT)) for each in holders for time in times)
        for part in (*form.patterns, *form.also)
        if part.predicate != _ANY.predicate
        for holders in ([(quad[1],)] if isinstance(part.predicate, Var) else [(quad[0], quad[2])])
    )
