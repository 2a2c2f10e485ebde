"""A data set as it is served: pages of selections, and the facts that its quads say.

Pages are kept until a change or an end of a fact touches them. The times that a request says of facts are read here.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from streamgauge.model.algebra import Node, TriplePattern, Var
from streamgauge.model.fact import Fact
from streamgauge.model.terms import XSD, Term, Triple
from streamgauge.query.clauses import duration
from streamgauge.servers.fragments import DEFAULT, ExpiringQuad, Match, Quad, QuadPattern
from streamgauge.servers.fragments.annotations import AnnotatedForm, ComputedVariable, method, triple_nodes
from streamgauge.servers.fragments.labels import (
    Bounds,
    Label,
    LabelError,
    Style,
    instant,
    label_predicates,
    read_bounds,
    read_labels,
)
from streamgauge.servers.fragments.pages import SWEEP, FragmentShape, Selection, SelectionIndex, fits, matches_of
from streamgauge.servers.fragments.store import QuadChanges
from streamgauge.servers.fragments.store.indexed import Store

VALIDITY_PARAMETERS: Final[tuple[str, ...]] = ("from", "until", "for")
"""The parameters that say when the facts of a request hold."""


class ValidityError(ValueError):
    """A time that is none, or that a label can't say; the sentence says what to write."""


def validity(options: Mapping[str, str], label: Label, now: int) -> Bounds:
    """[initial, final) of a request's facts, ms, by ``from``, ``until`` and ``for`` at ``now`` (ms).

    Without ``from`` intervals begin now; without all three facts hold always.
    """
    if "until" in options and "for" in options:
        raise ValidityError("until and for say the same: give one")
    since = read_time(options["from"], now) if "from" in options else now
    final = read_time(options["until"], now) if "until" in options else None
    if "for" in options:
        final = since + _duration(options["for"])
    if label is Label.INSTANT and options.keys() & set(VALIDITY_PARAMETERS):
        if final is not None:
            raise ValidityError("an instant label says one time: give from, or nothing for now")
        return since, since + 1
    if "from" not in options and final is None:
        return None, None
    if label is Label.EXPIRATION and since > now:
        raise ValidityError("an expiration label can't say that a fact begins later: write it then, or use intervals")
    if final is not None and final <= since:
        raise ValidityError(f"it would end ({final} ms) before it begins ({since} ms): give a later end")
    return since, final


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
        located = _located(row, pattern, form, style)
        asserted.update(quad for quad in located.own if quad[:3] == located.fact.triple)
        yield located
    for quad in _quads(store, (*wanted, DEFAULT)):
        if quad not in asserted and not _says_times(quad, store, style):
            yield LocatedFact(Fact(quad[:3]), (quad,))


def graph_times(store: Store, graph: Term, style: Style) -> list[Bounds]:
    """The times that the labels on a graph's name say (ms); none of the default graph.

    A label that is no time says none.
    """
    if graph == DEFAULT:
        return []
    statements = store.page((graph, None, None, DEFAULT), 0, LABELLED)
    nodes = [item for _, predicate, item, _ in statements if predicate == style.vocabulary.interval]
    statements += [quad for node in nodes for quad in store.page((node, None, None, DEFAULT), 0, LABELLED)]
    try:
        return [bounds for bounds in read_labels(statements, style).of(graph) if bounds != (None, None)]
    except LabelError:
        return []


LABELLED: Final = 100
"""The most quads of a name, or of an interval's node, among which its label is looked for."""


def _located(row: VariableRow, pattern: TriplePattern, form: AnnotatedForm, style: Style) -> LocatedFact:
    def made(patterns: Sequence[QuadPattern]) -> tuple[Quad, ...]:
        return tuple(_terms(pattern.nodes, row) for pattern in patterns)

    triple = _terms((*triple_nodes(pattern), DEFAULT), row)[:3]
    initial, final = (None if place is None else row[place] for place in (form.initial, form.final))
    own, label = made(form.own + form.also), made(form.label)
    member = None if form.member is None else form.member.bound(row).match
    return LocatedFact(
        Fact(triple, *read_bounds(initial, final, style)), own, label, member, _name((*own, *label), triple, style)
    )


def _terms(nodes: tuple[Node, Node, Node, Node], row: VariableRow) -> Quad:
    s, p, o, g = (row[node] if isinstance(node, Var) else node for node in nodes)
    return s, p, o, g


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
    matches = [pattern.bound(row).match for pattern in patterns]
    least = min(range(len(patterns)), key=[store.count(match) for match in matches].__getitem__)
    rest = (*patterns[:least], *patterns[least + 1 :])
    for quad in _quads(store, matches[least]):
        extended = _linked(_extended(row, patterns[least], quad), links)
        if extended is not None:
            yield from _rows(store, rest, links, extended)


def _extended(row: VariableRow, pattern: QuadPattern, quad: Quad) -> VariableRow | None:
    """The row with a quad's terms; ``None`` when it does not fit. A variable is a named graph only."""
    extended = dict(row)
    for node, term in zip(pattern.nodes, quad, strict=True):
        if isinstance(node, Var) and (extended.setdefault(node, term) != term or term == DEFAULT):
            return None
    return extended


def _linked(row: VariableRow | None, links: Sequence[ComputedVariable]) -> VariableRow | None:
    """The row with the variables that can be computed; ``None`` when one is something else."""
    for link in links if row is not None else ():
        assert row is not None
        s, p, o = (row.get(node) if isinstance(node, Var) else node for node in triple_nodes(link.pattern))
        if s is not None and p is not None and o is not None:
            term = link.term((s, p, o))
            if row.setdefault(link.variable, term) != term:
                return None
    return row


def _quads(store: Store, match: Match) -> Iterator[Quad]:
    """All quads of a match, some at a time."""
    offset = 0
    while batch := store.page(match, offset, _BATCH):
        yield from batch
        offset += len(batch)


def _says_times(quad: Quad, store: Store, style: Style) -> bool:
    """Whether a quad of the default graph is part of an annotation: a label, or on what has one."""
    times = label_predicates(style.vocabulary)
    if quad[1] in times:
        return True
    form = method(style.method).form(_ANY, 0, style)
    return any(
        fits(quad, part.match)
        and any(store.count((holder, time, None, DEFAULT)) for holder in holders for time in times)
        for part in (*form.patterns, *form.also)
        if part.predicate != _ANY.predicate
        for holders in ([(quad[1],)] if isinstance(part.predicate, Var) else [(quad[0], quad[2])])
    )


Clock: TypeAlias = Callable[[], int]
"""The time, ms since 1970."""

Listener: TypeAlias = Callable[[QuadChanges], None]
"""Is told what each change made."""

Key: TypeAlias = Match | tuple[Selection, int, int]
"""The key of a page: its match, where that is all, of a first page of the usual size; else what ``page`` is asked."""

KEPT = 20_000
"""Pages that a data set keeps."""

LARGER = 10
"""How many times as many quads as usual a page may have when that is asked for."""

FEW_SCANNED = 1_000
"""Quads that are looked at sooner than a thread is asked to."""

KEPT_SCANS = 16
"""Selections whose quads, compared one by one, are kept until something changes."""

SCANNED = 100_000
"""Quads that are looked at one by one for a page: where places have to hold the same term, or bindings overlap."""


class TooManyError(ValueError):
    """A selection beyond limits; the sentence says what to do."""


@dataclass(slots=True)
class Page:
    """A page: its quads, how many the fragment has, when the first of the fragment's facts ends (ms).

    ``changed`` is the latest time at which the page can have changed; ``current`` is true until a change touches it.
    """

    quads: tuple[Quad, ...]
    total: int
    until: int | None
    changed: int
    current: bool = True


class DataSet:
    """A store under a name; every change goes through ``change``, so that pages and listeners know of it.

    ``clock`` gives ms; ``period`` (ms) is what its publisher promises not to change within, where facts say no end.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        style: Style,
        clock: Clock,
        page_size: int = 100,
        *,
        shape: FragmentShape = FragmentShape.QUADS,
        period: int | None = None,
    ) -> None:
        self.name, self.store, self.style, self.clock, self.page_size = name, store, style, clock, page_size
        self.shape, self.period = shape, period
        self._version, self._changed = store.version, clock()
        self._began = self._changed
        self._pages: OrderedDict[Key, Page] = OrderedDict()
        self._index = SelectionIndex[Key]()
        self._listeners: list[Listener] = []
        self._scans: OrderedDict[Selection, tuple[int, list[Quad]]] = OrderedDict()
        self.writers = asyncio.Lock()
        """The right to change it, where several write beside each other."""

    def change(self, removed: Iterable[Quad], added: Iterable[ExpiringQuad]) -> QuadChanges:
        """Remove, then add, as one; what really changed, which listeners are told too."""
        gone, come = list(removed), list(added)
        changes = self.store.change(gone, come, self.clock())
        self.adopt(changes, gone, come)
        return changes

    def adopt(self, changes: QuadChanges, gone: Sequence[Quad], come: Sequence[ExpiringQuad]) -> None:
        """Take changes that were made in the store elsewhere: drop the pages they touch, notify listeners."""
        if changes.version != self._version:
            self._version, self._changed = changes.version, self.clock()
            self._touch([*gone, *(quad for quad, _ in come)])
            for listener in tuple(self._listeners):
                listener(changes)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener of every change from now on; what is returned ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def largest(self) -> int:
        """The most quads that a page may be asked to have."""
        return LARGER * self.page_size

    @property
    def size(self) -> int:
        """How many quads there are."""
        return self.store.count((None, None, None, None))

    @property
    def version(self) -> bytes:
        """The version of all of it, other after a restart, as the header VERSION says it."""
        return b"%d.%d" % (self._began, self.store.version)

    def shows(self, page: Page) -> bool:
        """Whether a page is still what it would be now."""
        return (
            page.current and self.store.version == self._version and (page.until is None or page.until > self.clock())
        )

    def page(self, selection: Selection, number: int, size: int | None = None) -> Page:
        """The page of that number, from 1, of the usual size or another; TooManyError when it takes too long."""
        if self.store.version != self._version:
            self._version, self._changed = self.store.version, self.clock()
            self._forget()
        key = self._key(selection, number, size or self.page_size)
        page = self._pages.get(key)
        if page is None:
            page = self._keep(key, self._make(key, selection, number, size or self.page_size))
        elif page.until is not None and page.until <= self.clock():
            page.until = self.until(selection)
        return page

    def until(self, selection: Selection) -> int | None:
        """When the first of the selected facts ends, ms; ``None`` when none does."""
        now = self.clock()
        ends = [self.store.nearest(match, now) for match in selection.matches]
        return min((end for end in ends if end is not None), default=None)

    def quads(self, selection: Selection, offset: int, limit: int) -> tuple[list[Quad], int]:
        """Some of the selected quads, in the store's order, and how many there are in all."""
        if not selection.plain:
            scanned = self._scan(selection)
            return scanned[offset : offset + limit], len(scanned)
        quads_: list[Quad] = []
        total = 0
        for match in selection.matches:
            count = self.store.count(match)
            wanted = limit - len(quads_)
            if wanted > 0 and offset < total + count:
                quads_ += self.store.page(match, max(0, offset - total), wanted)
            total += count
        return quads_, total

    def lacks(self, selection: Selection) -> bool:
        """Whether many quads would be looked at one by one, and ``scanned`` is to do it beside the loop."""
        known = self._scans.get(selection)
        if selection.plain or (known is not None and known[0] == self.store.version):
            return False
        return sum(map(self.store.count, selection.matches)) > FEW_SCANNED

    def scanned(self, selection: Selection) -> tuple[int, list[Quad]]:
        """The version, and the quads that a selection takes when they are compared one by one; from any thread."""
        while True:
            version = self.store.version
            quads = self._scanned(selection)
            if version == self.store.version:
                return version, quads

    def hold(self, selection: Selection, scanned: tuple[int, list[Quad]]) -> None:
        """Hold ``scanned`` quads, of which pages are made while nothing changes."""
        self._scans[selection] = scanned
        if len(self._scans) > KEPT_SCANS:
            self._scans.popitem(last=False)

    def _scan(self, selection: Selection) -> list[Quad]:
        known = self._scans.get(selection)
        return known[1] if known is not None and known[0] == self.store.version else self._scanned(selection)

    def _scanned(self, selection: Selection) -> list[Quad]:
        total = sum(map(self.store.count, selection.matches))
        if total > SCANNED:
            raise TooManyError(f"{total} quads would be compared one by one, {SCANNED} at most: bind another place")
        quads = (quad for match in selection.matches for quad in _quads(self.store, match))
        return list(dict.fromkeys(filter(selection.takes, quads)))

    def _make(self, key: Key, selection: Selection, number: int, size: int) -> Page:
        if len(key) == 4:
            first, count, end = self.store.first_page(key, size, self.clock())
            return Page(tuple(first), count, end, self._changed)
        quads, total = self.quads(selection, (number - 1) * size, size)
        return Page(tuple(quads), total, self.until(selection) if total else None, self._changed)

    def _key(self, selection: Selection, number: int, size: int) -> Key:
        if number == 1 and selection.plain and len(selection.branches) == 1 and size == self.page_size:
            return selection.branches[0].match
        return selection, number, size

    def _keep(self, key: Key, page: Page) -> Page:
        self._pages[key] = page
        if len(key) == 3:
            self._index.put(key, key[0])
        if len(self._pages) > KEPT:
            self._drop(next(iter(self._pages)))
        return page

    def _drop(self, key: Key) -> None:
        self._pages.pop(key).current = False
        if len(key) == 3:
            self._index.drop(key, key[0])

    def _touch(self, quads: list[Quad]) -> None:
        """Forget the pages that quads are, or were, on."""
        if len(quads) > SWEEP:
            self._forget()
        elif self._pages:
            matches = matches_of(quads)
            for key in [*self._index.of(matches), *(match for match in matches if match in self._pages)]:
                self._drop(key)

    def _forget(self) -> None:
        for page in self._pages.values():
            page.current = False
        self._pages.clear()
        self._index = SelectionIndex()
