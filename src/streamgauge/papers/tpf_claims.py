"""The paper's claims and hypotheses, each beside what was measured here."""

from collections.abc import Iterator
from statistics import fmean

from streamgauge.papers import tpf_plan as plan
from streamgauge.papers import tpf_published as published
from streamgauge.papers.result import Line
from streamgauge.papers.tpf_measured import Measured, growth, mean_later
from streamgauge.report.numbers import NOTHING, duration
from streamgauge.suites.crowds.scenario import CrowdOutcome

GROWS = 0.02
"""By how much of their mean iterations grow, each against the one before, to be called growing."""


NEAR = 0.2
"""How far a share may be from the published one, or from what is proportional, to agree with it."""

WITHOUT = ("streamer-no-cache", "streamer-prototype-off")


def claims(extent: plan.Extent, measured: Measured) -> Iterator[Line]:
    """A line for each claim; one that lacks what was to be measured says nothing."""
    for distinct in (False, True):
        yield from _servers(extent, measured, distinct)
    yield _clients(extent, measured)
    yield _settling(extent, measured)
    for other in WITHOUT:
        yield _cache(extent, measured, other)
    for other in WITHOUT:
        yield _proportional(extent, measured, other)
    yield _order(extent, measured)
    yield from _growth(extent, measured)


def _at_most_clients(extent: plan.Extent, measured: Measured, distinct: bool, *systems: str) -> list[CrowdOutcome]:
    """What systems gave at the largest number of clients at which all of them answered.

    What a system costs that says nothing is no evidence.
    """
    for clients in reversed(extent.distinct if distinct else extent.clients):
        found = [measured.of(plan.scaled(extent, system, clients, distinct=distinct)) for system in systems]
        if all(each is not None and each.answers for each in found):
            return [each for each in found if each is not None]
    return []


def _servers(extent: plan.Extent, measured: Measured, distinct: bool) -> Iterator[Line]:
    """Hypothesis 1."""
    word = "distinct" if distinct else "identical"
    own = _at_most_clients(extent, measured, distinct, "incremental")
    if own:
        ours = f"{own[0].server_percent:.2f}% at {own[0].scenario.clients} clients"
        claim = f"the fragments server's CPU, {word} queries"
        yield Line((claim, f"at most {published.SERVER_AT_MOST:g}%", ours), own[0].server_percent <= 1.0)
    for plan_of_clients in ("incremental", "streamer"):
        for other in plan.FOREIGN:
            found = _at_most_clients(extent, measured, distinct, plan_of_clients, other)
            if not found:
                continue
            times = found[1].server_percent / max(1e-9, found[0].server_percent)
            claim = (
                f"H1, {word}: {published.NAMES[plan_of_clients]} costs the server less than {published.NAMES[other]}"
            )
            ours = f"{times:.1f} times less at {found[0].scenario.clients} clients"
            yield Line((claim, f"more than {published.TIMES_LOWER:g} times", ours), times > published.TIMES_LOWER)


def _clients(extent: plan.Extent, measured: Measured) -> Line:
    """Hypothesis 2."""
    claim = "H2: a client of fragments needs more CPU than a client of C-SPARQL"
    found = _at_most_clients(extent, measured, False, "streamer", "csparql") or _at_most_clients(
        extent, measured, False, "incremental", "live-csparql"
    )
    if not found:
        return Line((claim, "about 5% against nearly none", NOTHING))
    fragments, windows = (each.client_percent for each in found)
    ours = f"{fragments:.2f}% against {windows:.3f}% of a core, a client, at {found[0].scenario.clients}"
    return Line((claim, "about 5% against nearly none", ours), fragments > windows)


def _settling(extent: plan.Extent, measured: Measured) -> Line:
    """Figure 2b's text: a peak in the beginning."""
    said = f"{published.PEAK:g}% at first, {published.SETTLED:g}% after {published.SETTLED_AFTER_S} s"
    claim = "clients cost more when they start than later"
    found = _at_most_clients(extent, measured, False, "streamer") or _at_most_clients(
        extent, measured, False, "incremental"
    )
    if not found:
        return Line((claim, said, NOTHING))
    percents = [percent for _, percent in found[0].clients]
    ends = found[0].scenario.spread
    later = [percent for at, percent in found[0].clients if at > 1.5 * ends] or percents[-1:]
    ours = f"all {found[0].scenario.clients}: {max(percents):.0f}% at most, {fmean(later):.0f}% when all have started"
    return Line((claim, said, ours), max(percents) > 2 * fmean(later))


def _cache(extent: plan.Extent, measured: Measured, other: str) -> Line:
    """What the cache saves of the same plan without it, or of the prototype's way of doing without."""
    claim = f"caching static data saves, of {published.NAMES[other]} (graphs, expiration)"
    said = f"{published.CACHE:.0%} of the time, of ideally {published.CACHE_IDEAL:.0%}"
    on, off = (
        mean_later(measured.of(plan.annotated(extent, "graphs", "expiration", system, "published")))
        for system in ("streamer", other)
    )
    if on is None or not off:
        return Line((claim, said, NOTHING))
    ours = f"{_signed(1 - on / off)}: {duration(on)} against {duration(off)}"
    return Line((claim, said, ours), abs(1 - on / off - published.CACHE) <= NEAR)


def _proportional(extent: plan.Extent, measured: Measured, other: str) -> Line:
    """Hypothesis 3, by 0 to 4 static patterns of five."""
    claim = f"H3: the time saved is proportional to the share of static patterns, of {published.NAMES[other]}"
    shares = []
    for count in range(5):
        on, off = (mean_later(measured.of(plan.with_static(extent, count, system))) for system in ("streamer", other))
        if on is not None and off:
            shares.append((count, 1 - on / off))
    said = "60% expected at 3 of 5, 56% measured"
    if len(shares) < 3:
        return Line((claim, said, NOTHING))
    ours = ", ".join(f"{_signed(share)} at {count} of 5" for count, share in shares)
    return Line((claim, said, ours), all(abs(share - count / 5) <= NEAR for count, share in shares))


def _signed(share: float) -> str:
    return f"{share:.0%}".replace("-", "\N{MINUS SIGN}")


def _order(extent: plan.Extent, measured: Measured) -> Line:
    claim = "graphs take the least time, then singleton properties, then implicit graphs (expiration, with cache)"
    found = {
        method: mean_later(measured.of(plan.annotated(extent, method, "expiration", "streamer", "published")))
        for method in plan.METHODS
    }
    times = [value for value in found.values() if value is not None]
    if len(times) < len(plan.METHODS):
        return Line((claim, "in this order", NOTHING))
    ours = ", ".join(f"{method} {duration(value)}" for method, value in found.items())
    return Line((claim, "in this order", ours), times == sorted(times))


def _growth(extent: plan.Extent, measured: Measured) -> Iterator[Line]:
    """Figure 4: intervals grow, expirations do not; and what keeping history in place makes of it."""
    cases = (
        ("interval", "streamer-prototype-off", "published", "grow", True),
        ("expiration", "streamer-prototype-off", "published", "constant", False),
        ("interval", "incremental", "kept", "(an open problem of the paper)", None),
    )
    for label, system, renewal, said, grows in cases:
        outcome = measured.of(plan.annotated(extent, "graphs", label, system, renewal))
        each = None if outcome is None else growth(outcome)
        if each is None:
            continue
        claim = f"iterations with {label} times, {published.NAMES[system]}, facts {renewal}"
        ours = f"{each:+.1%} from one to the next".replace("-", "\N{MINUS SIGN}")
        yield Line((claim, said, ours), None if grows is None else (each > GROWS) == grows)
