"""Two evaluations of one query on one stream: which reports appear, vanish or change, and why.

Reports are paired by their instant; of several at one instant those with equal rows first, in order.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import groupby, zip_longest
from typing import Final, TypeAlias

from streamgauge.model.phrases import counted
from streamgauge.model.query import ContinuousQuery
from streamgauge.model.semantics import R2S, Borders, Report, Semantics, Tick
from streamgauge.model.terms import Row
from streamgauge.report.numbers import scope_borders
from streamgauge.semantics.arrivals import Arrival
from streamgauge.semantics.definition import operator
from streamgauge.semantics.refusal import OutOfOrderError, RefusedError
from streamgauge.workbench.rooms.playground.evaluation import Candidate, PlaygroundEvaluation
from streamgauge.workbench.rooms.playground.fields import difference, differing, in_words


class ReportChange(StrEnum):
    """The fate of a report from A to B."""

    SAME = "same"
    APPEARS = "appears"
    VANISHES = "vanishes"
    CHANGES = "changes"


SIGNS: Final = {
    ReportChange.SAME: "=",
    ReportChange.APPEARS: "+",
    ReportChange.VANISHES: "\N{MINUS SIGN}",
    ReportChange.CHANGES: "≠",
}


@dataclass(frozen=True, slots=True)
class ReportPair:
    """A report of A, of B or of both at one instant (ms).

    ``field`` is the field of the semantics behind the difference, several joined by ``and``, empty where none is found;
    ``sides`` are the evaluations of a report that differs.
    """

    instant: int
    change: ReportChange
    a: Candidate | None
    b: Candidate | None
    field: str = ""
    sides: tuple[PlaygroundEvaluation, PlaygroundEvaluation] | None = None

    @property
    def why(self) -> str:
        """The sentence why A and B differ; found when it is read, as a page shows few of many differences."""
        return "" if self.sides is None else why(self, *self.sides)


Again: TypeAlias = Callable[[Semantics], PlaygroundEvaluation]
"""The evaluation of the same query and stream under another semantics."""


def bag(candidate: Candidate) -> frozenset[tuple[Row, int]]:
    """The rows of a report, with multiplicity."""
    return frozenset(Counter(candidate.rows or ()).items())


def paired(a: Sequence[Candidate], b: Sequence[Candidate]) -> Iterator[ReportPair]:
    """The reports of two evaluations side by side, by instant; nothing says why yet."""
    left, right = _by_instant(a), _by_instant(b)
    for instant in sorted({*left, *right}):
        yield from _at(instant, left.get(instant, []), right.get(instant, []))


def _by_instant(reports: Sequence[Candidate]) -> dict[int, list[Candidate]]:
    ordered = sorted(reports, key=lambda report: report.due.instant)
    return {instant: [*group] for instant, group in groupby(ordered, key=lambda report: report.due.instant)}


def _at(instant: int, a: list[Candidate], b: list[Candidate]) -> Iterator[ReportPair]:
    if len(a) == len(b) == 1:  # nearly always, and alignment costs ten times as much
        (one,), (other,) = a, b
        same = one.rows == other.rows or (len(one.rows or ()) == len(other.rows or ()) and bag(one) == bag(other))
        yield ReportPair(instant, ReportChange.SAME if same else ReportChange.CHANGES, one, other)
        return
    left, right = [*map(bag, a)], [*map(bag, b)]
    if left == right:
        yield from (ReportPair(instant, ReportChange.SAME, one, other) for one, other in zip(a, b, strict=True))
        return
    # Example: the rows of A are [1, 2], those of B are [2, 3]. The matcher deletes 1, keeps 2 and inserts 3: a report
    # that vanishes, one that stays, one that appears.
    for tag, a1, a2, b1, b2 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for one, other in zip_longest(a[a1:a2], b[b1:b2]):
            if one is None:
                yield ReportPair(instant, ReportChange.APPEARS, None, other)
            elif other is None:
                yield ReportPair(instant, ReportChange.VANISHES, one, None)
            else:
                change = ReportChange.SAME if tag == "equal" else ReportChange.CHANGES
                yield ReportPair(instant, change, one, other)


def compared(a: PlaygroundEvaluation, b: PlaygroundEvaluation, again: Again) -> tuple[ReportPair, ...]:
    """The reports side by side, each difference with the field behind it.

    ``again`` evaluates semantics between the two, where they differ in several fields: the field at whose change a
    report became that of B is named.
    """
    pairs = tuple(paired(a.reports, b.reports))
    if all(pair.change is ReportChange.SAME for pair in pairs):
        return pairs
    blamed = _blamed(a, b, pairs, again)
    return tuple(
        pair if pair.change is ReportChange.SAME else replace(pair, field=blamed.get(pair.instant, ""), sides=(a, b))
        for pair in pairs
    )


def steps(a: Semantics, b: Semantics) -> list[tuple[tuple[str, ...], Semantics]]:
    """The steps from A to B, one field at a time; fields that depend on each other change together."""
    way: list[tuple[tuple[str, ...], Semantics]] = []
    at, waiting = a, tuple[str, ...]()
    for name in differing(a, b):
        for names in ((name,), (*waiting, name)):
            try:
                at = replace(at, **{name: getattr(b, name) for name in names})
            # Semantics refuses some combinations, such as a period without the strategy that needs it: tried again
            # together.
            except ValueError:
                continue
            way.append((names, at))
            waiting = tuple(name for name in waiting if name not in names)
            break
        else:
            waiting = (*waiting, name)
    return way


def _blamed(
    a: PlaygroundEvaluation, b: PlaygroundEvaluation, pairs: Sequence[ReportPair], again: Again
) -> dict[int, str]:
    """For each instant the field whose step last changed its reports from A to B; several joined by ``and``."""
    way = steps(a.declared, b.declared)
    if len(way) == 1:  # the pairs of A and B are those of the only step
        return dict.fromkeys(_changed(pairs), " and ".join(way[0][0]))
    causes: dict[int, str] = {}
    before = a
    for names, semantics in way:
        try:
            # The last step is B, which is evaluated already.
            now = b if semantics == b.declared else again(semantics)
        except (RefusedError, OutOfOrderError):
            return {}
        changed = _changed(paired(before.reports, now.reports))
        # A later step overwrites an earlier one: what matters is when a report became the one of B.
        causes.update(dict.fromkeys(changed, " and ".join(names)))
        before = now
    return causes


def _changed(pairs: Iterable[ReportPair]) -> Iterator[int]:
    return (pair.instant for pair in pairs if pair.change is not ReportChange.SAME)


def why(pair: ReportPair, a: PlaygroundEvaluation, b: PlaygroundEvaluation) -> str:
    """The sentence why two evaluations differ in a report."""
    match pair.change:
        case ReportChange.APPEARS:
            return f"Under A {_absence(pair.instant, a)}."
        case ReportChange.VANISHES:
            return f"Under B {_absence(pair.instant, b)}."
    assert pair.a is not None
    assert pair.b is not None
    reasons = [_contents_differ(pair.a, pair.b, a, b)] if _by_content(pair.a, pair.b) else []
    reasons += _by_operator(pair, a, b)
    return " ".join(filter(None, reasons)) or _operators_differ(a.query, a.semantics, b.semantics)


def _by_content(one: Candidate, other: Candidate) -> bool:
    """Whether a row that one side alone sends is not a solution over the other's content."""
    return any(
        row not in there.solutions
        for own, there in ((one, other), (other, one))
        for row in Counter(own.rows or ()) - Counter(there.rows or ())
    )


def _by_operator(pair: ReportPair, a: PlaygroundEvaluation, b: PlaygroundEvaluation) -> Iterator[str]:
    """Rows that both contents give and one side alone sends: its operator sends other rows."""
    assert pair.a is not None
    assert pair.b is not None
    for label, own, there, side in (("B", pair.a, pair.b, b), ("A", pair.b, pair.a, a)):
        sent = Counter(there.rows or ())
        silent = [row for row in dict.fromkeys(own.rows or ()) if not sent[row] and row in there.solutions]
        if silent:
            rows = counted(len(silent), "row")
            kept = operator(side.query, side.semantics)
            yield f"{label}'s content gives {rows} of these too, but {label} sends {_SENT[kept]}."


def _absence(instant: int, there: PlaygroundEvaluation) -> str:
    """Why an evaluation sends nothing more at an instant."""
    silent = [
        candidate for candidate in there.candidates if candidate.due.instant == instant and candidate.rows is None
    ]
    if silent:
        return f"{silent[0].outcome} at {instant:,} ms"
    if any(candidate.due.instant == instant for candidate in there.candidates):
        return f"there are fewer reports at {instant:,} ms"
    if instant < there.t0:
        return f"{instant:,} ms is before t0 = {there.t0:,} ms"
    if not there.semantics.partial_head and instant < there.t0 + _shortest(there.query):
        return f"no full window has come by {instant:,} ms, and partial head windows do not report"
    return f"no report may be due at {instant:,} ms: {_idle(there.semantics)}"


def _idle(semantics: Semantics) -> str:
    """Why the content is not evaluated at an instant that is not a candidate."""
    if Report.EXPIRATION in semantics.report:
        return "nothing that was held ends then"
    if Report.WINDOW_CLOSE in semantics.report:
        both = " at the end of a period" if Report.PERIODIC in semantics.report else ""
        return f"no window closes then{both}"
    if Report.PERIODIC in semantics.report:
        return "no period ends then"
    return "the clock does not tick then" if semantics.tick is Tick.TIME else "no element makes it look then"


def _shortest(query: ContinuousQuery) -> int:
    """How long the shortest window measured in time is, ms; 0 where there is none."""
    return min((window.window.size for window in query.windows if window.window.kind == "time"), default=0)


def _contents_differ(one: Candidate, other: Candidate, a: PlaygroundEvaluation, b: PlaygroundEvaluation) -> str:
    """The differences between two contents; empty if they are equal."""
    parts: list[str] = []
    for number, (left, right) in enumerate(zip(one.contents, other.contents, strict=True)):
        ours, theirs = map(_held, _unlike(left, right))
        for more, label, scope, evaluation, lacking in (
            (ours - theirs, "A", one, a, "B"),
            (theirs - ours, "B", other, b, "A"),
        ):
            if more:
                parts.append(
                    f"{label}'s window {_scope(scope, number, evaluation)} holds {_times(more)}, {lacking}'s does not"
                )
    return ("; ".join(parts) + ".") if parts else ""


def _unlike(left: Sequence[Arrival], right: Sequence[Arrival]) -> tuple[Sequence[Arrival], Sequence[Arrival]]:
    """Two contents without their common beginning and common end."""
    # Contents of neighbouring windows mostly agree. Only what lies between the common beginning and the common end is
    # counted.
    short = min(len(left), len(right))
    begin = next((at for at in range(short) if left[at] != right[at]), short)
    end = next((at for at in range(short - begin) if left[-1 - at] != right[-1 - at]), short - begin)
    return left[begin : len(left) - end], right[begin : len(right) - end]


def _held(inside: Sequence[Arrival]) -> Counter[tuple[int, object]]:
    return Counter((arrival.time, triple) for arrival in inside for triple in arrival.triples)


_NAMED: Final = 3


def _times(triples: Counter[tuple[int, object]]) -> str:
    """The times of some arrivals in words."""
    times = sorted({time for time, _ in triples})
    named = ", ".join(f"{time:,}" for time in times[:_NAMED])
    more = f" and {len(times) - _NAMED:,} more times" if len(times) > _NAMED else ""
    return f"the triples of {named} ms{more}"


def _scope(candidate: Candidate, number: int, evaluation: PlaygroundEvaluation) -> str:
    view = candidate.due.views[number]
    return interval(view.start, view.end, scope_borders(evaluation.query, evaluation.semantics))


def interval(start: int, end: int, borders: Borders) -> str:
    """A scope with its borders, ms."""
    opening, closing = borders[0], borders[-1]
    return f"{opening}{start:,}, {end:,}{closing}"


def _operators_differ(query: ContinuousQuery, one: Semantics, other: Semantics) -> str:
    """Why rows differ over the same content."""
    before, after = operator(query, one), operator(query, other)
    if before is not after:
        return f"The content is the same; A sends {_SENT[before]}, B {_SENT[after]}."
    if before is not R2S.RSTREAM:
        return f"The content is the same, but {before} is the difference to the report before, which differs."
    names = ("content", "answers", "empty_aggregate")
    parts = [
        f"{name} is {in_words(getattr(other, name))}" for name in names if getattr(one, name) != getattr(other, name)
    ]
    return (
        f"The content is the same, but under B {' and '.join(parts)}."
        if parts
        else "The same content gives other rows."
    )


_SENT: Final = {
    R2S.RSTREAM: "all rows",
    R2S.ISTREAM: "rows that are new",
    R2S.DSTREAM: "rows that are gone",
    R2S.CHANGES: "rows that came and rows that left",
}


def sentences(a: Semantics, b: Semantics) -> tuple[str, ...]:
    """A sentence for each field in which A and B differ."""
    return tuple(difference(name, a, b) for name in differing(a, b))


def summary(pairs: Sequence[ReportPair]) -> str:
    """How many reports appear, vanish, change and stay, in a sentence."""
    counts = Counter(pair.change for pair in pairs)
    if counts[ReportChange.SAME] == len(pairs):
        return f"A and B give the same {len(pairs):,} reports." if pairs else "Neither A nor B gives a report."
    words = {
        ReportChange.APPEARS: ("appears", "appear"),
        ReportChange.VANISHES: ("vanishes", "vanish"),
        ReportChange.CHANGES: ("changes", "change"),
        ReportChange.SAME: ("stays", "stay"),
    }
    parts = [
        f"{counts[change]:,} {one if counts[change] == 1 else plural}"
        for change, (one, plural) in words.items()
        if counts[change]
    ]
    return f"From A to B, of {len(pairs):,} reports " + ", ".join(parts) + "."
