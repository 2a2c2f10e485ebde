"""How much one evaluation may do, counted in the facts and rows that are looked at where products of them arise.

Expressions count too: by their size for each row, and by the CPU time of those that take long, a microsecond each.
"""

from typing import Final


class TooMuchError(RuntimeError):
    """An evaluation that was stopped; the sentence says after how much."""


BOUNDLESS: Final = 1 << 62


class Effort:
    """What an evaluation may still look at, ``most`` since it was renewed. One thread at a time."""

    __slots__ = ("left", "most", "weight")

    def __init__(self, most: int = BOUNDLESS, weight: int = 1) -> None:
        self.most = self.left = most
        self.weight = weight
        """As how many facts a row counts that is made of others, and kept."""

    @property
    def bounded(self) -> bool:
        """Whether there is a bound at all."""
        return self.most != BOUNDLESS

    def renew(self, most: int | None = None) -> None:
        """Another evaluation begins, with another bound where one is given."""
        self.most = self.left = self.most if most is None else most

    def spend(self, count: int) -> None:
        """So many more are looked at; TooMuchError when they are too many."""
        self.left -= count
        if self.left < 0:
            raise self.too_much

    @property
    def too_much(self) -> TooMuchError:
        """More would have to be looked at."""
        return TooMuchError(f"its evaluation looks at more than {self.most} facts and rows")
