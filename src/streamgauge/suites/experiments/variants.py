"""The variants of an experiment file: one for each ``[[query]]`` and each combination of the values of ``[sweep]``.

Example: two queries and ``feed.pace = [1, 10]`` make four, each an experiment with one query and one pace.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from pathlib import PurePath
from typing import Any, Final

SWEPT: Final = ("workload", "query", "engine", "feed")
"""The tables whose fields may be swept; ``seeds`` and ``repetitions`` already multiply runs."""

MAX_VARIANTS: Final = 1_000
"""Maximum number of variants in a file, each with runs for every engine, semantics, seed and repetition."""


class SweepError(ValueError):
    """A sweep or list of queries that cannot be expanded; ``keys`` is the path of the field."""

    def __init__(self, keys: Sequence[str], sentence: str) -> None:
        super().__init__(sentence)
        self.keys = tuple(keys)


@dataclass(frozen=True, slots=True)
class VariantData:
    """The tables of one variant; ``point`` maps names to the values that distinguish it from the others.

    ``overrides`` are the ``-D`` options that select it alone, ``number`` is that of its query (from 0) if the file has
    several.
    """

    data: dict[str, Any]
    point: Mapping[str, str]
    overrides: tuple[str, ...] = ()
    number: int | None = None


def expanded(data: Mapping[str, Any]) -> Iterator[VariantData]:
    """The variants of the tables of a file, queries first, then values in their order; SweepError."""
    plain = {name: value for name, value in data.items() if name != "sweep"}
    axes = dict(_axes(data.get("sweep", {}), ()))
    queries = _queries(plain.get("query"))
    # Counted before the product is made, which may be astronomical.
    if len(queries) * _count(axes) > MAX_VARIANTS:
        raise SweepError(("sweep",), f"it has more than {MAX_VARIANTS:,} variants: sweep over fewer values")
    names = _names(axes)
    for number, label, query in queries:
        for values in product(*axes.values()):
            # Deep, because ``put`` changes nested tables, which the variants would share.
            variant = deepcopy(plain) if number is None else {**deepcopy(plain), "query": deepcopy(query)}
            for key, value in zip(axes, values, strict=True):
                put(variant, key, value)
            swept = {names[key]: written(value) for key, value in zip(axes, values, strict=True)}
            overrides = [f"{key}={toml(value)}" for key, value in zip(axes, values, strict=True)]
            chosen = [] if number is None else [f"query={toml(query)}"]
            yield VariantData(variant, {**label, **swept}, (*chosen, *overrides), number)


def _axes(table: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, list[Any]]]:
    """(key path, values) of each swept field."""
    path = ".".join(keys)
    if isinstance(table, dict):
        for name, inner in table.items():
            yield from _axes(inner, (*keys, *name.split(".")))
    elif keys[:1] and keys[0] not in SWEPT:
        raise SweepError(("sweep", *keys), f"only fields of {', '.join(SWEPT[:-1])} and {SWEPT[-1]} can be swept")
    elif not isinstance(table, list) or not table or not keys:
        raise SweepError(("sweep", *keys), "expected a list of values, as in feed.pace = [1, 10]")
    # By their texts: 1 and 1.0 are equal in Python but different variants.
    elif len({json.dumps(value, sort_keys=True, default=str) for value in table}) < len(table):
        raise SweepError(("sweep", *keys), "the list repeats a value: remove one of them")
    else:
        yield path, table


def _count(axes: Mapping[str, Sequence[Any]]) -> int:
    total = 1
    for values in axes.values():
        total *= len(values)
    return total


def _names(axes: Mapping[str, object]) -> dict[str, str]:
    """A short name for each swept field: its last key, or its whole path if two end in the same key."""
    last = Counter(key.rpartition(".")[2] for key in axes)
    return {key: key if last[word := key.rpartition(".")[2]] > 1 or word == "query" else word for key in axes}


def _queries(part: Any) -> list[tuple[int | None, dict[str, str], Any]]:
    """(number, label, table) of the queries; a single ``[query]`` has neither number nor label."""
    if not isinstance(part, list):
        return [(None, {}, part)]
    if not part:
        raise SweepError(("query",), "write at least one [[query]]")
    labels = [_label(query, number) for number, query in enumerate(part, 1)]
    twice = Counter(labels)
    return [
        # Two queries of one label are numbered: ``q1 1`` and ``q1 2``.
        (number, {"query": label if twice[label] == 1 else f"{label} {number + 1}"}, query)
        for number, (label, query) in enumerate(zip(labels, part, strict=True))
    ]


def _label(query: Any, number: int) -> str:
    """The label of a query in run names: the workload query's name, the file's name, or its number."""
    table = query if isinstance(query, dict) else {}
    return str(table.get("name") or PurePath(str(table.get("file") or "")).stem or f"query{number}")


def put(data: Any, key: str, value: object) -> None:
    """Set ``workload.stations`` or ``engine.0.name`` in a file's tables; SweepError for an impossible path."""
    *tables, last = key.split(".")
    at = data
    for table in tables:
        at = _inner(at, table, key)
    if isinstance(at, list):
        _inner(at, last, key)
        at[int(last)] = value
    else:
        at[last] = value


def _inner(at: Any, name: str, key: str) -> Any:
    """The table or list of that name in a table, or the entry of that number (from 0) in a list."""
    if isinstance(at, list):
        if not name.isdecimal() or int(name) >= len(at):
            raise SweepError(key.split("."), f"the list has no entry {name}: the entries are 0 to {len(at) - 1}")
        return at[int(name)]
    entry = at.setdefault(name, {})
    if not isinstance(entry, dict | list):
        raise SweepError(key.split("."), f"{name} is a value, not a table")
    return entry


def unswept(data: dict[str, Any], key: str) -> None:
    """Remove the sweep over a field that an override has fixed."""
    at: Any = data.get("sweep")
    *tables, last = key.split(".")
    for table in tables:
        at = at.get(table) if isinstance(at, dict) else None
    if isinstance(at, dict):
        # A sweep may name its field by tables or by a dotted key.
        at.pop(last, None)
    if isinstance(flat := data.get("sweep"), dict):
        flat.pop(key, None)


def written(value: object) -> str:
    """A value as it appears in run names."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def toml(value: object) -> str:
    """A value as TOML on one line."""
    match value:
        case dict():
            return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
        case list() | tuple():
            return f"[{', '.join(map(toml, value))}]"
    # JSON's strings, numbers, true and false are also TOML's.
    return json.dumps(value, ensure_ascii=False)
