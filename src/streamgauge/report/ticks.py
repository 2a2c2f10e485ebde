"""Ticks that fit the unit: whole counts, durations and stream times in the unit that suits them, powers of ten."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil, floor, inf, log10
from typing import Final, Literal, NamedTuple, TypeAlias

from streamgauge.model.phrases import DATED
from streamgauge.report.numbers import number

Unit: TypeAlias = Literal["", "count", "s", "ms", "MiB"]
"""The unit of an axis' values; ``count`` has whole ticks, ``s``, ``ms`` and ``MiB`` are shown in units that fit."""


class Ticks(NamedTuple):
    """Places of ticks with their labels, and the unit of the labels; empty where each label has its own."""

    places: tuple[tuple[float, str], ...]
    unit: str


_SECONDS: Final = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS: Final[Mapping[Unit, tuple[float, Mapping[str, float]]]] = {
    "s": (1.0, _SECONDS),
    "ms": (1e-3, _SECONDS),
    "MiB": (1.0, {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}),
}
"""What one of a unit is, in the unit in which the greater and smaller ones are given."""
_SPAN: Final = 3
"""How many of a unit there are at least where it is used."""
_CLOCK: Final = {"min": (1, 2, 5, 10, 15, 30, 60, 120), "h": (1, 2, 3, 6, 12, 24, 48), "d": (1, 2, 7, 14, 30, 90, 365)}
_DAYS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
                604800, 2592000, 31536000)  # fmt: skip


def ticks(unit: Unit, low: float, high: float, most: int) -> Ticks:
    """About ``most`` ticks for a linear axis from ``low`` to ``high``.

    ``ticks("ms", 0, 9000, 4)`` are 0, 2, 4, 6 and 8 in s; ``ticks("count", 0, 1, 4)`` are 0 and 1.
    """
    if unit == "s" and int(low * 1000) in DATED and int(high * 1000) in DATED:
        return _dates(low, high, most)
    name, size = _unit(unit, max(abs(low), abs(high)))
    step = _step((high - low) / size / max(1, most), _CLOCK.get(name, ()), whole=unit == "count")
    first, last = ceil(low / size / step - 1e-9), floor(high / size / step + 1e-9)
    shown = [at * step for at in range(first, last + 1)]
    return Ticks(tuple((value * size, number(value)) for value in shown), name)


def _unit(unit: Unit, greatest: float) -> tuple[str, float]:
    """The greatest unit of which the greatest value has some, with its size; the unit itself where all is 0."""
    if unit not in _UNITS:
        return "", 1.0
    own, sizes = _UNITS[unit]
    fitting = [(name, size / own) for name, size in sizes.items() if greatest * own >= _SPAN * size]
    if greatest == 0 or not fitting:
        return (str(unit), 1.0) if greatest == 0 else next((name, size / own) for name, size in sizes.items())
    return fitting[-1]


def _step(least: float, steps: Sequence[float], *, whole: bool) -> float:
    """The smallest usual step that is at least so long."""
    if whole:
        least = max(1.0, least)
    for step in steps:
        if step >= least > steps[0] / 2:
            return step
    if least <= 0:
        return 1.0
    power = 10.0 ** floor(log10(least) + 1e-9)
    return next(power * part for part in (1, 2, 5, 10) if power * part >= least * (1 - 1e-9))


def _dates(low: float, high: float, most: int) -> Ticks:
    """Ticks in UTC at whole seconds, minutes, hours or days."""
    least = (high - low) / max(1, most)
    step = next((each for each in _DAYS if each >= least), _DAYS[-1])
    form = "%Y-%m-%d" if step >= 86400 else "%H:%M" if step >= 60 else "%H:%M:%S"
    places = [at * step for at in range(ceil(low / step), floor(high / step) + 1)]
    day = "" if step >= 86400 else f" of {datetime.fromtimestamp(low, UTC):%Y-%m-%d}"
    return Ticks(tuple((place, f"{datetime.fromtimestamp(place, UTC):{form}}") for place in places), f"UTC{day}")


def magnitudes(unit: Unit, low: float, high: float, most: int) -> Ticks:
    """Ticks for a logarithmic axis: 1, 2, 5, 10, ... or powers of ten, about ``most``, each label with its unit.

    The first and the last enclose ``low`` and ``high``, which are above 0.
    """
    for parts, every in (((1, 2, 5), 1), ((1, 5), 1), ((1,), 1), ((1,), 2), ((1,), 3), ((1,), 6)):
        found = list(_powers(low, high, parts, every))
        if len(found) <= max(2, most):
            break
    label = _labels(unit)
    return Ticks(tuple((value, label(value)) for value in found), "")


def _powers(low: float, high: float, parts: Sequence[int], every: int) -> Iterator[float]:
    first = floor(log10(low) + 1e-9)
    first -= first % every
    below = -inf
    values = []
    for power in range(first, ceil(log10(high) - 1e-9) + every + 1, every):
        for part in parts:
            value = part * 10.0**power
            if value <= low * (1 + 1e-9):
                below = value
            values.append(value)
            if value >= high * (1 - 1e-9) and value > below:
                yield from (each for each in values if each >= below)
                return
    yield from (each for each in values if each >= below)


def _labels(unit: Unit) -> Callable[[float], str]:
    """Words for one value with its own unit: ``20 µs``, ``5 s``, ``2 GiB``; plain numbers have none."""
    if unit not in _UNITS:
        return lambda value: f"{value:,.12g}"
    own, sizes = _UNITS[unit]

    def label(value: float) -> str:
        name, size = next(
            ((name, size) for name, size in reversed(list(sizes.items())) if value * own >= size * (1 - 1e-9)),
            next(iter(sizes.items())),
        )
        return f"{value * own / size:,.4g} {name}"

    return label
