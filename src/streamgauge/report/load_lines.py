"""Series that differ in one number alone, joined to lines over it: the pace, a parameter of workload or query."""

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple

from streamgauge.report.series import Series, own_traits, traits_of, varying

_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_FINDINGS: Final = frozenset({"content"})
"""Traits of a stream that differ with a load because its elements do."""


class LoadLine(NamedTuple):
    """The index of the ``first`` series, a label without the load, and the loads with their series in order."""

    first: int
    label: str
    places: tuple[tuple[float, Series], ...]


def varied_loads(series: Sequence[Series]) -> list[str]:
    """The names of the numbers that differ between series."""
    traits = [traits_of(one.header) for one in series]
    return [name for name in varying(traits) if len({load for one in traits if (load := _load(one, name))}) > 1]


def _load(traits: Mapping[str, str], name: str) -> float | None:
    """A trait as a number above 0: a plain one, or a duration in s."""
    match = _NUMBER.fullmatch(traits.get(name, ""))
    return None if match is None else float(match[1]) * _SECONDS[match[2]] or None


def load_lines(series: Sequence[Series], name: str) -> list[LoadLine]:
    """The lines over a load: series that are the same but for it, at least two of them with different loads."""
    groups: dict[Hashable, list[tuple[float, Series]]] = {}
    for one in series:
        traits, header = traits_of(one.header), one.header
        if (load := _load(traits, name)) is not None:
            rest = tuple(sorted((key, value) for key, value in traits.items() if key not in (name, *_FINDINGS)))
            own = tuple(sorted(own_traits(header).items()))
            groups.setdefault((header.engine, header.semantics.name, own, rest), []).append((load, one))
    return [
        LoadLine(places[0][1].index, _without(places[0][1], name), tuple(sorted(places, key=lambda place: place[0])))
        for places in groups.values()
        if len({load for load, _ in places}) > 1
    ]


def _without(one: Series, name: str) -> str:
    """The label of a series without one of its traits."""
    return one.label.replace(f", {name} {traits_of(one.header)[name]}", "")
