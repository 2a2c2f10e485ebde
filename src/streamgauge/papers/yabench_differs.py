"""Where figures measured here differ from the published ones by more than a stated factor, in sentences, and why."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from streamgauge.model.verdict import Judgement
from streamgauge.papers.rules.yabench_lines import Line
from streamgauge.papers.yabench_files import Published
from streamgauge.papers.yabench_published import NAMES
from streamgauge.papers.yabench_runs import Done
from streamgauge.report.numbers import duration, percent

POINTS = 0.05
"""Medians of precision or recall that differ by more are named (0.05: five points of 100)."""

FACTOR, LEAST_MS = 2.0, 50.0
"""Median delays that differ by a greater factor, and by more than so many ms, are named."""

MEMORY_FACTOR = 1.5
"""Greatest memories that differ by a greater factor are named."""

TORN = (
    "YABench's reader handed the first triple of each observation over together with the observation before it, which "
    "tore those on a border in two; here an observation is handed over whole."
)

RULE = (
    f"Named are medians of precision and recall that differ by more than {POINTS * 100:g} points, of the delay by more "
    f"than a factor of {FACTOR:g} and {LEAST_MS:g} ms, and greatest memories that differ by more than a factor of "
    f"{MEMORY_FACTOR:g}."
)


def ours(done: Done) -> Published:
    """The lines of the runs, as published ones are held."""
    return Published({f"{number}": list(kept.lines) for number, kept in enumerate(done.runs) if kept.lines})


def paragraph(done: Done, published: Published, memory: Sequence[float]) -> str:
    """What differs from the published files of the same load, and why; a sentence when nothing does."""
    mine = ours(done)
    name = f"{done.test.name}, {done.side.label} beside the published {NAMES[done.side.published]}"
    if not mine.files:
        reason = done.reason or next((kept.refused or kept.failure for kept in done.runs), "it gave no lines")
        return f"{name}: nothing to compare: {reason}."
    shares = [*_shares("precision", mine, published, lambda line: line.precision),
              *_shares("recall", mine, published, lambda line: line.recall)]  # fmt: skip
    late = [*_delays(mine, published)]
    more = [*_memory(done, memory)]
    if not (shares or late or more):
        return f"{name}: no figure differs by more than the stated factors."
    causes = [_why_shares(done)] * bool(shares) + [_why_delays(done)] * bool(late) + [_why_memory(done)] * bool(more)
    return f"{name}: {'; '.join([*shares, *late, *more])}. {' '.join(causes)}"


def _shares(what: str, mine: Published, theirs: Published, value: Callable[[Line], float]) -> Iterator[str]:
    pairs = zip(mine.medians(value), theirs.medians(value), strict=False)
    told = [
        f"W{number} {percent(own)} here, {percent(their)} published"
        for number, (own, their) in enumerate(pairs, 1)
        if abs(own - their) > POINTS
    ]
    if told:
        yield f"{what} differs in {', '.join(told)}"


def _delays(mine: Published, theirs: Published) -> Iterator[str]:
    own, their = (median(found.medians(lambda line: line.delay)) for found in (mine, theirs))
    low, high = sorted((max(1.0, own), max(1.0, their)))
    if high > FACTOR * low and high - low > LEAST_MS:
        yield f"the median delay of a window is {duration(own)} here, {duration(their)} published"


def greatest_memory(done: Done) -> float:
    """MiB, the median over the runs of each run's greatest; 0 without samples."""
    found = [max((value for _, value in kept.memory), default=0.0) for kept in done.runs]
    return median(found) if found else 0.0


def _memory(done: Done, published: Sequence[float]) -> Iterator[str]:
    own, their = greatest_memory(done), max(published, default=0.0)
    if own and their and max(own, their) > MEMORY_FACTOR * min(own, their):
        yield f"memory reaches {own:,.0f} MiB here, {their:,.0f} MiB published"


def _why_shares(done: Done) -> str:
    """Whether the answers are wrong by the engine's own semantics, or only by YABench's rules."""
    right = sum(kept.judgement in {Judgement.RIGHT, Judgement.LATE} for kept in done.runs)
    precision, recall = (percent(median(values)) for values in zip(
        *((kept.precision, kept.recall) for kept in done.runs), strict=True
    ))  # fmt: skip
    torn = f" {TORN}" if done.side.published == "csparql" and done.side.engine != "live" else ""
    if right == len(done.runs):
        return (
            f"Under {done.side.semantics}, by the clock that this names, every window of every run is right: YABench "
            f"goes by the stream's times, so which rows it misses depends on when triples arrived.{torn}"
        )
    return (
        f"Under {done.side.semantics} the common judge finds {right} of {len(done.runs)} runs right, with a precision "
        f"of {precision} and a recall of {recall} (medians): the answers are not those of its semantics either.{torn}"
    )


def _why_delays(done: Done) -> str:
    fed = max(kept.feeder for kept in done.runs)
    return (
        "Delays are of this machine, the published ones of a laptop of 2013, where the engine had its feeder in its "
        f"own process; here the harness fed at most {duration(fed)} late, which is part of the delay."
    )


def _why_memory(done: Done) -> str:
    if done.side.engine == "live":
        return "Memory is that of another program: live is no JVM and keeps a window as integers."
    return "Memory is the resident size of a JVM, which another version and another default heap choose differently."
