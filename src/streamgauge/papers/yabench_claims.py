"""What YABench's text says of its figures, beside what its own published files give."""

from collections.abc import Iterator
from statistics import fmean

from streamgauge.papers.result import Line, Table
from streamgauge.papers.yabench_files import Published, Results, percent_of

SAME, OTHER = "the files agree", "the files say otherwise"


def claims(results: Results) -> Table:
    """Every claim with the figure recomputed; they compare the paper with its files, so they count for neither side."""
    lines = tuple(Line((*claim[:3], SAME if claim[3] else OTHER)) for claim in _claims(results))
    return Table("The text and the files", ("claim", "text", "files", "outcome"), lines)


def _claims(results: Results) -> Iterator[tuple[str, str, str, bool]]:
    yield from _correct(results)
    yield from _late(results)
    yield from _memory(results)
    yield from _averages(results)
    yield from _bounds(results)


def _correct(results: Results) -> Iterator[tuple[str, str, str, bool]]:
    for load in ("small", "medium", "big"):
        found = results.lines(1, "cqels", load)
        shares = [share for lines in found.files.values() for line in lines for share in (line.precision, line.recall)]
        yield f"E1 {load}: precision and recall of CQELS", "100%", percent_of(shares), min(shares) == 1
    small = results.lines(1, "csparql", "small")
    below = [f"W{i + 1}" for i in range(small.windows) if min(small.column(lambda line: line.precision, i)) < 1]
    yield "E1 small: C-SPARQL's precision is 100% except in", "W3, W4", ", ".join(below), below == ["W3", "W4"]
    recall = small.medians(lambda line: line.recall)
    fits = min(recall) >= 0.97 and max(recall) <= 1
    yield "E1 small: C-SPARQL's recall", "97 to 100%", percent_of(recall), fits
    for load in ("medium", "big"):
        yield _spread(results.lines(1, "csparql", load), load)


def _spread(found: Published, load: str) -> tuple[str, str, str, bool]:
    """In which windows recall differs most between runs."""
    columns = [found.column(lambda line: line.recall, i) for i in range(found.windows)]
    widest = sorted(range(found.windows), key=lambda i: min(columns[i]) - max(columns[i]))[:2]
    told = ", ".join(f"W{i + 1} ({percent_of(columns[i])})" for i in sorted(widest))
    return f"E1 {load}: C-SPARQL's recall spreads most in", "W2, W3", told, sorted(widest) == [1, 2]


def _late(results: Results) -> Iterator[tuple[str, str, str, bool]]:
    cqels = results.lines(1, "cqels", "small").medians(lambda line: line.delay)
    told = f"{min(cqels):g} to {max(cqels):g} ms"
    yield "E1 small: CQELS's delay", "81.5 to 201.5 ms", told, told == "81.5 to 201.5 ms"
    found = results.lines(1, "csparql", "small")
    first, *rest = found.medians(lambda line: line.delay)
    told = f"{first:g}, then {min(rest):g} to {max(rest):g} ms"
    yield "E1 small: C-SPARQL's delay", "153.5, then 7 to 38 ms", told, told == "153.5, then 7 to 38 ms"
    least = min(line.delay for lines in found.files.values() for line in lines)
    yield "a delay can be negative", "yes", f"{least} ms", least < 0


def _memory(results: Results) -> Iterator[tuple[str, str, str, bool]]:
    for load, published in (("small", 123), ("medium", 250)):
        mean = fmean(results.memory(1, "csparql", load))
        yield f"E1 {load}: C-SPARQL's mean memory", f"{published} MB", f"{mean:.0f} MiB", round(mean) == published
    most = max(results.memory(1, "cqels", "medium"))
    yield "E1 medium: CQELS's memory levels off near", "1,100 MB", f"{most:,.0f} MiB at most", 1050 <= most <= 1150
    for engine, name, published in (("cqels", "CQELS", 1506), ("csparql", "C-SPARQL", 1288)):
        most = max(results.memory(1, engine, "big"))
        yield f"E1 big: {name}'s greatest memory", f"{published:,} MB", f"{most:,.0f} MiB", round(most) == published


def _averages(results: Results) -> Iterator[tuple[str, str, str, bool]]:
    small = results.lines(2, "cqels", "small").medians(lambda line: line.precision)
    told = ", ".join(f"{share * 100:.0f}" for share in small)
    fits = small[0] == 1 and not any(small[1:])
    yield "E2 small: CQELS's precision by window, %", "100, then 0", told, fits
    for engine, name in (("cqels", "CQELS"), ("csparql", "C-SPARQL")):
        medium = results.lines(2, engine, "medium").medians(lambda line: line.precision)
        yield f"E2 medium: precision of {name}", "0%", percent_of(medium), not any(medium)


def _bounds(results: Results) -> Iterator[tuple[str, str, str, bool]]:
    """Table 2's lower bound: the last window's end plus its delay; in the text only that small is about 30 s."""
    for load in ("small", "medium", "big"):
        found = results.lines(1, "cqels", load)
        last = found.windows - 1
        arrival = fmean(found.column(lambda line: line.end + line.delay, last)) / 1000
        said = "about 30 s" if load == "small" else "later than small"
        fits = 29.5 <= arrival <= 30.5 if load == "small" else arrival > 30.5
        yield f"table 2, E1 {load}: CQELS's last result, at least", said, f"{arrival:.1f} s", fits
