"""The mean of a measure over repetitions with its 95% confidence interval (Student's t, two-sided)."""

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev
from typing import Final, NamedTuple

_T: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""The 97.5% quantiles of Student's t distribution with 1 to 30 degrees of freedom."""

_NORMAL: Final = 1.96
"""The same quantile of the normal distribution, for more degrees of freedom."""

FEWEST: Final = 3
"""Minimum repetitions for an interval; with two, t is 12.7 and the interval too wide."""


class MeanInterval(NamedTuple):
    """The mean over ``runs`` runs and half the width of its 95% interval, ``None`` for fewer than three runs."""

    mean: float
    half: float | None
    runs: int

    @property
    def low(self) -> float:
        """The lower end of the interval; the mean if there is none."""
        return self.mean - (self.half or 0.0)

    @property
    def high(self) -> float:
        """The upper end of the interval; the mean if there is none."""
        return self.mean + (self.half or 0.0)


def mean_interval(values: Sequence[float]) -> MeanInterval:
    """The mean of at least one value with its interval.

    Example: ``[1, 2, 3]`` has the mean 2, the half width ``4.303 * 1 / sqrt(3)`` = 2.48.
    """
    count = len(values)
    if count < FEWEST:
        return MeanInterval(mean(values), None, count)
    # n values have n - 1 degrees of freedom, and the table begins with 1.
    quantile = _T[count - 2] if count - 2 < len(_T) else _NORMAL
    return MeanInterval(mean(values), quantile * stdev(values) / sqrt(count), count)
