"""The fields of the form as text by name, from the tables of an experiment file and back.

A name is the key of the file: ``feed.pace``, ``query.0.file``. Parameters of a workload are ``workload.NAME.KEY``, the
semantics of an engine are boxes ``engine.0.semantics.NAME``, a sweep is ``sweep.0.key`` and ``sweep.0.values``.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from streamgauge import workloads
from streamgauge.semantics.profiles import PROFILES
from streamgauge.suites.experiments.variants import SWEPT, put, toml

PLAIN: Final = ("name", "max_delay", "repetitions", "seeds", "workload.name", "feed.pace", "feed.lateness",
                "feed.advance_to", "feed.time_limit")  # fmt: skip
"""Fields with the key of the file as their name."""

NUMBERS: Final = frozenset(("repetitions", "seeds", "feed.pace"))
"""Fields that are read as numbers, or lists of numbers, if they look like it; all others are text."""

RECORDED: Final = ("file", "stream", "time_property")
"""Fields of a recorded stream."""

QUERY: Final = ("name", "file", "text", "static")
"""Fields of a query, beside its parameters."""

BLOCKS: Final = ("query", "engine", "sweep")
"""Repeatable parts of the form."""

MAX_BLOCKS: Final = 12
"""Blocks of a kind that the form shows; a file with more is edited as text."""

Fields = dict[str, str]
"""The fields of the form by name; one that is empty is not in the file."""


def fields_of(data: Mapping[str, Any]) -> Fields:
    """The fields that show the tables of a file."""
    workload = data.get("workload", {})
    fields = {name: _shown(_at(data, name)) for name in PLAIN}
    name = str(workload.get("name", ""))
    if name in workloads.names():
        known = workloads.load(name).PARAMETERS
        fields |= {f"workload.{name}.{key}": _shown(workload[key]) for key in known if key in workload}
    else:
        fields |= {f"workload.{key}": _shown(workload.get(key)) for key in RECORDED}
    for number, query in enumerate(_listed(data.get("query"))):
        fields |= {f"query.{number}.{key}": _shown(query.get(key)) for key in QUERY}
        parameters = query.get("parameters", {})
        fields[f"query.{number}.parameters"] = "\n".join(f"{key} = {toml(value)}" for key, value in parameters.items())
    for number, engine in enumerate(_listed(data.get("engine"))):
        semantics = engine.get("semantics", ())
        fields[f"engine.{number}.name"] = str(engine.get("name", ""))
        names = [semantics] if isinstance(semantics, str) else semantics
        fields |= {f"engine.{number}.semantics.{name}": "on" for name in names}
    for number, (key, values) in enumerate(_swept(data.get("sweep", {}))):
        fields |= {f"sweep.{number}.key": key, f"sweep.{number}.values": ", ".join(map(_shown, values))}
    return {name: text for name, text in fields.items() if text}


def data_of(fields: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a file with these fields; keys that the form does not show keep their values from ``before``."""
    data = deepcopy(dict(before))
    for name in PLAIN:
        _set(data, name, _value(fields.get(name, ""), numbers=name in NUMBERS))
    if (seeds := data.get("seeds")) is not None and not isinstance(seeds, list):
        data["seeds"] = [seeds]
    data["workload"] = _workload(fields, before.get("workload", {}))
    queries = [_query(fields, number) for number in numbers_of("query", fields)]
    # A list stays one, so that the file keeps its form.
    several = len(queries) > 1 or isinstance(before.get("query"), list)
    data["query"] = queries if several else (queries or [{}])[0]
    known = _listed(before.get("engine"))
    data["engine"] = [_engine(fields, number, known) for number in numbers_of("engine", fields)]
    swept = {
        key: _values(fields.get(f"sweep.{number}.values", ""))
        for number in numbers_of("sweep", fields)
        if (key := fields.get(f"sweep.{number}.key", "").strip())
    }
    # A sweep that was not changed keeps its form in the file, dotted keys or tables.
    if swept != dict(_swept(before.get("sweep", {}))):
        data["sweep"] = {}
        for key, values in swept.items():
            put(data["sweep"], key, values)
    return {name: value for name, value in data.items() if value != {} or name == "query"}


def numbers_of(block: str, fields: Mapping[str, str]) -> list[int]:
    """The numbers of the blocks of a kind that the form has, in order."""
    named = (re.match(rf"{block}\.(\d{{1,3}})\.", name) for name in fields)
    return sorted({int(match[1]) for match in named if match})


def without_block(fields: Mapping[str, str], block: str, number: int) -> Fields:
    """The fields without a block; those behind it move up."""
    left: Fields = {}
    for name, text in fields.items():
        match = re.match(rf"{block}\.(\d{{1,3}})\.(.*)", name)
        if match is None:
            left[name] = text
        elif (own := int(match[1])) != number:
            # True counts as 1: blocks behind the removed one have a number less.
            left[f"{block}.{own - (own > number)}.{match[2]}"] = text
    return left


def sweepable(fields: Mapping[str, str]) -> list[str]:
    """Keys that are often swept over: the pace, parameters of the workload and of the first query."""
    name = fields.get("workload.name", "")
    known = workloads.load(name).PARAMETERS if name in workloads.names() else ()
    lines = fields.get("query.0.parameters", "").splitlines()
    parameters = [line.partition("=")[0].strip() for line in lines if "=" in line]
    keys = ["feed.pace", *(f"workload.{key}" for key in known), *(f"query.parameters.{key}" for key in parameters)]
    return [key for key in keys if key.partition(".")[0] in SWEPT]


def _workload(fields: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, Any]:
    """The table of the workload; if another workload is chosen, the former one's keys are dropped."""
    name = fields.get("workload.name", "")
    table = dict(before) if name == before.get("name", "") else {}
    if not name:
        for key in RECORDED:
            text = fields.get(f"workload.{key}", "").strip()
            if isinstance(table.get(key), list | dict) and text == _shown(table[key]):
                continue
            _set(table, key, text or None)
        return table
    table["name"] = name
    for key in workloads.load(name).PARAMETERS if name in workloads.names() else ():
        _set(table, key, _value(fields.get(f"workload.{name}.{key}", ""), numbers=True))
    return table


def _query(fields: Mapping[str, str], number: int) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key in QUERY:
        text = fields.get(f"query.{number}.{key}", "")
        if text.strip():
            table[key] = text if key == "text" else text.strip()
    if parameters := dict(_assignments(fields.get(f"query.{number}.parameters", ""))):
        table["parameters"] = parameters
    return table


def _assignments(text: str) -> Iterator[tuple[str, Any]]:
    """The names and values of lines ``NAME = VALUE``."""
    for line in text.splitlines():
        if line.strip():
            name, _, value = line.partition("=")
            yield name.strip(), _value(value, numbers=True)


def _engine(fields: Mapping[str, str], number: int, before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The table of an engine; options and time unit of the engine at its place stay."""
    name = fields.get(f"engine.{number}.name", "")
    same = number < len(before) and before[number].get("name") == name
    table = {**(before[number] if same else {}), "name": name}
    start = f"engine.{number}.semantics."
    chosen = [key.removeprefix(start) for key in fields if key.startswith(start)]
    # In the order of the profiles, as a form sends its boxes in the order of the page.
    table["semantics"] = sorted(chosen, key=lambda name: list(PROFILES).index(name) if name in PROFILES else -1)
    return table


def _listed(part: Any) -> list[Mapping[str, Any]]:
    """The tables of a part, which may be a table or a list of tables."""
    return [table for table in (part if isinstance(part, list) else [part]) if isinstance(table, dict)]


def _swept(table: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, list[Any]]]:
    if isinstance(table, dict):
        for name, inner in table.items():
            yield from _swept(inner, (*keys, name))
    else:
        yield ".".join(keys), table if isinstance(table, list) else [table]


def _at(data: Any, name: str) -> Any:
    for key in name.split("."):
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _set(data: dict[str, Any], name: str, value: Any) -> None:
    """Set a key, or leave it out where there is no value."""
    table, _, last = name.rpartition(".")
    if value is not None:
        put(data, name, value)
    elif table == "" or isinstance(data.get(table), dict):
        (data[table] if table else data).pop(last, None)


def _shown(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return ", ".join(map(_shown, value))
        case bool():
            return "true" if value else "false"
        case dict():
            return toml(value)
    return str(value)


def _values(text: str) -> list[Any]:
    """The values of a list that is written with commas."""
    return [_value(part, numbers=True) for part in text.split(",") if part.strip()]


def _value(text: str, *, numbers: bool) -> Any:
    """A text as a value: what TOML reads as a number, a truth value, a text in quotes, or a list; else the text."""
    text = text.strip()
    if not text:
        return None
    if numbers and "," in text and not text.startswith("["):
        return _values(text)
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text
    plain = isinstance(value, str | int | float | bool | list)
    # In a field for text, 10 without quotes is the text "10".
    return value if plain and (numbers or isinstance(value, str)) else text
