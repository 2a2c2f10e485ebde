"""Ties among keys of which some are comparable: the rows that LIMIT and OFFSET may keep of them.

SPARQL (15.1) puts 5 before 6 and does not order "x" beside either. The comparable keys of a tie form a chain; a chain
keeps its order, and chains may be merged in any way:

    ORDER BY ?v LIMIT 1              5 "x" 6     legal: 5, or "x"; not 6, which comes after 5
    ORDER BY ?v OFFSET 1 LIMIT 1     5 "x" 6     legal: each of the three ("x" 5 6, 5 "x" 6, 5 6 "x")
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from streamgauge.model.terms import Row, Term
from streamgauge.sparql.comparison import order_key, ranks
from streamgauge.sparql.values import INTEGER

Position = tuple[int, int]
"""A row's chain, and its level there: rows of a smaller level come first, those of one level in any order."""


def positions(terms: Sequence[Term | None], descending: bool) -> tuple[Position, ...]:
    """The position of each row by its key; empty where SPARQL orders none of the rows before another."""
    chains: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, term in enumerate(terms):
        chains[_chain(term)].append(index)
    found: list[Position] = [(0, 0)] * len(terms)
    for number, members in enumerate(chains.values()):
        for index, (level, _) in zip(members, ranks([terms[index] for index in members]), strict=True):
            found[index] = (number, -level if descending else level)
    return tuple(found) if len(set(found)) > len(chains) else ()


def _chain(term: Term | None) -> tuple[object, ...]:
    """Equal for terms that SPARQL may order: literals of one kind, NaN by itself, all that is no literal."""
    key = order_key(term)
    if term is None or term[0] != '"':
        return key[:1]
    return key[:3] if key[1] == INTEGER else key[:2]


def legal(kept: Counter[Row], rows: Sequence[Row], order: Sequence[Position], skipped: int) -> bool:
    """Whether some order of the rows skips ``skipped`` of them and then has exactly the rows ``kept``.

    Rows that stand in several positions, as their keys are no columns, are taken for legal.
    """
    place = dict(zip(rows, order, strict=True))
    if any(place[row] != own for row, own in zip(rows, order, strict=True)):
        return True
    totals: dict[int, Counter[int]] = defaultdict(Counter)
    taken: dict[int, Counter[int]] = defaultdict(Counter)
    for chain, level in order:
        totals[chain][level] += 1
    for row, times in kept.items():
        chain, level = place[row]
        taken[chain][level] += times
    ranges = [_before(totals[chain], taken[chain]) for chain in totals]
    if any(each is None for each in ranges):
        return False
    return sum(each[0] for each in ranges if each) <= skipped <= sum(each[1] for each in ranges if each)


def _before(total: Counter[int], taken: Counter[int]) -> tuple[int, int] | None:
    """How many rows of a chain come before its kept rows, at least and at most; ``None`` where these have a gap."""
    levels = sorted(level for level, times in taken.items() if times)
    if not levels:
        return 0, total.total()
    first, last = levels[0], levels[-1]
    if any(first < level < last and taken[level] < times for level, times in total.items()):
        return None
    before = sum(times for level, times in total.items() if level < first)
    spare = total[first] - taken[first]
    return (before, before + spare) if first == last else (before + spare, before + spare)
