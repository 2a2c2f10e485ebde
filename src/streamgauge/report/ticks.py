"""Ticks that suit the unit: whole counts, durations and stream times in a suitable unit, powers of ten."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil, floor, log10
from typing import Final, Literal, NamedTuple, TypeAlias

from streamgauge.model.phrases import is_dated
from streamgauge.report.numbers import number

Unit: TypeAlias = Literal["", "count", "s", "ms", "MiB"]
"""The unit of an axis' values; ``count`` has whole ticks; ``s``, ``ms`` and ``MiB`` are shown in suitable units."""


class Ticks(NamedTuple):
    """Ticks with their labels, the labels' unit (empty if each has its own), and the ends of the axis."""

    places: tuple[tuple[float, str], ...]
    unit: str
    ends: tuple[float, float]


_SECONDS: Final = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS: Final[Mapping[Unit, tuple[float, Mapping[str, float]]]] = {
    "s": (1.0, _SECONDS),
    "ms": (1e-3, _SECONDS),
    "MiB": (1.0, {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}),
}
"""Unit -> its value, and the related units, in a common unit."""
_SPAN: Final = 3
"""Minimum number of a unit for which the unit is used."""
_CLOCK: Final = {"min": (1, 2, 5, 10, 15, 30, 60, 120), "h": (1, 2, 3, 6, 12, 24, 48), "d": (1, 2, 7, 14, 30, 90, 365)}
_DAYS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
                604800, 2592000, 31536000)  # fmt: skip


def ticks(unit: Unit, low: float, high: float, limit: int) -> Ticks:
    """About ``limit`` ticks for a linear axis from ``low`` to ``high``.

    ``ticks("ms", 0, 9000, 5)`` are 0, 2, 4, 6 and 8 in s; ``ticks("count", 0, 1, 4)`` are 0 and 1.
    """
    if unit == "s" and is_dated(low * 1000) and is_dated(high * 1000):
        return _dates(low, high, limit)
    name, size = _unit(unit, max(abs(low), abs(high)))
    step = _step((high - low) / size / max(1, limit), _CLOCK.get(name, ()), whole=unit == "count")
    # With a margin for rounding: 0.3 / 0.1 is 2.9999999999999996.
    first, last = ceil(low / size / step - 1e-9), floor(high / size / step + 1e-9)
    shown = [at * step for at in range(first, last + 1)]
    return Ticks(tuple((value * size, number(value)) for value in shown), name, (low, high))


def _unit(unit: Unit, greatest: float) -> tuple[str, float]:
    """The largest unit that suits the greatest value, with its size; the unit itself if all values are 0."""
    if unit not in _UNITS:
        return "", 1.0
    own, sizes = _UNITS[unit]
    # 9,000 ms are 9 s, but only a part of a minute: the largest unit of which there are at least 3 is s.
    fitting = [(name, size / own) for name, size in sizes.items() if greatest * own >= _SPAN * size]
    if greatest == 0 or not fitting:
        return (str(unit), 1.0) if greatest == 0 else next((name, size / own) for name, size in sizes.items())
    return fitting[-1]


def _step(least: float, steps: Sequence[float], *, whole: bool) -> float:
    """The smallest of the usual steps that is at least ``least``."""
    if whole:
        least = max(1.0, least)
    for step in steps:
        # Minutes and hours have steps of their own, as 5, 15 or 30: tens would not end at a whole hour.
        if step >= least > steps[0] / 2:
            return step
    if least <= 0:
        return 1.0
    power = 10.0 ** floor(log10(least) + 1e-9)
    return next(power * part for part in (1, 2, 5, 10) if power * part >= least * (1 - 1e-9))


def _dates(low: float, high: float, limit: int) -> Ticks:
    """Ticks in UTC at whole seconds, minutes, hours or days."""
    least = (high - low) / max(1, limit)
    step = next((days for days in _DAYS if days >= least), _DAYS[-1])
    form = "%Y-%m-%d" if step >= 86400 else "%H:%M" if step >= 60 else "%H:%M:%S"
    places = [at * step for at in range(ceil(low / step), floor(high / step) + 1)]
    day = "" if step >= 86400 else f" of {datetime.fromtimestamp(low, UTC):%Y-%m-%d}"
    return Ticks(
        tuple((place, f"{datetime.fromtimestamp(place, UTC):{form}}") for place in places), f"UTC{day}", (low, high)
    )


def magnitudes(unit: Unit, low: float, high: float, limit: int) -> Ticks:
    """Ticks for a logarithmic axis: 1, 2, 5, 10, ... or powers of ten, about ``limit``, with units in the labels.

    The ends of the axis enclose ``low`` and ``high``, which are above 0. Within a magnitude steps are even:
    ``magnitudes("", 40, 80, 6)`` are 40, 50, 60, 70 and 80.
    """
    label = _labels(unit)
    if low < high < low * 10:
        step = _step((high - low) / max(1, limit - 1), (), whole=False)
        first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
        if first > 0 and last - first < max(3, limit):
            places = tuple((at * step, label(at * step)) for at in range(first, last + 1))
            return Ticks(places, "", (places[0][0], places[-1][0]))
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    last = max(last, first + 1)
    parts = next((parts_ for parts_ in ((1, 2, 5), (1, 5)) if len(parts_) * (last - first) < limit), (1,))
    # Over many magnitudes only each second or third power of ten has a tick.
    every = max(1, ceil((last - first) / max(1, limit)))
    steps = [part * 10.0**power for power in range(first, last + 1, every) for part in parts]
    top = 10.0**last
    return Ticks(tuple((value, label(value)) for value in steps if value <= top), "", (10.0**first, top))


def _labels(unit: Unit) -> Callable[[float], str]:
    """A function that formats a value with its own unit: ``20 µs``, ``5 s``, ``2 GiB``; plain numbers have none."""
    if unit not in _UNITS:
        return lambda value: f"{value:,.12g}"
    own, sizes = _UNITS[unit]
    sizes = {name: size for name, size in sizes.items() if name not in ("min", "h", "d")}

    def label(value: float) -> str:
        name, size = next(
            ((name, size) for name, size in reversed(list(sizes.items())) if value * own >= size * (1 - 1e-9)),
            next(iter(sizes.items())),
        )
        return f"{value * own / size:,.4g} {name}"

    return label
