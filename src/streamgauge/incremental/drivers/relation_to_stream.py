"""The relation-to-stream side of a query: Rstream, Istream, Dstream or both changes, from changes of its solutions."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from streamgauge.incremental.evaluator import KeptAnswer, OperatorTree
from streamgauge.incremental.join_pool import JoinPool
from streamgauge.incremental.operators import Bag, repeated
from streamgauge.incremental.query_forms import RowOrder
from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer, AnswerKind
from streamgauge.model.engine import Emit
from streamgauge.model.semantics import R2S, Counting, Grain, Semantics, Tick
from streamgauge.model.terms import Row

Rows: TypeAlias = tuple[Row, ...]


class RelationToStream:
    """The relation-to-stream side of one query (CQL): differences are to the last evaluated instant."""

    def __init__(
        self,
        form: al.QueryForm,
        evaluator: KeptAnswer,
        r2s: R2S,
        semantics: Semantics,
        emit: Callable[[Answer], None],
    ) -> None:
        self._evaluator, self._r2s, self.emit = evaluator, r2s, emit
        self._semantics = semantics
        self._sets = semantics.answers is Counting.SET
        self._kind = answer_kind(form)
        self.again = semantics.tick is Tick.BATCH and semantics.grain is Grain.ROW
        self._instant, self._left = -1, Counter[Row]()  # rows that left at the last instant
        self._order = RowOrder.of(form) if r2s is R2S.RSTREAM else None
        self.silent = False
        """Whether the last report had nothing to send."""

    def report(self, instant: int, scope: tuple[int, int]) -> None:
        """Evaluate, and send what the operator gives; an empty answer only when the semantics notifies of it."""
        added, removed = self._rows(instant)
        self.silent = not (added or removed or self._semantics.notify_empty)
        if not self.silent:
            self.send(added, removed, instant, scope)

    def send(self, added: Rows, removed: Rows, instant: int, scope: tuple[int, int]) -> None:
        """Send rows that came and went as one answer, or as one each."""
        since = self._semantics.since
        # Evaluated all the same: Istream and Dstream are differences to the last evaluated instant.
        if since is not None and instant < since:
            return
        answer = Answer(self._evaluator.variables, added, removed, self._kind, instant, scope)
        if self._semantics.grain is Grain.REPORT or len(added) + len(removed) < 2:
            self.emit(answer)
            return
        for row_answer in answer.row_by_row():
            self.emit(row_answer)

    @property
    def operator_tree(self) -> OperatorTree:
        """The operators that keep the query's solutions."""
        return self._evaluator.tree

    @property
    def bags(self) -> Sequence[Bag]:
        """The bags that must change for a report to have anything to send; empty if it may send something anyway."""
        # Rstream sends its answer whether or not it changed, and with notification an empty change is sent, too.
        deltas = self._r2s is not R2S.RSTREAM and not self._semantics.notify_empty
        return self._evaluator.bags if deltas else ()

    @property
    def stateless(self) -> bool:
        """Whether a report does not depend on earlier ones."""
        return self._r2s is R2S.RSTREAM

    @property
    def begins_only(self) -> bool:
        """Whether answers consist only of the rows of one pattern that begin at a tick."""
        partial, quiet = self._semantics.partial_head, not self._semantics.notify_empty
        return self._r2s is R2S.ISTREAM and not self._sets and self._evaluator.is_leaf and partial and quiet

    def _rows(self, instant: int) -> tuple[Rows, Rows]:
        if self._r2s is R2S.RSTREAM:
            rows = tuple(self._evaluator.answer()) if self._sets else self._evaluator.rows()
            return (rows if self._order is None else self._order.sorted(rows)), ()
        delta = self._changed()
        if not delta:
            return (), ()
        match self._r2s:
            case R2S.ISTREAM:
                return self._fresh(delta, instant), ()
            case R2S.DSTREAM:
                return self._moved(delta, -1), ()
        return self._moved(delta, 1), self._moved(delta, -1)

    def _fresh(self, delta: Mapping[Row, int], instant: int) -> Rows:
        """The added rows; if an instant is evaluated again, rows that left at it before are not new."""
        added = self._moved(delta, 1)
        if not self.again:
            return added
        # A worked example: at 5 ms a first element evicts the last triple of row r, and a second one of 5 ms brings it
        # back. As one tick nothing changed, so r, which left at 5, is not new at 5.
        left, gone = self.left_at(instant), self._moved(delta, -1)
        if left:
            again = Counter(added)
            # By multiset: a row that left once and came twice is new once.
            added = tuple((again - left).elements())
            left -= again
        if gone:
            left.update(gone)
        return added

    def left_at(self, instant: int) -> Counter[Row]:
        """The rows that left at an instant (ms) and have not returned; reset at the next instant."""
        if instant != self._instant or not self.again:
            self._instant = instant
            if self._left:
                self._left = Counter()
        return self._left

    def set_left(self, instant: int, rows: Counter[Row]) -> None:
        """Set the rows that have left at the last evaluated instant (ms)."""
        self._instant, self._left = instant, rows

    def _changed(self) -> Mapping[Row, int]:
        """The change since the last report; a bag of which only changes are sent is not stored."""
        kept = self._sets or self._r2s is R2S.RSTREAM
        return self._evaluator.settle() if kept else self._evaluator.delta()

    def _moved(self, delta: Mapping[Row, int], sign: int) -> Rows:
        if self._sets:
            solutions = self._evaluator.solutions()
            return tuple([row for row, count in delta.items() if sign * _turn(solutions.get(row, 0), count) > 0])
        return repeated([(row, sign * count) for row, count in delta.items() if sign * count > 0])


def _turn(now: int, change: int) -> int:
    """1 if a row entered the set, -1 if it left, 0 if only its multiplicity changed."""
    # Worked examples: of two copies one is removed, now 1, change -1: 0. Both are removed, now 0, change -2: -1.
    return (now > 0) - (now - change > 0)


def answer_kind(form: al.QueryForm) -> AnswerKind:
    """The kind of a query's answers."""
    if isinstance(form, al.Select):
        return "solutions"
    return "boolean" if isinstance(form, al.Ask) else "triples"


class SharedReports:
    """The reports of queries over the same windows; queries that have nothing to send are skipped.

    A query whose patterns are all shared sleeps: its bags change only when shared solutions are handed out.
    ``reporting`` is the receiver of the answer being evaluated.
    """

    def __init__(self, streamings: Sequence[RelationToStream], pool: JoinPool) -> None:
        self.streamings, self._pool = streamings, pool
        self.reporting: Emit | None = None
        self._asked: Sequence[RelationToStream] = streamings
        self._awake: list[int] = []
        self._sleepers: dict[int, int] | None = None

    @property
    def silent(self) -> bool:
        """Whether the last report had nothing to send."""
        return all(streaming.silent for streaming in self.streamings)

    def report(self, instant: int, scope: tuple[int, int]) -> None:
        """Evaluate and send the queries that may have changed; all of them at first."""
        if self._sleepers is None:
            self._sleepers = self._asleep()
        elif self._sleepers:
            self._wake(self._sleepers)
        for streaming in self._asked:
            self.reporting = streaming.emit
            streaming.report(instant, scope)
        self.reporting = None

    def _asleep(self) -> dict[int, int]:
        """The positions of sleeping queries by the ids of their bags."""
        bags = [streaming.bags for streaming in self.streamings]
        asleep = [bool(own) and all(map(self._pool.shares, own)) for own in bags]
        self._awake = [at for at, sleeps in enumerate(asleep) if not sleeps]
        return {id(bag): at for at, own in enumerate(bags) if asleep[at] for bag in own}

    def _wake(self, sleepers: Mapping[int, int]) -> None:
        """Select the queries that never sleep, and those whose bags have changed since the last report."""
        for streaming in self._asked:
            streaming.silent = True
        touched = self._pool.hand_out()
        places = {*self._awake, *[sleepers[bag] for bag in touched if bag in sleepers]}
        self._asked = [self.streamings[at] for at in sorted(places)]
