"""The broker as an engine: it publishes elements, deletes them at their ends and emits changes of the answer."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from streamgauge.engines import Emit, starter
from streamgauge.incremental.drivers.admission import Admission
from streamgauge.model.algebra import Graph, Select, Slice
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Semantics
from streamgauge.model.terms import Row, Triple
from streamgauge.query.printer import sparql
from streamgauge.query.traversal import every_pattern
from streamgauge.reasoning.closure import NO_RULES
from streamgauge.semantics.beginning import is_sent
from streamgauge.semantics.profiles import SENS
from streamgauge.semantics.refusal import meaningless
from streamgauge.semantics.static_data import with_matched_static
from streamgauge.servers.broker.broker import Broker
from streamgauge.servers.broker.limits import Limits
from streamgauge.servers.broker.strategies import begin

EVALUATOR = "changes"
PROFILES = ("sens",)

STRATEGY: Final = "incremental"
LIMITS: Final = Limits(graph=2_000_000)

_FREE = (
    *("name", "r2s", "r2s_able", "t0", "time_unit", "since", "grain", "partial_head", "scope", "due", "static_data"),
)
_CHOSEN: Final[dict[str, Any]] = {name: getattr(SENS, name) for name in _FREE}
"""Fields of the semantics that may differ from SENS: queries may set them, or they do not affect standing facts."""

_CHANNEL: Final = "query"


def refuse(query: ContinuousQuery, semantics: Semantics) -> str | None:
    """Why the query cannot be answered under the semantics; ``None`` if it can."""
    if replace(semantics, **_CHOSEN) != SENS:
        return f"the broker has its own semantics: use {', '.join(PROFILES)} instead of {semantics.name}"
    if reason := meaningless(query, semantics):
        return reason
    r2s = query.r2s or semantics.r2s
    if r2s not in SENS.r2s_able:
        return f"{r2s}: a broker sends changes, so use {' or '.join(sorted(SENS.r2s_able))}"
    for window in query.windows:
        if window.window.kind != "landmark":
            return f"a {window.window.kind}-based window: facts remain until they are deleted, so use a landmark window"
        if window.name is not None:
            return "a named window beside other patterns: a broker has one graph, so write every pattern inside WINDOW"
    return _refuse_form(query)


def _refuse_form(query: ContinuousQuery) -> str | None:
    if not isinstance(query.form, Select):
        return "ASK and CONSTRUCT: only changes of rows can be judged, so write a SELECT"
    patterns = list(every_pattern(query.form.pattern))
    if any(isinstance(pattern, Slice) for pattern in patterns):
        return "LIMIT and OFFSET: when several answers are right, changes do not tell which one was sent before"
    if any(isinstance(pattern, Graph) for pattern in patterns):
        return "GRAPH: the facts of a stream are in one graph, so write every pattern inside WINDOW"
    try:
        begin(STRATEGY, NO_RULES).create(_CHANNEL, query.form)
    except ValueError as error:
        return str(error)
    return None


class BrokerSession:
    """A broker with one channel; all triples that begin or end by a tick are one publication.

    Times are stream ms.
    """

    def __init__(self, query: ContinuousQuery, semantics: Semantics, emit: Emit) -> None:
        self._semantics, self._emit = semantics, emit
        self._r2s = query.r2s or semantics.r2s
        self._admission = Admission([window.stream for window in query.windows])
        self._static = frozenset(with_matched_static(query, semantics).static)
        self._copies: Counter[Triple] = Counter()
        self._due: dict[int, list[tuple[int, tuple[Triple, ...]]]] = defaultdict(list)
        self._now, self._next = semantics.t0, semantics.t0 + semantics.time_unit
        self._begun = False
        # Simulated clocks: the broker's time is the tick whose changes are published.
        self._broker = Broker(begin(STRATEGY, NO_RULES), lambda: self._next, lambda: self._next / 1000, limits=LIMITS)
        self._variables = self._broker.create_channel(_CHANNEL, sparql(query.form))
        self._subscribed = self._broker.listen(_CHANNEL, self._tell)

    def push(self, element: StreamElement) -> None:
        """Queue the facts of an element, after publishing everything before it."""
        if not self._admission.takes(element, self._now):
            return
        self._publish_before(element.time)
        if element.time < self._semantics.t0:
            return
        self._due[self._tick(element.time)].append((1, element.added))
        if element.until is not None:
            self._due[self._tick(element.until)].append((-1, element.added))

    def advance(self, time: int) -> None:
        """Publish all changes up to and including ``time``."""
        self._publish_before(time + 1)

    def close(self) -> None:
        """Close the broker; StreamNameError if all elements were of streams that the query does not read."""
        self._broker.close()
        # Last, as it raises for a stream that the query does not read.
        self._admission.close()

    def _tick(self, time: int) -> int:
        """The first tick (ms) at or after a time, and after t0."""
        t0, unit = self._semantics.t0, self._semantics.time_unit
        return t0 + unit * max(1, -((t0 - time) // unit))

    def _publish_before(self, time: int) -> None:
        """Publish the changes of all ticks before a time (ms)."""
        self._now = max(self._now, time)
        # The ends of earlier elements and the beginnings of later ones share these ticks, in any order of arrival.
        for tick in sorted(instant for instant in self._due if instant < time):
            self._next = tick
            added, removed = self._moved(self._due.pop(tick))
            if added or removed:
                first = self._static if not self._begun else frozenset()
                # A static fact must not end with the stream's last copy of it.
                self._broker.update(first | added - self._static, removed - self._static)
                if not self._begun:
                    self._begin()

    def _moved(self, changes: Iterable[tuple[int, tuple[Triple, ...]]]) -> tuple[frozenset[Triple], frozenset[Triple]]:
        """(facts whose first copy appears, facts whose last copy ends).

        Elements may repeat a triple with different ends; the broker's facts are a set, so it remains until the last.
        """
        copies, before = self._copies, dict[Triple, int]()
        for sign, triples in changes:
            # A triple that an element repeats has one copy in it: contents are graphs.
            for triple in dict.fromkeys(triples):
                before.setdefault(triple, copies[triple])
                copies[triple] += sign
        added = frozenset(triple for triple, had in before.items() if not had and copies[triple])
        removed = frozenset(triple for triple, had in before.items() if had and not copies[triple])
        for triple in removed:
            del copies[triple]
        return added, removed

    def _begin(self) -> None:
        """Emit all rows after the first publication: the answer over no facts, such as COUNT's 0, was not emitted."""
        self._begun = True
        self._send(tuple(self._broker.rows(_CHANNEL)[1]), ())

    def _tell(self) -> None:
        for change in self._subscribed.take():
            if self._begun:
                self._send(change.added, change.removed)

    def _send(self, added: "Rows", removed: "Rows") -> None:
        added, removed = _SENT[self._r2s](added, removed)
        if (added or removed) and is_sent(self._next, self._semantics):
            scope = (self._semantics.t0, self._next)
            self._emit(Answer(self._variables, added, removed, instant=self._next, scope=scope))


Rows: TypeAlias = tuple[Row, ...]

_SENT: Final[dict[R2S, Callable[[Rows, Rows], tuple[Rows, Rows]]]] = {
    R2S.ISTREAM: lambda added, _removed: (added, ()),
    R2S.DSTREAM: lambda _added, removed: (removed, ()),
    R2S.CHANGES: lambda added, removed: (added, removed),
}


start = starter(refuse, BrokerSession)
