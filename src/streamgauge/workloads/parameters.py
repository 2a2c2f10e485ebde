"""Typed parameters of workloads, which parse the user's text or fail with an error that names the parameter."""

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from streamgauge.model.mistake import MistakeError
from streamgauge.model.phrases import meant

_UNITS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class ParameterError(MistakeError, ValueError):
    """An unknown parameter of a workload, or an invalid value."""


class Parameter(NamedTuple):
    """One parameter: ``type`` parses a text or checks a value, ``help`` is one line with the unit."""

    type: Callable[[object], object]
    default: object
    help: str


def duration(value: object) -> int:
    """Milliseconds of ``500ms``, ``30s``, ``5m``, ``1h``, ``1d`` or a bare number of ms; ValueError otherwise."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)", str(value).strip())
    # A fraction, as ``0.1s`` must be exactly 100 ms; the half stands for every text that is no duration.
    scaled = Fraction(match[1]) * _UNITS[match[2]] if match else Fraction(1, 2)
    if isinstance(value, bool) or scaled.denominator != 1:
        raise ValueError("expected a duration in whole ms such as 500ms, 30s, 5m, 1h or 1d")
    return int(scaled)


def instant(value: object) -> int:
    """A point in stream time (ms): a duration after or before 0 (``30s``, ``-30s``), or a date; ValueError otherwise.

    Dates and dateTimes (ISO 8601) count from 1970, in UTC unless they have a zone: ``2026-03-01T08:00:00Z``.
    """
    text = str(value).strip()
    if re.match(r"\d{4}-", text):
        from streamgauge.formats.instants import Instants  # late: commands that read no time start without its parser

        return Instants(zone="Z").of_text(text, "", numbers=False)
    try:
        return -duration(text[1:]) if text.startswith("-") else duration(text.removeprefix("+"))
    except ValueError:
        raise ValueError("expected ms, a duration such as 30s or -30s, or a date as 2026-03-01T08:00:00Z") from None


def whole(value: object) -> int:
    """A whole number from a number or text; ValueError otherwise."""
    # ``True`` is an int in Python, and in TOML a mistake for a number.
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?\d+(\.0+)?", str(value).strip()):
        raise ValueError("expected a whole number")
    return int(str(value).strip().split(".")[0])


def share(value: object) -> float:
    """A number from 0 to 1; ValueError otherwise."""
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if isinstance(value, bool) or not 0.0 <= number <= 1.0:
        raise ValueError("expected a number from 0 to 1")
    return number


def switch(value: object) -> bool:
    """A boolean from true/false, yes/no, on/off or 1/0; ValueError otherwise."""
    known = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    try:
        return known[str(value).strip().lower()]
    except KeyError:
        raise ValueError("expected true or false") from None


def choice(*allowed: str) -> Callable[[object], str]:
    """A parameter type that accepts one of these words; its ValueError lists them."""

    def pick(value: object) -> str:
        if value not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return str(value)

    return pick


def resolve(owner: str, parameters: Mapping[str, Parameter], values: Mapping[str, object]) -> dict[str, object]:
    """Every parameter with its value or default; ParameterError names an unknown or invalid one."""
    for name in values:
        if name not in parameters:
            known = f"it has {', '.join(parameters)}{meant(name, parameters)}"
            raise ParameterError(f"{owner} has no parameter {name!r}: {known}")
    return {name: _value(owner, name, parameter, values) for name, parameter in parameters.items()}


def _value(owner: str, name: str, parameter: Parameter, values: Mapping[str, object]) -> object:
    try:
        return parameter.type(values[name]) if name in values else parameter.default
    except ValueError as error:
        raise ParameterError(f"{owner}: {name} is {values[name]!r}: {error}") from error


def check_range(owner: str, values: Mapping[str, Any], names: Sequence[str], least: int = 1) -> None:
    """ParameterError for a value outside ``least`` to 2^31 - 1."""
    for name in names:
        if not least <= values[name] < 1 << 31:
            raise ParameterError(f"{owner}: {name} is {values[name]}: it must be from {least} to 2147483647")
