"""The draws that LUBM's data are made of, one generator a university."""

from streamgauge.workloads.java_random import next_int, scramble


class Random:
    """``java.util.Random`` in the words of LUBM's rules; the same seed gives the same numbers as in Java."""

    def __init__(self, seed: int) -> None:
        self._state = scramble(seed)

    def below(self, bound: int) -> int:
        """A whole number from 0 to ``bound`` - 1."""
        self._state, drawn = next_int(self._state, bound)
        return drawn

    def within(self, least: int, most: int) -> int:
        """A whole number from ``least`` to ``most``, both included."""
        return least + self.below(most - least + 1)

    def some(self, count: int, least: int, most: int) -> list[int]:
        """Different whole numbers from ``least`` to ``most``, in the order in which they are drawn."""
        left = list(range(least, most + 1))
        return [left.pop(self.within(0, len(left) - 1)) for _ in range(count)]


def seed_of(base: int, university: int) -> int:
    """The seed of one university's numbers, 64 bits as Java multiplies them; with base 0 its index."""
    return (base * -(1 << 31) + university) & ((1 << 64) - 1)
