"""Selection of the resources that are published, and their order.

Each query has an equal number of resources, drawn by the seed alone.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Final, TypeVar

from streamgauge.model.terms import Term, Triple
from streamgauge.servers.broker.contract import Publication

Item = TypeVar("Item", bound=Hashable)


class SelectionRule(StrEnum):
    """Which of an answer's IRIs are resources that are published (the paper leaves it open)."""

    FIRST = "first"  # the first variable's: what the row is about
    ANY = "any"  # those of any variable: departments and universities too, which make many rows at once


MOST_DELETED: Final = 0.4
"""The largest share of deletions: each resource is deleted at most once, half of them are published again."""


def dealt(offered: Mapping[str, Sequence[Item]], most: int) -> dict[str, list[Item]]:
    """To each name its share of ``most``: in turn each takes the next of what it is offered that nobody has taken.

    So all have the same number unless some are offered too few; then the others have more.
    """
    taken: dict[Item, None] = {}
    found: dict[str, list[Item]] = {name: [] for name in offered}
    left = {name: iter(items) for name, items in offered.items()}
    while left and len(taken) < most:
        for name in [*left]:
            item = next((item for item in left[name] if item not in taken), None)
            if item is None:
                del left[name]
            elif len(taken) < most:
                taken[item] = None
                found[name].append(item)
    return found


def distinct_resources(publications: int, deletes: float) -> int:
    """How many resources a sequence has of which a share of the publications deletes, half of it published again."""
    deleted = deletions(publications, deletes)
    return publications - deleted - deleted // 2


def deletions(publications: int, deletes: float) -> int:
    """How many publications delete: the share, rounded, and no more than there are resources to delete.

    Of 34 publications 40% are 13.6; 14 would leave 34 - 14 - 7 = 13 resources, so 13 delete.
    """
    deleted = round(publications * deletes)
    while deleted > publications - deleted - deleted // 2:
        deleted -= 1
    return deleted


def arranged(resources: Iterable[Term], publications: int, deletes: float, seed: int) -> Iterator[tuple[Term, int]]:
    """Resources in a drawn order, each with 1 (published) or -1 (deleted).

    Some are deleted after they were published; every other one of these is published again after that.
    """
    random = Random(seed)
    listed = sorted(resources)
    gone = random.sample(listed, deletions(publications, deletes))
    turns = listed + gone + gone[: len(gone) // 2]
    random.shuffle(turns)
    seen: dict[Term, int] = {}
    for term in turns:
        seen[term] = seen.get(term, 0) + 1
        yield term, -1 if seen[term] == 2 else 1


def publications(turns: Iterable[tuple[Term, int]], described: Mapping[Term, tuple[Triple, ...]]) -> list[Publication]:
    """The sequence: each resource's concise bounded description (here: all statements about it) comes or goes."""
    return [
        Publication(number, *((described[term], ()) if sign > 0 else ((), described[term])))
        for number, (term, sign) in enumerate(turns, 1)
    ]
