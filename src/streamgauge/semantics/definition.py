"""The definition: what an engine should have said, straight from SECRET and CQL; small, slow, obviously right."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, ExpectedReport
from streamgauge.model.semantics import R2S, Changes, Counting, Report, Semantics
from streamgauge.model.terms import Triple
from streamgauge.semantics.due import candidates
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.order import Arrival, admit, arrivals
from streamgauge.semantics.refusal import RefusedError
from streamgauge.semantics.stream import streamed


def expected(
    elements: Iterable[StreamElement], query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int
) -> tuple[ExpectedReport, ...]:
    """Every report that should have been sent up to ``advanced_to`` (ms) when the first window starts at ``t0``.

    Raises RefusedError for what the definition does not cover, OutOfOrderError for disorder without a bound.
    """
    refuse(query, semantics)
    counted, _late = admit(facts(elements), semantics, query.window, t0)
    arrived = arrivals(counted, semantics.tick)
    found = due_reports(arrived, query, semantics, advanced_to, t0)
    snapshot = Snapshot(query, semantics.content, semantics.empty_aggregate)
    sizes = {due: len(content) for due, content in found}
    evaluated = ((due, snapshot.rows(content)) for due, content in found)
    return tuple(
        ExpectedReport(due, snapshot.variables, rows, sizes[due])
        for due, rows in streamed(evaluated, operator(query, semantics), semantics)
    )


def refuse(query: ContinuousQuery, semantics: Semantics) -> None:
    """Raise RefusedError for several windows, and for an operator that the semantics' engine does not have."""
    if len(query.windows) != 1:
        raise RefusedError(f"the query has {len(query.windows)} windows: one window over one stream is judged so far")
    r2s = operator(query, semantics)
    if r2s not in semantics.r2s_able:
        able = ", ".join(sorted(semantics.r2s_able))
        raise RefusedError(
            f"{semantics.name} has no {r2s} (it has {able}): change the query's keyword or the semantics"
        )


def operator(query: ContinuousQuery, semantics: Semantics) -> R2S:
    """The R2S operator: the query's keyword wins, the semantics gives the default."""
    return query.r2s or semantics.r2s


def facts(elements: Iterable[StreamElement]) -> Iterator[StreamElement]:
    """The elements, refused by name when they carry what windows do not define yet: removals or an own validity."""
    for element in elements:
        if element.removed or element.until is not None:
            raise RefusedError(
                f"element {element.sequence} of {element.stream} removes triples or ends early: "
                "time-based windows take added triples only"
            )
        yield element


def due_reports(
    arrived: Sequence[Arrival], query: ContinuousQuery, semantics: Semantics, advanced_to: int, t0: int
) -> list[tuple[DueReport, tuple[Triple, ...]]]:
    """The due reports with their contents: candidates that satisfy the strategies about content."""
    times = [arrival.time for arrival in arrived]
    found: list[tuple[DueReport, tuple[Triple, ...]]] = []
    before: Counter[Triple] = Counter()
    for due in candidates(times, query.window, semantics, t0, advanced_to):
        triples = content(arrived, times, due, semantics.content)
        now = Counter(triples)
        if _reports(before, now, semantics):
            found.append((due, triples))
        before = now
    return found


def content(
    arrived: Sequence[Arrival], times: Sequence[int], due: DueReport, counting: Counting = Counting.SET
) -> tuple[Triple, ...]:
    """The window's content: triples of the arrivals in scope that were seen, each once when content is a set."""
    (view,) = due.views
    inside = arrived[bisect_left(times, view.first) : view.seen]
    triples = [triple for arrival in inside if arrival.time <= view.last for triple in arrival.triples]
    return tuple(triples if counting is Counting.BAG else dict.fromkeys(triples))


def _reports(before: Counter[Triple], now: Counter[Triple], semantics: Semantics) -> bool:
    if Report.NON_EMPTY in semantics.report and not now:
        return False
    if Report.CONTENT_CHANGE not in semantics.report:
        return True
    return bool(now - before) or (semantics.changes is Changes.BOTH and now != before)
