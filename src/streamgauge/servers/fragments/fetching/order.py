"""In which order patterns are read, so that few requests do: of queries asked once, and of those kept current."""

from collections.abc import Collection, Hashable, Sequence


def ordered(
    counts: Sequence[int],
    takes: Sequence[Collection[Hashable]],
    gives: Sequence[Collection[Hashable]],
    known: Collection[Hashable] = (),
) -> list[int]:
    """The numbers of patterns: those without quads first, as they end all, then what is restricted, each by counts.

    ``takes`` is what may restrict each (variables, or other patterns), ``gives`` what is there once it was read.
    """
    left, there, order = list(range(len(counts))), set(known), list[int]()

    def cost(number: int) -> tuple[bool, bool, int]:
        return counts[number] > 0, bool(there) and there.isdisjoint(takes[number]), counts[number]

    while left:
        chosen = min(left, key=cost)
        left.remove(chosen)
        order.append(chosen)
        there.update(gives[chosen])
    return order
