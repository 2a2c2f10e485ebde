"""The text of an experiment file with other values: comments and order of what stays are kept."""

from collections.abc import Mapping, MutableMapping
from typing import Any

import tomlkit
from tomlkit.items import AoT, Table


def updated(text: str, data: Mapping[str, Any]) -> str:
    """The text with its tables replaced by these."""
    document = tomlkit.parse(text)
    _update(document, data)
    return tomlkit.dumps(document)


def _update(table: MutableMapping[str, Any], data: Mapping[str, Any]) -> None:
    """Update changed items, remove missing ones, and append new ones."""
    for key in [key for key in table if key not in data]:
        del table[key]
    for key, value in data.items():
        before = table.get(key)
        if isinstance(before, MutableMapping) and isinstance(value, Mapping):
            _update(before, value)
        # In place only if none was added or removed: otherwise it is unknown which table continues which, and comments
        # of one could end up in another.
        elif isinstance(before, AoT) and isinstance(value, list) and len(before) == len(value):
            for own, new in zip(before, value, strict=True):
                _update(own, new)
        # An equal value keeps its spelling: `1_000` is not rewritten as `1000`.
        elif before is None or _plain(before) != value:
            table[key] = _item(key, value)


def _plain(item: Any) -> Any:
    return item.unwrap() if hasattr(item, "unwrap") else item


def _item(key: str, value: Any) -> Any:
    """A value as a TOML item: sweeps with dotted keys, parameters on one line, multi-line texts as such."""
    match value:
        case dict() if key == "sweep":
            return _dotted(value)
        case dict() if key in ("parameters", "options", "stream"):
            inline = tomlkit.inline_table()
            inline.update(value)
            return inline
        case dict():
            return _table(value)
        case [dict(), *_]:
            tables = tomlkit.aot()
            for one in value:
                tables.append(_table(one))
            return tables
        case str() if "\n" in value and "'''" not in value:
            return tomlkit.string(f"\n{value}" if not value.startswith("\n") else value, literal=True, multiline=True)
    return tomlkit.item(value)


def _table(data: Mapping[str, Any]) -> Table:
    table = tomlkit.table()
    for key, value in data.items():
        table.add(key, _item(key, value))
    return table


def _dotted(data: Mapping[str, Any]) -> Table:
    """A table with ``feed.pace = [1, 10]`` for each field that is swept."""
    table = tomlkit.table()
    for keys, value in _leaves(data, ()):
        table.append(tomlkit.key(list(keys)), value)
    return table


def _leaves(data: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*keys, key))
        else:
            yield (*keys, key), value
