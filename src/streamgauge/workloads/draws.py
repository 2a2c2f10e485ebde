"""Counter-based random numbers: a hash of seed, purpose and counters, the same in every process and on every machine.

Unlike the state of a generator, a counter lets every task of a distributed job draw its own rows, whatever the number
of tasks. The hash is xxHash64, chained as by Spark's ``xxhash64`` over columns: each value is hashed with the hash of
the previous values as its seed, the first with 42. A Python int of 32 bits and an int32 array are hashed as 4 bytes,
other numbers as 8, strings as UTF-8.

Source: the xxHash specification, version 0.1.1, algorithm XXH64.
"""

import math
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from streamgauge.workloads.parameters import ParameterError

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.floating]
Counter: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.int32] | int
_Words: TypeAlias = npt.NDArray[np.uint64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_START: Final = 42
_STRIPE: Final = 32
"""Bytes of a stripe: longer texts are hashed in four lanes of 8 bytes."""


def bits(seed: int, purpose: str, *counters: Counter) -> Ints:
    """53 random bits (0 to 2^53 - 1) for each row of the counters; one row if all counters are scalars."""
    return _above_11(_chained(seed, purpose, *counters))


def text_bits(seed: int, purpose: str, texts: list[str]) -> Ints:
    """53 random bits for each text, texts of equal length hashed together."""
    start = _chained(seed, purpose)
    encoded = [text.encode() for text in texts]
    lengths = np.array([len(text) for text in encoded], np.int64)
    bits = np.zeros(len(texts), np.uint64)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        joined = b"".join(encoded[row] for row in rows.tolist())
        # Texts of one length are a matrix, which is hashed column by column without a Python loop over the texts.
        bits[rows] = _of_bytes(start, np.frombuffer(joined, np.uint8).reshape(len(rows), length))
    return _above_11(bits)


def below(bound: int, seed: int, purpose: str, *counters: Counter) -> Ints:
    """Uniform integers from 0 to bound - 1; the bias of the modulus is below bound / 2^53."""
    return bits(seed, purpose, *counters) % bound


def unit(seed: int, purpose: str, *counters: Counter) -> Floats:
    """Uniform doubles in [0, 1)."""
    return bits(seed, purpose, *counters) * 2.0**-53


def poisson(seed: int, purpose: str, *counters: Counter) -> Ints:
    """Poisson-distributed integers with mean 1, cut off at 18, by inversion."""
    draw = unit(seed, purpose, *counters)
    total, counts = 0.0, np.zeros(len(draw), np.int64)
    for k in range(18):
        # Summed in this order everywhere: the last bits of the thresholds decide about draws next to them.
        total += math.exp(-1.0) / math.factorial(k)
        counts += draw >= total
    return counts


def normal(seed: int, purpose: str, *counters: Counter) -> Floats:
    """Approximately normal doubles, mean 0, deviation 1: the sum of twelve uniform draws minus 6.

    Integer sums are the same on every machine, unlike log and cos, which differ between math libraries.
    """
    # A uniform draw has variance 1/12, so twelve of them have variance 1 and mean 6.
    total = sum((bits(seed, purpose, k, *counters) for k in range(12)), np.zeros(1, np.int64))
    return total * 2.0**-53 - 6.0


def _chained(seed: int, purpose: str, *counters: Counter) -> _Words:
    if not -(1 << 63) <= seed < 1 << 63:
        raise ParameterError(f"the seed is {seed}: it must be a signed 64-bit integer")
    hashed = _of_number(np.array([_START], np.uint64), seed)
    hashed = _of_bytes(hashed, np.frombuffer(purpose.encode(), np.uint8)[np.newaxis])
    for counter in counters:
        hashed = _of_number(hashed, counter)
    return hashed


def _above_11(words: _Words) -> Ints:
    # A double has 53 bits of precision: 64 - 11.
    return (words >> np.uint64(11)).astype(np.int64)


def _of_number(start: _Words, number: Counter) -> _Words:
    """The hash of integers of 4 or 8 bytes."""
    # As Spark types literals: an int of 32 bits is an integer, another one a bigint, and they have different hashes.
    small = isinstance(number, int) and -(1 << 31) <= number < 1 << 31
    rows = np.array([number], np.int32 if small else np.int64) if isinstance(number, int) else number
    if rows.dtype == np.int32:
        return _mixed(_with_4(start + _P5 + np.uint64(4), rows.view(np.uint32).astype(np.uint64)))
    return _mixed(_with_8(start + _P5 + np.uint64(8), rows.astype(np.int64).view(np.uint64)))


def _of_bytes(start: _Words, rows: npt.NDArray[np.uint8]) -> _Words:
    """The hash of texts of equal length, one per row."""
    length = rows.shape[1]
    striped, whole = length // _STRIPE * _STRIPE, length // 8 * 8
    words = np.ascontiguousarray(rows[:, :whole]).view("<u8")
    hashed = _striped(start, words[:, : striped // 8]) if striped else start + _P5
    hashed = hashed + np.uint64(length)
    for at in range(striped // 8, whole // 8):
        hashed = _with_8(hashed, words[:, at])
    if length - whole >= 4:
        hashed = _with_4(hashed, np.ascontiguousarray(rows[:, whole : whole + 4]).view("<u4")[:, 0].astype(np.uint64))
        whole += 4
    for at in range(whole, length):
        hashed = _turned(hashed ^ rows[:, at].astype(np.uint64) * _P5, 11) * _P1
    return _mixed(hashed)


def _striped(start: _Words, words: _Words) -> _Words:
    """Hash whole stripes in four lanes, word i in lane i mod 4, and merge the lanes."""
    lanes = [start + _P1 + _P2, start + _P2, start + np.uint64(0), start - _P1]
    for at in range(0, words.shape[1], 4):
        lanes = [_turned(lane + words[:, at + n] * _P2, 31) * _P1 for n, lane in enumerate(lanes)]
    hashed = sum(
        (_turned(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True)), np.zeros(1, np.uint64)
    )
    for lane in lanes:
        hashed = (hashed ^ _turned(lane * _P2, 31) * _P1) * _P1 + _P4
    return hashed


def _with_8(words: _Words, word: _Words) -> _Words:
    return _turned(words ^ _turned(word * _P2, 31) * _P1, 27) * _P1 + _P4


def _with_4(words: _Words, word: _Words) -> _Words:
    return _turned(words ^ word * _P1, 23) * _P2 + _P3


def _turned(words: _Words, by: int) -> _Words:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))


def _mixed(words: _Words) -> _Words:
    words = (words ^ (words >> np.uint64(33))) * _P2
    words = (words ^ (words >> np.uint64(29))) * _P3
    return words ^ (words >> np.uint64(32))
