"""A data set as it is served: pages of selections, kept until a change or an end of a fact touches them."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from streamgauge.servers.fragments import ExpiringQuad, Match, Quad
from streamgauge.servers.fragments.labels import Style
from streamgauge.servers.fragments.pages.selection import Selection, matches_of
from streamgauge.servers.fragments.store import QuadChanges
from streamgauge.servers.fragments.store.indexed import Store

Clock: TypeAlias = Callable[[], int]
"""The time, ms since 1970."""

Listener: TypeAlias = Callable[[QuadChanges], None]
"""Is told what each change made."""

Key: TypeAlias = tuple[Selection, int, int]
"""The key of a page: a selection, the page's number, how many quads the page may have."""

KEPT = 20_000
"""Pages that a data set keeps."""

LARGER = 10
"""How many times as many quads as usual a page may have when that is asked for."""

SWEEP = 2_000
"""Quads in a change beyond which all pages are made anew, as looking for those it touches would take longer."""

FEW_SCANNED = 1_000
"""Quads that are looked at sooner than a thread is asked to, and at a time."""

KEPT_SCANS = 16
"""Selections whose quads, compared one by one, are kept until something changes."""

SCANNED = 100_000
"""Quads that are looked at one by one for a page: where places have to hold the same term, or bindings overlap."""


class FragmentShape(StrEnum):
    """The interface of a data set's fragments."""

    TRIPLES = "triples"  # Triple Pattern Fragments of the default graph
    QUADS = "quads"  # Quad Pattern Fragments


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
        self._by_match: dict[Match, set[Key]] = {}
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
        key = selection, number, size or self.page_size
        page = self._pages.get(key)
        if page is None:
            page = self._keep(key, self._make(*key))
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
        if len(selection.branches) == 1 and offset == 0:
            first = self.store.page(selection.branches[0].match, 0, limit)
            return first, len(first) if len(first) < limit else self.store.count(selection.branches[0].match)
        found: list[Quad] = []
        total = 0
        for match in selection.matches:
            count = self.store.count(match)
            wanted = limit - len(found)
            if wanted > 0 and offset < total + count:
                found += self.store.page(match, max(0, offset - total), wanted)
            total += count
        return found, total

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
            found = self._scanned(selection)
            if version == self.store.version:
                return version, found

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
        found = (
            quad
            for match in selection.matches
            for offset in range(0, self.store.count(match), FEW_SCANNED)
            for quad in self.store.page(match, offset, FEW_SCANNED)
        )
        return list(dict.fromkeys(filter(selection.takes, found)))

    def _make(self, selection: Selection, number: int, size: int) -> Page:
        quads, total = self.quads(selection, (number - 1) * size, size)
        return Page(tuple(quads), total, self.until(selection) if total else None, self._changed)

    def _keep(self, key: Key, page: Page) -> Page:
        self._pages[key] = page
        for match in key[0].matches:
            self._by_match.setdefault(match, set()).add(key)
        if len(self._pages) > KEPT:
            self._drop(next(iter(self._pages)))
        return page

    def _drop(self, key: Key) -> None:
        page = self._pages.pop(key)
        page.current = False
        for match in key[0].matches:
            keys = self._by_match[match]
            keys.discard(key)
            if not keys:
                del self._by_match[match]

    def _touch(self, quads: list[Quad]) -> None:
        """Forget the pages that quads are, or were, on."""
        if len(quads) > SWEEP:
            self._forget()
            return
        for match in {match for quad in quads for match in matches_of(quad)} if self._pages else ():
            for key in tuple(self._by_match.get(match, ())):
                self._drop(key)

    def _forget(self) -> None:
        for page in self._pages.values():
            page.current = False
        self._pages.clear()
        self._by_match.clear()
