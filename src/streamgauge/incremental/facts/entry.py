"""How a query's pattern enters a shape: the solutions that there are, found in turns while facts change between them.

Few solutions are found in one turn. Many are parted by the value of one variable, the anchor. Whatever has an anchor
that was not looked at yet is found when its turn comes, so changes of it before are passed over; changes of all others
count at once.

A worked example: ``?x :in ?g . ?x :name ?n``, anchor ``?x``, facts about a, b and c. The first turn finds what has
``?x`` = a; b and c wait. Now ``c :name "C"`` is published: the change is a row with ``?x`` = c, which waits, so the row
is dropped. ``a :name "A"`` is published: a does not wait, so the row counts. ``d :in g`` and ``d :name "D"`` are
published: d is new and does not wait, so its row counts. The next turn finds b and c, the one that was dropped too.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Generic, Protocol, TypeVar

from streamgauge.incremental.bags import Bag, add
from streamgauge.incremental.effort import Effort
from streamgauge.incremental.facts.shapes import Running, Taker, original
from streamgauge.incremental.plans import Asked
from streamgauge.model.terms import Term

Owner = TypeVar("Owner")

TURN: Final = 10_000
"""Facts that are looked at in one turn, some milliseconds."""

SINGLE: Final = 50_000
"""Facts that are looked at beyond a turn's for one value of an anchor, which has one turn."""

_Told = tuple[Running[Owner], Taker[Owner], tuple[Term, ...]]


class Shapes(Protocol[Owner]):
    """Where patterns run by their shapes."""

    def running(self, asked: Asked) -> tuple[Running[Owner], tuple[Term, ...]]:
        """What finds a pattern's solutions, and the constants to ask with."""
        ...

    def leave(self, running: Running[Owner], taker: Taker[Owner], constants: tuple[Term, ...]) -> None:
        """Nobody takes any more."""
        ...


class Entry(Generic[Owner]):
    """One pattern of a query: what was found of it and not taken yet.

    ``steps`` and ``hand_over`` are for one thread at a time, as changes of the facts are; the first ``take`` after
    ``hand_over`` touches nothing that changes, the later ones are again for one thread at a time.
    """

    def __init__(self, asked: Asked, owner: Owner, shapes: Shapes[Owner]) -> None:
        self._asked, self._owner, self._shapes = asked, owner, shapes
        self._found: Bag = {}
        self._first: Bag | None = None
        self._closed = False
        self._width = len(asked.output)
        self._wide = False
        self._told: _Told[Owner] | None = None

    @property
    def waiting(self) -> int:
        """How many rows were found and not taken."""
        return len(self._found if self._first is None else self._first)

    def take(self) -> Bag:
        """The change since it was taken last: first the solutions that there were, then what changed."""
        if self._first is not None:
            change, self._first = self._first, None
        elif self._closed:
            return {}
        else:
            found = self._found
            change = found.copy()
            found.clear()
        return _narrowed(change, self._width) if self._wide else change

    def steps(self, effort: Effort) -> Iterator[None]:
        """Find what there is, a part at each step, and be told of changes from the first on; TooMuchError."""
        running, constants = self._shapes.running(self._asked)
        self._enter(running, Taker(self._found, self._owner), constants)
        most = min(TURN, effort.left)
        left = running.find(Taker(self._found, self._owner), constants, most)
        if left >= 0:
            effort.spend(most - left + len(self._found) * effort.weight)
            return
        self._found.clear()
        effort.spend(most if most == TURN else most + 1)
        yield from self._parts(running, effort)

    def hand_over(self) -> None:
        """What was found by now is taken first, and nothing after it until ``open``."""
        self._first, self._closed = self._found.copy(), True
        self._found.clear()

    def open(self) -> None:
        """What changed since then is taken too."""
        self._closed = False

    def leave(self) -> None:
        """Be told no more."""
        if self._told is not None:
            told, self._told = self._told, None
            self._shapes.leave(*told)

    def _enter(self, running: Running[Owner], taker: Taker[Owner], constants: tuple[Term, ...]) -> None:
        before, self._told = self._told, (running, taker, constants)
        running.enter(taker, constants)
        if before is not None:
            self._shapes.leave(*before)

    def _parts(self, running: Running[Owner], effort: Effort) -> Iterator[None]:
        """Find it value by value of the anchor, which the rows have as one more column where they had none."""
        anchor = running.anchor
        if anchor is None:
            raise effort.too_much
        name = original(self._asked, anchor.name)
        if name not in self._asked.output:
            self._asked = replace(self._asked, output=(*self._asked.output, name))
            self._wide = True
        at, news = self._asked.output.index(name), Bag()
        running, constants = self._shapes.running(self._asked)
        self._enter(running, Taker(news, self._owner), constants)
        assert running.anchor is not None
        waiting = dict.fromkeys(running.anchor.values(*constants))
        while waiting:
            self._part(running, constants, waiting, effort)
            yield
            for row, count in news.items():
                if row[at] not in waiting:
                    add(self._found, row, count)
            news.clear()
        self._enter(running, Taker(self._found, self._owner), constants)

    def _part(
        self, running: Running[Owner], constants: tuple[Term, ...], waiting: dict[Term, None], effort: Effort
    ) -> None:
        """One turn."""
        most, before = min(TURN + SINGLE, effort.left), len(self._found)
        left = running.find_parts(Taker(self._found, self._owner), constants, most, TURN, waiting)
        if left < 0:
            raise effort.too_much
        effort.spend(most - left + (len(self._found) - before) * effort.weight)


def _narrowed(change: Bag, width: int) -> Bag:
    """The rows without the columns beyond a width."""
    found: Bag = {}
    for row, count in change.items():
        add(found, row[:width], count)
    return found
