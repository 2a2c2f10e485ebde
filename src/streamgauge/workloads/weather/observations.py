"""The temperatures that stations see and the order in which they arrive: other distributions, late elements."""

import numpy as np

from streamgauge.workloads import draws
from streamgauge.workloads.draws import Floats, Ints
from streamgauge.workloads.rows import running
from streamgauge.workloads.weather.schedule import Size, Times

_WALK_STEP = 10


def valued(seed: int, size: Size, values: str, times: Times) -> Ints:
    """Values in tenths: ``uniform`` whole degrees, ``normal`` or ``walk`` tenths.

    ``normal`` has its mean in the middle, a sixth of the range as deviation, and is cut at both ends; ``walk`` moves
    each station by at most one degree per observation and is reflected at both ends: it takes all of a station's times.
    """
    return {"uniform": _uniform, "normal": _normal, "walk": _walk}[values](seed, size, times)


def _uniform(seed: int, size: Size, times: Times) -> Ints:
    return (draws.below(size.high - size.low, seed, "value", *times) + size.low) * 10


def _normal(seed: int, size: Size, times: Times) -> Ints:
    span = (size.high - size.low) * 10
    drawn = draws.normal(seed, "value", *times) * (span / 6.0) + span / 2.0
    whole = np.trunc(drawn)
    rounded: Floats = whole + np.sign(drawn) * (np.abs(drawn - whole) >= 0.5)
    tenths: Ints = np.clip(rounded, 0.0, float(span)).astype(np.int64)
    return tenths + size.low * 10


def _walk(seed: int, size: Size, times: Times) -> Ints:
    span = (size.high - size.low) * 10
    start = draws.below(span + 1, seed, "start", times.station)
    steps = draws.below(2 * _WALK_STEP + 1, seed, "value", *times) - _WALK_STEP
    first = np.append(True, times.station[1:] != times.station[:-1])[: len(steps)]
    folded = (start + running(steps, first)) % (2 * span)
    return np.where(folded > span, 2 * span - folded, folded) + size.low * 10


def arrival(seed: int, share: float, bound: int, times: Times) -> Ints:
    """When observations arrive (ms): a ``share`` of them comes 1 to ``bound`` ms after its time."""
    late = draws.unit(seed, "late", *times) < share
    return times.time + np.where(late, draws.below(max(bound, 1), seed, "delay", *times) + 1, 0)
