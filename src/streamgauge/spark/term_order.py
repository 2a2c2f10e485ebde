"""The order of terms as far as SPARQL 1.1 defines it (15.1), and which rows LIMIT and OFFSET keep by it (no Spark).

Orders that SPARQL leaves open (blank nodes, literals that "<" does not compare, equal keys) are not decided here.
"""

from collections.abc import Sequence

from streamgauge.model.terms import Row
from streamgauge.sparql.comparison import ranks

Place = tuple[int, ...]
"""A row's place in ORDER BY: smaller comes first; SPARQL does not order rows of equal places."""


def chosen(
    rows: Sequence[Row], places_: Sequence[Place], distinct: bool, offset: int, limit: int | None
) -> list[int] | None:
    """The indexes of the rows that LIMIT and OFFSET keep, in order; ``None`` when SPARQL allows several answers."""
    stands: dict[Row, set[Place]] = {}
    for row, place in zip(rows, places_, strict=True):
        stands.setdefault(row, set()).add(place)
    order = sorted(range(len(rows)), key=places_.__getitem__)
    if distinct:
        # A dict keeps the last value of a key: in reverse, the first occurrence of each row.
        order = list({rows[index]: index for index in reversed(order)}.values())
        # The dict was filled backwards, so its order is that of last occurrences, and the rows are sorted once more.
        order.sort(key=places_.__getitem__)
    end = len(order) if limit is None else min(offset + limit, len(order))
    if offset >= end:
        return []
    cuts = [at for at in (offset, end) if 0 < at < len(order)]
    # SPARQL does not define which of several equal rows DISTINCT keeps, and thereby not the row's place.
    if distinct and cuts and any(len(several) > 1 for several in stands.values()):
        return None
    if any(_tied(rows, places_, order, at) for at in cuts):
        return None
    return order[offset:end]


def _tied(rows: Sequence[Row], places_: Sequence[Place], order: Sequence[int], at: int) -> bool:
    """Whether a cut (LIMIT, OFFSET) separates different rows that SPARQL does not order."""
    place = places_[order[at]]
    # Worked example: LIMIT 2 over rows with the places 0, 1, 1 cuts between two rows of place 1. If these are
    # different rows, SPARQL allows either, so no single answer is right.
    return places_[order[at - 1]] == place and len({rows[index] for index in order if places_[index] == place}) > 1


def places(keys: Sequence[Row], descending: Sequence[bool]) -> list[Place]:
    """The place of each row by its ORDER BY keys."""
    columns = [ranks([row[index] for row in keys]) for index in range(len(descending))]
    places_ = []
    for row in range(len(keys)):
        place: list[int] = []
        for ranked, down in zip(columns, descending, strict=True):
            rank, decided = ranked[row]
            place.append(-rank if down else rank)
            # Where this key leaves the order open, later ones cannot decide it.
            if not decided:
                place += [0] * (len(descending) - len(place))
                break
        places_.append(tuple(place))
    return places_
