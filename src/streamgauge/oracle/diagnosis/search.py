"""The models of one run: the reports of each over the candidates for t0, and whether they are the recorded answers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from math import log2
from typing import TypeAlias

from streamgauge.model.element import StreamElement
from streamgauge.model.run import Run
from streamgauge.model.semantics import (
    CQL,
    R2S,
    Borders,
    Changes,
    Counting,
    Due,
    EmptyAggregate,
    Grain,
    Report,
    Scope,
    Semantics,
    Tick,
)
from streamgauge.model.verdict import Part
from streamgauge.oracle.diagnosis.explanation import ExplanationFit, FittingTask, Recorded, distance, fit
from streamgauge.oracle.diagnosis.faults import by_kind
from streamgauge.oracle.diagnosis.faulty import Simulator
from streamgauge.oracle.diagnosis.models import Case, Fault, Model, ModelReport, Seen, Slip, Stream, Sway
from streamgauge.semantics.arrivals import first_close, origins
from streamgauge.semantics.definition import operator
from streamgauge.semantics.evaluate import Snapshot
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError

AnyPart: TypeAlias = Fault | Slip | Sway


class DescriptionLength:
    """Lengths of descriptions in bits, by which models are ranked (minimum description length; Rissanen 1978).

    A part names its kind of fault (log2 of the kinds possible in this run), its value (log2 of the values proposed)
    and, for a slip, where it happened and what was chosen there. A difference of n bits is odds of 2^n to 1.

    Worked example: 32 kinds are possible. A window of other RANGE, one of 16 proposed, needs 5 + 4 = 9 bits. Rows lost
    in four of 16 reports, each time one of four rows, need 5 + 1 bits for the kind and its two values, and for each of
    the four reports 4 bits (which report) + 2 (how many of four rows) + 2 (which one): 38. Borders that jitter, where
    32 moves would change an answer and four did, need 5 + 0 + 4 * 5 = 25 bits.
    """

    def __init__(self, kinds: Mapping[str, Sequence[AnyPart]]) -> None:
        possible = [kind for kind in kinds.values() if kind]
        # Kinds that are impossible in this run need no code of their own, so they make no description longer.
        self._kind = log2(max(1, len(possible)))
        self._value = {part: log2(len(parts)) for parts in possible for part in parts}

    def of_part(self, part: AnyPart) -> float:
        """The bits for a part's kind and value, and for values that it read from the answers (``Fault.choice``)."""
        return self._proposed(part) + (part.choice if isinstance(part, Fault) else 0.0)

    def _proposed(self, part: AnyPart) -> float:
        return self._kind + self._value[part]

    def of(self, model: Model, fit: ExplanationFit | None) -> float:
        """The bits for a model, including the places where it slipped or swayed."""
        bits = sum(map(self.of_part, model))
        if fit is not None:
            bits += sum(slip.bits(places) for slip, places in fit.slipped.items())
            bits += fit.swayed * log2(max(2, fit.choices))
        return bits

    def shortest(self, parts: Sequence[AnyPart]) -> float:
        """The length of the shortest of these parts, 0 without any."""
        return min(map(self.of_part, parts), default=0.0)

    def longest(self, parts: Sequence[AnyPart]) -> float:
        """The length of the longest of these parts, without places and choices; 0 without any."""
        return max(map(self._proposed, parts), default=0.0)


_SENTENCES = {
    "borders": "The borders of a window are {}.",
    "scope": "The scope of a report moves by {}.",
    "tick": "Content becomes visible by {}.",
    "due": "Of several windows that are due at one instant, {} reported.",
    "changes": "Content change counts {}.",
    "empty_aggregate": "An aggregate over nothing gives {}.",
    "content": "A window's content is a {}: repeated triples count accordingly.",
    "answers": "An answer is a {}: repeated rows count accordingly.",
    "grain": "An answer holds one {}.",
}
_ENUMS = {
    "borders": Borders,
    "scope": Scope,
    "tick": Tick,
    "due": Due,
    "changes": Changes,
    "empty_aggregate": EmptyAggregate,
    "content": Counting,
    "answers": Counting,
    "grain": Grain,
}
_FLAGS = {
    "partial_head": (
        "Nothing is reported before the first full window.",
        "Partial windows are reported before the first full one.",
    ),
    "notify_empty": ("An answer without rows is not sent.", "An answer without rows is sent too."),
}
"""The sentences for the values False and True."""
_DUE = {Due.ALL: "all are", Due.LAST: "only the last is"}
UNITS = (1, 10, 100, 1000)
"""Time units of engines that are tried (ms)."""
MAX_ORIGINS = 60
"""Starts of the first window that are tried beside the candidates."""


def values(seen: Seen) -> Iterator[Fault]:
    """A fault for each undeclared value of each field of the semantics."""
    semantics = seen.case.semantics
    by_rows = any(len(seen.recorded.rows(at)) > 1 for at in range(seen.recorded.count))
    for name, kind in _ENUMS.items():
        for value in kind:
            if value is Counting.UPDATES:  # another definition, of which the other fields are parts
                continue
            # An answer of several rows refutes the grain of single rows.
            if value is not getattr(semantics, name) and not (value is Grain.ROW and by_rows):
                text = _DUE[value] if isinstance(value, Due) else str(value)
                yield _field(name, value, _SENTENCES[name].format(text))
    for name, sentences in _FLAGS.items():
        other = not getattr(semantics, name)
        yield _field(name, other, sentences[other])
    yield from _operators(seen)
    yield from _strategies(semantics)
    for unit in UNITS:
        if unit != semantics.time_unit:
            yield _field("time_unit", unit, f"The engine's time unit is {unit} ms.")
    yield from _other_origins(seen)


def values_by_field(seen: Seen) -> dict[str, tuple[Fault, ...]]:
    """The faults of ``values`` by the field that they change."""
    faults: dict[str, list[Fault]] = {}
    for fault in values(seen):
        faults.setdefault(f"value of {fault.family}", []).append(fault)
    return {kind: tuple(faults) for kind, faults in faults.items()}


def _field(name: str, value: object, sentence: str) -> Fault:
    return Fault(Part(f"{name} = {value}", sentence), lambda case: case.under(**{name: value}), family=name)


def _operators(seen: Seen) -> Iterator[Fault]:
    declared = seen.case.query.r2s or seen.case.semantics.r2s
    for r2s in CQL:
        if r2s is not declared:
            part = Part(f"r2s = {r2s}", f"The engine streams {r2s}, not {declared}.")
            yield Fault(part, partial(_streaming, r2s=r2s), family="r2s")


def _streaming(case: Case, r2s: R2S) -> Case:
    return case.asking(replace(case.query, r2s=r2s)).under(r2s_able=frozenset(CQL))


def _strategies(semantics: Semantics) -> Iterator[Fault]:
    report = semantics.report
    if Report.NON_EMPTY in report:
        yield _report(report - {Report.NON_EMPTY}, "Windows without content are reported too.")
    else:
        yield _report(report | {Report.NON_EMPTY}, "Windows without content are not reported.")
    both = {Report.WINDOW_CLOSE, Report.CONTENT_CHANGE}
    rest = report - both
    if Report.WINDOW_CLOSE in report:
        yield _report(
            rest | {Report.CONTENT_CHANGE}, "The engine reports when the content changes, not when windows close."
        )
        yield _report(report | {Report.CONTENT_CHANGE}, "A closing window is reported only when its content changed.")
    elif Report.CONTENT_CHANGE in report:
        yield _report(
            rest | {Report.WINDOW_CLOSE}, "The engine reports when windows close, not when the content changes."
        )


def _report(report: frozenset[Report], sentence: str) -> Fault:
    name = " and ".join(sorted(report))
    return Fault(Part(f"report = {name}", sentence), lambda case: case.under(report=report), family="report")


def _other_origins(seen: Seen) -> Iterator[Fault]:
    """Starts of the first window under which some window has another content than under every candidate.

    Contents change only where a border passes an element, so the elements' times modulo the slide suffice. If answers
    name instants, which are closes, only their residues remain.
    """
    slides = [window.window.slide for window in seen.case.query.windows if window.window.kind == "time"]
    if not slides:
        return
    base, slide = seen.case.t0, min(slides)
    # A border at an element's time has it on one side, a border 1 ms later on the other.
    residues = {(time + after - base) % slide for time in seen.case.stream.times for after in (0, 1)}
    named = {at - base for i in range(seen.recorded.count) if (at := seen.recorded.instant(i)) is not None}
    if named:
        residues &= {at % slide for at in named} | {0}
    for residue in sorted(residues - {0})[:MAX_ORIGINS]:
        t0 = base + residue
        part = Part(f"t0 = {t0} ms", f"The first window starts at {t0} ms, which is not a candidate for t0.")
        yield Fault(part, partial(_beginning_at, t0=t0), t0, family="t0")


def _beginning_at(case: Case, t0: int) -> Case:
    return replace(case, t0=t0)


REPORTS_LIMIT = 3_000
"""Maximum number of reports of a model; models with more are not tried."""

NO_MEANING = (RefusedError, OutOfOrderError)
"""Errors of combinations that the definition refuses, such as a bag under GRAPH."""

CLOSING = {Report.WINDOW_CLOSE, Report.NON_EMPTY}
"""Strategies under which the number of reports follows from the window alone, up to empty contents."""

CLOSEST = 4
"""Number of the closest single faults that are paired if nothing fits, to find the closest model."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A model with its case and length: exact if ``distance`` is 0; ``fit`` is its explanation if it has slips."""

    model: Model
    case: Case
    parts: tuple[Part, ...]
    fit: ExplanationFit | None
    distance: int
    bits: float


class Search:
    """The models of one run: its faults by kind, and the simulation of each."""

    def __init__(self, run: Run, elements: Iterable[StreamElement], open_ended: bool = False) -> None:
        """``open_ended``: reports after the last element may be missing, or go on beyond the horizon."""
        header = run.header
        stream = Stream(elements)
        first = min(stream.elements, key=lambda element: element.sequence).time if stream.elements else None
        query, semantics = header.query, header.semantics
        self.variables = Snapshot(query).variables
        self.recorded = Recorded(run, self.variables, semantics.grain)
        self.open_end = max(stream.last, 0) if open_ended else None
        until = header.advanced_to
        if self.open_end is not None:
            longest = max((window.window.size for window in query.windows if window.window.kind != "count"), default=0)
            step = max((window.window.slide for window in query.windows if window.window.kind != "count"), default=1)
            # Beyond the last element, as the engine may have gone on for as many slides as it answered.
            until = max(until, stream.last + longest) + step * min(self.recorded.count, 50)
        candidates = origins(semantics, query.windows, first)
        self.base = Case(query, semantics, stream, until, candidates[0])
        self.simulator = Simulator(query, stream)
        self.evaluated = 0
        self.origins = self._distinct(candidates)
        self.seen = Seen(self.base, self.recorded, self.variables)
        kinds = values_by_field(self.seen) | by_kind(self.seen)
        self.length = DescriptionLength(kinds)
        every = [fault for kind in kinds.values() for fault in kind]
        faults = [fault for fault in every if isinstance(fault, Fault)]
        self.faults = [fault for fault in faults if not fault.fine]
        self.fine = [fault for fault in faults if fault.fine]
        self.slips = [slip for slip in every if isinstance(slip, Slip)]
        self.sways = [sway for sway in every if isinstance(sway, Sway)]

    def _distinct(self, candidates: Sequence[int]) -> tuple[int, ...]:
        """The first and last of each run of neighbouring candidates for t0 under which all contents are equal."""

        def holds(t0: int) -> object:
            due = self.simulator.due(replace(self.base, t0=t0))
            return tuple(
                (self._named(report.instant), tuple(map(self.simulator.number, contents))) for report, contents in due
            )

        # Hundreds of candidates mostly lead to a few different contents. Both ends of a stretch stay, as faults that
        # move borders tell them apart.
        stretches = [list(group) for _, group in groupby(candidates, key=holds)]
        return tuple(dict.fromkeys(t0 for stretch in stretches for t0 in (stretch[0], stretch[-1])))

    def _named(self, instant: int) -> int | None:
        """The instant, or ``None`` if no recorded answer names one, so that instants distinguish nothing."""
        return instant if any(answer.instant is not None for answer in self.recorded.answers) else None

    def cases(self, faults: Sequence[Fault], origins: Sequence[int] | None = None) -> Iterator[Case]:
        """The declared case with these faults, for each distinct t0 or for each of ``origins``."""
        tried = self.origins if origins is None else origins
        fixed = [fault for fault in faults if fault.t0 is not None]
        # A fault with its own t0 was derived for that one only.
        for t0 in tried[:1] if fixed else tried:
            case = replace(self.base, t0=t0)
            for fault in faults:
                case = fault.change(case)
            yield case

    def reports(self, case: Case) -> tuple[ModelReport, ...]:
        """The reports of a case; none if it is undefined or has too many."""
        if self._max_reports(case) > REPORTS_LIMIT:
            return ()
        try:
            return self.simulator.reports(case)
        except NO_MEANING:
            return ()

    def _max_reports(self, case: Case) -> int:
        """An upper bound of the number of due reports, without evaluation."""
        semantics, windows, stream = case.semantics, case.query.windows, case.stream
        span = max(0, case.advanced_to - case.t0)
        if Report.WINDOW_CLOSE in semantics.report:
            return sum(
                span // window.window.slide if window.window.kind != "count" else stream.triples for window in windows
            )
        if semantics.period is not None or semantics.tick is Tick.TIME:
            return span // (semantics.period or semantics.time_unit)
        # A bound is enough: it decides whether the case is evaluated at all.
        return {Tick.TUPLE: stream.triples, Tick.ELEMENT: len(stream.elements)}.get(semantics.tick, len(stream.times))

    def key(self, case: Case, reports: Sequence[ModelReport]) -> object:
        """A key that is equal for reports that explain the recorded answers equally."""
        return case.semantics.grain, tuple((self._named(report.instant), report.rows) for report in reports)

    def comes_out(self, case: Case) -> bool:
        """Whether the case gives exactly the recorded answers; stops at the first difference."""
        if self._max_reports(case) > REPORTS_LIMIT or not self._as_many(case):
            return False
        self.evaluated += 1
        try:
            return self._comes_out(case)
        except NO_MEANING:
            return False

    def _as_many(self, case: Case) -> bool:
        """Whether the number of closes allows the number of recorded answers; a filter that needs no evaluation."""
        semantics, windows = case.semantics, case.query.windows
        if (
            semantics.grain is Grain.ROW
            or semantics.report - CLOSING
            or case.report_rules
            or semantics.since is not None
        ):
            return True
        if len(windows) != 1 or windows[0].window.kind != "time" or semantics.due is not Due.ALL:
            return True
        window = windows[0].window
        first = case.t0 + first_close(windows[0], semantics)
        # Worked example: the first close at 10 s, slide 5 s, horizon 27 s: closes at 10, 15, 20 and 25 s, (27 - 10) //
        # 5 + 1.
        closes = max(0, (case.advanced_to - first) // window.slide + 1)
        sent_always = semantics.notify_empty and Report.NON_EMPTY not in semantics.report and case.gate is None
        exact = sent_always and self.open_end is None
        return closes == self.recorded.count if exact else closes >= self.recorded.count

    def _comes_out(self, case: Case) -> bool:
        recorded, at = self.recorded.under(case.semantics.grain), 0
        for report in self.simulator.reports_lazily(case):
            after = recorded.take(report, at)
            if after is None:
                # With an open end, a report after the last element may be missing, if all answers were explained
                # before it.
                return at == recorded.count and self.open_end is not None and report.instant > self.open_end
            at = after
        return at == recorded.count

    def similar(self, case: Case, reports: Sequence[ModelReport]) -> bool:
        """Whether at least a quarter of the reports are recorded answers; otherwise slips cannot explain them.

        A filter before the costly ``fit``, which is wrong only for slips at nearly every report. Row-grained answers
        always pass.
        """
        recorded = self.recorded.under(case.semantics.grain)
        if recorded.by_row:
            return True
        same = Counter(recorded.fingerprint(report.rows) for report in reports) & recorded.fingerprints
        return 4 * same.total() >= min(len(reports), recorded.count)

    def fit(self, case: Case, reports: Sequence[ModelReport], slips: Sequence[Slip]) -> ExplanationFit | None:
        """The explanation of the recorded answers by these reports and slips, if there is one."""
        recorded = self.recorded.under(case.semantics.grain)
        return fit(FittingTask(reports, recorded, slips, self.open_end))

    def swayed(self, case: Case, sway: Sway, slips: Sequence[Slip] = ()) -> tuple[ExplanationFit, int] | None:
        """The explanation with a sway, and the number of reports used; ``None`` without one that sways at all."""
        swaying = sway.sway(self.simulator, case)
        if swaying is None:
            return None
        recorded = self.recorded.under(case.semantics.grain)
        task = FittingTask(
            swaying.reports, recorded, slips, self.open_end, swaying.emissions, swaying.start, swaying.choices
        )
        fit_ = fit(task)
        return None if fit_ is None or not fit_.swayed else (fit_, fit_.path[-1][0])

    def distance(self, case: Case, reports: Sequence[ModelReport]) -> int:
        """The edit distance between the reports and the recorded answers."""
        return distance(reports, self.recorded.under(case.semantics.grain), self.variables, self.open_end)


def refuse(run: Run, stream: Stream) -> None:
    """Raise RefusedError for a run that is too large, or whose answers are updates or both added and removed rows."""
    triples = stream.triples
    if operator(run.header.query, run.header.semantics) is R2S.CHANGES:
        raise RefusedError(
            f"a diagnosis compares bags, and under {R2S.CHANGES} rows come and go in one answer: `check` names them"
        )
    if run.header.semantics.content is Counting.UPDATES:
        raise RefusedError(
            "a diagnosis tries other semantics, and updates share no field with them: `check` names them"
        )
    if triples > TRIPLES_LIMIT or len(run.answers) > ANSWERS_LIMIT:
        raise RefusedError(
            f"the run has {triples:,} triples and {len(run.answers):,} answers: a diagnosis replays it under hundreds "
            f"of models and takes at most {TRIPLES_LIMIT:,} triples and {ANSWERS_LIMIT:,} answers; "
            "record a shorter run of the same engine"
        )


TRIPLES_LIMIT = 200_000
ANSWERS_LIMIT = 20_000
