"""Gracious mode: the window borders under which each wrong answer fits best (docs/judging.md; YABench's mode).

Borders near the declared ones are searched first: if a pair within the reach of a search fits exactly, no pair outside
it has a smaller shift. Three searches give the same borders. A monotone query is evaluated once, for its solutions and
the arrivals that each depends on (``lifetimes``), from which the fit of every pair of borders follows (``borders``);
one aggregate over all solutions works alike, by prefix sums. Any other query is evaluated for each pair of borders,
nearest first, within a budget.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isqrt
from typing import Final

from streamgauge.formats.windows import gathered_windows
from streamgauge.model.element import StreamElement
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.report import DueReport, View
from streamgauge.model.run import Run
from streamgauge.model.semantics import R2S, Counting
from streamgauge.model.terms import Row
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.expected.reports import definition, inspected
from streamgauge.oracle.judging.border_fits import BorderFit, Contents, FastSearch, fast_search
from streamgauge.oracle.judging.compare import overlap
from streamgauge.oracle.judging.lifetimes import NotMonotoneError
from streamgauge.oracle.judging.metrics import Unit, ratio
from streamgauge.oracle.judging.oracle import JudgingRules, Progress, RowScores
from streamgauge.oracle.worlds.restatement import computed_columns
from streamgauge.query.instants import uses_now
from streamgauge.semantics.arrivals import Head, arrivals
from streamgauge.semantics.definition import difference, operator, selected
from streamgauge.semantics.due import candidates
from streamgauge.semantics.evaluate import snapshot_under
from streamgauge.semantics.refusal import RefusedError

BUDGET = 20_000_000
"""Triples of all contents that are evaluated pair by pair in one run (docs/judging.md, Gracious mode)."""
NARROW: Final = (64, 8, 1)
"""Divisors of the slide: the reach of each search in turn, the narrowest first."""
_BY_VALUE: Final = "Gracious mode: borders fit by the values of computed numbers, whatever their datatypes are."
CONTENT_COST = 100
"""The fixed cost of evaluating a content, in triples."""


def refuse(query: ContinuousQuery, own: str | None) -> str | None:
    """Why gracious mode cannot search this query's borders, or ``None``; ``own`` is the evaluator of the engine."""
    if len(query.windows) != 1:
        return f"gracious mode moves the borders of one window: the query has {len(query.windows)}"
    if query.windows[0].window.kind == "count":
        return "gracious mode moves borders in time: a count-based window has none"
    # The engine would be asked about itself: who judges is never the evaluator that the engine runs on.
    if own == "definition":
        return "gracious mode asks the definition, which the engine itself runs on"
    if uses_now(query.form):
        return "gracious mode compares contents under other borders: NOW() has another answer for each of them"
    return None


def gracious(
    run: Run,
    elements: Sequence[StreamElement],
    verdict: Verdict,
    progress: Progress = lambda _done, _of: None,
    units: Callable[[int], Sequence[Unit]] | None = None,
    *,
    exact_datatypes: bool = False,
) -> Verdict:
    """The verdict with the borders that fit each answered window best, and the scores under them.

    The highest F1 wins, then the least total shift; start and end move independently over the elements' distinct times,
    at most one slide each way. Istream and Dstream compare with the instant before under its own best borders.
    ``units`` maps a t0 to reports beside answers (``RowScores``), by default those of the definition. Cautions name the
    windows that were not searched fully; under ``exact_datatypes`` one says that the search, unlike the verdict,
    compares numbers by value. Raises RefusedError for a query that ``refuse`` names.
    """
    if verdict.judgement is Judgement.UNKNOWN or verdict.t0 is None:
        return verdict
    if reason := refuse(run.header.query, run.header.evaluator):
        raise RefusedError(reason)
    if operator(run.header.query, run.header.semantics) is R2S.CHANGES:
        raise RefusedError(f"gracious mode compares bags: under {R2S.CHANGES} rows come and go in one answer")
    scored = (units or RowScores(run, definition(elements), JudgingRules()).units)(verdict.t0)
    search = _BorderSearch(run, elements, verdict.t0, BUDGET)
    fits = search.fits(scored, progress)
    windows = gathered_windows(map(_with, verdict.windows, scored, fits))
    by_value = (_BY_VALUE,) if exact_datatypes and computed_columns(run.header.query.form) else ()
    notes = (*by_value, *cautions(search.plain.near, search.plain.unsearched))
    return replace(verdict, windows=windows, cautions=(*verdict.cautions, *notes))


def ungracious(verdict: Verdict, reason: str) -> Verdict:
    """The ordinary verdict with a caution that says why no borders were searched."""
    return replace(verdict, cautions=(*verdict.cautions, f"No borders were sought: {reason}."))


def cautions(near: Sequence[int], unsearched: int) -> Iterator[str]:
    """Sentences on the windows searched only within ``near`` (ms), and on the number that were not searched."""
    if near:
        yield (
            f"Gracious mode: for {len(near):,} of the windows only borders up to {min(near):,} ms away "
            "were tried: the query is asked anew between each two, and there are too many."
        )
    if unsearched:
        yield (
            f"Gracious mode: for {unsearched:,} of the windows no borders were tried: their contents are too "
            "large to be asked again; take a prefix of the run."
        )


@dataclass(frozen=True, slots=True)
class FittedWindow:
    """The best borders of a window, ``None`` if none were tried.

    ``near`` is the distance (ms) of an incomplete search.
    """

    fit: BorderFit | None
    near: int | None


def fit_alone(
    run: Run, elements: Sequence[StreamElement], t0: int, unit: Unit, windows: int, narrow: int
) -> FittedWindow:
    """The search for one of ``windows`` windows under Rstream, within the slide divided by ``narrow`` (``NARROW``)."""
    search = _BorderSearch(run, elements, t0, BUDGET // windows, (narrow,))
    (fit,) = search.fits([unit], lambda _done, _of: None)
    return FittedWindow(fit, search.plain.near[0] if search.plain.near else None)


def _with(window: WindowVerdict, unit: Unit, fit: BorderFit | None) -> WindowVerdict:
    return window if fit is None or unit.report is None else fitted(window, unit.report.due.views[0], fit)


def fitted(window: WindowVerdict, view: View, fit: BorderFit) -> WindowVerdict:
    """The verdict on a window with its best borders, shifted back from content borders to those of the window."""
    borders = (view.start + fit.first - view.first, view.end + fit.last - view.last)
    return replace(window, borders=borders, fitted=(fit.precision, fit.recall))


class _BorderSearch:
    """The search through one run, in order of time.

    A difference is taken to the instant before under its best borders.
    """

    def __init__(
        self,
        run: Run,
        elements: Sequence[StreamElement],
        t0: int,
        budget: int,
        narrow: Sequence[int] = NARROW,
    ) -> None:
        self._run, self._t0, self._narrow = run, t0, narrow
        whole = Contents(run.header.query, run.header.semantics, elements, t0)
        self._contents = whole.within(run.header.query.windows[0].window.slide // narrow[-1])
        self._sends = operator(run.header.query, run.header.semantics)
        self.plain = _EveryPair(run, self._contents, budget)
        self._fast: list[tuple[int, FastSearch]] = []

    def fits(self, units: Sequence[Unit], progress: Progress) -> list[BorderFit | None]:
        """The best fit of each unit, ``None`` for a missed or surplus report and where nothing was searched."""
        answered = {unit.report.due: unit for unit in units if unit.report is not None and unit.answer is not None}
        wrong = [due.views[0] for due, unit in answered.items() if unit.both.missing or unit.both.surplus]
        self._begin(wrong)
        instants = self._instants() if wrong and self._sends is not R2S.RSTREAM else list(answered)
        fits: dict[DueReport, BorderFit] = {}
        before: View | None = None
        for done, instant in enumerate(instants, 1):
            view = instant.views[0]
            if instant in answered:
                fit = self._fit(answered[instant], view, before)
                if fit is not None:
                    fits[instant] = fit
                    view = self._contents.moved(view, fit.first, fit.last)
            before = view
            progress(done, len(instants))
        return [None if unit.report is None else fits.get(unit.report.due) for unit in units]

    def _begin(self, wrong: Sequence[View]) -> None:
        """Prepare the fast searches for these windows, the narrowest first, and the budget of the slow one."""
        query, semantics = self._run.header.query, self._run.header.semantics
        slide = query.windows[0].window.slide
        for narrow in self._narrow:
            contents = self._contents.within(slide // narrow)
            search = fast_search(query, semantics, contents, wrong)
            if search is not None:
                self._fast.append((contents.reach_ms, search))
        self.plain.share(len(wrong))

    def _instants(self) -> list[DueReport]:
        """The evaluated instants, including those at which nothing is sent, because differences refer to them."""
        query, semantics, until = self._run.header.query, self._run.header.semantics, self._run.header.advanced_to
        admitted = self._contents.admitted
        ranked = arrivals([Head.of(element) for element in admitted], query.windows, semantics.tick)
        look = inspected(admitted, query, semantics)
        # One content after the other: under content change all of them would not fit into memory.
        looked = ((due, look(due)) for due in candidates(ranked, query.windows, semantics, self._t0, until))
        return [due for due, _ in selected(looked, semantics)]

    def _fit(self, unit: Unit, view: View, before: View | None) -> BorderFit | None:
        """The fit of the narrowest search that is exact within its reach, else of the widest search."""
        if not unit.both.missing and not unit.both.surplus:
            return BorderFit(view.first, view.last, 1.0, 1.0)
        assert unit.answer is not None
        received = unit.answer.added
        previous = before if self._sends is not R2S.RSTREAM else None
        while self._fast:
            within, search = self._fast[0]
            try:
                fit = search.fit(view, received, previous)
            except NotMonotoneError:
                self._fast.clear()
                break
            if len(self._fast) == 1 or fit.is_settled(view, within):
                return fit
            # Dropped for the rest of the run, so that each narrower search is in vain at most once.
            self._fast.pop(0)
        return self.plain.fit(view, received, previous)


class _EveryPair:
    """Evaluates the query for each pair of borders, by ascending shift, within a budget."""

    def __init__(self, run: Run, contents: Contents, budget: int) -> None:
        query, semantics = run.header.query, run.header.semantics
        self._contents, self._computed = contents, computed_columns(query.form)
        self._snapshot = snapshot_under(query, semantics)
        self._sends, self._answers = operator(query, semantics), semantics.answers
        self._left = budget
        self._known: dict[tuple[int, int], Counter[Row]] = {}
        self.near: list[int] = []
        """How far (ms) borders were tried, of windows searched in part."""
        self.unsearched = 0

    def share(self, windows: int) -> None:
        """Spread the budget (triples) evenly over this many windows; what one leaves goes to the next ones."""
        self._windows = windows

    def fit(self, view: View, received: Sequence[Row], previous: View | None) -> BorderFit | None:
        """The best borders; ``None`` if the budget does not allow even the declared ones."""
        before = Counter[Row]() if previous is None else self.bag(previous)
        share = self._left // self._windows
        self._windows -= 1
        size = self._contents.size(view)
        if self._left < size + CONTENT_COST:
            self.unsearched += 1
            return None
        # Below every F1, so that the declared borders, which come first, win over others that fit no better.
        best, best_f1 = BorderFit(view.first, view.last, 0.0, 0.0), -1.0
        for first, last in self._pairs(view, max(1, share // (size + CONTENT_COST))):
            rows = difference(self._sends, before, self.bag(self._contents.moved(view, first, last)))
            common = overlap(rows, received, self._computed).common
            f1 = 2 * common / (len(rows) + len(received)) if rows or received else 1.0
            # Pairs come by ascending shift, so the first of equal fits stays.
            if f1 > best_f1:
                best_f1, scores = f1, (ratio(common, len(received), len(rows)), ratio(common, len(rows), len(received)))
                best = BorderFit(first, last, *scores)
            if f1 == 1.0:
                break
        return best

    def _pairs(self, view: View, number: int) -> list[tuple[int, int]]:
        """At most ``number`` pairs of first and last time (ms) by ascending total shift, from the nearest times."""
        firsts, lasts = (times.tolist() for times in self._contents.candidates(view))
        if len(firsts) * len(lasts) > number:
            # As many starts as ends, so that neither border is searched much further than the other.
            firsts, lasts = (
                sorted(sorted(times, key=lambda time: (abs(time - border), time))[: isqrt(number)])
                for times, border in ((firsts, view.first), (lasts, view.last))
            )
            away = (max(abs(time - view.first) for time in firsts), max(abs(time - view.last) for time in lasts))
            self.near.append(min(away))
        pairs = [(first, last) for first in firsts for last in lasts if first <= last]
        shift = {first: abs(first - view.first) for first in firsts}
        return sorted(pairs, key=lambda pair: (shift[pair[0]] + abs(pair[1] - view.last), shift[pair[0]], pair))

    def bag(self, view: View) -> Counter[Row]:
        """The rows of a content, cached by its ranks: different borders often contain the same arrivals."""
        key = self._contents.ranks(view)
        if key not in self._known:
            if len(self._known) > MAX_REMEMBERED:
                self._known.clear()
            inside = self._contents.inside(view)
            self._left -= sum(len(arrival.triples) for arrival in inside) + CONTENT_COST
            rows = self._snapshot.rows((inside,))
            self._known[key] = Counter(set(rows) if self._answers is Counting.SET else rows)
        return self._known[key]


MAX_REMEMBERED = 1_000
"""Size of the cache of bags; the same content lies between many pairs of borders."""
