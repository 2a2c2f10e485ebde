"""Thins long series for plotting: at most so many bins, each with its lowest, median and highest value."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple


class Point(NamedTuple):
    """One observation: where, how much, and the words of its tooltip."""

    x: float
    y: float
    tip: str


class Bin(NamedTuple):
    """All observations at one place (or in one stretch) of the x axis."""

    x: float
    low: float
    middle: float
    high: float
    values: int
    tip: str


def bins(points: Sequence[Point], limit: int, show: Callable[[float], str]) -> list[Bin]:
    """At most ``limit`` bins: one per distinct x while these fit, else equal stretches of the x axis.

    ``show`` writes a y value in the tooltip of a bin that holds several observations.
    """
    places: dict[float, list[Point]] = {}
    for point in points:
        places.setdefault(point.x, []).append(point)
    if len(places) > limit:
        places = _stretches(points, limit)
    return [_bin(places[x], show) for x in sorted(places)]


def _stretches(points: Sequence[Point], limit: int) -> dict[float, list[Point]]:
    low = min(point.x for point in points)
    width = (max(point.x for point in points) - low) / limit
    places: dict[float, list[Point]] = {}
    for point in points:
        places.setdefault(min(limit - 1, int((point.x - low) / width)), []).append(point)
    return places


def _bin(points: list[Point], show: Callable[[float], str]) -> Bin:
    values = [point.y for point in points]
    low, middle, high = min(values), median(values), max(values)
    x = median(point.x for point in points)
    if len(points) == 1:
        return Bin(x, low, middle, high, 1, points[0].tip)
    first, last = min(point.x for point in points), max(point.x for point in points)
    where = f"{first:,.1f} s" if first == last else f"{first:,.1f} to {last:,.1f} s"
    tip = f"{where}, {len(points):,} values: median {show(middle)}, lowest {show(low)}, highest {show(high)}"
    return Bin(x, low, middle, high, len(points), tip)


def spread_sample(points: Sequence[Point], limit: int) -> list[Point]:
    """About ``limit`` distinct points: when there are more, the highest of each x and an even sample of the rest."""
    distinct = list({(point.x, point.y): point for point in points}.values())
    if len(distinct) <= limit:
        return distinct
    highest: dict[float, Point] = {}
    for point in distinct:
        if point.x not in highest or point.y > highest[point.x].y:
            highest[point.x] = point
    peaks = sorted(highest.values(), key=lambda point: -point.y)[: limit // 2]
    step = -(-len(distinct) // (limit - len(peaks)))
    return list(dict.fromkeys([*peaks, *distinct[::step]]))


class Box(NamedTuple):
    """A box of a box plot: lowest, quartiles and highest of so many ``values``."""

    low: float
    first: float
    middle: float
    third: float
    high: float
    values: int


def box(values: Sequence[float]) -> Box:
    """The box of these values; quartiles by YABench's rule (index p*n/100, mean of both neighbours when whole)."""
    ordered = sorted(values)
    first, middle, third = (_quantile(ordered, share) for share in (25, 50, 75))
    return Box(ordered[0], first, middle, third, ordered[-1], len(ordered))


def _quantile(ordered: Sequence[float], share: int) -> float:
    whole, rest = divmod(share * len(ordered), 100)
    if rest == 0 and 0 < whole < len(ordered):
        return (ordered[whole - 1] + ordered[whole]) / 2
    return ordered[min(whole, len(ordered) - 1)]
