"""Terms that may be in no quad any more, which a store removes little by little.

Whether a removed quad was the last one with a term is not known without looking, and a large change leaves many terms
behind. Each change therefore checks only some of them.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from streamgauge.servers.fragments.store import SortedIndex
from streamgauge.servers.fragments.store.history import ChangeLog, PastRuns
from streamgauge.servers.fragments.store.quad_keys import TermDictionary, rows


class LeavingTerms:
    """Numbers of terms to be checked for use, each with the place (0 subject .. 3 graph) that it left."""

    def __init__(
        self, terms: TermDictionary, orders: Sequence[SortedIndex], log: ChangeLog, past: PastRuns | None
    ) -> None:
        self._terms, self._orders, self._log, self._past = terms, orders, log, past
        self._places: dict[bytes, int] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, numbers: Iterable[bytes]) -> None:
        """Add terms that may never have been in a quad."""
        for number in numbers:
            self._places.setdefault(number, 0)

    def add_quads(self, keys: bytes) -> None:
        """Add the terms of removed quads."""
        for row in rows(keys):
            self._places.update(zip(row, range(4), strict=True))

    def first(self, most: int) -> list[bytes]:
        """Up to ``most`` terms (their numbers), those that have waited longest for a check."""
        return list(islice(self._places, most))

    def unused(self, numbers: Iterable[bytes], expected: Collection[bytes]) -> list[bytes]:
        """The numbers whose terms are in no quad, run or log and are not ``expected``."""
        return [
            number
            for number in numbers
            if number not in expected and self._terms.has(number) and not self._uses(number)
        ]

    def let_go(self, checked: Iterable[bytes], unused: Iterable[bytes]) -> None:
        """Remove checked terms, and unused ones from the dictionary's cache."""
        self._terms.forget(unused)
        for number in checked:
            self._places.pop(number, None)

    def _uses(self, number: bytes) -> bool:
        """Whether a term is in a quad, in a run or in the log."""
        # The place that it left comes first: there another quad with the term is most likely.
        places = self._places[number], *range(4)
        return (
            any(self._orders[place].one(number) for place in places)
            or self._log.mentions(number)
            or (self._past is not None and self._past.uses(number))
        )
