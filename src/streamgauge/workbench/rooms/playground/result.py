"""The playground's answer to a state: elements, windows, contents and reports under A and B, and their differences.

``result`` is a pure function of a state, by the definition and never by an engine; it is bounded in time and memory.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Final, TypeAlias

from streamgauge.formats.bounds import SERVED
from streamgauge.incremental.budget import TooMuchError, gc_young
from streamgauge.model.element import StreamElement
from streamgauge.model.mistake import MistakeError
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import Semantics
from streamgauge.query import QueryError, detect, parse
from streamgauge.query.prologue import declared_prefixes
from streamgauge.query.text import check_bounds
from streamgauge.semantics.refusal import RefusedError
from streamgauge.servers.http.deadlines import DEADLINES
from streamgauge.servers.http.limits import refused_patterns
from streamgauge.workbench.rooms.playground.comparison import Again, ReportPair, compared
from streamgauge.workbench.rooms.playground.evaluation import PlaygroundEvaluation, RowMemory, evaluated, horizon_of
from streamgauge.workbench.rooms.playground.fields import semantics_of
from streamgauge.workbench.rooms.playground.join_size import SMALL, most_solutions
from streamgauge.workbench.rooms.playground.state import PlaygroundState, StateError
from streamgauge.workbench.rooms.playground.stream_text import (
    Names,
    StreamTextError,
    TypedStream,
    read_static,
    read_text,
)

SECONDS: Final = 8.0
"""CPU seconds that one answer may take."""
GROWTH: Final = 512 * 2**20
"""Bytes by which the process may grow meanwhile."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A mistake in a part of the state (``where``), at a line and column of its text, both from 1."""

    where: str
    sentence: str
    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class PlaygroundResult:
    """The results of a state; with ``troubles`` only as far as its parts can be read.

    ``pairs`` are the reports of A and B side by side, without a B those of A alone. ``t0`` etc. are in the evaluations.
    """

    state: PlaygroundState
    names: Names
    dialect: str = ""
    query: ContinuousQuery | None = None
    stream: TypedStream = field(default_factory=lambda: TypedStream(()))
    horizon: int = 0
    a: PlaygroundEvaluation | None = None
    b: PlaygroundEvaluation | None = None
    pairs: tuple[ReportPair, ...] = ()
    troubles: tuple[Trouble, ...] = ()


KEPT: Final = 4
"""Texts whose values, with the rows over their contents, are kept for the next change of a field."""


ComparedPair: TypeAlias = tuple[PlaygroundEvaluation, PlaygroundEvaluation, tuple[ReportPair, ...]]
"""Two evaluations with their reports side by side, which stay while only the drawing changes."""


@dataclass(frozen=True, slots=True)
class _ReadTexts:
    """A query with its stream as values, nothing for what could not be read; ``memory`` keeps rows over contents."""

    names: Names
    dialect: str = ""
    query: ContinuousQuery | None = None
    stream: TypedStream | None = None
    memory: RowMemory | None = None
    troubles: tuple[Trouble, ...] = ()
    comparisons: deque[ComparedPair] = field(default_factory=lambda: deque(maxlen=KEPT))


def result(state: PlaygroundState) -> PlaygroundResult:
    """The answer to a state; mistakes become its ``troubles`` and are not raised."""
    try:
        with gc_young(), DEADLINES.within(SECONDS, GROWTH):  # what an answer makes stays, and is not looked through
            return _result(state)
    except TooMuchError as error:
        sentence = f"{error}: take a shorter stream, smaller windows or a simpler query"
        return PlaygroundResult(state, Names({}), troubles=(Trouble("state", sentence),))
    except RecursionError:
        sentence = "the query is nested too deeply: write it flatter"
        return PlaygroundResult(state, Names({}), troubles=(Trouble("query", sentence),))


def _result(state: PlaygroundState) -> PlaygroundResult:
    troubles: list[Trouble] = []
    dialect = state.dialect
    # Only A without fields depends on the dialect: it then gets the semantics of the dialect's name.
    if not state.a and not dialect:
        with _noted(troubles, "query"):
            dialect = _detected(state.query)
    a, b = (_semantics(state, which, dialect, troubles) for which in "ab")
    # One reading of the stream for both sides; each then decides about lateness by itself.
    lateness = max((semantics.lateness or 0 for semantics in (a, b) if semantics), default=0) or None
    read = _texts(state.query, state.dialect, state.stream, state.syntax, state.static, lateness)
    stream = read.stream or TypedStream(())
    horizon = horizon_of(stream.elements, state.advance, stream.told)
    # The query's dialect may be detected twice, with the same mistake.
    troubles_ = tuple(dict.fromkeys((*read.troubles, *troubles)))
    result = PlaygroundResult(state, read.names, read.dialect, read.query, stream, horizon, troubles=troubles_)
    if troubles_ or read.query is None or read.memory is None:
        return result
    return _evaluated(result, read.query, read, read.memory, (a, b))


def _evaluated(
    result: PlaygroundResult,
    query: ContinuousQuery,
    read: _ReadTexts,
    memory: RowMemory,
    semantics: tuple[Semantics | None, Semantics | None],
) -> PlaygroundResult:
    again = partial(_again, query, result.stream.elements, result.horizon, memory)
    troubles: list[Trouble] = []
    a, b = (_side(which, chosen, again, troubles) for which, chosen in zip("ab", semantics, strict=True))
    pairs = _compared(read, a, b, again) if a is not None and b is not None else ()
    return replace(result, a=a, b=b, pairs=pairs, troubles=tuple(troubles))


def _compared(
    read: _ReadTexts, a: PlaygroundEvaluation, b: PlaygroundEvaluation, again: Again
) -> tuple[ReportPair, ...]:
    for one, other, pairs in tuple(read.comparisons):
        # By identity: evaluations are remembered (``RowMemory``), so an unchanged side is the same object.
        if one is a and other is b:
            return pairs
    read.comparisons.append((a, b, pairs := compared(a, b, again)))
    return pairs


def _side(which: str, chosen: Semantics | None, again: Again, troubles: list[Trouble]) -> PlaygroundEvaluation | None:
    """The evaluation under a semantics; ``None`` without one, and after a mistake."""
    with _noted(troubles, which):
        return None if chosen is None else again(chosen)
    return None


def _again(
    query: ContinuousQuery, elements: Sequence[StreamElement], horizon: int, memory: RowMemory, semantics: Semantics
) -> PlaygroundEvaluation:
    return evaluated(query, semantics, elements, horizon, memory)


def joins_widely(query: ContinuousQuery, elements: Sequence[StreamElement]) -> bool:
    """Whether the query's joins may be too large to be evaluated often."""
    triples = [*query.static, *(triple for element in elements for triple in element.added)]
    return most_solutions(query.form, triples) > SMALL


@lru_cache(maxsize=KEPT)
def _texts(query: str, dialect: str, stream: str, syntax: str, static: str, lateness: int | None) -> _ReadTexts:
    """The texts of a state as values; ``lateness`` (ms) is how far a stream's time may go back."""
    question = _question(query, dialect, static)
    if question.query is None:
        return question
    troubles, typed = list(question.troubles), None
    with _noted(troubles, "stream"):
        typed = read_text(stream, syntax, question.names, lateness)
    return replace(question, stream=typed, memory=None if typed is None else question.memory, troubles=tuple(troubles))


@lru_cache(maxsize=KEPT)
def _question(query: str, dialect: str, static: str) -> _ReadTexts:
    """A query with its static data; cached rows over its contents survive edits of the stream."""
    troubles: list[Trouble] = []
    read = None
    with _noted(troubles, "query"):
        dialect = dialect or _detected(query)
        read = _query(query, dialect)
    if read is None:
        return _ReadTexts(Names({}), troubles=tuple(troubles))
    names = Names(declared_prefixes(query), read.streams)
    with _noted(troubles, "static"):
        read = read.with_static(read_static(static, names))
    return _ReadTexts(names, dialect, read, None, RowMemory(read), tuple(troubles))


def _semantics(state: PlaygroundState, which: str, dialect: str, troubles: list[Trouble]) -> Semantics | None:
    """A semantics of the state; without an A that of the query's dialect, without a B none."""
    if which == "a" and not state.a:
        return semantics_of({"profile": dialect} if dialect else {})
    if which == "b" and state.b is None:
        return None
    with _noted(troubles, which):
        return state.semantics(which)
    return None


def _detected(text: str) -> str:
    check_bounds(text, SERVED)
    return detect(text)


def _query(text: str, dialect: str) -> ContinuousQuery:
    """The query of a text; QueryError, RefusedError."""
    check_bounds(text, SERVED)
    query = parse(text, dialect)
    if reason := refused_patterns(query.form):
        raise RefusedError(reason)
    return query


@contextmanager
def _noted(troubles: list[Trouble], where: str) -> Iterator[None]:
    """Add a mistake in a part of the state to its troubles."""
    try:
        yield
    except QueryError as error:
        troubles.append(Trouble(where, error.what, error.line, error.column))
    except StreamTextError as error:
        troubles.append(Trouble(where, str(error), error.line, error.column))
    except StateError as error:
        troubles.append(Trouble(error.where, str(error)))
    except MistakeError as error:
        troubles.append(Trouble(where, str(error)))
