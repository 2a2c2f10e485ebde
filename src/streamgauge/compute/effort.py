"""How much one evaluation may do, counted in the facts and rows that are looked at where products of them arise."""

from typing import Final


class TooMuchError(RuntimeError):
    """An evaluation that was stopped; the sentence says after how much."""


BOUNDLESS: Final = 1 << 62


class Effort:
    """What an evaluation may still look at, ``most`` since it was renewed. One thread at a time."""

    __slots__ = ("left", "most")

    def __init__(self, most: int = BOUNDLESS) -> None:
        self.most = self.left = most

    def renew(self) -> None:
        """Another evaluation begins."""
        self.left = self.most

    def spend(self, count: int) -> None:
        """So many more are looked at; TooMuchError when they are too many."""
        self.left -= count
        if self.left < 0:
            raise TooMuchError(f"its evaluation looks at more than {self.most} facts and rows")
