"""One probe of a capacity: a paced run scored by whether it was right, in time, and fed on schedule."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from streamgauge.model.query import ContinuousQuery
from streamgauge.model.run import Run
from streamgauge.model.verdict import Judgement, Verdict, WindowVerdict
from streamgauge.oracle.judging.clock import ADVANCE
from streamgauge.oracle.judging.metrics import percentile


class Bound(StrEnum):
    """What an engine failed by at a load that it does not carry."""

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
    """What a run must keep to: the 99th percentile of the delays in every window, and of the feeder's lateness (ms).

    A paced run that is shorter than ``lasting`` (wall ms) tells nothing: any engine can buffer it.
    """

    delay: float
    feeder: float
    lasting: int = 10_000


@dataclass(frozen=True, slots=True)
class Probe:
    """What one value gave: triples a second of wall time, windows and right ones, delays and lateness in ms.

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


def probed(value: float, runs: Sequence[Judged], limit: Limit) -> Probe:
    """The score of a value from all of its runs: a value is carried when each of them is."""
    windows = [window for _, _, verdict in runs for window in verdict.windows]
    delays = [window.delay for window in windows if window.delay is not None]
    failed = (found for _, run, verdict in runs if (found := _failed(run, verdict, limit)) is not None)
    bound, reason = next(failed, (None, ""))
    return Probe(
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
    """What the run fails by, the gravest first: its failure, no verdict, wrong windows, the feeder, the delay."""
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
