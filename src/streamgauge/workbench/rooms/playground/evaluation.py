"""A query on a stream under a semantics, by the definition: candidates, contents, which are due, which are sent.

The reports are those of ``semantics.definition.expected``; beside them stand the candidates that send nothing, with the
reason. Contents that two semantics share are evaluated once (``RowMemory``).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final

from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport
from streamgauge.model.semantics import R2S, Origin, Report, Semantics
from streamgauge.model.terms import Row
from streamgauge.oracle.expected.reports import inspected
from streamgauge.oracle.judging.judge import first_time
from streamgauge.semantics.arrivals import Contents, Head, admit, arrivals, origins
from streamgauge.semantics.beginning import is_sent, near
from streamgauge.semantics.definition import Held, columns, facts, operator, refuse, selected, streamed
from streamgauge.semantics.due import candidates_in_order
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.refusal import RefusedError, StreamNameError
from streamgauge.semantics.static_data import with_matched_static

MOST_CANDIDATES: Final = 2_000
"""Instants that are drawn at most."""
MOST_HELD: Final = 400_000
"""Maximum arrivals in all contents together."""


MOST_KEPT: Final = 300_000
"""Rows and arrivals that are remembered for one query."""

EVALUATIONS: Final = 3
"""Evaluations of a query that are remembered: those of the side that stays when a field of the other changes."""


class Outcome(StrEnum):
    """The outcome of a candidate: an answer, or why there is none."""

    SENT = "sent"
    EMPTY_CONTENT = "the content is empty"
    SAME_CONTENT = "the content is what it was before"
    NO_ROWS = "the answer is empty, and empty answers are not sent"
    NO_CHANGES = "no row came or left that the operator sends, and empty answers are not sent"
    BEFORE = "it is before the subscriber came"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An instant at which a report may be due: the contents of the windows, the outcome, and the rows sent.

    ``rows`` is ``None`` if nothing is sent; ``solutions`` are the rows of the content, whether sent or not.
    """

    due: DueReport
    contents: Contents
    outcome: Outcome
    rows: tuple[Row, ...] | None = None
    solutions: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class PlaygroundEvaluation:
    """The evaluation of a query on a stream under a semantics, from ``t0`` to the ``horizon`` (ms).

    ``semantics`` is the ``declared`` one, with t0 moved near the first element if that is far away (``near``).
    ``late`` are the sequence numbers of late elements.
    """

    query: ContinuousQuery
    declared: Semantics
    semantics: Semantics
    t0: int
    horizon: int
    variables: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    late: tuple[int, ...]

    @property
    def reports(self) -> tuple[Candidate, ...]:
        """The candidates that sent an answer, in order."""
        return tuple(candidate for candidate in self.candidates if candidate.rows is not None)


class RowMemory:
    """The rows of one query over contents, each content evaluated once while it is one of the triples kept here.

    Most contents stay the same when a stream is edited. The last evaluations are remembered whole.
    """

    def __init__(self, query: ContinuousQuery) -> None:
        self._query = query
        self._snapshots: dict[object, Snapshot] = {}
        self._rows: dict[object, tuple[Contents, tuple[Row, ...]]] = {}
        self._size = 0
        self._evaluations: deque[tuple[Sequence[StreamElement], PlaygroundEvaluation]] = deque(maxlen=EVALUATIONS)

    def remembered(
        self, semantics: Semantics, elements: Sequence[StreamElement], horizon: int
    ) -> PlaygroundEvaluation | None:
        """An earlier evaluation under the same semantics, over the same elements up to the same horizon."""
        for over, evaluation in self._evaluations:
            # The list itself is the proof: an edited stream is read into another list.
            if over is elements and evaluation.horizon == horizon and evaluation.declared == semantics:
                return evaluation
        return None

    def remember(self, elements: Sequence[StreamElement], evaluation: PlaygroundEvaluation) -> PlaygroundEvaluation:
        """Keep an evaluation; it is returned."""
        self._evaluations.append((elements, evaluation))
        return evaluation

    def rows(self, contents: Contents, semantics: Semantics, instant: int) -> tuple[Row, ...]:
        """The answer over a content at an instant (ms), with the semantics' counting and value of empty aggregates."""
        way = (semantics.content, semantics.empty_aggregate, semantics.static_data)
        if way not in self._snapshots:
            self._snapshots[way] = Snapshot(with_matched_static(self._query, semantics), *way[:2])
        # By identity, which spares hashing the triples of all contents.
        content_key = tuple(
            tuple((element.time, *map(id, element.triples)) for element in inside) for inside in contents
        )
        snapshot = self._snapshots[way].at(instant)
        key = (way, snapshot.instant, content_key)
        kept = self._rows.get(key)
        if kept is not None:
            return kept[1]
        rows_ = snapshot.rows(contents)
        # All is forgotten at once, which costs one full evaluation, rather than kept in an order of use.
        if self._size > MOST_KEPT:
            self._rows, self._size = {}, 0
        self._rows[key] = contents, rows_  # the triples stay, so that no other has one of their ids
        self._size += sum(map(len, content_key)) + len(rows_)
        return rows_


def horizon_of(elements: Sequence[StreamElement], stated: int | None, told_by_stream: int | None) -> int:
    """How far time comes, ms: as stated, else the latest of the elements and of what the stream's text says."""
    if stated is not None:
        return stated
    return max((0, told_by_stream or 0, *(element.time for element in elements)))


def evaluated(
    query: ContinuousQuery, semantics: Semantics, elements: Sequence[StreamElement], horizon: int, memory: RowMemory
) -> PlaygroundEvaluation:
    """Evaluate the query under a semantics up to the horizon (ms).

    Raises RefusedError for combinations without meaning or too much to draw, OutOfOrderError for unbounded disorder.
    """
    if (known := memory.remembered(semantics, elements, horizon)) is not None:
        return known
    refuse(query, semantics)
    _refuse_other_streams(query, elements)
    first = first_time([element for element in elements if element.stream in query.streams])
    begun = near(query.windows, semantics, first)
    t0 = begun.t0 if begun.origin is Origin.SEARCH else origins(begun, query.windows, first)[0]
    counted, late = admit(facts(elements), begun, query.windows, t0)
    ranked = arrivals([Head.of(element) for element in counted], query.windows, begun.tick)
    # Lazily: a clock of 1 ms has billions of candidates.
    possible = tuple(islice(candidates_in_order(ranked, query.windows, begun, t0, horizon), MOST_CANDIDATES + 1))
    if len(possible) > MOST_CANDIDATES:
        raise RefusedError(
            f"more than {MOST_CANDIDATES:,} instants to look at under {semantics.name}: let time end earlier, take a "
            "larger slide, period or time unit, or fewer elements"
        )
    look = inspected(counted, query, begun)
    looked = [(report, look(report)) for report in possible]
    if sum(len(inside) for _, contents in looked for inside in contents) > MOST_HELD:
        raise RefusedError("the windows together hold too much to be drawn: take smaller windows or fewer elements")
    candidates = tuple(_candidates(query, begun, looked, memory))
    names = columns(Snapshot(query, begun.content, begun.empty_aggregate).variables, operator(query, begun))
    left_out = tuple(element.sequence for element in late)
    evaluation = PlaygroundEvaluation(query, semantics, begun, t0, horizon, names, candidates, left_out)
    return memory.remember(elements, evaluation)


def _refuse_other_streams(query: ContinuousQuery, elements: Sequence[StreamElement]) -> None:
    if elements and not any(element.stream in query.streams for element in elements):
        raise StreamNameError(map(_bracketed, query.streams), _bracketed(elements[0].stream))


def _bracketed(iri: str) -> str:
    return f"<{iri}>"


def _candidates(
    query: ContinuousQuery,
    semantics: Semantics,
    looked: Held,
    memory: RowMemory,
) -> Iterator[Candidate]:
    """All candidates with contents and outcomes; those that are due and sent are in order."""
    r2s = operator(query, semantics)
    due = selected(looked, semantics)
    # By the same functions as the definition; only the outcomes of the others are added here.
    evaluated_at = [(report, memory.rows(contents, semantics, report.instant)) for report, contents in due]
    sent = deque(streamed(evaluated_at, r2s, semantics))
    waiting = deque(evaluated_at)
    for report, contents in looked:
        # Due reports are a part of all candidates, in the same order: one pass over both queues tells which are which.
        if not waiting or waiting[0][0] is not report:
            empty = Report.NON_EMPTY in semantics.report and not any(contents)
            yield Candidate(report, contents, Outcome.EMPTY_CONTENT if empty else Outcome.SAME_CONTENT)
            continue
        _, solutions = waiting.popleft()
        if sent and sent[0][0] is report:
            yield Candidate(report, contents, Outcome.SENT, sent.popleft()[1], solutions)
        else:
            yield Candidate(report, contents, _silence(report, r2s, semantics), None, solutions)


def _silence(due_report: DueReport, r2s: R2S, semantics: Semantics) -> Outcome:
    """Why a report that is due sends nothing."""
    if not is_sent(due_report.instant, semantics):
        return Outcome.BEFORE
    return Outcome.NO_ROWS if r2s is R2S.RSTREAM else Outcome.NO_CHANGES
