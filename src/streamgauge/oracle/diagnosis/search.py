"""The models of one run: what each says, over the candidates for t0, and whether the answers come out."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.semantics import R2S, Due, Grain, Report, Tick
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.description import DescriptionLength
from streamgauge.oracle.diagnosis.distance import distance
from streamgauge.oracle.diagnosis.explanation import ExplanationFit, FittingTask, fit
from streamgauge.oracle.diagnosis.faults import by_kind
from streamgauge.oracle.diagnosis.faulty import Simulator
from streamgauge.oracle.diagnosis.models import Case, Fault, Model, Said, Seen, Slip, Stream, Sway
from streamgauge.oracle.diagnosis.recorded import Recorded
from streamgauge.oracle.diagnosis.values import values_by_field
from streamgauge.semantics.definition import operator
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.order import first_close, origins
from streamgauge.semantics.refusal import RefusedError

Progress = Callable[[int, int], None]
"""Told (models tried, models to try)."""

REPORTS_LIMIT = 3_000
"""Reports that a model may have; models with more are not tried, a run with more is refused."""

NO_MEANING = (ValueError, SyntaxError)
"""The error of a combination that has no meaning, such as a bag under a property path."""

CLOSING = {Report.WINDOW_CLOSE, Report.NON_EMPTY}
"""Strategies under which the number of reports follows from the window alone, but for those without content."""

CLOSEST = 4
"""How many of the closest single faults are combined when nothing fits, to find the closest model."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A model under which every answer comes out (``fit``), or the closest one (``fit`` is ``None``)."""

    model: Model
    case: Case
    parts: tuple[Part, ...]
    fit: ExplanationFit | None
    distance: int
    bits: float


class Search:
    """The models of one run, and what they say."""

    def __init__(self, run: Run, elements: Iterable[StreamElement], open_ended: bool = False) -> None:
        """``open_ended``: reports after the last element may be missing, and more may come than the horizon allows."""
        header = run.header
        stream = Stream(elements)
        first = min(stream.elements, key=lambda element: element.sequence).time if stream.elements else None
        query, semantics = header.query, header.semantics
        self.variables = Snapshot(query).variables
        self.recorded = Recorded(run, self.variables, semantics.grain)
        self.open_end = max(stream.last, 0) if open_ended else None
        until = header.advanced_to
        if self.open_end is not None:
            longest = max((each.window.size for each in query.windows if each.window.kind != "count"), default=0)
            step = max((each.window.slide for each in query.windows if each.window.kind != "count"), default=1)
            until = max(until, stream.last + longest) + step * min(self.recorded.count, 50)
        candidates = origins(semantics, query.windows, first)
        self.base = Case(query, semantics, stream, until, candidates[0])
        self.simulator = Simulator(query, stream)
        self.evaluated = 0
        self.origins = self._distinct(candidates)
        seen = Seen(self.base, self.recorded, self.variables)
        kinds = values_by_field(seen) | by_kind(seen)
        self.length = DescriptionLength(kinds)
        every = [each for kind in kinds.values() for each in kind]
        faults = [each for each in every if isinstance(each, Fault)]
        self.faults = [each for each in faults if not each.fine]
        self.fine = [each for each in faults if each.fine]
        self.slips = [each for each in every if isinstance(each, Slip)]
        self.sways = [each for each in every if isinstance(each, Sway)]

    def _distinct(self, candidates: Sequence[int]) -> tuple[int, ...]:
        """The first and last of each stretch of candidates under which the windows hold the same."""

        def holds(t0: int) -> object:
            due = self.simulator.due(replace(self.base, t0=t0))
            return tuple((self._named(report.instant), tuple(map(self.simulator.number, held))) for report, held in due)

        stretches = [list(group) for _, group in groupby(candidates, key=holds)]
        return tuple(dict.fromkeys(t0 for stretch in stretches for t0 in (stretch[0], stretch[-1])))

    def _named(self, instant: int) -> int | None:
        """The instant as far as the recorded answers name theirs."""
        return instant if any(answer.instant is not None for answer in self.recorded.answers) else None

    def cases(self, faults: Sequence[Fault], origins: Sequence[int] | None = None) -> Iterator[Case]:
        """The declared case with these faults, once per t0 that is worth a try, or per given one."""
        tried = self.origins if origins is None else origins
        fixed = [fault for fault in faults if fault.t0 is not None]
        for t0 in tried[:1] if fixed else tried:
            case = replace(self.base, t0=t0)
            for fault in faults:
                case = fault.change(case)
            yield case

    def told(self, case: Case) -> tuple[Said, ...]:
        """The reports of a case; none when it has no meaning or too many reports."""
        if self._reports(case) > REPORTS_LIMIT:
            return ()
        try:
            return self.simulator.told(case)
        except NO_MEANING:
            return ()

    def _reports(self, case: Case) -> int:
        """At most how many reports may be due."""
        semantics, windows, stream = case.semantics, case.query.windows, case.stream
        span = max(0, case.advanced_to - case.t0)
        if Report.WINDOW_CLOSE in semantics.report:
            return sum(span // each.window.slide if each.window.kind != "count" else stream.triples for each in windows)
        if semantics.period is not None or semantics.tick is Tick.TIME:
            return span // (semantics.period or semantics.time_unit)
        return {Tick.TUPLE: stream.triples, Tick.ELEMENT: len(stream.elements)}.get(semantics.tick, len(stream.times))

    def key(self, case: Case, told: Sequence[Said]) -> object:
        """The key of a case's reports: equal keys explain the recorded answers equally."""
        return case.semantics.grain, tuple((self._named(said.instant), said.rows) for said in told)

    def comes_out(self, case: Case) -> bool:
        """Whether the case says exactly what was recorded; stops at the first answer that it does not say."""
        if self._reports(case) > REPORTS_LIMIT or not self._as_many(case):
            return False
        self.evaluated += 1
        try:
            return self._comes_out(case)
        except NO_MEANING:
            return False

    def _as_many(self, case: Case) -> bool:
        """Whether a window that closes so often may give as many answers as were recorded; told without evaluation."""
        semantics, windows = case.semantics, case.query.windows
        if semantics.grain is Grain.ROW or semantics.report - CLOSING or case.tellings or semantics.since is not None:
            return True
        if len(windows) != 1 or windows[0].window.kind != "time" or semantics.due is not Due.ALL:
            return True
        window = windows[0].window
        first = case.t0 + first_close(windows[0], semantics)
        closes = max(0, (case.advanced_to - first) // window.slide + 1)
        sent_always = semantics.notify_empty and Report.NON_EMPTY not in semantics.report and case.gate is None
        exact = sent_always and self.open_end is None
        return closes == self.recorded.count if exact else closes >= self.recorded.count

    def _comes_out(self, case: Case) -> bool:
        recorded, at = self.recorded.under(case.semantics.grain), 0
        for said in self.simulator.telling(case):
            after = recorded.take(said, at)
            if after is None:
                return at == recorded.count and self.open_end is not None and said.instant > self.open_end
            at = after
        return at == recorded.count

    def similar(self, case: Case, told: Sequence[Said]) -> bool:
        """Whether slips may lead from what was told to what was recorded: a quarter of the reports are the same.

        Necessary, but for slips at nearly every report; answers of a row each are not compared.
        """
        recorded = self.recorded.under(case.semantics.grain)
        if recorded.by_row:
            return True
        same = Counter(recorded.fingerprint(said.rows) for said in told) & recorded.fingerprints
        return 4 * same.total() >= min(len(told), recorded.count)

    def fit(self, case: Case, told: Sequence[Said], slips: Sequence[Slip]) -> ExplanationFit | None:
        """How the recorded answers come out of what was told, with these slips."""
        recorded = self.recorded.under(case.semantics.grain)
        return fit(FittingTask(told, recorded, slips, self.open_end))

    def swayed(self, case: Case, sway: Sway, slips: Sequence[Slip] = ()) -> tuple[ExplanationFit, int] | None:
        """How the recorded answers come out when reports may sway, with the number of reports said."""
        swaying = sway.sway(self.simulator, case)
        if swaying is None:
            return None
        recorded = self.recorded.under(case.semantics.grain)
        task = FittingTask(
            swaying.told, recorded, slips, self.open_end, swaying.emissions, swaying.start, swaying.choices
        )
        found = fit(task)
        return None if found is None or not found.swayed else (found, found.path[-1][0])

    def distance(self, case: Case, told: Sequence[Said]) -> int:
        """How many reports differ from the recorded ones."""
        return distance(told, self.recorded.under(case.semantics.grain), self.variables, self.open_end)


def refuse(run: Run, stream: Stream) -> None:
    """Raise RefusedError for a run that is too large to be diagnosed, or whose answers have rows that come and go."""
    triples = stream.triples
    if operator(run.header.query, run.header.semantics) is R2S.CHANGES:
        raise RefusedError(
            f"a diagnosis compares bags, and under {R2S.CHANGES} rows come and go in one answer: `check` names them"
        )
    if triples > TRIPLES_LIMIT or len(run.answers) > ANSWERS_LIMIT:
        raise RefusedError(
            f"the run has {triples:,} triples and {len(run.answers):,} answers: a diagnosis replays it under hundreds "
            f"of models and takes at most {TRIPLES_LIMIT:,} triples and {ANSWERS_LIMIT:,} answers; "
            "record a shorter run of the same engine"
        )


TRIPLES_LIMIT = 200_000
ANSWERS_LIMIT = 20_000
