"""The search of a capacity: exponential steps to a bracket, then bisection; and the score of one value, a probe.

A probe is a paced run, which is carried when it is right, in time, and fed on schedule.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.metrics import ADVANCE, percentile

DIGITS = 4
"""Significant digits of a value that is not whole: the same search asks for the same values again."""


class Harder(Enum):
    """Which way an axis gets harder for an engine."""

    GREATER = "greater"
    SMALLER = "smaller"


@dataclass(frozen=True, slots=True)
class SearchRange:
    """Where to look: ``start`` first, never outside ``least`` to ``most``, until the bracket is narrow.

    That is a relative width of ``precision``; ``whole`` values are integers, and neighbours end the search.
    """

    start: float
    least: float
    most: float
    harder: Harder = Harder.GREATER
    whole: bool = False
    precision: float = 0.05

    def __post_init__(self) -> None:
        """Refuse what cannot be searched."""
        if not 0 < self.least <= self.start <= self.most:
            raise ValueError(
                f"the search begins at {self.start:g}: that must be within {self.least:g} to {self.most:g}, above 0"
            )
        if not 0 < self.precision < 1:
            raise ValueError(f"precision is {self.precision:g}: it must be between 0 and 1")

    def step(self, value: float, harder: bool) -> float | None:
        """Twice as hard, or half as hard, as ``value``; ``None`` when that is the end of the reach."""
        greater = harder == (self.harder is Harder.GREATER)
        end = self.most if greater else self.least
        if value == end:
            return None
        stepped = self._rounded(value * 2 if greater else value / 2)
        return min(stepped, end) if greater else max(stepped, end)

    def between(self, one: float, other: float) -> float | None:
        """The geometric middle of a bracket; ``None`` when it is narrow enough."""
        low, high = sorted((one, other))
        if high / low <= 1 + self.precision:
            return None
        middle = self._rounded(math.sqrt(low * high))
        return middle if low < middle < high else None

    @property
    def fewest(self) -> int:
        """How many values a search that finds a border asks for at least: a bracket of two, and its bisection.

        A bracket of a factor of two is bisected until it is as narrow as ``precision``: 5% takes 4 bisections, as
        2 ** (1/16) is the first root below 1.05. Whole values may be neighbours before that.
        """
        if self.least == self.most:
            return 1
        return 2 if self.whole else 2 + max(0, math.ceil(math.log2(math.log(2) / math.log1p(self.precision))))

    def _rounded(self, value: float) -> float:
        return max(1.0, float(round(value))) if self.whole else float(f"{value:.{DIGITS}g}")


@dataclass(frozen=True, slots=True)
class Bracket:
    """The hardest value that passed and the easiest that did not, ``None`` where the reach had none."""

    passed: float | None
    failed: float | None


def search(passes: Callable[[float], bool], reach: SearchRange) -> Bracket:
    """The bracket around the border between what passes and what does not, asked as few times as that takes."""
    found = _bracket(passes, reach)
    passed, failed = found.passed, found.failed
    while passed is not None and failed is not None:
        middle = reach.between(passed, failed)
        if middle is None:
            break
        if passes(middle):
            passed = middle
        else:
            failed = middle
    return Bracket(passed, failed)


def _bracket(passes: Callable[[float], bool], reach: SearchRange) -> Bracket:
    """Steps of a factor of two from the start, harder while it passes, easier while it does not."""
    value: float | None = reach.start
    first = passes(reach.start)
    last = reach.start
    while (value := reach.step(last, harder=first)) is not None:
        if passes(value) != first:
            return Bracket(last, value) if first else Bracket(value, last)
        last = value
    return Bracket(last, None) if first else Bracket(None, last)


class Bound(StrEnum):
    """The reason why an engine failed at a load that it does not carry."""

    WRONG = "wrong windows"
    DELAY = "delay"
    FEEDER = "the feeder"
    FAILED = "the engine failed"
    UNKNOWN = "no verdict"
    SHORT = "stream too short"
    REFUSED = "not tried"

    @property
    def of_engine(self) -> bool:
        """Whether the engine itself failed by it; the others say nothing of how much more the engine carries."""
        return self in {Bound.WRONG, Bound.DELAY, Bound.FAILED}


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of a run: the 99th percentile of the delays in every window, and of the feeder's lateness (ms).

    A paced run that is shorter than ``lasting`` (wall ms) tells nothing: any engine can buffer it.
    """

    delay: float
    feeder: float
    lasting: int = 10_000


@dataclass(frozen=True, slots=True)
class LoadProbe:
    """The score of one value: triples a second of wall time, windows and right ones, delays and lateness in ms.

    ``slowest`` is the greatest 99th percentile of the delays within a window; ``bound`` is ``None`` when the value is
    carried, and ``reason`` says in a sentence why it is not.
    """

    value: float
    rate: float = 0.0
    windows: int = 0
    right: int = 0
    precision: float = 0.0
    recall: float = 0.0
    p50: float | None = None
    p99: float | None = None
    slowest: float | None = None
    feeder: float = 0.0
    bound: Bound | None = None
    reason: str = ""
    folders: tuple[Path, ...] = ()

    @property
    def carried(self) -> bool:
        """Whether every window was right, the delay bounded and the feeder on schedule."""
        return self.bound is None


Judged = tuple[Path, Run, Verdict]


def probed(value: float, runs: Sequence[Judged], limit: Limit) -> LoadProbe:
    """The score of a value from all of its runs: a value is carried when each of them is."""
    windows = [window for _, _, verdict in runs for window in verdict.windows]
    delays = [window.delay for window in windows if window.delay is not None]
    failed = (found for _, run, verdict in runs if (found := _failed(run, verdict, limit)) is not None)
    bound, reason = next(failed, (None, ""))
    return LoadProbe(
        value=value,
        rate=min(rate(run) for _, run, _ in runs),
        windows=len(windows),
        right=sum(window.right for window in windows),
        precision=min(verdict.precision for _, _, verdict in runs),
        recall=min(verdict.recall for _, _, verdict in runs),
        p50=percentile(delays, 50),
        p99=percentile(delays, 99),
        slowest=max((slowest(run.header.query, verdict.windows) for _, run, verdict in runs), default=0.0),
        feeder=max(feeder_p99(run) for _, run, _ in runs),
        bound=bound,
        reason=reason,
        folders=tuple(folder for folder, _, _ in runs),
    )


def _failed(run: Run, verdict: Verdict, limit: Limit) -> tuple[Bound, str] | None:
    """The bound that the run fails by, the gravest first: failure, no verdict, wrong windows, feeder, delay."""
    late, slow = feeder_p99(run), slowest(run.header.query, verdict.windows)
    wrong = sum(not window.right for window in verdict.windows)
    if run.header.failure is not None:
        return Bound.FAILED, run.header.failure
    if verdict.judgement is Judgement.UNKNOWN:
        return Bound.UNKNOWN, verdict.reason
    if wrong:
        return Bound.WRONG, f"{wrong:,} of {len(verdict.windows):,} windows or reports are wrong"
    if (lasted := lasting(run)) < limit.lasting:
        return Bound.SHORT, f"at this pace the stream lasts {lasted:,.0f} ms, {limit.lasting:,} are asked: lengthen it"
    if late > limit.feeder:
        return (
            Bound.FEEDER,
            f"the harness itself fed {late:,.0f} ms late (99th percentile), {limit.feeder:,.0f} allowed",
        )
    if slow > limit.delay:
        return Bound.DELAY, f"a window's answers came {slow:,.0f} ms late (99th percentile), {limit.delay:,.0f} allowed"
    return None


def slowest(query: ContinuousQuery, windows: Iterable[WindowVerdict]) -> float:
    """The greatest 99th percentile (ms) of the delays of the reports within a window's slide; 0 without any."""
    slide = min((each.window.slide for each in query.windows if each.window.kind != "count"), default=1)
    delays: dict[int, list[float]] = {}
    for window in windows:
        if window.delay is not None:
            delays.setdefault((window.instant or 0) // slide, []).append(window.delay)
    return max((percentile(values, 99) or 0.0 for values in delays.values()), default=0.0)


def feeder_p99(run: Run) -> float:
    """How late the feeder handed elements over, 99th percentile in ms."""
    late = [(fed.handed - fed.planned) / 1e6 for fed in run.fed if fed.sequence != ADVANCE]
    return percentile(late, 99) or 0.0


def lasting(run: Run) -> float:
    """How long the run's stream takes at its pace, wall ms."""
    return (run.header.advanced_to - run.header.begin) / (run.header.factor or 1.0)


def rate(run: Run) -> float:
    """Triples a second of wall time, as the pace plans it."""
    return sum(fed.size for fed in run.fed) * 1000 / max(1.0, lasting(run))
