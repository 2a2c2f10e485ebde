"""Where SPARQL 1.1 leaves an answer open: every legal answer, by running an evaluation once for each choice.

An evaluation asks ``choose(n)`` wherever n ways are legal, and ``policy(name)`` where an implementation may do one
of two things, the same one everywhere in the query. ``every`` runs it again until all combinations have been taken:

    every(lambda choices: choices.choose(2) * 10 + choices.choose(3))   ->  0, 1, 2, 10, 11, 12
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

Answer = TypeVar("Answer")


class OpenError(Exception):
    """The specification does not say, or too many answers are legal; the message names the place."""


class ExpressionError(Exception):
    """An expression is an error (SPARQL 1.1, 17.2): a type error, an unbound variable."""


class Choices:
    """The choices of one run: the first ones are given, the others are 0."""

    def __init__(self, given: list[int] | None = None) -> None:
        self._given = given or []
        self._policies: dict[str, bool] = {}
        self.taken: list[tuple[int, int]] = []

    def choose(self, ways: int) -> int:
        """One of 0 to ways - 1."""
        if ways == 1:
            return 0
        at = len(self.taken)
        chosen = self._given[at] if at < len(self._given) else 0
        self.taken.append((chosen, ways))
        return chosen

    def policy(self, name: str) -> bool:
        """Whether this implementation does what the name says; asked once for each name."""
        if name not in self._policies:
            self._policies[name] = self.choose(2) == 0
        return self._policies[name]


def every(run: Callable[[Choices], Answer], most: int = 200) -> Iterator[Answer]:
    """The answers under all choices; OpenError when there are more than ``most``."""
    given: list[int] = []
    for _ in range(most):
        choices = Choices(given)
        yield run(choices)
        left = list(choices.taken)
        while left and left[-1][0] == left[-1][1] - 1:
            left.pop()
        if not left:
            return
        given = [chosen for chosen, _ in left[:-1]] + [left[-1][0] + 1]
    raise OpenError("too many legal answers")
