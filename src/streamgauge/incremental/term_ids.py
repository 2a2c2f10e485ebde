"""Terms as small integers while windows contain them, and triples of a window in columns of these.

A ``TermIds`` numbers the terms of the contents of one driver. Terms that are neither in a content nor in the dictionary
of the pipe are dropped from time to time, and the others renumbered: memory is bounded by the windows.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import Any, TypeAlias
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from streamgauge.formats.batches import ElementBatch, NumberedTerms, triples_of
from streamgauge.incremental.crossovers import SPARE_TERMS
from streamgauge.model.terms import Term, Triple

Ids: TypeAlias = npt.NDArray[np.int32]
Places: TypeAlias = npt.NDArray[np.int64]
Offsets: TypeAlias = npt.NDArray[np.uint32] | npt.NDArray[np.int64]


class TermIds:
    """The id of each term; ``turn`` counts renumberings."""

    def __init__(self) -> None:
        self.turn = 0
        self._ids = NumberedTerms()
        # Weak: what the contents let go of must not keep its terms alive.
        self._pieces: WeakSet[IdTriples] = WeakSet()
        self._given: list[Term] = []
        self._own: Ids = np.empty(0, np.int32)
        self._least = 0

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def terms(self) -> list[Term]:
        """The term of each id."""
        return self._ids.terms

    def of(self, terms: Sequence[Term]) -> Ids:
        """The ids of terms; new terms get new ids."""
        return self._ids.of(terms)

    def known(self, term: Term) -> int:
        """The id of a term, -1 if it has none."""
        return self._ids.get(term, -1)

    def texts(self, ids: Ids) -> list[Term]:
        """The terms of ids."""
        return list(map(self.terms.__getitem__, ids.tolist()))

    def of_triples(self, arrivals: Sequence[tuple[int, Sequence[Triple]]]) -> "IdTriples":
        """Triples that arrived at times (ms)."""
        terms = list(chain.from_iterable(chain.from_iterable(triples for _, triples in arrivals)))
        times = np.array([time for time, _ in arrivals], np.int64)
        return self._kept(self.of(terms), np.repeat(times, [len(triples) for _, triples in arrivals]))

    def of_arrivals(self, arrivals: Sequence[tuple[int, Sequence[Triple]]]) -> "IdTriples":
        """``of_triples`` for arrivals of which some have ids; consecutive ones of a kind are converted together."""
        pieces: list[IdTriples] = []
        for numbered, group in groupby(arrivals, lambda arrival: isinstance(arrival[1], IdTriples)):
            some: Any = list(group)
            pieces += [triples for _, triples in some] if numbered else [self.of_triples(some)]
        return self.joined(pieces)

    def of_batch(self, batch: ElementBatch) -> "IdTriples":
        """The triples of a batch; ids of its terms are looked up once while batches share their list."""
        # By identity: batches of one reader share a growing list of terms, whose ids are extended instead of looked up
        # again.
        if batch.terms is not self._given:
            self._given, self._own = batch.terms, np.empty(0, np.int32)
        if len(self._own) < len(batch.terms):
            self._own = np.concatenate([self._own, self.of(batch.terms[len(self._own) :])])
        return self._kept(self._own[batch.added], np.repeat(batch.times, np.diff(batch.borders)))

    def joined(self, pieces: "Sequence[IdTriples]") -> "IdTriples":
        """The concatenation of pieces."""
        if len(pieces) < 2:
            return pieces[0] if pieces else self.of_triples([])
        return self._kept(*(np.concatenate(column) for column in zip(*[(p.ids, p.times) for p in pieces], strict=True)))

    def _kept(self, ids: Ids, times: Places) -> "IdTriples":
        base = int(times[0]) if len(times) else 0
        offsets = times - base
        # Nearly all pieces are shorter than 49 days.
        narrow = not len(times) or offsets[-1] < 2**32
        return self._added(IdTriples(self, ids, base, offsets.astype(np.uint32) if narrow else offsets))

    def _added(self, piece: "IdTriples") -> "IdTriples":
        self._pieces.add(piece)
        return piece

    def holding(self, ids: Ids) -> "IdTriples":
        """A piece that keeps the terms of ids alive; its ``ids`` are renumbered with all others."""
        return self._kept(ids, np.empty(0, np.int64))

    def part(self, piece: "IdTriples", begin: int, end: int) -> "IdTriples":
        """A slice of the triples of a piece."""
        ids, offsets = piece.ids[3 * begin : 3 * end], piece.offsets[begin:end]
        return self._added(IdTriples(self, ids, piece.base, offsets))

    @property
    def full(self) -> bool:
        """Whether a third of the terms may be unused."""
        # Compared with the number that was in use after the last renumbering, so that renumbering costs O(1) a new
        # term.
        return 2 * len(self.terms) > 3 * self._least + 2 * SPARE_TERMS

    def forget(self) -> None:
        """Drop unused terms once they may be a third of all."""
        if not self.full:
            return
        used = np.zeros(len(self.terms), np.bool_)
        for piece in self._pieces:
            used[piece.ids] = True
        used[self._own] = True
        # The new id of a used term is the number of used terms before it, so order is kept.
        numbers = np.cumsum(used, dtype=np.int32) - 1
        for piece in self._pieces:
            piece.ids = numbers[piece.ids]
        self._own = numbers[self._own]
        terms, self._ids = self.texts(np.flatnonzero(used).astype(np.int32)), NumberedTerms()
        self._ids.add(terms)
        self._least = len(self.terms)
        self.turn += 1


class IdTriples(Sequence[Triple]):
    """Triples as term ids, three each, with non-decreasing times (ms): ``base`` and an offset for each."""

    __slots__ = ("__weakref__", "_owner", "base", "ids", "offsets")

    def __init__(self, owner: TermIds, ids: Ids, base: int, offsets: Offsets) -> None:
        self._owner, self.ids, self.base, self.offsets = owner, ids, base, offsets

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def times(self) -> Places:
        """The time (ms) of each triple, computed anew."""
        return self.offsets + np.int64(self.base)

    @property
    def span(self) -> tuple[int, int]:
        """The times (ms) of the first and the last triple."""
        return self.base + int(self.offsets[0]), self.base + int(self.offsets[-1])

    def __iter__(self) -> Iterator[Triple]:
        return iter(triples_of(self._owner.terms, self.ids))

    def __getitem__(self, at: object) -> Triple:  # type: ignore[override]
        assert isinstance(at, int)
        subject, predicate, end = self._owner.texts(self.ids[3 * at : 3 * at + 3])
        return subject, predicate, end

    __hash__ = object.__hash__

    # By identity, as needed for the WeakSet; comparing contents would decode all triples.
    def __eq__(self, other: object) -> bool:
        return self is other

    def part(self, begin: int, end: int) -> "IdTriples":
        """A slice of the triples."""
        return self if (begin, end) == (0, len(self)) else self._owner.part(self, begin, end)

    def split(self, first: int) -> "tuple[IdTriples, IdTriples | None]":
        """The triples before a time (ms), and the others if any."""
        offset, at = max(first - self.base, 0), len(self)
        if len(self) and offset <= self.offsets[-1]:
            # Of the same type, else numpy would convert all offsets.
            at = int(self.offsets.searchsorted(self.offsets.dtype.type(offset)))
        return self.part(0, at), self.part(at, len(self)) if at < len(self) else None
