"""Connected components by union-find."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


def components(items: Iterable[Item], keys: Callable[[Item], Iterable[Hashable]]) -> list[list[Item]]:
    """The items grouped such that items with a common key are together; an item without keys is a group alone."""
    parent: dict[object, object] = {}

    def root(node: object) -> object:
        while parent.setdefault(node, node) != node:
            # Halving the path keeps the trees flat, without a second pass or recursion.
            parent[node] = node = parent[parent[node]]
        return node

    # A node of its own for each item: equal items stay two, and no item can be mistaken for a key.
    placed = [(item, object()) for item in items]
    for item, place in placed:
        for key in keys(item):
            parent[root(key)] = root(place)
    groups: dict[object, list[Item]] = defaultdict(list)
    for item, place in placed:
        groups[root(place)].append(item)
    return list(groups.values())
