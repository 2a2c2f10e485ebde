"""Transitive closure over validity intervals: which node reaches which, in which reports (plain Python, no Spark)."""

from collections.abc import Iterable, Iterator, Mapping

from streamgauge.model.terms import Term

Span = tuple[int, int]
"""The first and last report of an interval, inclusive."""

Edge = tuple[Term, Term, int, int]
"""From, to, first and last report."""

Steps = Mapping[Term, list[tuple[Term, int, int]]]


def closure(edges: Iterable[Edge], sources: Iterable[Term] | None = None) -> Iterator[Edge]:
    """The pairs connected by one edge or more, each with disjoint intervals; from ``sources`` only when given.

    An edge counts in the reports where it and the way to it hold; cycles end because every step adds something new.
    """
    steps: dict[Term, list[tuple[Term, int, int]]] = {}
    for start, end, low, high in edges:
        steps.setdefault(start, []).append((end, low, high))
    for source in steps if sources is None else dict.fromkeys(sources):
        for node, spans in _reached(steps, source).items():
            for low, high in spans:
                yield source, node, low, high


def _reached(steps: Steps, source: Term) -> dict[Term, list[Span]]:
    """Semi-naive: only what is new at a node is followed further."""
    reached: dict[Term, list[Span]] = {}
    new = list(steps.get(source, ()))
    while new:
        node, low, high = new.pop()
        known = reached.setdefault(node, [])
        for first, last in missing(known, low, high):
            insert(known, first, last)
            for end, begins, ends in steps.get(node, ()):
                if begins <= last and first <= ends:
                    new.append((end, max(begins, first), min(ends, last)))
    return reached


def missing(known: list[Span], low: int, high: int) -> list[Span]:
    """The parts of an interval that sorted disjoint intervals do not cover."""
    found = []
    for first, last in known:
        if last < low:
            continue
        if first > high:
            break
        if first > low:
            found.append((low, first - 1))
        low = max(low, last + 1)
    if low <= high:
        found.append((low, high))
    return found


def insert(known: list[Span], low: int, high: int) -> None:
    """Adds an interval to sorted disjoint ones, joining it with those that it overlaps or touches."""
    apart = [span for span in known if span[1] < low - 1 or span[0] > high + 1]
    touching = [span for span in known if not (span[1] < low - 1 or span[0] > high + 1)]
    low, high = min([low, *(first for first, _ in touching)]), max([high, *(last for _, last in touching)])
    known[:] = sorted([*apart, (low, high)])
