"""A store of quads over a key-value store: six sorted orders, so that the quads of any match are one range of one."""

from collections.abc import Iterable, Mapping
from itertools import chain, islice
from threading import Lock
from typing import Final, TypeAlias
from weakref import WeakSet

from streamgauge.model.mistake import MistakeError
from streamgauge.model.terms import Term
from streamgauge.servers.fragments import ExpiringQuad, Match, Quad
from streamgauge.servers.fragments.store import (
    DamagedStoreError,
    EditSketch,
    IndexEdit,
    Keep,
    KeyedChange,
    KeyValueStore,
    QuadChanges,
    SortedIndex,
    StoreDraft,
)
from streamgauge.servers.fragments.store.history import BY_END, BY_KEY, ChangeLog, EndTimes, PastRuns
from streamgauge.servers.fragments.store.leaving_terms import LeavingTerms
from streamgauge.servers.fragments.store.memory import MemoryKeyValues
from streamgauge.servers.fragments.store.quad_keys import (
    INDEX_ORDERS,
    KEY,
    PLACES,
    WIDTH,
    QuadBatch,
    TermDictionary,
    batches,
    by_end,
    cut_keys,
    fill,
    in_order,
    key_matches,
    latest,
    numbered,
    order_for,
    quad_key,
    rows,
    sequences,
)

_VERSION, _KEEPS = b"m:version", b"m:keeps"
_REMEMBERED: Final = 10_000
_LOOKED_AT: Final = 64
"""Terms of removed quads that every change checks for further use, besides those in proportion to its size."""
_PART: Final = 200
"""Quads that a prepared change looks up while it has the lock: about a millisecond."""
_TERMS: Final = 1_000
"""Terms that a prepared change writes ahead in one transaction; ``tidy`` checks half as many."""
_NAMES: Final = tuple(str(number).encode() for number in range(len(INDEX_ORDERS)))

Ends: TypeAlias = Mapping[bytes, int | None]
"""Ends of keys (ms), ``None`` if unknown."""


class KeepError(MistakeError, ValueError):
    """A store with history opened without ``keep``, or the reverse, or changed without a time."""


class Store:
    """A set of quads that changes; times are ms. ``version`` grows with each change that has an effect.

    One thread at a time changes the store (``_changing``), any number read it, and each call sees one state (``_lock``,
    taken after ``_changing``). Unused terms are removed lazily: each change checks some of the ``_leaving`` ones.
    """

    def __init__(self, records: KeyValueStore, keep: Keep | None = None) -> None:
        self._records, self._keep = records, keep
        self._terms, self.trouble = TermDictionary(records), records.trouble
        self._lock, self._changing = Lock(), Lock()
        self._beside = WeakSet[KeyedChange]()
        try:
            self._open()
        except (KeepError, DamagedStoreError):
            records.close()
            raise

    def _open(self) -> None:
        self._stray = False
        self._version = int.from_bytes(self._records.get(_VERSION) or b"")
        if self._version == 0:
            self._drop_blocks()
        self._orders = [SortedIndex(name, KEY, self._records) for name in _NAMES]
        self._endings = EndTimes(KEY, self._records)
        self._log = ChangeLog(KEY, self._records)
        self._past = None if self._keep is None else PastRuns(self._keep, self._records)
        if self._version and (self._records.get(_KEEPS) is None) != (self._keep is None):
            raise KeepError("history is kept from a store's beginning or never: load its quads into another store")
        self._nearest: dict[Match, tuple[int, int | None]] = {}
        self._leaving = LeavingTerms(self._terms, self._orders, self._log, self._past)

    def _drop_blocks(self) -> None:
        """Delete the blocks of an interrupted load, which no index knows of."""
        stray = [key for name in (*_NAMES, BY_KEY, BY_END) for key, _ in self._records.sizes(name)]
        if stray:
            self._records.commit(dict.fromkeys(stray))
            self._records.show()
        self._stray = False

    @property
    def version(self) -> int:
        """The number of the last change, which survives restarts."""
        return self._version

    def change(self, removed: Iterable[Quad], added: Iterable[ExpiringQuad], at: int | None = None) -> QuadChanges:
        """Remove, then add, atomically, durable when it returns; returns the quads that really changed.

        Adding an existing quad changes its end. FullError, KeepError if ``at`` is missing.
        """
        gone, come = dict.fromkeys(removed), dict(added)
        with self._changing:
            if self._stray:
                self._drop_blocks()
            return self._committed(self._keyed(gone, come), at)

    def prepare(self, removed: Iterable[Quad], added: Iterable[ExpiringQuad]) -> KeyedChange:
        """Prepare a change for ``make``, from any thread; other changes wait for it a few ms at most.

        Its new terms are written already, so a change that is not made must be passed to ``abandon``. FullError.
        """
        gone, come = dict.fromkeys(removed), dict(added)
        change = KeyedChange(beside=True)
        with self._lock:
            self._beside.add(change)  # from now on ``_apply`` may mark it as stale
        try:
            numbers = self._written_ahead(change, come)
            rest = iter(come.items())
            while part := dict(islice(rest, _PART)):
                with self._lock:
                    self._look_up(change, {b"".join([numbers[term] for term in quad]): quad for quad in part}, part)
            # A change removes first: a quad that it also adds stays, with its new end.
            left = iter([quad for quad in gone if quad not in come])
            while some := list(islice(left, _PART)):
                with self._lock:
                    self._look_up_gone(change, some)
            change.edits = self._edits(change)
            for order, sketch in change.edits:
                order.sketched(sketch, self._lock)
        except BaseException:
            self.abandon(change)
            raise
        return change

    def make(self, change: KeyedChange, at: int | None = None) -> QuadChanges | None:
        """Apply a prepared change, as ``change`` does; ``None`` if others have changed the same quads since."""
        with self._changing:
            return None if change.stale else self._committed(change, at)

    def abandon(self, change: KeyedChange) -> None:
        """Give up a prepared change; its new terms are checked for use later."""
        with self._lock:
            self._beside.discard(change)
            self._leaving.add(change.fresh)

    def tidy(self) -> bool:
        """Drop some unused terms; returns whether more are to be checked. FullError."""
        with self._changing:
            looked_at = self._leaving.first(_TERMS // 2)
            unused = self._leaving.unused(looked_at, self._expected(set()))
            if unused:
                self._records.commit(self._terms.drop(unused))
            with self._lock:
                self._records.show()
                self._leaving.let_go(looked_at, unused)
                return bool(self._leaving)

    def _written_ahead(self, change: KeyedChange, come: Iterable[Quad]) -> dict[Term, bytes]:
        """Numbers of the terms of quads to insert; new ones are written, some in each transaction."""
        numbers: dict[Term, bytes] = {}
        terms = iter(dict.fromkeys(term for quad in come for term in quad))
        while part := list(islice(terms, _TERMS)):
            with self._changing:
                fresh, writes = self._terms.assign(part)
                change.numbers.update(fresh.values())
                if writes:
                    change.fresh += self._terms.assigned(writes)
                    self._records.commit(writes)
                    with self._lock:
                        self._records.show()
            numbers |= fresh
        return numbers

    def _keyed(self, gone: dict[Quad, None], come: dict[Quad, int | None]) -> KeyedChange:
        """A change to be applied directly; its new terms are written with it."""
        change = KeyedChange()
        numbers, change.writes = self._terms.assign(term for quad in come for term in quad)
        change.numbers = set(numbers.values())
        self._look_up(change, {b"".join([numbers[term] for term in quad]): quad for quad in come}, come)
        self._look_up_gone(change, (quad for quad in gone if quad not in come))
        change.edits = self._edits(change)
        return change

    def _look_up(self, change: KeyedChange, keys: dict[bytes, Quad], ends: Mapping[Quad, int | None]) -> None:
        """Look up which of the quads to insert exist, and their ends."""
        first, end = self._orders[0], self._endings.end
        change.come |= keys
        for key, quad in keys.items():
            change.ends[key] = ends[quad]
            if key in first:
                change.there.append(key)
                change.ended[key] = end(key)
            else:
                change.added[key] = quad

    def _look_up_gone(self, change: KeyedChange, quads: Iterable[Quad]) -> None:
        """Look up which of the quads to delete exist, and their ends."""
        for quad in quads:
            key = self._terms.key(quad)
            if key is not None and key in self._orders[0]:
                change.removed[key] = quad
                change.ended[key] = self._endings.end(key)

    def _edits(self, change: KeyedChange) -> list[tuple[SortedIndex, EditSketch]]:
        """The indexes that change, and the keys by which they change."""
        edits = self._endings.edits(change.ended, change.ends)
        gone, come = list(change.removed), list(change.added)
        if not (gone or come):
            return edits
        for number, order in enumerate(self._orders):
            left = sorted([in_order(key, number) for key in gone]) if gone else gone
            edits.append((order, EditSketch(left, sorted([in_order(key, number) for key in come]) if come else come)))
        return edits

    def _committed(self, change: KeyedChange, at: int | None) -> QuadChanges:
        if (draft := self._draft(change, at)) is None:
            return QuadChanges(self._version, (), ())
        # Readers see the old state until the new one is durable.
        self._records.commit(draft.writes)
        with self._lock:
            self._beside.discard(change)
            self._apply(draft)
        return QuadChanges(draft.version, draft.added, draft.removed)

    def load(self, quads: Iterable[ExpiringQuad], at: int | None = None) -> int:
        """Fill a store that was never changed (else ValueError); returns the number of quads.

        A quad that occurs several times gets its latest end.
        """
        return self.load_batches(batches(quads), at)

    def load_batches(self, loaded: Iterable[QuadBatch], at: int | None = None) -> int:
        """Fill an empty store from batches, otherwise as ``load``."""
        with self._changing, self._lock:
            if self._version:
                raise ValueError("only a store that was never changed can be loaded: use change, or another folder")
            self._drop_blocks()
            self._stray = True
            ids, ends = numbered(loaded, self._terms, self._records)
            if not len(ids):
                return 0
            for name, keys in zip(_NAMES, sequences(ids), strict=True):
                fill(name, keys, self._records)
            fill(BY_KEY, ended := latest(ends), self._records)
            fill(BY_END, by_end(ended), self._records)
            past = {} if self._past is None else {_KEEPS: b"1", **self._past.loaded(self._instant(at))}
            # Last: until the version is 1, a crash leaves blocks that `_drop_blocks` deletes when the store is opened.
            self._records.commit({_VERSION: (1).to_bytes(8), **past})
            self._records.show()
            self._stray = False
            self._open()
            return len(self._orders[0])

    def count(self, match: Match) -> int:
        """The exact number of matching quads, without visiting them."""
        with self._lock:
            prefix = self._prefix(match)
            return 0 if prefix is None else self._orders[order_for(match)].count(prefix)

    def page(self, match: Match, offset: int, limit: int) -> list[Quad]:
        """Matching quads in the order of their terms' numbers, which is fixed for a version."""
        with self._lock:
            prefix = self._prefix(match)
            if prefix is None:
                return []
            number = order_for(match)
            return self._sequenced(self._orders[number].read(prefix, offset, limit), number, match)

    def first_page(self, match: Match, limit: int, now: int) -> tuple[list[Quad], int, int | None]:
        """``page`` at offset 0, ``count`` and ``nearest`` in one call, with one lookup of the range."""
        with self._lock:
            number = order_for(match)
            if (prefix := self._prefix(match, number)) is None:
                return [], 0, None
            order = self._orders[number]
            keys = order.read(prefix, 0, limit)
            # A page that is not full has all matches, which saves the count.
            count = len(keys) // KEY
            total = count if count < limit else order.count(prefix)
            quads = self._sequenced(keys, number, match)
            if not (total and self._endings):
                return quads, total, None
            if total > count or total > self._endings.few:
                return quads, total, self._remembered_nearest(match, now)
            ends = [self._endings.end(quad_key(key, number)) for key in cut_keys(keys)]
            return quads, total, min([end for end in ends if end is not None and end > now], default=None)

    def _sequenced(self, keys: bytes, number: int, match: Match) -> list[Quad]:
        """The quads of matching keys in the order ``number``; bound terms come from the match, not from lookups."""
        s, p, o, g = PLACES[number]
        subject, predicate, item, graph = match
        term = self._terms.texts
        return [
            (
                subject or term[row[s]],
                predicate or term[row[p]],
                item or term[row[o]],
                term[row[g]] if graph is None else graph,
            )
            for row in rows(keys)
        ]

    def nearest(self, match: Match, now: int) -> int | None:
        """The earliest end after ``now`` among the matching quads, or an earlier time if that is costly to find."""
        with self._lock:
            return self._remembered_nearest(match, now) if self._endings else None

    def _remembered_nearest(self, match: Match, now: int) -> int | None:
        # Until the end that it names, an entry is right at every later time: the store is unchanged since.
        entry = self._nearest.get(match)
        if entry is not None and entry[0] <= now and (entry[1] is None or now < entry[1]):
            return entry[1]
        if len(self._nearest) >= _REMEMBERED:
            self._nearest.clear()
        end = self._find_nearest(match, now)
        self._nearest[match] = now, end
        return end

    def expired(self, now: int, limit: int) -> list[Quad]:
        """At most ``limit`` quads that ended at or before ``now``, earliest end first."""
        with self._lock:
            return self._quads(self._endings.until(now, limit))

    def changed(self, match: Match, since: int) -> QuadChanges | None:
        """The net changes of matching quads since a version; ``None`` if they are no longer logged."""
        with self._lock:
            changes = self._log.since(since, self._version)
            if changes is None:
                return None
            places = self._places(match)
            if places is None:
                return QuadChanges(self._version, (), ())
            there: dict[bytes, bool] = {}
            for removed, added in changes:
                for keys, state in ((removed, False), (added, True)):
                    for key in cut_keys(keys):
                        # A logged change alternates between added and removed for a key, so an opposite state cancels
                        # the first one.
                        if key_matches(key, places) and there.setdefault(key, state) is not state:
                            del there[key]
            added_keys = [key for key, state in there.items() if state]
            removed_keys = [key for key, state in there.items() if not state]
            return QuadChanges(self._version, tuple(self._quads(added_keys)), tuple(self._quads(removed_keys)))

    def at(self, match: Match, instant: int, limit: int) -> list[Quad] | None:
        """At most ``limit`` matching quads that held at an instant (ms), existing ones first.

        ``None`` if the history is too short.
        """
        with self._lock:
            if self._past is None or self._past.since is None or instant < self._past.since:
                return None
            prefix, places = self._prefix(match), self._places(match)
            if prefix is None or places is None:
                return []
            number = order_for(match)
            there = (quad_key(key, number) for key in self._orders[number].within(prefix))
            keys_held = (key for key in there if self._holds(self._past, key, instant))
            left = self._past.at(number, prefix, lambda key: key_matches(key, places), instant)
            return self._quads(islice(chain(keys_held, left), limit))

    @property
    def kept(self) -> int:
        """The number of runs of removed quads that are kept."""
        return 0 if self._past is None else len(self._past)

    def _holds(self, past: PastRuns, key: bytes, instant: int) -> bool:
        began, end = past.began(key), self._endings.end(key)
        return (began is None or began <= instant) and (end is None or instant < end)

    def close(self) -> None:
        """Close the store; it can no longer be used."""
        with self._changing, self._lock:
            self._records.close()

    def _draft(self, change: KeyedChange, at: int | None) -> StoreDraft | None:
        """The computed change; ``None`` if it has no effect."""
        added, removed, there, ended = change.added, change.removed, change.there, change.ended
        if not (removed or added or change.edits):
            return None
        edits = [(order, order.edit(sketch)) for order, sketch in change.edits]
        left, renewed = ({key: ended[key] for key in some} for some in (removed, there))
        recorded, kept, outlived = self._recorded(at, left, renewed, {key: change.ends[key] for key in added})
        few = _LOOKED_AT if change.beside else _LOOKED_AT + 4 * (len(removed) + len(added))
        looked_at = self._leaving.first(few)
        unused = self._leaving.unused(looked_at, self._expected(change.numbers))
        logged, version = (b"".join(removed), b"".join(added)), self._version + 1
        forgotten = self._log.forgets(logged)
        writes = dict(change.writes)
        for _, edit in edits + recorded:
            writes |= edit.writes
        writes |= {**kept, **self._log.writes(version, logged), **self._terms.drop(unused)}
        writes[_VERSION] = version.to_bytes(8)
        changes = tuple(added.values()), tuple(removed.values())
        touched = [*added, *removed, *(key for key in there if ended[key] != change.ends[key])]
        return StoreDraft(
            version,
            writes,
            edits + recorded,
            logged,
            touched,
            *changes,
            forgotten,
            outlived + forgotten,
            looked_at,
            unused,
        )

    def _recorded(
        self, at: int | None, left: Ends, renewed: Ends, come: Ends
    ) -> tuple[list[tuple[SortedIndex, IndexEdit]], dict[bytes, bytes | None], bytes]:
        """The effect of a change on the history, if it is kept: edits, writes, and the keys of dropped runs."""
        if self._past is None:
            return [], {}, b""
        edits, writes, dropped = self._past.edit(self._instant(at), left, renewed, come)
        return edits, {**writes, _KEEPS: b"1"}, dropped

    def _expected(self, coming: set[bytes]) -> set[bytes]:
        """The terms of quads that are to be inserted, also by the changes that are being prepared."""
        return coming.union(*(draft.numbers for draft in self._beside)) if self._beside else coming

    def _instant(self, at: int | None) -> int:
        if at is None:
            raise KeepError("this store keeps history: give the time of the change (at, ms)")
        return at

    def _apply(self, draft: StoreDraft) -> None:
        self._records.show()
        for order, edit in draft.edits:
            order.apply(edit)
        self._log.apply(draft.version, draft.logged, draft.forgotten)
        self._leaving.let_go(draft.looked_at, draft.unused)
        self._leaving.add_quads(draft.leaving)
        self._nearest.clear()
        self._version = draft.version
        for other in self._beside:
            other.stale = other.stale or other.touches(draft.touched)

    def _find_nearest(self, match: Match, now: int) -> int | None:
        prefix, places = self._prefix(match), self._places(match)
        if prefix is None or places is None:
            return None
        order = self._orders[number := order_for(match)]
        if order.count(prefix) > self._endings.few:
            return self._endings.nearest(lambda key: key_matches(key, places), now)
        ends = (self._endings.end(quad_key(key, number)) for key in order.within(prefix))
        return min((end for end in ends if end is not None and end > now), default=None)

    def _prefix(self, match: Match, order: int | None = None) -> bytes | None:
        """The prefix of the matching quads' keys in their order; ``None`` if no quad has one of the terms."""
        prefix = b""
        for place in INDEX_ORDERS[order_for(match) if order is None else order]:
            if (term := match[place]) is None:
                break
            if (number := self._terms.number(term)) is None:
                return None
            prefix += number
        return prefix

    def _places(self, match: Match) -> list[tuple[int, bytes]] | None:
        """Byte offsets and numbers of the bound terms of a match; ``None`` if a term has no number."""
        wanted = [(place * WIDTH, self._terms.number(term)) for place, term in enumerate(match) if term is not None]
        places = [(at, number) for at, number in wanted if number is not None]
        return places if len(places) == len(wanted) else None

    def _quads(self, keys: Iterable[bytes]) -> list[Quad]:
        term = self._terms.texts
        return [(term[s], term[p], term[o], term[g]) for s, p, o, g in rows(b"".join(keys))]


class MemoryStore(Store):
    """Quads in memory; with ``keep`` also removed ones."""

    def __init__(self, keep: Keep | None = None) -> None:
        super().__init__(MemoryKeyValues(), keep)
