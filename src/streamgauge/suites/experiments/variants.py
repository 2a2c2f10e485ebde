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
"""The tables whose fields may be swept; ``seeds`` and ``repetitions`` are lists and counts of their own."""

MAX_VARIANTS: Final = 1_000
"""Variants of a file: each has runs for every engine, semantics, seed and repetition."""


class SweepError(ValueError):
    """A sweep or a list of queries that cannot be expanded; ``keys`` lead to the field."""

    def __init__(self, keys: Sequence[str], sentence: str) -> None:
        super().__init__(sentence)
        self.keys = tuple(keys)


@dataclass(frozen=True, slots=True)
class VariantData:
    """The tables of one variant; ``point`` has the values that tell it from the others, by their names.

    ``overrides`` are those by which ``-D`` makes this variant alone, ``number`` is that of its query (from 0) where the
    file has several.
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
    if len(queries) * _count(axes) > MAX_VARIANTS:
        raise SweepError(("sweep",), f"these are more than {MAX_VARIANTS:,} variants: sweep over fewer values")
    names = _names(axes)
    for number, label, query in queries:
        for values in product(*axes.values()):
            variant = deepcopy(plain) if number is None else {**deepcopy(plain), "query": deepcopy(query)}
            for key, value in zip(axes, values, strict=True):
                put(variant, key, value)
            swept = {names[key]: written(value) for key, value in zip(axes, values, strict=True)}
            overrides = [f"{key}={toml(value)}" for key, value in zip(axes, values, strict=True)]
            chosen = [] if number is None else [f"query={toml(query)}"]
            yield VariantData(variant, {**label, **swept}, (*chosen, *overrides), number)


def _axes(table: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, list[Any]]]:
    """The values of each field that is swept, by the path of its key."""
    path = ".".join(keys)
    if isinstance(table, dict):
        for name, inner in table.items():
            yield from _axes(inner, (*keys, *name.split(".")))
    elif keys[:1] and keys[0] not in SWEPT:
        raise SweepError(("sweep", *keys), f"a field of {', '.join(SWEPT[:-1])} or {SWEPT[-1]} can be swept")
    elif not isinstance(table, list) or not table or not keys:
        raise SweepError(("sweep", *keys), "expected a list of values, as in feed.pace = [1, 10]")
    elif len({json.dumps(value, sort_keys=True, default=str) for value in table}) < len(table):
        raise SweepError(("sweep", *keys), "a value is in the list twice")
    else:
        yield path, table


def _count(axes: Mapping[str, Sequence[Any]]) -> int:
    total = 1
    for values in axes.values():
        total *= len(values)
    return total


def _names(axes: Mapping[str, object]) -> dict[str, str]:
    """A name for each field that is swept: its last word, or its whole path where two end in the same word."""
    last = Counter(key.rpartition(".")[2] for key in axes)
    return {key: key if last[word := key.rpartition(".")[2]] > 1 or word == "query" else word for key in axes}


def _queries(part: Any) -> list[tuple[int | None, dict[str, str], Any]]:
    """The queries with their numbers and labels; one without either where the file has a single table."""
    if not isinstance(part, list):
        return [(None, {}, part)]
    if not part:
        raise SweepError(("query",), "write at least one [[query]]")
    labels = [_label(query, number) for number, query in enumerate(part, 1)]
    twice = Counter(labels)
    return [
        (number, {"query": label if twice[label] == 1 else f"{label} {number + 1}"}, query)
        for number, (label, query) in enumerate(zip(labels, part, strict=True))
    ]


def _label(query: Any, number: int) -> str:
    """The name of a query in the names of runs: of the workload's query or of the file, else its number."""
    table = query if isinstance(query, dict) else {}
    return str(table.get("name") or PurePath(str(table.get("file") or "")).stem or f"query{number}")


def put(data: Any, key: str, value: object) -> None:
    """Set ``workload.stations`` or ``engine.0.name`` in a file's tables; SweepError where the key leads nowhere."""
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
            raise SweepError(key.split("."), f"{name} is no entry of this list: they are 0 to {len(at) - 1}")
        return at[int(name)]
    entry = at.setdefault(name, {})
    if not isinstance(entry, dict | list):
        raise SweepError(key.split("."), f"{name} is a value, not a table")
    return entry


def unswept(data: dict[str, Any], key: str) -> None:
    """Leave out the sweep over a field, which has been given one value."""
    at: Any = data.get("sweep")
    *tables, last = key.split(".")
    for table in tables:
        at = at.get(table) if isinstance(at, dict) else None
    if isinstance(at, dict):
        at.pop(last, None)
    if isinstance(flat := data.get("sweep"), dict):
        flat.pop(key, None)


def written(value: object) -> str:
    """A value as a name of a run has it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def toml(value: object) -> str:
    """A value as TOML writes it on one line."""
    match value:
        case dict():
            return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
        case list() | tuple():
            return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
