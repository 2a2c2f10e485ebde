"""A served data set: cached pages of selections, and the facts that its quads represent.

A page is cached until a change affects it or one of its facts ends. Also parses the times of facts in requests.
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
    FIRST,
    LAST,
    Bounds,
    Label,
    LabelError,
    Style,
    instant,
    label_predicates,
    read_bounds,
    read_labels,
)
from streamgauge.servers.fragments.pages import FragmentShape
from streamgauge.servers.fragments.pages.selections import SWEEP, Selection, SelectionIndex, fits, matches_of
from streamgauge.servers.fragments.store import QuadChanges
from streamgauge.servers.fragments.store.indexed import Store

VALIDITY_PARAMETERS: Final[tuple[str, ...]] = ("from", "until", "for")
"""The parameters for the validity of a request's facts."""


class ValidityError(ValueError):
    """An invalid time, or one that a label cannot express; the sentence says what to write."""


def validity(options: Mapping[str, str], label: Label, now: int) -> Bounds:
    """[initial, final) of a request's facts (ms), from the parameters ``from``, ``until`` and ``for`` at ``now`` (ms).

    Without ``from`` an interval begins now; without all three parameters facts are static. ValidityError.
    """
    if "until" in options and "for" in options:
        raise ValidityError("until and for exclude each other: give one")
    since = read_time(options["from"], now) if "from" in options else now
    final = read_time(options["until"], now) if "until" in options else None
    if "for" in options:
        final = since + _duration(options["for"])
    if label is Label.INSTANT and options.keys() & set(VALIDITY_PARAMETERS):
        if final is not None:
            raise ValidityError("an instant label has one time: give from, or nothing for now")
        return since, since + 1
    if "from" not in options and final is None:
        return None, None
    if label is Label.EXPIRATION and since > now:
        raise ValidityError("an expiration label has no beginning: write the fact when it begins, or use intervals")
    if final is not None and final <= since:
        raise ValidityError(f"the fact would end ({final} ms) before it begins ({since} ms): give a later end")
    return since, final


def read_time(text: str, now: int) -> int:
    """The ms of ``now``, of an integer (ms since 1970) or of an xsd:dateTime with a time zone; ValidityError."""
    if text == "now":
        return now
    # Fifteen characters reach beyond the year 9999, and Python takes long for numbers of thousands of digits.
    if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) <= 15:
        if not FIRST <= int(text) <= LAST:
            raise ValidityError(f"{text} ms is not within the years 1 to 9999")
        return int(text)
    try:
        return instant(f'"{text}"^^<{XSD}dateTime>')
    except LabelError:
        raise ValidityError(f"{text!r:.60} is not a time: write now, 2026-11-22T10:00:00Z, or ms since 1970") from None


def _duration(text: str) -> int:
    lasting = duration(text)
    if not lasting or lasting > 10**15:
        raise ValidityError(f"{text!r:.60} is not a duration: write one like 500ms, 10s, 5m, 1h, 1d")
    return lasting


VariableRow: TypeAlias = dict[Var, Term]
TermOrAny: TypeAlias = Term | None
TripleMatch: TypeAlias = tuple[TermOrAny, TermOrAny, TermOrAny]
"""A selection of triples: a term in each place, or ``None`` for any."""

_BATCH: Final = 1000
_PLACES: Final = (Var("s"), Var("p"), Var("o"))
_ANY: Final = TriplePattern(*_PLACES)


@dataclass(frozen=True, slots=True)
class LocatedFact:
    """A fact in a store: its own quads, those of its label, and the match of its group's quads (``None``: no group).

    ``name`` is the name that the annotation was created with, ``None`` if the annotation was not written by us.
    """

    fact: Fact
    own: tuple[Quad, ...]
    label: tuple[Quad, ...] = ()
    member: Match | None = None
    name: str | None = None


def located_facts(store: Store, wanted: TripleMatch, style: Style) -> Iterator[LocatedFact]:
    """All facts of the selected triples, static ones included; the store must not change meanwhile."""
    nodes = [term if term is not None else var for term, var in zip(wanted, _PLACES, strict=True)]
    pattern = TriplePattern(nodes[0], nodes[1], nodes[2])
    form = method(style.method).form(pattern, 0, style)
    asserted: set[Quad] = set()
    # Annotated facts first: what they assert is then not taken for static facts.
    for row in _rows(store, (*form.patterns, *form.also), form.links, {}):
        located = _located(row, pattern, form, style)
        asserted.update(quad for quad in located.own if quad[:3] == located.fact.triple)
        yield located
    for quad in _quads(store, (*wanted, DEFAULT)):
        if quad not in asserted and not _says_times(quad, store, style):
            yield LocatedFact(Fact(quad[:3]), (quad,))


def graph_times(store: Store, graph: Term, style: Style) -> list[Bounds]:
    """The bounds (ms) of all labels on a graph's name; empty for the default graph, and if a label is not a time."""
    if graph == DEFAULT:
        return []
    statements = store.page((graph, None, None, DEFAULT), 0, LABELLED)
    nodes = [item for _, predicate, item, _ in statements if predicate == style.vocabulary.interval]
    # An interval is a node of its own with the two times, one step from the labelled name.
    statements += [quad for node in nodes for quad in store.page((node, None, None, DEFAULT), 0, LABELLED)]
    try:
        return [bounds for bounds in read_labels(statements, style).of(graph) if bounds != (None, None)]
    except LabelError:
        return []


LABELLED: Final = 100
"""Quads of a name, or of an interval's node, that are searched for its label."""


def _located(row: VariableRow, pattern: TriplePattern, form: AnnotatedForm, style: Style) -> LocatedFact:
    def quads_of(patterns: Sequence[QuadPattern]) -> tuple[Quad, ...]:
        return tuple(_terms(pattern.nodes, row) for pattern in patterns)

    triple = _terms((*triple_nodes(pattern), DEFAULT), row)[:3]
    initial, final = (None if place is None else row[place] for place in (form.initial, form.final))
    own, label = quads_of(form.own + form.also), quads_of(form.label)
    member = None if form.member is None else form.member.bound(row).match
    return LocatedFact(
        Fact(triple, *read_bounds(initial, final, style)), own, label, member, _name((*own, *label), triple, style)
    )


def _terms(nodes: tuple[Node, Node, Node, Node], row: VariableRow) -> Quad:
    s, p, o, g = (row[node] if isinstance(node, Var) else node for node in nodes)
    return s, p, o, g


def _name(quads: Sequence[Quad], triple: Triple, style: Style) -> str | None:
    """The name in the IRI of a label's subject, ``None`` if the IRI is not one of ours."""
    times = label_predicates(style.vocabulary)
    for start in (f"<{style.vocabulary.names}", f"{triple[1][:-1]}-"):
        for subject, predicate, _, _ in quads:
            if predicate in times and subject.startswith(start):
                return subject[len(start) : -1].removesuffix("-interval")
    return None


def _rows(
    store: Store, patterns: Sequence[QuadPattern], links: Sequence[ComputedVariable], row: VariableRow
) -> Iterator[VariableRow]:
    """All solutions of the patterns, by a nested loop that always continues with the pattern of fewest quads."""
    if not patterns:
        yield row
        return
    matches = [pattern.bound(row).match for pattern in patterns]
    # Counts are exact and cheap in every store, so no statistics are needed.
    least = min(range(len(patterns)), key=[store.count(match) for match in matches].__getitem__)
    rest = (*patterns[:least], *patterns[least + 1 :])
    for quad in _quads(store, matches[least]):
        extended = _linked(_extended(row, patterns[least], quad), links)
        if extended is not None:
            yield from _rows(store, rest, links, extended)


def _extended(row: VariableRow, pattern: QuadPattern, quad: Quad) -> VariableRow | None:
    """The row extended by a quad's terms; ``None`` if it does not match. Variables match named graphs only."""
    extended = dict(row)
    for node, term in zip(pattern.nodes, quad, strict=True):
        if isinstance(node, Var) and (extended.setdefault(node, term) != term or term == DEFAULT):
            return None
    return extended


def _linked(row: VariableRow | None, links: Sequence[ComputedVariable]) -> VariableRow | None:
    """The row with the computable variables added; ``None`` if one contradicts the row."""
    for link in links if row is not None else ():
        assert row is not None
        s, p, o = (row.get(node) if isinstance(node, Var) else node for node in triple_nodes(link.pattern))
        if s is not None and p is not None and o is not None:
            term = link.term((s, p, o))
            if row.setdefault(link.variable, term) != term:
                return None
    return row


def _quads(store: Store, match: Match) -> Iterator[Quad]:
    """All quads of a match, read in batches."""
    offset = 0
    while batch := store.page(match, offset, _BATCH):
        yield from batch
        offset += len(batch)


def _says_times(quad: Quad, store: Store, style: Style) -> bool:
    """Whether a quad of the default graph is part of an annotation: a label, or a quad of a labelled node."""
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
"""Called with the effect of every change."""

Key: TypeAlias = Match | tuple[Selection, int, int]
"""The key of a cached page: the match of a plain first page of the default size; else the arguments of ``page``."""

MAX_PAGES = 20_000
"""Pages in the cache of a data set."""

LARGEST_PAGE = 10
"""Maximum size of a page, as a multiple of the default size."""

FEW_SCANNED = 1_000
"""Quads up to which a scan runs in the event loop: handing it to a thread costs more."""

MAX_SCANS = 16
"""Scanned selections whose quads are cached until the data set changes."""

MAX_SCANNED = 100_000
"""Quads that a scan may visit: selections with repeated variables or overlapping bindings are scanned."""


class TooManyError(ValueError):
    """A selection that exceeds a limit; the sentence says what to do."""


@dataclass(slots=True)
class Page:
    """A page: its quads, the fragment's total, and the earliest end (ms) of the fragment's facts (``until``).

    ``changed`` is the latest time at which the page can have changed; ``current`` is true until a change affects it.
    """

    quads: tuple[Quad, ...]
    total: int
    until: int | None
    changed: int
    current: bool = True


class DataSet:
    """A store under a name; every change goes through ``change`` or ``adopt``, which update pages and notify listeners.

    ``clock`` returns ms. ``period`` (ms): the publisher promises not to change facts without an end for so long.
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
        """Held by the writer whose change is being applied."""

    def change(self, removed: Iterable[Quad], added: Iterable[ExpiringQuad]) -> QuadChanges:
        """Remove, then add, atomically; returns the net changes, which listeners are notified of."""
        gone, come = list(removed), list(added)
        changes = self.store.change(gone, come, self.clock())
        self.adopt(changes, gone, come)
        return changes

    def adopt(self, changes: QuadChanges, gone: Sequence[Quad], come: Sequence[ExpiringQuad]) -> None:
        """Follow a change made in the store by another thread: drop affected pages, notify listeners."""
        if changes.version != self._version:
            self._version, self._changed = changes.version, self.clock()
            # All quads of the request and not only the net change: a new end changes a page too.
            self._touch([*gone, *(quad for quad, _ in come)])
            # A copy: a listener may end itself when it is called.
            for listener in tuple(self._listeners):
                listener(changes)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Notify a listener of every change; returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def largest(self) -> int:
        """Maximum number of quads per page that can be requested."""
        return LARGEST_PAGE * self.page_size

    @property
    def size(self) -> int:
        """The number of quads."""
        return self.store.count((None, None, None, None))

    @property
    def version(self) -> bytes:
        """The value of the header VERSION. It differs after a restart, since a store in memory starts again at 0."""
        return b"%d.%d" % (self._began, self.store.version)

    def shows(self, page: Page) -> bool:
        """Whether a page is still up to date."""
        return (
            page.current and self.store.version == self._version and (page.until is None or page.until > self.clock())
        )

    def page(self, selection: Selection, number: int, size: int | None = None) -> Page:
        """A page by its number, from 1, of the default size or ``size``; TooManyError if a scan would be too long."""
        # The store was changed past this object; which pages are affected is unknown.
        if self.store.version != self._version:
            self._version, self._changed = self.store.version, self.clock()
            self._forget()
        key = self._key(selection, number, size or self.page_size)
        page = self._pages.get(key)
        if page is None:
            page = self._keep(key, self._make(key, selection, number, size or self.page_size))
        elif page.until is not None and page.until <= self.clock():
            # The quads are unchanged: only the end that was the earliest has passed.
            page.until = self.until(selection)
        return page

    def until(self, selection: Selection) -> int | None:
        """The earliest end of the selected facts (ms); ``None`` if no end is known."""
        now = self.clock()
        ends = [self.store.nearest(match, now) for match in selection.matches]
        return min((end for end in ends if end is not None), default=None)

    def quads(self, selection: Selection, offset: int, limit: int) -> tuple[list[Quad], int]:
        """Selected quads in the store's order, from ``offset`` on at most ``limit``, and their total number."""
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
        """Whether the selection needs a long scan first, to be done by ``scanned`` in a thread."""
        scan = self._scans.get(selection)
        if selection.plain or (scan is not None and scan[0] == self.store.version):
            return False
        return sum(map(self.store.count, selection.matches)) > FEW_SCANNED

    def scanned(self, selection: Selection) -> tuple[int, list[Quad]]:
        """Scan a selection, from any thread; returns the store's version and the quads."""
        while True:
            # Without a lock: a change during the scan is noticed by the version, and the scan repeated.
            version = self.store.version
            quads = self._scanned(selection)
            if version == self.store.version:
                return version, quads

    def hold(self, selection: Selection, scanned: tuple[int, list[Quad]]) -> None:
        """Cache the result of ``scanned``, from which pages are cut until the data set changes."""
        self._scans[selection] = scanned
        if len(self._scans) > MAX_SCANS:
            self._scans.popitem(last=False)

    def _scan(self, selection: Selection) -> list[Quad]:
        scan = self._scans.get(selection)
        return scan[1] if scan is not None and scan[0] == self.store.version else self._scanned(selection)

    def _scanned(self, selection: Selection) -> list[Quad]:
        total = sum(map(self.store.count, selection.matches))
        # Before the scan, by the counts: they are an upper bound of what it visits.
        if total > MAX_SCANNED:
            raise TooManyError(f"{total} quads would be compared one by one, {MAX_SCANNED} at most: bind another place")
        quads = (quad for match in selection.matches for quad in _quads(self.store, match))
        return list(dict.fromkeys(filter(selection.takes, quads)))

    def _make(self, key: Key, selection: Selection, number: int, size: int) -> Page:
        # A match has four places, any other key three parts.
        if len(key) == 4:
            first, count, end = self.store.first_page(key, size, self.clock())
            return Page(tuple(first), count, end, self._changed)
        quads, total = self.quads(selection, (number - 1) * size, size)
        return Page(tuple(quads), total, self.until(selection) if total else None, self._changed)

    def _key(self, selection: Selection, number: int, size: int) -> Key:
        # The most requested pages: a match is hashed faster than a selection, and a store finds such a page, its count
        # and its nearest end in one look.
        if number == 1 and selection.plain and len(selection.branches) == 1 and size == self.page_size:
            return selection.branches[0].match
        return selection, number, size

    def _keep(self, key: Key, page: Page) -> Page:
        self._pages[key] = page
        if len(key) == 3:
            self._index.put(key, key[0])
        if len(self._pages) > MAX_PAGES:
            # The page that was cached first; order of use would cost at every request of a cached page.
            self._drop(next(iter(self._pages)))
        return page

    def _drop(self, key: Key) -> None:
        # Whoever still holds the page, such as a response that is being sent, sees that it is over.
        self._pages.pop(key).current = False
        if len(key) == 3:
            self._index.drop(key, key[0])

    def _touch(self, quads: list[Quad]) -> None:
        """Drop the cached pages whose fragments contain, or contained, one of the quads."""
        if len(quads) > SWEEP:
            self._forget()
        elif self._pages:
            matches = matches_of(quads)
            # Pages by a match need no index: sixteen matches of each quad are looked up in the cache itself.
            for key in [*self._index.of(matches), *(match for match in matches if match in self._pages)]:
                self._drop(key)

    def _forget(self) -> None:
        for page in self._pages.values():
            page.current = False
        self._pages.clear()
        self._index = SelectionIndex()
