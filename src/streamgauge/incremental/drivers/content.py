"""The content of a moving window: triples enter the evaluator on arrival and leave once no report sees them.

Also the times of latest arrivals, as facts that timestamp() reads (``query/stamps.py``), and whether the content has
changed between two looks, exactly or as far as answers can show it.
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
    """The triples that are valid among the facts of sources, each at its source's time (ms).

    A triple of several sources enters once for each.
    """

    def __init__(self, enter: Feed, leave: Feed) -> None:
        self._enter, self._leave = enter, leave
        self._facts: dict[Hashable, tuple[tuple[Fact, ...], int]] = {}
        self._holding: dict[Hashable, set[Triple]] = {}

    def fetched(self, source: Hashable, facts: Iterable[Fact], at: int) -> None:
        """Set the facts of a source at its time: triples enter and leave accordingly."""
        known = tuple(facts)
        self._facts[source] = known, at
        now = {fact.triple for fact in known if fact.holds(at)}
        before = self._holding.get(source, set())
        # What leaves goes first, so that at no moment old and new facts of a source stand beside each other.
        self._leave(before - now)
        self._enter(now - before)
        self._holding[source] = now

    def border(self, source: Hashable) -> int | None:
        """The next time (ms of the source's clock) at which a fact's validity changes; ``None`` if there is none."""
        facts, at = self._facts[source]
        return border(facts, at)

    def __len__(self) -> int:
        return sum(map(len, self._holding.values()))


def border(facts: Iterable[Fact], at: int) -> int | None:
    """The next time after ``at`` (ms) at which the validity of a fact changes; ``None`` if there is none."""
    times = (time for fact in facts for time in (fact.initial, fact.final) if time is not None and time > at)
    return min(times, default=None)


Arrival: TypeAlias = tuple[int, Sequence[Triple], int]
"""Time (ms), the triples that arrived then, and a number if they end (0 if they do not).

Triples as term ids, and pieces, may include later arrivals; they do not end.
"""


class Latest:
    """The time stamps of one graph: a triple's time is that of its latest live arrival.

    ``predicates``: those of stamped triples, ``None`` for all.
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
        # Arrivals by time with their number: when the latest one leaves, the time falls back to the latest that is
        # left.
        self._held: dict[Triple, tuple[dict[int, int], list[Triple]]] = {}

    def came(self, time: int, triples: Iterable[Triple]) -> None:
        """Add arrivals at ``time`` (ms)."""
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
            # An arrival that is older than the latest one changes no time.
            if time > before:
                self._move(triple, facts, before, time)

    def went(self, time: int, triples: Iterable[Triple]) -> None:
        """Remove arrivals of ``time`` (ms)."""
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
        """Change the time of a triple, which is the last of its facts."""
        self._count(triple, before, -1)
        self._count(triple, now, 1)
        if facts:
            self._leave((facts[-1],))
            facts[-1] = retimed(facts[-1], now)
            self._enter((facts[-1],))


class SetChanges:
    """The difference of the set of triples to the last look; a triple that entered and left in between is no change."""

    def __init__(self, counted: Changes) -> None:
        self._evictions = counted is Changes.BOTH
        self._copies: dict[Triple, int] = {}
        self._fresh: set[Triple] = set()
        self._lost: set[Triple] = set()

    @property
    def none(self) -> bool:
        """Whether the set is unchanged."""
        return not self._fresh and not self._lost

    def came(self, triples: Sequence[Triple]) -> None:
        """Add triples; the first copy of each is new to the set."""
        copies, fresh, lost = self._copies, self._fresh, self._lost
        for triple in triples:
            had = copies.get(triple, 0)
            copies[triple] = had + 1
            if had:
                continue
            # It left since the last look and is back: no change.
            if triple in lost:
                lost.discard(triple)
            else:
                fresh.add(triple)

    def went(self, triples: Sequence[Triple]) -> None:
        """Remove one copy of each triple."""
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
        """Whether the set has changed in a relevant way."""
        changed = bool(self._fresh) or (self._evictions and bool(self._lost))
        self._fresh.clear()
        self._lost.clear()
        return changed


class AnyChange:
    """Whether anything entered or left, for reports that are only sent if an answer has changed.

    Triples that entered and left again do not change the answer, so counting them has no effect; but the first report
    is due once there is any content, whatever the answer was before.
    """

    def __init__(self) -> None:
        self._moved = self._begun = False

    @property
    def none(self) -> bool:
        """Whether nothing entered or left."""
        return not self._moved

    def came(self, _triples: Sequence[Triple]) -> None:
        """Record that triples entered."""
        self._moved = True

    def went(self, _triples: Sequence[Triple]) -> None:
        """Record that triples left."""
        self._moved = True

    def settle(self, content: object) -> bool:
        """Whether anything entered or left; before the first report, only if there is content."""
        changed = self._moved and (self._begun or bool(content))
        self._begun, self._moved = self._begun or changed, False
        return changed


ChangeDetector: TypeAlias = SetChanges | AnyChange
"""Follows the changes of a content, and decides at each look whether it has changed."""


def change_detector(queries: Sequence[ContinuousQuery], semantics: Semantics) -> ChangeDetector | None:
    """The change detector of a content of queries; ``None`` if reports do not depend on changes.

    An answer itself shows a change if only its changes are sent, every change is relevant, and it is a function of the
    set of triples: timestamp() reads arrivals, NOW() the instant, SAMPLE takes the first arrival.
    """
    if Report.CONTENT_CHANGE not in semantics.report:
        return None
    shown = not semantics.notify_empty and semantics.changes is Changes.BOTH
    return (
        AnyChange() if shown and all(_tells(query, semantics) for query in queries) else SetChanges(semantics.changes)
    )


def _tells(query: ContinuousQuery, semantics: Semantics) -> bool:
    """Whether the output changes only with the set of triples."""
    # Rstream sends the whole answer at every report that is due, so whether one is due has to be exact.
    deltas = (query.r2s or semantics.r2s) is not R2S.RSTREAM
    return deltas and not reads_time(query.form) and not _samples(query.form)


def _samples(form: al.QueryForm) -> bool:
    groups = [pattern for pattern in every_pattern(form.pattern) if isinstance(pattern, al.Group)]
    return any(aggregate.function == "SAMPLE" for group in groups for _, aggregate in group.aggregates)


class WindowContent:
    """The triples of a window, in order of time, and whether the set has changed at each look."""

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
        """Triples that arrived before this time (ms) have left."""
        self._waiting: list[tuple[int, Sequence[Triple], int | None]] = []
        self._ends: list[tuple[int, int, Arrival]] = []
        # Arrivals with an end leave in another order than they came. They keep their places, since a count-based
        # window counts ended triples, and are skipped by number.
        self._running: set[int] = set()
        self._numbers = count(1)
        self._ended = 0
        self._changes = change_detector
        self._gathers = change_detector is None and latest is None
        self.feed(enter, leave)

    def feed(self, enter: Feed, leave: Feed) -> None:
        """Set the functions for triples that enter and leave."""
        self._enter, self._leave = enter, leave
        # Nobody asks which triples leave, so they need not be listed.
        self._unheard = leave is unheard and not isinstance(self._changes, SetChanges) and self._latest is None

    def fresh(self, whole: bool = False) -> list[tuple[int, Sequence[Triple]]]:
        """The arrivals with their times (ms) since the last call, or all live ones."""
        arrivals = islice(self._live, 0 if whole else self._taken, None)
        self._taken = len(self._live)
        return [(time, triples) for time, triples, _ in arrivals]

    def hold(self, time: int, triples: Sequence[Triple]) -> None:
        """Add triples of ``time`` (ms) and later that have been evaluated already."""
        self._live.append((time, triples, 0))
        self._taken = len(self._live)

    @property
    def arrivals(self) -> int | None:
        """The number of live arrivals; ``None`` if some have ends of their own."""
        return None if self._running or self._ended else len(self._live)

    @property
    def telling(self) -> bool:
        """Whether looks without a change of an answer have no effect."""
        return isinstance(self._changes, AnyChange)

    @property
    def held(self) -> bool:
        """Whether there is any triple."""
        return len(self._live) > self._ended

    @property
    def still(self) -> bool:
        """Whether the content is empty and has not changed since the last look."""
        return not self.held and (self._changes is None or self._changes.none)

    @property
    def span(self) -> tuple[int, int] | None:
        """The times (ms) of the oldest and newest arrival in scope, including ended ones; ``None`` if there is none."""
        if not self._live:
            return None
        newest, triples, _ = self._live[-1]
        # Ticks in columns hold the triples of several times as one arrival, which has the time of the first.
        if not isinstance(triples, tuple | PartedTriples):
            newest = cast("IdTriples", triples).span[1]
        return self._live[0][0], newest

    def graphs(self) -> list[Sequence[Triple]]:
        """The live triples, arrival by arrival."""
        running = self._running
        return [triples for _, triples, number in self._live if not number or number in running]

    def columns(self, ids: "TermIds") -> "IdTriples":
        """The live triples as term ids, in which form they are stored from now on."""
        if self._running or self._ended:
            return ids.of_triples([(0, triples) for triples in self.graphs()])
        numbered = ids.of_arrivals([(time, triples) for time, triples, _ in self._live])
        self._live = deque([(numbered.span[0], numbered, 0)] if numbered else ())
        return numbered

    def gather(self, predicates: Collection[Term], begun: Callable[[int], int]) -> None:
        """Merge the latest arrivals that leave together into one piece of these predicates (``Gather``)."""
        live, late = self._live, list[Arrival]()
        self._gathers = self._gathers and not (self._running or self._ended)
        if not self._gathers or len(live) <= self._taken:
            return
        first = begun(live[-1][0])
        for _ in range(len(live) - self._taken):
            last = live.pop()
            # Beyond the beginning of a window, or merged before: the piece ends here.
            if last[0] < first or not isinstance(last[1], tuple):
                live.append(last)
                break
            late.append(last)
        late.reverse()
        if late:
            live.append((late[0][0], PartedTriples(predicates, [triples for _, triples, _ in late]), 0))

    def enter_each(self, time: int, triples: Sequence[Triple], until: int | None) -> Iterator[None]:
        """``enter`` as a generator, which stops after each triple."""
        if self._keep(time, triples, until):
            for triple in triples:
                self._came(time, (triple,))
                yield

    def enter(self, time: int, triples: Sequence[Triple], until: int | None) -> None:
        """Add triples of ``time`` (ms), which must not decrease; they end at ``until``."""
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
        """Store an arrival; whether it has any effect."""
        if not triples:
            return False
        if until is not None:
            return self._will_end(time, triples, until)
        self._live.append((time, triples, 0))
        return True

    def _will_end(self, time: int, triples: Sequence[Triple], until: int) -> bool:
        """Store an arrival that ends; whether it begins at all."""
        entry = (time, triples, next(self._numbers))
        self._live.append(entry)
        # Its interval [time, until) is empty. It takes a place in a count-based window all the same.
        if until <= time:
            self._ended += 1
            return False
        self._running.add(entry[2])
        heappush(self._ends, (until, entry[2], entry))
        return True

    def show(self) -> None:
        """Let arrivals that wait for a look enter; here none waits."""

    def drop(self, first: int) -> None:
        """Remove the arrivals before ``first`` (ms)."""
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
                # Places count from the oldest arrival, so one that leaves moves all others up.
                self._taken -= 1
        self._went(self._unended(gone))

    def crop(self, size: int) -> None:
        """Remove all but the newest ``size`` arrivals."""
        live = self._live
        if len(live) > size:
            self._went(self._unended([live.popleft() for _ in range(len(live) - size)]))

    def end(self, last: int) -> None:
        """End the arrivals whose time is up at ``last`` (ms); they keep their places."""
        over = []
        while self._ends and self._ends[0][0] <= last:
            _, number, entry = heappop(self._ends)
            # It may have left by time or number before its end.
            if number in self._running:
                self._running.discard(number)
                over.append(entry)
        if over:
            self._ended += len(over)
            self._went(over)

    def settle(self) -> bool:
        """Whether the set has changed in a relevant way since the last look; resets the detector."""
        return self._changes is None or self._changes.settle(self.held)

    def _unended(self, out: list[Arrival]) -> list[Arrival]:
        """The arrivals that left and had not ended before."""
        if not self._running and not self._ended:
            return out
        # Those that ended have left the evaluator already; leaving twice would remove another copy.
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
    """A content that only changes at the looks of its window: arrivals wait for the next one."""

    @property
    def still(self) -> bool:
        """Whether the content is empty, nothing waits and nothing has changed since the last look."""
        return not self._waiting and super().still

    def enter(self, time: int, triples: Sequence[Triple], until: int | None) -> None:
        """Queue triples of ``time`` (ms)."""
        self._waiting.append((time, triples, until))

    def show(self) -> None:
        """Let queued arrivals enter."""
        for time, triples, until in self._waiting:
            super().enter(time, triples, until)
        self._waiting.clear()
