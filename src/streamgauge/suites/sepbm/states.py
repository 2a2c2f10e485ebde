"""In which states explicit facts stand: state 0 is the base load, state k what holds after the k-th publication."""

from collections.abc import Iterable, Mapping, Sequence

from streamgauge.model.terms import Triple
from streamgauge.servers.broker.contract import Publication
from streamgauge.suites.sepbm.configuration import ConfigurationError

Span = tuple[int, int]
"""The first and the last state of an interval."""


def in_order(sequence: Iterable[Publication], order: Sequence[int]) -> list[Publication]:
    """The publications in the order in which they took effect; ConfigurationError when it is not one of all of them."""
    listed = list(sequence)
    if order and sorted(order) != [each.number for each in listed]:
        raise ConfigurationError(f"an order of {len(order)} publications: it must have each of {len(listed)} once")
    return [listed[number - 1] for number in order] if order else listed


def spans(publications: Sequence[Publication], there: Iterable[Triple]) -> Mapping[Triple, list[Span]]:
    """In which states each fact stands that is in ``there`` or that a publication adds: first and last, inclusive."""
    begun = dict.fromkeys(there, 0)
    found: dict[Triple, list[Span]] = {}
    for state, each in enumerate(publications, 1):
        for triple in dict.fromkeys(each.removed):
            if triple not in each.added and triple in begun:
                found.setdefault(triple, []).append((begun.pop(triple), state - 1))
        for triple in each.added:
            begun.setdefault(triple, state)
    for triple, first in begun.items():
        found.setdefault(triple, []).append((first, len(publications)))
    return found
