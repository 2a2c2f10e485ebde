"""Gracious mode: the window borders under which each wrong answer fits best (SEMANTICS, scores; YABench's mode)."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, View
from streamgauge.model.run import Run
from streamgauge.model.semantics import R2S, Counting
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.expected.reports import definition
from streamgauge.oracle.judging.compare import computed_columns, overlap
from streamgauge.oracle.judging.metrics import Unit, ratio
from streamgauge.oracle.judging.oracle import Progress, matched
from streamgauge.semantics.arrivals import Arrival, admit, arrived_triples, content
from streamgauge.semantics.definition import due_reports, facts, operator
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.refusal import RefusedError

LIMIT = 20_000_000
"""How many triples the contents that are tried may hold together before the search is refused."""


@dataclass(frozen=True, slots=True)
class BorderFit:
    """Content borders (first and last time, ms, inclusive), precision and recall of an answer under them."""

    first: int
    last: int
    precision: float
    recall: float


def refuse(query: ContinuousQuery, own: str | None) -> str | None:
    """Why gracious mode cannot search this query's borders, or ``None``; ``own`` is what the engine runs on."""
    if len(query.windows) != 1:
        return f"gracious mode moves the borders of one window: the query has {len(query.windows)}"
    if query.windows[0].window.kind == "count":
        return "gracious mode moves borders in time: a count-based window has none"
    if own == "definition":
        return "gracious mode asks the definition, which the engine itself runs on"
    return None


def gracious(
    run: Run, held: Sequence[StreamElement], verdict: Verdict, progress: Progress = lambda _done, _of: None
) -> Verdict:
    """The verdict with, for every answered window, the borders that fit its answer best and the scores under them.

    F1 decides, then the least total shift; start and end move independently over the elements' distinct times, at
    most one slide each way. Istream and Dstream compare with the instant before under its own best borders.
    RefusedError says what is too large or has no borders.
    """
    if verdict.judgement is Judgement.UNKNOWN or verdict.t0 is None:
        return verdict
    if reason := refuse(run.header.query, run.header.evaluator):
        raise RefusedError(reason)
    if operator(run.header.query, run.header.semantics) is R2S.CHANGES:
        raise RefusedError(f"gracious mode compares bags: under {R2S.CHANGES} rows come and go in one answer")
    search = _Search(run, held, verdict.t0)
    _, units = matched(run, definition(held), verdict.t0)
    fits = search.fits(units, progress)
    return replace(verdict, windows=tuple(map(_with, verdict.windows, units, fits)))


def _with(window: WindowVerdict, unit: Unit, fit: BorderFit | None) -> WindowVerdict:
    if fit is None or unit.report is None:
        return window
    view = unit.report.due.views[0]
    borders = (view.start + fit.first - view.first, view.end + fit.last - view.last)
    return replace(window, borders=borders, fitted=(fit.precision, fit.recall))


Known = dict[tuple[int, int, int], Counter[Row]]
"""Bags by which arrivals the content takes: (from, up to, seen)."""


class _Search:
    """The contents of one run's window between any two borders, answered and remembered."""

    def __init__(self, run: Run, held: Sequence[StreamElement], t0: int) -> None:
        query, semantics = run.header.query, run.header.semantics
        admitted, _late = admit(facts(held), semantics, query.windows, t0)
        self._arrived: list[Arrival] = arrived_triples(admitted, query.windows, semantics)
        self._all = [arrival.time for arrival in self._arrived]
        self._stream, self._slide = query.windows[0].stream, query.windows[0].window.slide
        self._times = sorted({one.time for one in self._arrived if one.stream == self._stream})
        self._snapshot = Snapshot(query, semantics.content, semantics.empty_aggregate)
        self._sends, self._answers = operator(query, semantics), semantics.answers
        self._computed = computed_columns(query.form)
        self._evaluated: list[DueReport] = []
        if self._sends is not R2S.RSTREAM:
            reports = due_reports(admitted, query, semantics, run.header.advanced_to, t0)
            self._evaluated = [due for due, _ in reports]
        self._left = LIMIT

    def fits(self, units: Sequence[Unit], progress: Progress) -> list[BorderFit | None]:
        """The best fit per unit, ``None`` where nothing was answered or nothing was due."""
        answered = {unit.report.due: unit for unit in units if unit.report is not None and unit.answer is not None}
        instants = self._evaluated or list(answered)
        found: dict[DueReport, BorderFit] = {}
        before: Counter[Row] = Counter()
        for done, due in enumerate(instants, 1):
            known: Known = {}
            view = due.views[0]
            if due in answered:
                found[due] = self._fit(answered[due], view, before, known)
                view = self._moved(view, found[due].first, found[due].last)
            if self._sends is not R2S.RSTREAM:
                before = self._bag(view, known)
            progress(done, len(instants))
        return [None if unit.report is None else found.get(unit.report.due) for unit in units]

    def _fit(self, unit: Unit, view: View, before: Counter[Row], known: Known) -> BorderFit:
        if not unit.both.missing and not unit.both.surplus:
            return BorderFit(view.first, view.last, 1.0, 1.0)
        said = unit.answer.added if unit.answer else ()
        best, most = BorderFit(view.first, view.last, 0.0, 0.0), -1.0
        for first, last in self._borders(view):
            rows = self._sent(self._bag(self._moved(view, first, last), known), before)
            common = overlap(rows, said, self._computed).common
            f1 = 2 * common / (len(rows) + len(said)) if rows or said else 1.0
            if f1 > most:
                most = f1
                best = BorderFit(first, last, ratio(common, len(said), len(rows)), ratio(common, len(rows), len(said)))
            if f1 == 1.0:
                break
        return best

    def _borders(self, view: View) -> list[tuple[int, int]]:
        """Every pair of first and last time, the least total shift first."""
        firsts, lasts = self._near(view.first), self._near(view.last)
        pairs = [(first, last) for first in firsts for last in lasts if first <= last]
        shift = {first: abs(first - view.first) for first in firsts}
        return sorted(pairs, key=lambda pair: (shift[pair[0]] + abs(pair[1] - view.last), shift[pair[0]], pair))

    def _near(self, border: int) -> list[int]:
        low, high = bisect_left(self._times, border - self._slide), bisect_right(self._times, border + self._slide)
        if (high - low) ** 2 > LIMIT:
            raise RefusedError(
                f"gracious mode: {high - low:,} distinct times within a slide ({self._slide:,} ms) of {border} ms are "
                "too many borders to try: take a smaller slide or a prefix of the stream"
            )
        return sorted({border, *self._times[low:high]})

    def _moved(self, view: View, first: int, last: int) -> View:
        """The view between other borders: one that ends later sees all up to there, one that starts earlier too."""
        seen = view.seen if last <= view.last else bisect_right(self._all, last)
        return replace(view, first=first, last=last, seen=seen, after=view.after if first >= view.first else 0)

    def _bag(self, view: View, known: Known) -> Counter[Row]:
        key = (bisect_left(self._all, view.first), bisect_right(self._all, view.last), view.seen)
        if key not in known:
            inside = content(self._arrived, self._all, self._stream, view)
            self._pay(sum(len(arrival.triples) for arrival in inside))
            rows = self._snapshot.rows((inside,))
            known[key] = Counter(set(rows) if self._answers is Counting.SET else rows)
        return known[key]

    def _pay(self, triples: int) -> None:
        self._left -= triples + 100
        if self._left < 0:
            raise RefusedError(
                f"gracious mode: the contents between the borders to try hold more than {LIMIT:,} triples: "
                "take a prefix of the run or a smaller window"
            )

    def _sent(self, now: Counter[Row], before: Counter[Row]) -> tuple[Row, ...]:
        if self._sends is R2S.RSTREAM:
            return tuple(now.elements())
        return tuple((now - before if self._sends is R2S.ISTREAM else before - now).elements())
