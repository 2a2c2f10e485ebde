"""A window under content change whose arrivals come in columns: each new solution is reported with its last triple.

Where each triple is a tick and only new rows are sent (Istream), a basic graph pattern need not be looked at triple by
triple: the instants at which its solutions begin follow from columns (``span_joins``). Elements that come one by one
cost more in columns than without; the window says when they have cost too much more.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from streamgauge.incremental.drivers.content import WindowContent
from streamgauge.incremental.drivers.frames import WindowLooks
from streamgauge.incremental.id_joins import IdConditions
from streamgauge.incremental.plan import PlannedBgp, plan, pushable
from streamgauge.incremental.span_joins import SolutionBirths, SpanJoins
from streamgauge.incremental.term_ids import IdTriples, Places, TermIds
from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer
from streamgauge.model.query import ContinuousQuery, StreamWindow
from streamgauge.model.semantics import R2S, Changes, Counting, Grain, Report, Scope, Semantics, Tick
from streamgauge.model.terms import Row, Triple
from streamgauge.query.stamps import uses_timestamp
from streamgauge.query.traversal import conjuncts

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch

CALL: Final = 500
"""Triples that one by one cost about as much as a batch of few does in columns. Chosen."""

MANY: Final = 100
"""Rows that joins make for each triple that comes and row that is shown, from which on columns are left. Chosen."""

ROWS: Final = 1000
"""Triples and rows that are counted for a batch beside its own, so that one row of a small batch decides nothing."""

_NEVER: Final = -(2**62)


@dataclass(frozen=True, slots=True)
class ArrivalQuery:
    """A query whose answers follow from columns: one pattern with its conditions, and its columns."""

    planned: PlannedBgp
    variables: tuple[str, ...]


def arrival_query(queries: Sequence[ContinuousQuery], semantics: Semantics) -> ArrivalQuery | None:
    """The one query whose answers follow from columns, ``None`` where they do not."""
    if len(queries) != 1 or not _told_by_triples(semantics):
        return None
    query = queries[0]
    if (query.r2s or semantics.r2s) is not R2S.ISTREAM or query.static or uses_timestamp(query.form):
        return None
    return _of(query.form, query.windows[0]) if [each.window.kind for each in query.windows] == ["time"] else None


def _told_by_triples(semantics: Semantics) -> bool:
    """Whether each triple is a tick, the window moves with it, and rows are sent that are new in a bag."""
    return (
        semantics.report - {Report.NON_EMPTY} == {Report.CONTENT_CHANGE}
        and semantics.tick is Tick.TUPLE
        and semantics.scope is Scope.RANGE
        and semantics.changes is Changes.BOTH
        and (semantics.content, semantics.answers) == (Counting.SET, Counting.BAG)
        and semantics.partial_head
        and not semantics.notify_empty
        and semantics.lateness is None
    )


def _of(form: al.QueryForm, window: StreamWindow) -> ArrivalQuery | None:
    """A form that has only a pattern over the window, in which all is connected, with conditions and columns."""
    if not isinstance(form, al.Select) or not form.variables:
        return None
    pattern, conditions = form.pattern, list[al.Expression]()
    while isinstance(pattern, al.Project | al.Filter | al.Graph):
        if isinstance(pattern, al.Filter):
            conditions += conjuncts(pattern.condition)
        if isinstance(pattern, al.Graph) and (window.name is None or pattern.name != f"<{window.name}>"):
            return None
        named, pattern = isinstance(pattern, al.Graph), pattern.pattern
        if named:
            window = StreamWindow(window.stream, window.window)
    if window.name is not None or not isinstance(pattern, al.BGP) or not _is_plain(pattern, form, conditions):
        return None
    planned = plan(pattern, conditions)
    bound = all(step.path.bound for each in planned.plans for step in each.steps)
    return ArrivalQuery(planned, form.variables) if bound else None


def _is_plain(block: al.BGP, form: al.Select, conditions: Sequence[al.Expression]) -> bool:
    """Whether each pattern has a variable and no path, and all that is shown and tested is bound by them."""
    bound = {each.name for each in al.pattern_variables(block)}
    plain = all(isinstance(each.predicate, al.Var | str) and al.triple_variables(each) for each in block.patterns)
    tested = all(pushable(each, block) for each in conditions)
    return bool(block.patterns) and plain and tested and bound.issuperset(form.variables)


class ArrivalWindow:
    """The answers to a query over a window whose arrivals come in columns.

    ``ticked`` is the time (ms) of the latest arrival.
    """

    def __init__(
        self, asked: ArrivalQuery, looks: WindowLooks, semantics: Semantics, emit: Callable[[Answer], None]
    ) -> None:
        self._variables, self._looks, self._emit = asked.variables, looks, emit
        self._by_row, self._since = semantics.grain is Grain.ROW, semantics.since
        self._ids = TermIds()
        self._joins = SpanJoins(asked.planned, asked.variables, IdConditions(self._ids), looks.reach)
        self._pieces: deque[IdTriples] = deque()
        self._came = self._held = self._debt = self._effort = self._gain = 0
        self.ticked = _NEVER

    @property
    def worth(self) -> bool:
        """Whether columns do not cost more than what is held and comes costs one by one: batches are not too small.

        Nor do joins make many rows that conditions leave out, for which there are other joins.
        """
        return self._debt <= self._held and not self.wasteful

    @property
    def wasteful(self) -> bool:
        """Whether joins make many rows that conditions leave out."""
        return self._effort > MANY * self._gain

    def begin(self, content: WindowContent, ticked: int) -> None:
        """Take over what a content holds, all of which was looked at up to a time (ms); the content is empty then."""
        self.ticked = ticked
        for triples in content.columns(self._ids):
            self._joins.enter(triples, np.arange(self._came, self._came + len(triples)), ticked - self._looks.reach)
            self._came += len(triples)
            self._keep(triples)
        content.crop(0)

    def take_batch(self, batch: "ElementBatch", t0: int) -> IdTriples:
        """Elements have come in order of time, those before ``t0`` (ms) do not count; what of them is left.

        Nothing is left as long as columns are ``worth`` it.
        """
        triples = self._ids.of_batch(batch)
        return self._take(triples.part(int(triples.times.searchsorted(t0)), len(triples)))

    def take(self, time: int, triples: Sequence[Triple]) -> IdTriples:
        """One element has come, at a time (ms); as ``take_batch``."""
        return self._take(self._ids.of_triples([(time, triples)]))

    def _take(self, triples: IdTriples) -> IdTriples:
        if not len(triples):
            return triples
        times, first, taken = triples.times, self._came, 0
        before = np.concatenate([np.array([self.ticked]), times[:-1]])
        self._joins.enter(triples, np.arange(first, first + len(triples)), self.ticked - self._looks.reach)
        self._effort, self._gain = -self._joins.made, ROWS
        for begun in self._joins.beginning(first, first + len(triples), times):
            self._report(self._new(begun, first, times, before), first, times)
            self._gain += begun.until - first - taken + len(begun.births)
            taken = begun.until - first
            if self._effort + self._joins.made > MANY * self._gain:
                break
        self._effort += self._joins.made
        self._came += taken
        self.ticked = int(times[taken - 1])
        self._keep(triples.part(0, taken))
        self._debt = max(0, self._debt + CALL - len(triples))
        self._joins.forget_terms()
        return triples.part(taken, len(triples))

    def _keep(self, triples: IdTriples) -> None:
        self._pieces.append(triples)
        self._held += len(triples)
        while self._pieces[0].times[-1] < self.ticked - self._looks.reach:
            self._held -= len(self._pieces.popleft())

    def _new(self, begun: SolutionBirths, first: int, times: Places, before: Places) -> SolutionBirths:
        """Solutions that begin, without those that end at the same look: where time has passed, triples leave first."""
        at = begun.births - first
        moved = times[at] != before[at]
        if not moved.any():
            return begun
        looks = np.unique(at[moved])
        ended = self._joins.ending(times[looks], before[looks], looks + first)
        if not len(ended.births):
            return begun
        gone = Counter(zip(ended.births.tolist(), *(column.tolist() for column in ended.columns), strict=True))
        kept = ~moved
        places = np.flatnonzero(moved)
        rows = zip(begun.births[places].tolist(), *(column[places].tolist() for column in begun.columns), strict=True)
        for place, row in zip(places.tolist(), rows, strict=True):
            gone[row] -= 1
            kept[place] = gone[row] < 0
        return SolutionBirths(begun.births[kept], [column[kept] for column in begun.columns])

    def _report(self, begun: SolutionBirths, first: int, times: Places) -> None:
        """Send the rows of each look, ahead of the next."""
        instants = times[begun.births - first]
        rows = list(zip(*map(self._ids.texts, begun.columns), strict=True))
        told = zip(begun.births.tolist(), instants.tolist(), rows, strict=True)
        if self._by_row:
            together: Iterator[tuple[int, tuple[Row, ...]]] = ((instant, (row,)) for _, instant, row in told)
        else:
            looks = groupby(told, key=itemgetter(0, 1))
            together = ((instant, tuple([row for _, _, row in group])) for (_, instant), group in looks)
        latest, scope = _NEVER, (0, 0)
        for instant, added in together:
            if instant != latest:
                look = self._looks.tick(instant)
                latest, scope = instant, (look.start, look.end)
            if self._since is None or instant >= self._since:
                self._emit(Answer(self._variables, added, (), "solutions", instant, scope))

    def held(self) -> Iterator[tuple[int, Sequence[Triple]]]:
        """All arrivals that are held, those of a time (ms) together."""
        first = self.ticked - self._looks.reach
        for piece in self._pieces:
            for time, group in groupby(zip(piece.times.tolist(), piece, strict=True), key=itemgetter(0)):
                if time >= first:
                    yield time, tuple([triple for _, triple in group])
