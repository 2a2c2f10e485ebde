"""The content of a window as it moves: triples enter the evaluator when they arrive and leave when no report sees them.

Beside the content itself: the times of latest arrivals, kept as facts that timestamp() reads (``query/stamps.py``), and
whether the content has changed between two looks, exactly or as far as an answer can show it.
"""

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count, islice
from typing import TYPE_CHECKING, TypeAlias, cast

from streamgauge.incremental.plan import Feed, unheard
from streamgauge.incremental.window_pieces import PartedTriples
from streamgauge.model import algebra as al
from streamgauge.model.fact import Fact
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Changes, Report, Semantics
from streamgauge.model.terms import Term, Triple
from streamgauge.query.stamps import reads_time, retimed, stamp, time_fact, time_term
from streamgauge.query.traversal import every_pattern

if TYPE_CHECKING:
    from streamgauge.incremental.stamp_rows import StampRows
    from streamgauge.incremental.term_ids import IdTriples, TermIds


class Holding:
    """The triples that hold among the facts of sources, each at the time (ms) that its source showed.

    A triple that several sources have enters for each of them.
    """

    def __init__(self, enter: Feed, leave: Feed) -> None:
        self._enter, self._leave = enter, leave
        self._facts: dict[Hashable, tuple[tuple[Fact, ...], int]] = {}
        self._holding: dict[Hashable, set[Triple]] = {}

    def fetched(self, source: Hashable, facts: Iterable[Fact], at: int) -> None:
        """A source has these facts now, at its time: what does not hold leaves, what holds enters."""
        known = tuple(facts)
        self._facts[source] = known, at
        now = {fact.triple for fact in known if fact.holds(at)}
        before = self._holding.get(source, set())
        self._leave(before - now)
        self._enter(now - before)
        self._holding[source] = now

    def border(self, source: Hashable) -> int | None:
        """The time (ms of the source's clock) at which a fact begins or ends to hold next; ``None`` when none will."""
        facts, at = self._facts[source]
        return border(facts, at)

    def __len__(self) -> int:
        return sum(map(len, self._holding.values()))


def border(facts: Iterable[Fact], at: int) -> int | None:
    """The next time after ``at`` (ms) at which one of the facts begins or ends to hold; ``None`` when none will."""
    times = (time for fact in facts for time in (fact.initial, fact.final) if time is not None and time > at)
    return min(times, default=None)


Arrival: TypeAlias = tuple[int, Sequence[Triple], int]
"""Time (ms), the triples that arrived at it, and a number when they end (0 when they do not).

Triples by the numbers of their terms, and pieces of triples, may have arrived later too; they do not end.
"""


class Latest:
    """The stamps of one graph: a triple's time is that of its latest arrival that is still there.

    ``predicates``: those of the triples that have a stamp, ``None`` for all.
    """

    def __init__(
        self,
        enter: Feed,
        leave: Feed,
        predicates: Collection[Term] | None = None,
        rows: "Sequence[StampRows]" = (),
    ) -> None:
        self._enter, self._leave, self._predicates, self._rows = enter, leave, predicates, rows
        self._told = enter is not unheard
        self._held: dict[Triple, tuple[dict[int, int], list[Triple]]] = {}

    def came(self, time: int, triples: Iterable[Triple]) -> None:
        """Triples arrived at ``time`` (ms)."""
        for triple in self._stamped(triples):
            entry = self._held.get(triple)
            if entry is None:
                facts = [*stamp(triple), time_fact(triple, time)] if self._told else []
                self._held[triple] = {time: 1}, facts
                self._enter(facts)
                self._count(triple, time, 1)
                continue
            times, facts = entry
            before = max(times)
            times[time] = times.get(time, 0) + 1
            if time > before:
                self._move(triple, facts, before, time)

    def went(self, time: int, triples: Iterable[Triple]) -> None:
        """Arrivals of ``time`` (ms) are no longer there."""
        for triple in self._stamped(triples):
            times, facts = self._held[triple]
            before = max(times)
            times[time] -= 1
            if not times[time]:
                del times[time]
            if not times:
                del self._held[triple]
                self._leave(facts)
                self._count(triple, time, -1)
            elif (now := max(times)) != before:
                self._move(triple, facts, before, now)

    def _stamped(self, triples: Iterable[Triple]) -> Iterable[Triple]:
        wanted = self._predicates
        return triples if wanted is None else [triple for triple in triples if triple[1] in wanted]

    def _count(self, triple: Triple, time: int, count: int) -> None:
        term = time_term(time)
        for row in self._rows:
            row.move(triple, term, count)

    def _move(self, triple: Triple, facts: list[Triple], before: int, now: int) -> None:
        """The time of a triple, the last of its facts, is another."""
        self._count(triple, before, -1)
        self._count(triple, now, 1)
        if facts:
            self._leave((facts[-1],))
            facts[-1] = retimed(facts[-1], now)
            self._enter((facts[-1],))


class SetChanges:
    """How the set of triples differs from its last reading; a triple that came and went in between is not a change."""

    def __init__(self, counted: Changes) -> None:
        self._evictions = counted is Changes.BOTH
        self._copies: dict[Triple, int] = {}
        self._fresh: set[Triple] = set()
        self._lost: set[Triple] = set()

    @property
    def none(self) -> bool:
        """Whether the set is as it was."""
        return not self._fresh and not self._lost

    def came(self, triples: Sequence[Triple]) -> None:
        """Take in triples that enter the window: the first copy of each is new to the set."""
        copies, fresh, lost = self._copies, self._fresh, self._lost
        for triple in triples:
            had = copies.get(triple, 0)
            copies[triple] = had + 1
            if had:
                continue
            if triple in lost:
                lost.discard(triple)
            else:
                fresh.add(triple)

    def went(self, triples: Sequence[Triple]) -> None:
        """Count triples out."""
        copies, fresh, lost = self._copies, self._fresh, self._lost
        for triple in triples:
            left = copies[triple] - 1
            if left:
                copies[triple] = left
                continue
            del copies[triple]
            if triple in fresh:
                fresh.discard(triple)
            else:
                lost.add(triple)

    def settle(self, _held: object) -> bool:
        """Whether the set has changed in the way that counts."""
        changed = bool(self._fresh) or (self._evictions and bool(self._lost))
        self._fresh.clear()
        self._lost.clear()
        return changed


class AnyChange:
    """Whether anything came or went, for reports that are sent only when an answer has changed.

    Triples that came and went again are no change of the answer, so nobody sees that they counted; only the first
    report of all is due when something is held, whatever the answer was before.
    """

    def __init__(self) -> None:
        self._moved = self._begun = False

    @property
    def none(self) -> bool:
        """Whether nothing came or went."""
        return not self._moved

    def came(self, _triples: Sequence[Triple]) -> None:
        """Something came."""
        self._moved = True

    def went(self, _triples: Sequence[Triple]) -> None:
        """Something went."""
        self._moved = True

    def settle(self, content: object) -> bool:
        """Whether anything came or went, but for what left nothing before the first report."""
        changed = self._moved and (self._begun or bool(content))
        self._begun, self._moved = self._begun or changed, False
        return changed


ChangeDetector: TypeAlias = SetChanges | AnyChange
"""Follows the moves of a content and says at each look whether it has changed."""


def change_detector(queries: Sequence[ContinuousQuery], semantics: Semantics) -> ChangeDetector | None:
    """The change detector of one content of queries, ``None`` where changes are no reason to report.

    An answer tells a change by itself when only its own changes are sent, every move counts, and it follows from the
    set of triples alone: timestamp() reads when they came, NOW() the instant, SAMPLE takes what came first.
    """
    if Report.CONTENT_CHANGE not in semantics.report:
        return None
    shown = not semantics.notify_empty and semantics.changes is Changes.BOTH
    return (
        AnyChange() if shown and all(_tells(query, semantics) for query in queries) else SetChanges(semantics.changes)
    )


def _tells(query: ContinuousQuery, semantics: Semantics) -> bool:
    """Whether what is sent changes only with the set of triples."""
    deltas = (query.r2s or semantics.r2s) is not R2S.RSTREAM
    return deltas and not reads_time(query.form) and not _samples(query.form)


def _samples(form: al.QueryForm) -> bool:
    groups = [pattern for pattern in every_pattern(form.pattern) if isinstance(pattern, al.Group)]
    return any(aggregate.function == "SAMPLE" for group in groups for _, aggregate in group.aggregates)


class WindowContent:
    """The triples of a window, in order of time; says at each look whether the set has changed."""

    def __init__(
        self,
        enter: Feed,
        leave: Feed,
        change_detector: ChangeDetector | None = None,
        latest: Latest | None = None,
    ) -> None:
        self._latest = latest
        self._live: deque[Arrival] = deque()
        self._taken = 0
        self.horizon = -(2**62)
        """Triples that arrived before that (ms) have left."""
        self._waiting: list[tuple[int, Sequence[Triple], int | None]] = []
        self._ends: list[tuple[int, int, Arrival]] = []
        self._running: set[int] = set()
        self._numbers = count(1)
        self._ended = 0
        self._changes = change_detector
        self._gathers = change_detector is None and latest is None
        self.feed(enter, leave)

    def feed(self, enter: Feed, leave: Feed) -> None:
        """Triples enter and leave by these functions from now on."""
        self._enter, self._leave = enter, leave
        self._unheard = leave is unheard and not isinstance(self._changes, SetChanges) and self._latest is None

    def fresh(self, whole: bool = False) -> list[tuple[int, Sequence[Triple]]]:
        """The arrivals with their times (ms) since this was last asked for, or all that are held."""
        arrivals = islice(self._live, 0 if whole else self._taken, None)
        self._taken = len(self._live)
        return [(time, triples) for time, triples, _ in arrivals]

    def hold(self, time: int, triples: Sequence[Triple]) -> None:
        """Triples of ``time`` (ms) and later have arrived, and were looked at."""
        self._live.append((time, triples, 0))
        self._taken = len(self._live)

    @property
    def arrivals(self) -> int | None:
        """How many arrivals are held, ``None`` where some end by themselves."""
        return None if self._running or self._ended else len(self._live)

    @property
    def telling(self) -> bool:
        """Whether a look at which no answer changes is none."""
        return isinstance(self._changes, AnyChange)

    @property
    def held(self) -> bool:
        """Whether any triple is held."""
        return len(self._live) > self._ended

    @property
    def still(self) -> bool:
        """Nothing is held and nothing has changed since the last look."""
        return not self.held and (self._changes is None or self._changes.none)

    @property
    def span(self) -> tuple[int, int] | None:
        """The times (ms) of the oldest and the newest arrival in scope, ended ones included; ``None`` without any."""
        return (self._live[0][0], self._live[-1][0]) if self._live else None

    def graphs(self) -> list[Sequence[Triple]]:
        """The triples that are held, arrival by arrival."""
        running = self._running
        return [triples for _, triples, number in self._live if not number or number in running]

    def columns(self, ids: "TermIds") -> "IdTriples":
        """The same by the numbers of their terms, which are looked up once: as such they are held from now on."""
        if self._running or self._ended:
            return ids.of_triples([(0, triples) for triples in self.graphs()])
        numbered = ids.of_arrivals([(time, triples) for time, triples, _ in self._live])
        self._live = deque([(int(numbered.times[0]), numbered, 0)] if numbered else ())
        return numbered

    def gather(self, predicates: Collection[Term], begun: Callable[[int], int]) -> None:
        """Put the latest arrivals that leave together into one piece of these predicates; ``window_pieces.Gather``."""
        live, late = self._live, list[Arrival]()
        self._gathers = self._gathers and not (self._running or self._ended)
        if not self._gathers or len(live) <= self._taken:
            return
        first = begun(live[-1][0])
        for _ in range(len(live) - self._taken):
            last = live.pop()
            if last[0] < first or not isinstance(last[1], tuple):
                live.append(last)
                break
            late.append(last)
        late.reverse()
        if late:
            live.append((late[0][0], PartedTriples(predicates, [triples for _, triples, _ in late]), 0))

    def enter_each(self, time: int, triples: Sequence[Triple], until: int | None) -> Iterator[None]:
        """Triples enter as by ``enter``, with a stop after each."""
        if self._keep(time, triples, until):
            for triple in triples:
                self._came(time, (triple,))
                yield

    def enter(self, time: int, triples: Sequence[Triple], until: int | None) -> None:
        """Triples of ``time`` (ms), which never goes back, enter; they end at ``until``."""
        if until is None and triples:
            self._live.append((time, triples, 0))
        elif not self._keep(time, triples, until):
            return
        self._came(time, triples)

    def _came(self, time: int, triples: Sequence[Triple]) -> None:
        self._enter(triples)
        if self._changes is not None:
            self._changes.came(triples)
        if self._latest is not None:
            self._latest.came(time, triples)

    def _keep(self, time: int, triples: Sequence[Triple], until: int | None) -> bool:
        """Keep an arrival; whether it holds anything."""
        if not triples:
            return False
        if until is not None:
            return self._will_end(time, triples, until)
        self._live.append((time, triples, 0))
        return True

    def _will_end(self, time: int, triples: Sequence[Triple], until: int) -> bool:
        """Keep an entry that ends; whether it holds at all."""
        entry = (time, triples, next(self._numbers))
        self._live.append(entry)
        if until <= time:
            self._ended += 1
            return False
        self._running.add(entry[2])
        heappush(self._ends, (until, entry[2], entry))
        return True

    def show(self) -> None:
        """Arrivals that wait for a look enter; here none waits."""

    def drop(self, first: int) -> None:
        """Arrivals before ``first`` (ms) leave."""
        live = self._live
        self.horizon = max(self.horizon, first)
        if not live or live[0][0] >= first:
            return
        gone: list[Arrival] = []
        while live and live[0][0] < first:
            time, triples, number = live.popleft()
            left = None
            if not isinstance(triples, tuple | PartedTriples):
                triples, left = cast("IdTriples", triples).split(first)
            gone.append((time, triples, number))
            if left is not None:
                live.appendleft((first, left, number))
            elif self._taken:
                self._taken -= 1
        self._went(self._unended(gone))

    def crop(self, size: int) -> None:
        """All but the newest ``size`` arrivals leave."""
        live = self._live
        if len(live) > size:
            self._went(self._unended([live.popleft() for _ in range(len(live) - size)]))

    def end(self, last: int) -> None:
        """Arrivals that end at ``last`` (ms) or before are no longer held, but keep their places."""
        over = []
        while self._ends and self._ends[0][0] <= last:
            _, number, entry = heappop(self._ends)
            if number in self._running:
                self._running.discard(number)
                over.append(entry)
        if over:
            self._ended += len(over)
            self._went(over)

    def settle(self) -> bool:
        """Whether the set has changed since the last look in the way that counts; from now on counted from here."""
        return self._changes is None or self._changes.settle(self.held)

    def _unended(self, out: list[Arrival]) -> list[Arrival]:
        """The arrivals out of scope that have not ended before."""
        if not self._running and not self._ended:
            return out
        kept = [entry for entry in out if not entry[2] or entry[2] in self._running]
        self._ended -= len(out) - len(kept)
        self._running.difference_update(entry[2] for entry in kept)
        return kept

    def _went(self, entries: list[Arrival]) -> None:
        if self._unheard:
            if self._changes is not None and entries:
                self._changes.went(())
            return
        gone: list[Triple] = []
        for _, triples, _ in entries:
            gone += triples
        self._leave(gone)
        if self._changes is not None:
            self._changes.went(gone)
        if self._latest is not None:
            for time, triples, _ in entries:
                self._latest.went(time, triples)


class BufferedContent(WindowContent):
    """A content that stands still between the looks of its window: what arrives waits for the next."""

    @property
    def still(self) -> bool:
        """Nothing is held, nothing waits and nothing has changed since the last look."""
        return not self._waiting and super().still

    def enter(self, time: int, triples: Sequence[Triple], until: int | None) -> None:
        """Triples of ``time`` (ms) wait."""
        self._waiting.append((time, triples, until))

    def show(self) -> None:
        """Waiting arrivals enter."""
        for time, triples, until in self._waiting:
            super().enter(time, triples, until)
        self._waiting.clear()
