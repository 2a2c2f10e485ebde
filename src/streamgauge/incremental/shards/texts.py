"""Texts of numbered terms in one buffer, as Arrow has them: taken by number, and hashed eight bytes at a time."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.formats.batches import Numbers

Hashes = npt.NDArray[np.uint64]

AnyCell = TypeVar("AnyCell", np.int32, np.uint8)

_WORD = 8
_MOST = 16
_QUOTE = ord('"')
_ALL, _NOTHING, _ONE, _BITS, _WORD_BITS = (np.uint64(each) for each in (2**64 - 1, 0, 1, 64, 8))
_ODD = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(29)


class TermTexts:
    """The texts of terms, numbered from 0 in the order in which they come."""

    def __init__(self) -> None:
        self._ends: npt.NDArray[np.int32] = np.zeros(1024, np.int32)
        self._bytes: npt.NDArray[np.uint8] = np.zeros(1 << 16, np.uint8)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        """Number from 0 again; what was taken stays as it is."""
        self._count = 0

    def add(self, texts: pa.StringArray) -> None:
        """Number texts on."""
        if not len(texts):
            return
        _, given, data = texts.buffers()
        ends = np.frombuffer(given, np.int32)[texts.offset : texts.offset + len(texts) + 1]
        count, filled = self._count + len(texts), int(self._ends[self._count])
        size = filled + int(ends[-1] - ends[0])
        self._ends = _grown(self._ends, count + 1)
        self._bytes = _grown(self._bytes, size + _WORD)
        self._ends[self._count + 1 : count + 1] = ends[1:] - ends[0] + filled
        if size > filled:
            self._bytes[filled:size] = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
        self._count = count

    def take(self, numbers: Numbers) -> pa.StringArray:
        """The texts of numbers, which ascend."""
        ends, data = pa.py_buffer(self._ends[: self._count + 1]), pa.py_buffer(self._bytes)
        known = pa.StringArray.from_buffers(self._count, ends, data)
        if len(numbers) and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1:
            begin, end = self._ends[[numbers[0], numbers[-1] + 1]].tolist()
            texts = pa.py_buffer(self._bytes[begin:end].tobytes())
            own = pa.py_buffer(self._ends[numbers[0] : numbers[-1] + 2] - begin)
            return pa.StringArray.from_buffers(len(numbers), own, texts)
        return known.take(pa.array(numbers))

    def text(self, number: int) -> str:
        """The text of a number."""
        begin, end = self._ends[number : number + 2].tolist()
        return self._bytes[begin:end].tobytes().decode()

    def hashes(self, numbers: Numbers) -> Hashes:
        """A hash of each text, of its bytes alone, so that it is the same in all dictionaries.

        Of long texts it has the end, where IRIs differ, and of literals the beginning.
        """
        begins, ends = self._ends[numbers].astype(np.int64), self._ends[numbers + 1].astype(np.int64)
        found = (ends - begins).astype(np.uint64)
        literal = self._bytes[begins] == _QUOTE
        begins = np.where(literal, begins, np.maximum(begins, ends - _MOST))
        left = np.minimum(ends - begins, _MOST)
        words = np.ndarray((len(self._bytes) - _WORD + 1,), "<u8", self._bytes, strides=(1,))
        for _ in range(_MOST // _WORD):
            size = np.clip(left, 0, _WORD).astype(np.uint64)
            word = words[begins] & np.where(size == 0, _NOTHING, _ALL >> (_BITS - _WORD_BITS * np.maximum(size, _ONE)))
            mixed = (found ^ word) * _ODD
            found = mixed ^ (mixed >> _FOLD)
            begins = np.minimum(begins + _WORD, ends)
            left = left - _WORD
        return found


def _grown(kept: npt.NDArray[AnyCell], size: int) -> npt.NDArray[AnyCell]:
    """An array of that size at least, twice as large when it is too small; arrays that were taken keep the old one."""
    if size <= len(kept):
        return kept
    more = np.zeros(max(size, 2 * len(kept)), kept.dtype)
    more[: len(kept)] = kept
    return more
