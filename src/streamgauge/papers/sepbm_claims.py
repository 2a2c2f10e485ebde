"""SEP-BM's published values and claims, each beside what was measured here, and why some differ."""

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Final

from streamgauge.papers import sepbm_published as published
from streamgauge.papers.result import Line
from streamgauge.papers.sepbm_measured import CLOSED, Measured, mean_rate, mean_times
from streamgauge.report.numbers import NOTHING, number
from streamgauge.report.sepbm import fine
from streamgauge.suites.sepbm.analysis import SLOW, NotificationScore, score

NAIVE: Final = "reevaluate"
DIFFERS: Final = 2.0
"""By what a factor must be off the published one for a paragraph on it."""


def averages(measured: Measured) -> dict[str, float]:
    """The average notification time (ms) by strategy, over all notifications of all channels at once."""
    found = {}
    for name, outcome in measured.outcomes.items():
        part, _, strategy = name.partition("/")
        times = score(outcome.analysis)
        made = times.made or times.received
        if part == "together" and made is not None:
            found[strategy] = made.mean
    return found


def average_lines(measured: Measured) -> Iterator[Line]:
    """Average notification times: ours on today's machine, so only their order is compared."""
    ours = averages(measured)
    for strategy in (*published.AVERAGE_MS, *(name for name in ours if name not in published.AVERAGE_MS)):
        theirs = published.AVERAGE_MS.get(strategy)
        factor = ours[NAIVE] / ours[strategy] if NAIVE in ours and ours.get(strategy) else None
        faster = None if theirs is None else published.AVERAGE_MS[NAIVE] / theirs
        yield Line((
            strategy,
            NOTHING if theirs is None else fine(theirs), fine(ours[strategy]) if strategy in ours else NOTHING,
            NOTHING if faster is None else f"×{number(faster)}", NOTHING if factor is None else f"×{number(factor)}",
        ))  # fmt: skip


def throughput_lines(measured: Measured) -> Iterator[Line]:
    """The average throughput of the ten slow channels, each by itself, against the naive strategy's."""
    naive = mean_rate(measured.alone(NAIVE), SLOW)
    for strategy in (NAIVE, *published.FACTOR, "incremental"):
        ours = mean_rate(measured.alone(strategy), SLOW)
        factor = ours / naive if ours and naive else None
        theirs = published.FACTOR.get(strategy)
        yield Line((
            strategy, NOTHING if theirs is None else f"×{number(theirs)}",
            NOTHING if factor is None else f"×{number(factor)}",
            NOTHING if ours is None else f"{number(ours)} a second",
        ))  # fmt: skip


def count_lines(counts: Mapping[str, int]) -> Iterator[Line]:
    """Statements of the Extended Data Set."""
    for universities, theirs in published.STATEMENTS.items():
        yield _count(f"LUBM({universities}), explicit", theirs, counts.get(str(universities)))
    yield _count(f"LUBM({CLOSED}), with what follows", published.CLOSED, counts.get(f"{CLOSED} closed"))


def _count(what: str, theirs: str, ours: int | None) -> Line:
    return Line((what, theirs, NOTHING if ours is None else f"{ours:,}"), None if ours is None else _near(theirs, ours))


def _near(theirs: str, ours: int) -> bool:
    """Whether a count is the published one as far as that is rounded: to 0.1 million, or to 0.2%."""
    if theirs.endswith(" million"):
        return f"{ours / 1e6:.1f} million" == theirs
    return abs(ours / int(theirs.replace(",", "")) - 1) < 0.002


def claims(measured: Measured) -> Iterator[Line]:
    """What the paper says in words: whether it is so here. Claims without a measurement are left out."""
    ours = averages(measured)
    if {NAIVE, "stringrs", "graphss"} <= ours.keys():
        order = " > ".join(sorted(("reevaluate", "stringrs", "graphss"), key=lambda name: -ours[name]))
        yield Line(("average notification times", "reevaluate > stringrs > graphss", order),
                   ours[NAIVE] > ours["stringrs"] > ours["graphss"])  # fmt: skip
    naive = measured.alone(NAIVE)
    if len(naive) > len(SLOW):
        yield from _slow(mean_times(naive))
        yield _opposite(naive)
    string, graph = (mean_times(measured.alone(name)) for name in ("stringrs", "graphss"))
    channel = published.NOT_GUESSED
    if channel in string and channel in graph:
        said = f"{fine(string[channel])} and {fine(graph[channel])}"
        yield Line((f"{channel}: StringRS guesses, GraphSS cannot", "StringRS is faster", said),
                   string[channel] < graph[channel])  # fmt: skip
    yield from _grows(measured)


def _slow(times: Mapping[str, float]) -> Iterator[Line]:
    """The ten slow channels: all slower than the others, six of them the slowest."""
    slow = {name: time for name, time in times.items() if name in SLOW}
    others = {name: time for name, time in times.items() if name not in SLOW}
    if not slow or not others:
        return
    ours = f"{fine(min(slow.values()))} to {fine(max(slow.values()))}; the others {fine(max(others.values()))} at most"
    low, high = published.SLOW_MS
    theirs = f"{fine(low)} to {fine(high)}; the others very efficient"
    yield Line(("ten slow channels, alone", theirs, ours), min(slow.values()) > max(others.values()))
    ranked = _slowest(times)
    agrees = set(ranked) == set(published.SLOWEST)
    yield Line(("the six slowest", ", ".join(published.SLOWEST), ", ".join(ranked)), agrees)


def _slowest(times: Mapping[str, float]) -> list[str]:
    """The slowest channels, as many as the paper names, in order of their names."""
    return sorted(sorted(times, key=lambda name: -times[name])[: len(published.SLOWEST)])


def _opposite(scores: Mapping[str, NotificationScore]) -> Line:
    """Channels with short notification times have a high throughput (section 4.1)."""
    times = mean_times(scores)
    fast = [scores[name].throughput.rate for name in times if name not in SLOW]
    slow = [scores[name].throughput.rate for name in times if name in SLOW]
    said = f"{number(fmean(fast))} and {number(fmean(slow))} a second" if fast and slow else NOTHING
    agrees = bool(fast and slow) and fmean(fast) > fmean(slow)
    return Line(("throughput of the fast and the slow channels, alone", "higher for the fast ones", said), agrees)


def _grows(measured: Measured) -> Iterator[Line]:
    """Heuristics raise the throughput of the slow channels, GraphSS more than StringRS."""
    rates = {name: mean_rate(measured.alone(name), SLOW) for name in (NAIVE, *published.FACTOR)}
    naive, string, graph = rates.values()
    if naive and string and graph:
        said = f"×{number(string / naive)} and ×{number(graph / naive)}"
        claim = "throughput of the slow channels with StringRS and GraphSS"
        yield Line((claim, "×1.76 and ×5.9: both grow, GraphSS's more", said), naive < string < graph)


def differences(measured: Measured) -> Iterator[str]:
    """A paragraph on each published value that differs here, and why."""
    ours = averages(measured)
    if NAIVE in ours:
        yield _naive(ours[NAIVE])
        for strategy, theirs in published.AVERAGE_MS.items():
            if strategy != NAIVE and strategy in ours:
                yield from _faster(strategy, ours[NAIVE] / ours[strategy], published.AVERAGE_MS[NAIVE] / theirs)
    naive = mean_rate(measured.alone(NAIVE), SLOW)
    for strategy, factor in published.FACTOR.items():
        rate = mean_rate(measured.alone(strategy), SLOW)
        if naive and rate:
            yield from _more(strategy, rate / naive, factor)
    yield from _ranked(mean_times(measured.alone(NAIVE)))
    yield from _guessed(*(mean_times(measured.alone(name)) for name in ("stringrs", "graphss")))
    if "2" in measured.counts:
        yield _statements(measured.counts["2"])


def _naive(ours: float) -> str:
    theirs = published.AVERAGE_MS[NAIVE]
    return (
        f"Average notification time, {NAIVE}: {fine(ours)} here, {fine(theirs)} published (×{number(theirs / ours)}). "
        "The paper asked Sesame on a Core2 Duo of 2009, with 10 universities; here pyoxigraph is asked, with as many "
        "as the title says. The average weighs channels by their notifications, so it also depends on which resources "
        "are published, of which the paper says only that the queries' results describe them."
    )


def _faster(strategy: str, ours: float, theirs: float) -> Iterator[str]:
    if not 1 / DIFFERS < ours / theirs < DIFFERS:
        yield (
            f"Average notification time, {strategy}: ×{number(ours)} against {NAIVE} here, ×{number(theirs)} "
            "published. The heuristics are reconstructed: thresholds, what is remembered and the interval of "
            "evaluations are not published. Guesses for all channels come before any evaluation, and what cannot be "
            "guessed waits for the evaluations of the channels before it."
        )


def _more(strategy: str, ours: float, theirs: float) -> Iterator[str]:
    if not 1 / DIFFERS < ours / theirs < DIFFERS:
        yield (
            f"Throughput of the slow channels, {strategy}: ×{number(ours)} here, ×{number(theirs)} published. It "
            "depends on how long evaluations wait once 80% of the notifications were guessed, which is not published: "
            "10 s here, longer than a short sequence lasts. What waits is evaluated at the end, within the time that "
            "counts."
        )


def _ranked(times: Mapping[str, float]) -> Iterator[str]:
    ours, theirs = set(_slowest(times)), set(published.SLOWEST)
    if len(times) > len(SLOW) and ours != theirs:
        come, gone = ", ".join(sorted(ours - theirs)), ", ".join(sorted(theirs - ours))
        yield (
            f"Slow channels: {come} here in the place of {gone}. "
            "It depends on the store: pyoxigraph takes long to join many patterns, and little to give the rows of one "
            "or two, of which the paper's slow queries have the most. Fewer universities have fewer rows still."
        )


def _guessed(string: Mapping[str, float], graph: Mapping[str, float]) -> Iterator[str]:
    channel = published.NOT_GUESSED
    if channel in string and channel in graph and graph[channel] <= string[channel]:
        yield (
            f"{channel}: GraphSS is faster here ({fine(graph[channel])}) than StringRS ({fine(string[channel])}). The "
            "university, which a publication does not name, is the same in most rows where universities are few: a "
            "constant, and rows of constants our GraphSS guesses. With many it cannot; StringRS reads the university "
            "off the department's IRI."
        )


def _statements(ours: int) -> str:
    return (
        f"Statements of LUBM(2): {ours:,} here, {published.STATEMENTS[2]} published. Three are added for each person, "
        "as 57,366 = 3 x 19,120 + 6 suggests. The paper's count seems to have the ontology's and the documents' own "
        "statements too: its 230,531 for plain LUBM(2) is more than the 230,061 distinct ones that its generator "
        "writes."
    )
