"""Counter-based random draws as Spark expressions: hashes of seed, purpose and counters, whatever the partitions."""

import math

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812


def bits(seed: int, purpose: str, *counters: Column) -> Column:
    """53 random bits, as a long from 0 to 2^53 - 1 (xxhash64 of seed, purpose and counters)."""
    return F.shiftrightunsigned(F.xxhash64(F.lit(seed), F.lit(purpose), *counters), 11)


def below(bound: int, seed: int, purpose: str, *counters: Column) -> Column:
    """A whole number from 0 to bound - 1; its bias is below bound / 2^53."""
    return bits(seed, purpose, *counters) % bound


def unit(seed: int, purpose: str, *counters: Column) -> Column:
    """A double in [0, 1)."""
    return bits(seed, purpose, *counters) * F.lit(2.0**-53)


def poisson(seed: int, purpose: str, *counters: Column) -> Column:
    """A Poisson number with mean 1, at most 18, by inversion."""
    draw = unit(seed, purpose, *counters)
    total, found = 0.0, F.lit(0)
    for k in range(18):
        total += math.exp(-1.0) / math.factorial(k)
        found = found + (draw >= total).cast("int")
    return found


def normal(seed: int, purpose: str, *counters: Column) -> Column:
    """A nearly normal double, mean 0, deviation 1: twelve uniform draws less 6, exact on every machine."""
    total = F.lit(0).cast("long")
    for k in range(12):
        total = total + bits(seed, purpose, F.lit(k), *counters)
    return total * F.lit(2.0**-53) - 6.0
