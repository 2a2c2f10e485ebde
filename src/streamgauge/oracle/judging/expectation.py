"""Expected answers of a stream and a query without a run."""

from collections.abc import Callable
from pathlib import Path

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import ExpectedReport
from streamgauge.model.semantics import Semantics
from streamgauge.oracle.judging.cuts import with_cuts
from streamgauge.oracle.judging.judge import Means, choose, expectation, other_stream
from streamgauge.semantics.definition import refuse
from streamgauge.semantics.order import origins
from streamgauge.semantics.origin import near
from streamgauge.semantics.refusal import RefusedError


def expected_reports(
    query: ContinuousQuery,
    semantics: Semantics,
    stream: Path,
    means: Means,
    *,
    windows: int | None = None,
    advance_to: int | None = None,
    t0: int | None = None,
    told: int | None = None,
    name: Callable[[int], None] = lambda _horizon: None,
) -> tuple[ExpectedReport, ...]:
    """The reports that are due on a stream table; ``windows`` closes as many windows, ``advance_to`` and ``t0`` in ms.

    Without either time comes as far as the last element, or as the stream's file ``told`` (ms); without ``t0`` the
    semantics' first candidate counts, which is near the first element (``near``). ``name`` hears how far that was (ms).
    """
    refuse(query, semantics)
    if reason := other_stream(stream, query):
        raise RefusedError(reason)
    evaluator = means.evaluator or choose(stream, query, semantics, None)
    expect, first, last = expectation(evaluator, stream, means)
    semantics = near(query.windows, semantics, first)
    origin = t0 if t0 is not None else origins(semantics, query.windows, first)[0]
    until = advance_to if advance_to is not None else last if told is None else max(last, told)
    if windows is not None:
        until = origin + _closes(query, semantics, windows)
    name(until)
    return with_cuts(expect)(query, semantics, until, origin)


def _closes(query: ContinuousQuery, semantics: Semantics, windows: int) -> int:
    """How long after t0 so many windows have closed, ms."""
    kinds = {each.window.kind for each in query.windows}
    if len(query.windows) > 1 or "count" in kinds:
        raise RefusedError("the number of windows says when time ends for one window in ms: say how far time comes")
    head = query.window.slide if semantics.partial_head else query.window.size
    return head + (windows - 1) * query.window.slide
