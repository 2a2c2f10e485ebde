"""Sessions: queries answered by an engine from the present time of their streams, and answers as a stream."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from streamgauge.formats.lines import Advance
from streamgauge.model import algebra as al
from streamgauge.model.answer import Answer
from streamgauge.model.element import StreamElement
from streamgauge.model.engine import Emit, Engine, Session
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Origin, Semantics
from streamgauge.semantics.arrivals import origins
from streamgauge.semantics.beginning import begun, is_sent, near
from streamgauge.semantics.refusal import RefusedError

if TYPE_CHECKING:
    from streamgauge.formats.batches import ElementBatch, Taken
    from streamgauge.incremental.evaluator import OperatorTree


def makes_triples(query: ContinuousQuery) -> bool:
    """Whether the query's answers are graphs."""
    return isinstance(query.form, al.Construct)


def as_element(answer: Answer, stream: str, sequence: int) -> StreamElement:
    """The graph of one report as an element at its instant (ms); ValueError for rows and for reports without a time."""
    if answer.kind != "triples":
        raise ValueError("only the answers of a CONSTRUCT query are graphs: ask for a graph, or take the rows")
    time = answer.instant if answer.instant is not None else answer.scope[1] if answer.scope is not None else None
    if time is None:
        raise ValueError("the engine does not say of which instant its reports are, so they are no stream")
    added = tuple([(str(s), str(p), str(o)) for s, p, o in answer.added])
    removed = tuple([(str(s), str(p), str(o)) for s, p, o in answer.removed])
    return StreamElement(stream, time, sequence, added, removed)


@dataclass(frozen=True, slots=True)
class SessionQuery:
    """One query, its semantics, and the receiver of its answers."""

    query: ContinuousQuery
    semantics: Semantics
    emit: Emit


Started: TypeAlias = tuple[ContinuousQuery, Semantics, Emit]


def fixed(semantics: Semantics, t0: int) -> Semantics:
    """The semantics with its first window at ``t0`` (ms)."""
    return replace(semantics, origin=Origin.FIXED, t0=t0)


class EngineSession:
    """A session of several queries; it begins with the first element or advance, near which t0 is moved.

    ``moves`` decides how a query begins at a time (ms): ``begun``, or ``as_declared`` to keep t0. ``late`` counts
    elements that arrived after an advance past their time, or that the engine found late. ``failed`` receives the
    reason, from any thread, if an external engine ends by itself. ``options`` are the engine's. Reports before
    ``settled`` (ms) are not needed. RefusedError if the engine refuses a query, and for an element that removes
    triples.
    """

    def __init__(
        self,
        engine: Engine,
        queries: Sequence[SessionQuery],
        moves: Callable[[ContinuousQuery, Semantics, int], Semantics] | None = None,
        failed: Callable[[str], None] = lambda _why: None,
        options: Mapping[str, Any] | None = None,
        settled: int | None = None,
    ) -> None:
        self._settled = settled
        for query in queries:
            if reason := engine.refuse(query.query, query.semantics):
                raise RefusedError(reason)
        self._engine, self._asked, self._moves = engine, tuple(queries), moves or moved
        self._failed, self._options = failed, dict(options or {})
        self._session: Session | None = None
        self._emits: list[Emit] = []
        self.begun: tuple[tuple[Semantics, int], ...] = ()
        """Each query's semantics from where it began, and its t0 (ms); none before."""
        self._told: int | None = None
        self._after_told = 0

    @property
    def late(self) -> int:
        """The number of elements that were too late to count."""
        return self._after_told + int(getattr(self._session, "late", 0))

    @property
    def operator_trees(self) -> "Sequence[OperatorTree]":
        """The operators of each query; none before it begins, or where the engine does not show them."""
        trees: Sequence[OperatorTree] = getattr(self._session, "operator_trees", ())
        return trees

    @property
    def reporting(self) -> int | None:
        """The number of the query whose answer is being evaluated, where the engine says so."""
        emit = getattr(self._session, "reporting", None)
        return None if emit is None else next((at for at, own in enumerate(self._emits) if own is emit), None)

    @property
    def stage(self) -> Hashable:
        """The query, or the pattern, that is being evaluated, where the engine says so."""
        try:
            stage: Hashable = getattr(self._session, "stage", None)
            hash(stage)
        # An engine is a plug-in, and its error would end the thread that checks the limits of all queries.
        except Exception:
            return None
        return stage

    def push(self, element: StreamElement) -> None:
        """Process an element of the streams."""
        # An advance promised that nothing up to this time follows; reports up to it may have been sent.
        if self._told is not None and element.time <= self._told:
            self._after_told += 1
            return
        refuse_removal(element)
        (self._session or self._begin(element.time)).push(element)

    def take(self, item: "Taken") -> None:
        """Take an element, an advance, or elements in columns, which stay columns if the engine can read them."""
        if isinstance(item, Advance):
            self.advance(item.time)
        elif isinstance(item, StreamElement):
            self.push(item)
        else:
            self._take_batch(item)

    def _take_batch(self, batch: "ElementBatch") -> None:
        # One late element, and all are taken one by one, so that it is counted.
        timely = self._told is None or int(batch.times.min()) > self._told
        session = (self._session or self._begin(int(batch.times[0]))) if timely else None
        if (push_batch := getattr(session, "push_batch", None)) is not None:
            push_batch(batch)
            return
        for element in batch.elements():
            self.push(element)

    def advance(self, time: int) -> None:
        """Nothing at or before ``time`` (ms) will come."""
        if self._told is None or time > self._told:
            (self._session or self._begin(time)).advance(time)
            self._told = time

    def close(self) -> None:
        """No more input; nothing further is due."""
        if self._session is not None:
            self._session.close()

    def abandon(self) -> None:
        """Release the session's resources without ending it."""
        # The engine's count goes with its session, so it is added up here.
        self._after_told, self._session = self.late, None

    def _begin(self, first: int) -> Session:
        moved = [self._moves(query.query, query.semantics, first) for query in self._asked]
        origin = [origins(one, query.query.windows, first)[0] for one, query in zip(moved, self._asked, strict=True)]
        self.begun = tuple(zip(moved, origin, strict=True))
        started = [_started(query, one, self._settled) for query, one in zip(self._asked, moved, strict=True)]
        self._emits = [emit for _, _, emit in started]
        self._session = start(self._engine, started, self._options)
        if (on_failure := getattr(self._session, "on_failure", None)) is not None:
            on_failure(self._failed)
        return self._session


def refuse_removal(element: StreamElement) -> None:
    """RefusedError for an element that removes triples, which windows do not define."""
    if element.removed:
        raise RefusedError(f"element {element.sequence} removes triples: over windows what leaves is what they say")


def profile_for(dialect: str, engine: Engine) -> str:
    """The name of the semantics for a query of a dialect: the dialect's, or the engine's first."""
    able: Sequence[str] | None = getattr(engine, "PROFILES", None)
    return dialect if able is None or dialect in able else able[0]


def moved(query: ContinuousQuery, semantics: Semantics, first: int) -> Semantics:
    """Begin where the stream does (``begun``), at its first element or advance (ms)."""
    return begun(query.windows, semantics, first)


def as_declared(query: ContinuousQuery, semantics: Semantics, first: int) -> Semantics:  # noqa: ARG001
    """Begin at the semantics' own t0."""
    return semantics


def restored(semantics: Semantics, t0: int, since: int | None) -> Semantics:
    """The semantics of a session that began before, at ``t0`` (ms)."""
    return replace(semantics, origin=Origin.FIXED, t0=t0, since=since)


def resumed(query: ContinuousQuery, semantics: Semantics, first: int) -> Semantics:
    """Begin where a session before did, or on its grid near the first item (ms) that it still needs."""
    return near(query.windows, semantics, first)


def start(engine: Engine, queries: Sequence[Started], options: Mapping[str, Any] | None = None) -> Session:
    """One session for all queries, shared where the engine can share; ``options`` are the engine's own."""
    arguments = dict(options or {})
    if len(queries) == 1:
        return engine.start(*queries[0], **arguments)
    together = getattr(engine, "start_all", None)
    if together is not None:
        return cast(Session, together(queries, **arguments))
    return _Several([engine.start(*query, **arguments) for query in queries])


def _started(query: SessionQuery, semantics: Semantics, settled: int | None) -> Started:
    """A query as the engine starts it; ``since`` is observed here where the beginning gave it, for any engine."""
    own = max((time for time in (query.semantics.since, settled) if time is not None), default=None)
    # The beginning did not move ``since``: the engine observes the declared one itself.
    if semantics.since == query.semantics.since:
        return query.query, replace(semantics, since=own), query.emit

    def emit(answer: Answer) -> None:
        if answer.instant is None or is_sent(answer.instant, semantics):
            query.emit(answer)

    return query.query, replace(semantics, since=own), emit


class _Several:
    """Several sessions as one: each gets every element."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._sessions = tuple(sessions)

    @property
    def late(self) -> int:
        # The same element is late in each of them: the maximum, not the sum.
        return max((int(getattr(session, "late", 0)) for session in self._sessions), default=0)

    def push(self, element: StreamElement) -> None:
        for session in self._sessions:
            session.push(element)

    def advance(self, time: int) -> None:
        for session in self._sessions:
            session.advance(time)

    def close(self) -> None:
        for session in self._sessions:
            session.close()
