"""``java.util.Random`` (as the JDK documents it): a 48-bit linear congruential generator that can jump ahead.

One step is x -> A x + C (mod 2^48), so k steps are x -> A^k x + C_k with C_k = C (A^k - 1) / (A - 1), and any draw can
be computed without those before it. Only ``nextInt(bound)`` needs care, since it rejects some draws and takes the next.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

MULTIPLIER = 0x5DEECE66D
ADDEND = 0xB
MASK = (1 << 48) - 1
BLOCK = 4096


class DrawRun(NamedTuple):
    """Accepted draws ``first`` to ``first + length - 1``; ``first + k`` is ``start + k + 1`` steps from ``state``."""

    first: int
    length: int
    state: int
    start: int


def scramble(seed: int) -> int:
    """The state that ``new Random(seed)`` starts with."""
    return (seed ^ MULTIPLIER) & MASK


def limit(bound: int) -> int:
    """The lowest 31-bit draw that ``nextInt(bound)`` rejects; 2^31 if it rejects none."""
    # Java rejects the incomplete last block of ``bound`` draws, which would favour small values.
    return (1 << 31) - (1 << 31) % bound


def reduce(draw: int, bound: int) -> int:
    """The value of ``nextInt(bound)`` for an accepted 31-bit draw."""
    # For powers of two Java takes the high bits, as the low ones of a linear congruential generator repeat soon.
    return (bound * draw) >> 31 if bound & (bound - 1) == 0 else draw % bound


def next_int(state: int, bound: int) -> tuple[int, int]:
    """``nextInt(bound)``: the next state, and a value from 0 to bound - 1."""
    top = limit(bound)
    while True:
        state = (state * MULTIPLIER + ADDEND) & MASK
        if (draw := state >> 17) < top:
            return state, reduce(draw, bound)


def steps(count: int) -> tuple[list[int], list[int]]:
    """(A^k, C_k) for k = 0 .. count: k steps from x give A^k x + C_k (mod 2^48)."""
    factors, addends = [1], [0]
    for _ in range(count):
        factors.append(factors[-1] * MULTIPLIER & MASK)
        addends.append((addends[-1] * MULTIPLIER + ADDEND) & MASK)
    return factors, addends


def accepted(state: int, bound: int, count: int) -> Iterator[DrawRun]:
    """The first ``count`` draws that ``nextInt(bound)`` accepts from ``state``, as runs without rejections."""
    factors, addends = steps(BLOCK)
    tables = pa.array(factors[1:], pa.int64()), pa.array(addends[1:], pa.int64())
    first = 0
    while first < count:
        start = 0
        # The end of the block closes the last run like a rejection.
        for rejected in (*_rejected(state, bound, tables), BLOCK):
            length = min(rejected - start, count - first)
            if length > 0:
                yield DrawRun(first, length, state, start)
                first += length
            start = rejected + 1
        state = (state * factors[BLOCK] + addends[BLOCK]) & MASK


def _rejected(state: int, bound: int, tables: tuple[pa.Array, pa.Array]) -> list[int]:
    """The rejected ones among the next BLOCK draws; Arrow's products wrap at 2^64, a multiple of 2^48."""
    # A power of two: no draw is rejected.
    if limit(bound) == 1 << 31:
        return []
    states = pc.bit_wise_and(pc.add(pc.multiply(tables[0], pa.scalar(state)), tables[1]), pa.scalar(MASK))
    draws = pc.shift_right(states, pa.scalar(17))
    rejected: list[int] = pc.indices_nonzero(pc.greater_equal(draws, pa.scalar(limit(bound)))).to_pylist()
    return rejected
