"""Join, LeftJoin and Minus of solution sequences (SPARQL 1.1, 18.5): compatible solutions found by hashing.

Two solutions are compatible when every variable that both bind has the same term in both. Variables may be unbound in
some solutions only (after OPTIONAL, UNION or UNDEF), so solutions are kept apart by which shared variables they bind,
and hashed, when the first solution asks, on those that both sides bind.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from streamgauge.model.terms import Term

Solution: TypeAlias = dict[str, Term]
Names: TypeAlias = tuple[str, ...]


class Partners:
    """Solutions that can be asked for those compatible with another one."""

    def __init__(self, solutions: Iterable[Solution], shared: Iterable[str]) -> None:
        """``shared`` are the variables that these solutions may have in common with those that ask."""
        self._shared = tuple(shared)
        self._groups: dict[Names, list[Solution]] = {}
        for solution in solutions:
            self._groups.setdefault(self._bound(solution), []).append(solution)
        self._indexes: dict[tuple[Names, Names], dict[Names, list[Solution]]] = {}

    def compatible(self, solution: Solution, overlapping: bool = False) -> Iterator[Solution]:
        """The solutions compatible with one; those only that bind one of its variables where ``overlapping`` holds."""
        own = self._bound(solution)
        for bound in self._groups:
            keys = bound if bound == own else tuple(name for name in own if name in bound)
            if keys or not overlapping:
                yield from self._index(bound, keys).get(tuple(solution[name] for name in keys), ())

    def _bound(self, solution: Solution) -> Names:
        return tuple(name for name in self._shared if name in solution)

    def _index(self, bound: Names, keys: Names) -> dict[Names, list[Solution]]:
        index = self._indexes.get((bound, keys))
        if index is None:
            index = self._indexes[bound, keys] = {}
            for member in self._groups[bound]:
                index.setdefault(tuple(member[name] for name in keys), []).append(member)
        return index


Extensions: TypeAlias = Callable[[Solution], Iterable[Solution]]
"""The merges of a solution with the compatible ones of another sequence."""


def merges(partners: Partners) -> Extensions:
    """The merges with solutions that are known already."""
    return lambda solution: ({**solution, **other} for other in partners.compatible(solution))


def joined(left: Iterable[Solution], extensions: Extensions) -> Iterator[Solution]:
    """Join: every merge of compatible solutions."""
    for solution in left:
        yield from extensions(solution)


def left_joined(
    left: Iterable[Solution], extensions: Extensions, holds: Callable[[Solution], bool] | None
) -> Iterator[Solution]:
    """LeftJoin: the merges for which the condition holds, and the left solutions that have none."""
    for solution in left:
        alone = True
        for merged in extensions(solution):
            if holds is None or holds(merged):
                alone = False
                yield merged
        if alone:
            yield solution


def subtracted(left: Iterable[Solution], partners: Partners) -> Iterator[Solution]:
    """Minus: the left solutions that no compatible solution shares a bound variable with."""
    for solution in left:
        if next(partners.compatible(solution, overlapping=True), None) is None:
            yield solution
